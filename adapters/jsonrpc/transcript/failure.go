package transcript

import (
	"errors"
	"fmt"
	"strings"
)

// Failure is where and why a play went wrong.
type Failure struct {
	Line    int
	Text    string  // the line as it reads
	Verdict Verdict // Unmet: nothing came in time; Unmeetable: something else did
	Why     string
	Got     []byte  // the frame that decided it; nil if none
	Recent  []Frame // the last frames in both directions, oldest first
	Err     error   // what failed beneath, if anything did
}

// maxRecent is how many frames a failure shows.
const maxRecent = 12

func (p *player) failure(l *Line, err error) error {
	f := &Failure{Line: l.N, Text: l.head(), Verdict: Unmeetable, Why: err.Error(), Err: err}
	var m *mismatch
	if errors.As(err, &m) {
		f.Verdict, f.Got, f.Err = m.verdict, m.got, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f.Recent = append(f.Recent, p.run.Frames[max(0, len(p.run.Frames)-maxRecent):]...)
	return f
}

// Error tells the whole story: the line, the reason, the frame, what went
// before.
func (f *Failure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "line %d: %s\n  %s: %s", f.Line, f.Text, f.Verdict, f.Why)
	if f.Got != nil {
		fmt.Fprintf(&b, "\n  got: %s", short(f.Got))
	}
	if len(f.Recent) > 0 {
		b.WriteString("\n  recent frames:")
		start := f.Recent[0].Time
		for _, r := range f.Recent {
			fmt.Fprintf(&b, "\n    %8.3fs %s%c %s", r.Time.Sub(start).Seconds(), of(r.Client), r.Dir, short(r.Data))
		}
	}
	return b.String()
}

// Unwrap returns what failed beneath.
func (f *Failure) Unwrap() error { return f.Err }

func of(client string) string {
	if client == firstClient {
		return ""
	}
	return client + " "
}

func short(data []byte) string {
	if len(data) > maxShown {
		return fmt.Sprintf("%s… (%d bytes)", data[:shownOf(data)], len(data))
	}
	return string(data)
}
