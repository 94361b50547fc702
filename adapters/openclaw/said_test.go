package openclaw

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// TestSaid tells pieces, wholes and entries of the transcript in orders that a
// cut can bring about.
func TestSaid(t *testing.T) {
	piece := func(delta, whole string) func(*said) []domain.Update {
		return func(s *said) []domain.Update {
			raw, _ := json.Marshal(map[string]string{"delta": delta, "text": whole, "itemId": "i"})
			return s.agent(fieldsOf(raw))
		}
	}
	entry := func(calls int, whole string) func(*said) []domain.Update {
		return func(s *said) []domain.Update {
			return s.messageOf("", whole, &makingUp{seen: map[*utterance]bool{}, calls: calls})
		}
	}
	doubt := func(s *said) []domain.Update { s.doubt(); return nil }
	call := func(s *said) []domain.Update { s.calls++; return nil }
	tests := []struct {
		name  string
		steps []func(*said) []domain.Update
		want  string // a bar between messages
	}{
		{"pieces", []func(*said) []domain.Update{piece("a", "a"), piece("b", "ab")}, "ab"},
		{"a piece was missed", []func(*said) []domain.Update{piece("a", "a"), doubt, piece("c", "abc"), piece("d", "abcd")}, "abcd"},
		{
			"what is held was made up for", []func(*said) []domain.Update{
				piece("a", "a"), doubt, entry(0, "abcd "), doubt, piece("b", "ab"), piece("cd", "abcd"), piece(" e", "abcd e"), piece("f", "abcd ef"),
			}, "abcd ef",
		},
		{"the transcript is behind", []func(*said) []domain.Update{piece("ab", "ab"), doubt, entry(0, "a"), piece("c", "abc")}, "abc"},
		{"white space at the end", []func(*said) []domain.Update{piece("ab", "ab"), doubt, entry(0, "ab \n")}, "ab"},
		{"another message that begins alike", []func(*said) []domain.Update{piece("ab", "ab"), call, doubt, entry(1, "abc")}, "ab|abc"},
		{"the one before the call, too", []func(*said) []domain.Update{piece("ab", "ab"), call, doubt, entry(0, "abc")}, "abc"},
		{"a message that the transcript told first", []func(*said) []domain.Update{doubt, entry(0, "ab"), doubt, piece("b", "ab"), piece("c", "abc")}, "abc"},
		{"another text", []func(*said) []domain.Update{piece("ab", "ab"), doubt, piece("d", "xyd")}, "ab|xyd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &said{run: "r", fromAgent: true}
			var out []string
			var last domain.MessageID
			for _, step := range tt.steps {
				for _, u := range step(s) {
					m := u.(domain.AgentText)
					if m.ID != last {
						out, last = append(out, ""), m.ID
					}
					out[len(out)-1] += m.Text
				}
			}
			if got := strings.Join(out, "|"); got != tt.want {
				t.Errorf("told %q, want %q", got, tt.want)
			}
		})
	}
}
