package exec

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	// termGrace is how long a command may take to end by itself once it was
	// asked to.
	termGrace = 2 * time.Second
	// cancelGrace is the same when the call was cancelled and does not wait.
	cancelGrace = 800 * time.Millisecond
	// closeGrace is the same when the session closes.
	closeGrace = 500 * time.Millisecond
	// killAgain is how long after a kill the next one follows.
	killAgain = 300 * time.Millisecond
	// drainGrace is how long output is still read when the command has ended
	// and something else holds its end of the pipe.
	drainGrace = 100 * time.Millisecond
	// pieceSize is how much is read at once, in bytes.
	pieceSize = 128 << 10
)

// cause says why a command is made to end.
type cause int

const (
	notStopped cause = iota
	stopTimeout
	stopCancel
	stopKill
	stopClose
)

// job is one command from its start until nothing of it lives.
type job struct {
	id      string // of a background job
	line    string
	out     *output
	started time.Time
	limit   time.Duration

	proc  Process
	pipe  *os.File
	stopc chan cause

	ended chan struct{} // closed when how it ended is known and its output is complete
	gone  chan struct{} // closed when nothing of it lives

	mu       sync.Mutex
	end      End
	why      cause
	duration time.Duration
	err      error // our machinery broke
	leftover error // what Close said
}

// startJob starts a process. On an error nothing runs and the process is
// closed.
func startJob(p Process, line string, out *output, limit time.Duration) (*job, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("exec: pipe for the output: %w", err), p.Close())
	}
	widen(w)
	j := &job{
		line: line, out: out, limit: limit, proc: p, pipe: r, started: time.Now(),
		stopc: make(chan cause, 8), ended: make(chan struct{}), gone: make(chan struct{}),
	}
	err = p.Start(w)
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		out.end()
		return nil, errors.Join(err, p.Close())
	}
	go j.watch()
	return j, nil
}

// stop makes the command end; the first cause counts.
func (j *job) stop(why cause) {
	select {
	case j.stopc <- why:
	default: // it was asked often enough
	}
}

// watch owns the job's goroutines: one reads, one waits, and it ends the
// command when its time is up or someone asks. It ends when nothing of the
// command lives.
func (j *job) watch() {
	defer close(j.gone)
	read := make(chan struct{})
	go func() { // ends with the pipe, at the latest by its deadline
		defer close(read)
		j.read()
	}()
	var end End
	var err error
	waited := make(chan struct{})
	go func() { // ends with the command
		defer close(waited)
		end, err = j.proc.Wait()
	}()
	why := j.await(waited)
	_ = j.pipe.SetReadDeadline(time.Now().Add(drainGrace))
	<-read
	drain(j.pipe, j.out.write)
	_ = j.pipe.Close()
	j.out.end()
	j.mu.Lock()
	j.end, j.err, j.why, j.duration = end, err, why, time.Since(j.started)
	j.mu.Unlock()
	close(j.ended)
	left := j.proc.Close()
	j.mu.Lock()
	j.leftover = left
	j.mu.Unlock()
}

// await waits for the command's end and sees to it that it comes: at the
// time limit, or when stop was called, everything is asked to end, and
// killed when it has not after a grace. It returns why it was made to.
func (j *job) await(waited <-chan struct{}) cause {
	timeout := time.NewTimer(j.limit)
	defer timeout.Stop()
	var killAt <-chan time.Time
	why := notStopped
	ask := func(c cause, grace time.Duration) {
		if why == notStopped {
			why = c
		}
		_ = j.proc.Terminate()
		killAt = time.After(grace)
	}
	for {
		select {
		case <-waited:
			return why
		case <-timeout.C:
			if why == notStopped {
				ask(stopTimeout, termGrace)
			}
		case c := <-j.stopc:
			switch {
			case c == stopClose:
				ask(c, closeGrace)
			case why != notStopped:
			case c == stopCancel:
				ask(c, cancelGrace)
			default:
				ask(c, termGrace)
			}
		case <-killAt:
			_ = j.proc.Kill()
			killAt = time.After(killAgain)
		}
	}
}

// read takes the output until its end, or until the deadline that is set
// when the command has ended.
func (j *job) read() {
	piece := make([]byte, pieceSize)
	for {
		n, err := j.pipe.Read(piece)
		if n > 0 {
			j.out.write(piece[:n])
		}
		if err != nil {
			return // io.EOF, or the deadline
		}
	}
}

// result returns how the command ended; valid once ended is closed.
func (j *job) result() (End, cause, time.Duration, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.end, j.why, j.duration, j.err
}

// over reports whether the command has ended.
func (j *job) over() bool {
	select {
	case <-j.ended:
		return true
	default:
		return false
	}
}
