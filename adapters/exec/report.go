package exec

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// facts are what a client is told about a command in numbers.
type facts struct {
	Job        string `json:"job,omitempty"`
	Running    bool   `json:"running,omitempty"`
	ExitCode   *int   `json:"exit_code"`
	Signal     string `json:"signal,omitempty"`
	TimedOut   bool   `json:"timed_out,omitempty"`
	Cancelled  bool   `json:"cancelled,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Bytes      int64  `json:"output_bytes"`
	Truncated  bool   `json:"truncated"`
	File       string `json:"output_file,omitempty"`
}

// report is a command as it stands, with that much of its output. It failed
// unless it exited with 0 or still runs as it should.
func (j *job) report(s shown) domain.ToolResult {
	f := facts{Job: j.id, Bytes: s.raw, Truncated: s.truncated, File: s.file}
	status, ok := j.status(&f)
	var b strings.Builder
	fmt.Fprintf(&b, "[%s]\n", status)
	b.WriteString(s.text)
	if s.text == "" {
		b.WriteString("(no output)")
	}
	for _, note := range j.notes(s) {
		if text := b.String(); text[len(text)-1] != '\n' {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[%s]\n", note)
	}
	raw, err := json.Marshal(f)
	if err != nil {
		raw = nil // cannot happen with these types
	}
	r := domain.ToolResult{Failed: !ok, Text: b.String(), RawOutput: raw}
	r.Content = block(r.Text)
	if len(r.Text) > maxShown {
		r.Content = block(r.Text[:len("[")+len(status)+len("]\n")] + "[... the user is shown the end of it ...]\n" + lastBytes(r.Text, maxShown))
	}
	return r
}

// body is a report without its first line.
func body(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	return rest
}

// status says in words how the command stands. ok means that nothing is
// wrong.
func (j *job) status(f *facts) (words string, ok bool) {
	if !j.over() {
		took := time.Since(j.started)
		f.DurationMS = took.Milliseconds()
		if j.id == "" {
			f.Cancelled = true
			return "cancelled after " + seconds(took) + "; the command is being ended", false
		}
		f.Running = true
		return "job " + j.id + " has been running for " + seconds(took), true
	}
	end, why, took, err := j.result()
	f.DurationMS, f.ExitCode = took.Milliseconds(), &end.Code
	if end.Signal != 0 {
		f.Signal = signalName(end.Signal)
	}
	name := ""
	if j.id != "" {
		name = "job " + j.id + ": "
	}
	if err != nil {
		return name + "it could not be run: " + reasonOf(err), false
	}
	how := exitWords(end)
	switch why {
	case stopTimeout:
		f.TimedOut = true
		return name + "timed out after " + seconds(j.limit) + " and was ended, " + how + "; what it wrote until then follows", false
	case stopCancel:
		f.Cancelled = true
		return name + "cancelled after " + seconds(took) + " and ended, " + how, false
	case stopKill, stopClose:
		return name + "ended on request after " + seconds(took) + ", " + how, why == stopKill
	}
	return name + how + ", " + seconds(took), end.Code == 0
}

func exitWords(end End) string {
	switch sig := syscall.Signal(end.Code - 128); {
	case end.Signal != 0:
		return "killed by " + signalName(end.Signal)
	case end.Code > 128 && end.Code <= 128+31 && !strings.HasPrefix(signalName(sig), "signal"):
		return fmt.Sprintf("exit code %d (what %s leaves)", end.Code, signalName(sig))
	}
	return fmt.Sprintf("exit code %d", end.Code)
}

// notes are what else there is to know.
func (j *job) notes(s shown) []string {
	var notes []string
	if s.truncated {
		notes = append(notes, fmt.Sprintf("the command wrote %s in all; %s", bytesWords(s.raw), s.where()))
	}
	if s.dropped > 0 {
		notes = append(notes, fmt.Sprintf("%s of it were no text and are not shown", bytesWords(s.dropped)))
	}
	if !j.over() {
		return notes
	}
	end, why, _, _ := j.result()
	if end.Left > 0 && why == notStopped {
		what := "a process that it left running was ended"
		if end.Left > 1 {
			what = fmt.Sprintf("%d processes that it left running were ended", end.Left)
		}
		notes = append(notes, what+"; set background to let such things stay")
	}
	if len(end.Undone) > 0 {
		note := "these files are protected; they were made and removed again: " + strings.Join(end.Undone, ", ")
		if end.Kept != "" {
			note += "; copies for the user are in " + end.Kept
		}
		notes = append(notes, note)
	}
	return notes
}

// seconds is a duration for people.
func seconds(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
