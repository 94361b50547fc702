package providers

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// pixel is a picture of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// pairTurns are the two replies of a turn that asks for everything there is:
// thoughts, text, a file and a picture, all signed.
func pairTurns(n int) []porttest.Reply {
	read := func(id int, path string) porttest.ReplyPart {
		return porttest.SendCall{ID: fmt.Sprintf("call_%d_%d", n, id), Name: "read_file", Args: fmt.Sprintf(`{"path":%q,"limit":%d}`, path, 100+n), Pieces: 2}
	}
	return []porttest.Reply{
		{Signed: true, Parts: []porttest.ReplyPart{
			porttest.SendThought(fmt.Sprintf("Thought %d. ", n)), porttest.SendText(fmt.Sprintf("I read %d. ", n)),
			read(1, "a.txt"), read(2, "pixel.png"),
		}},
		{Signed: true, Parts: []porttest.ReplyPart{porttest.SendThought(fmt.Sprintf("Well, %d. ", n)), porttest.SendText(fmt.Sprintf("Done %d.", n))}},
	}
}

// TestPairs has a session begin with each provider type and goes on with every
// other one, and with the first again: every ordered pair is met. The program
// is started anew each time, with another model in its configuration. Each
// server is as strict as the real one, gets back what it signed, and sees
// nothing that another one thought.
func TestPairs(t *testing.T) {
	all := dialects()
	r := &rig{t: t, told: make(chan struct{}, 1)}
	r.furnish()
	png, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.project, "pixel.png"), png, 0o600); err != nil {
		t.Fatal(err)
	}
	var settings strings.Builder
	servers := make([]*llmtest.Server, len(all))
	for i, d := range all {
		var replies []porttest.Reply
		for n := range 2 * len(all) {
			replies = append(replies, pairTurns(thoughtsEach*(i+1)+n)...) // servers know their replies by what they say
		}
		servers[i] = d.New().Replies(replies...)
		wire := httptest.NewServer(servers[i])
		t.Cleanup(wire.Close)
		settings.WriteString(provider(fmt.Sprintf("p%d", i), d, wire.URL, 0) + "images = true\nthoughts = true\n")
	}
	sessions, turns := make([]string, len(all)), 0
	for round := range 2 {
		for now, d := range all {
			stop := r.start(fmt.Sprintf("[agents.default]\nmodel = \"p%d/%s\"\nmax_output_tokens = 1000\n", now, d.Model) + settings.String())
			for first := range all {
				if first <= now && round == 0 || first >= now && round == 1 {
					r.pairTurn(&sessions[first], fmt.Sprintf("begun with %s, now with %s, round %d", all[first].Name, d.Name, round))
					turns++
				}
			}
			stop()
			for _, p := range servers[now].Problems() {
				t.Errorf("%s, round %d: the provider would refuse the request: %s", d.Name, round, p)
			}
			for other := range all {
				for _, body := range servers[now].Bodies() {
					if thought := fmt.Sprintf("Thought %d", other+1); other != now && strings.Contains(body, thought) {
						t.Errorf("%s, round %d: what %s thought was sent to it", d.Name, round, all[other].Name)
					}
				}
			}
			if t.Failed() {
				t.FailNow()
			}
		}
	}
	t.Logf("%d turns", turns)
}

// thoughtsEach is the distance between the numbers of the thoughts of two
// servers.
const thoughtsEach = 100

// pairTurn runs a turn of a session, a new one if it has no name yet.
func (r *rig) pairTurn(session *string, what string) {
	r.t.Helper()
	var err error
	if *session == "" {
		*session, err = r.client.NewSession(r.t.Context(), r.project, nil)
	} else {
		err = r.client.Load(r.t.Context(), *session, r.project)
	}
	if err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
	r.mu.Lock()
	r.session, r.updates = *session, nil
	r.mu.Unlock()
	_, err = r.client.Call(r.t.Context(), "session/prompt", map[string]any{"sessionId": r.session, "prompt": []map[string]any{
		{"type": "text", "text": "Look at this"}, {"type": "image", "mimeType": "image/png", "data": pixel},
	}})
	if err != nil {
		r.t.Errorf("%s: %v", what, err)
	}
	if n, _ := r.count("tool_call"); n != 2 || !strings.Contains(r.seen("agent_message_chunk"), "Done ") {
		r.t.Errorf("%s: %d calls, %q shown", what, n, r.seen("agent_message_chunk"))
	}
}
