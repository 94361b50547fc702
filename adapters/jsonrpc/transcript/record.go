package transcript

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// Dir is the direction of a frame.
type Dir byte

// The directions.
const (
	ToAgent  Dir = '>'
	ToClient Dir = '<'
)

// Frame is one frame as it passed: a message, or bytes that are none.
type Frame struct {
	Time   time.Time
	Dir    Dir
	Client string // which client's connection; "" and "main" are the first
	Data   []byte
}

// jsonFrame is a Frame in JSONL.
type jsonFrame struct {
	T      any             `json:"t"` // RFC 3339, or seconds since some start
	Dir    string          `json:"dir"`
	Client string          `json:"client,omitempty"`
	Msg    json.RawMessage `json:"msg,omitempty"`
	Raw    *string         `json:"raw,omitempty"` // if it is no message
}

// AppendJSONL appends the frame as one line:
//
//	{"t":"2026-01-02T15:04:05.000001Z","dir":">","msg":{…}}
//
// Bytes that are not valid JSON stand in "raw", invalid UTF-8 replaced.
func (f Frame) AppendJSONL(dst []byte) []byte {
	dst = append(dst, `{"t":"`...)
	dst = f.Time.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
	dst = append(dst, `","dir":"`...)
	dst = append(dst, byte(f.Dir), '"')
	if f.Client != "" && f.Client != firstClient {
		dst = append(dst, `,"client":`...)
		dst = jsonrpc.AppendString(dst, f.Client)
	}
	if flat, err := compact(f.Data); err == nil {
		dst = append(dst, `,"msg":`...)
		dst = append(dst, flat...)
	} else {
		dst = append(dst, `,"raw":`...)
		dst = jsonrpc.AppendString(dst, string(f.Data))
	}
	return append(dst, "}\n"...)
}

// maxJSONLLine is the longest line ReadJSONL takes.
const maxJSONLLine = 256 << 20

// ReadJSONL reads what AppendJSONL wrote, and files like it whose "t" is in
// seconds.
func ReadJSONL(r io.Reader) ([]Frame, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxJSONLLine)
	var frames []Frame
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		f, err := readFrame(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		frames = append(frames, f)
	}
	return frames, lines.Err()
}

func readFrame(line []byte) (Frame, error) {
	var j jsonFrame
	if err := jsonrpc.Unmarshal(line, &j); err != nil {
		return Frame{}, err
	}
	f := Frame{Client: j.Client, Data: j.Msg}
	switch j.Dir {
	case ">", "<":
		f.Dir = Dir(j.Dir[0])
	default:
		return f, fmt.Errorf(`"dir" is %q, want ">" or "<"`, j.Dir)
	}
	switch t := j.T.(type) {
	case string:
		var err error
		if f.Time, err = time.Parse(time.RFC3339Nano, t); err != nil {
			return f, err
		}
	case float64:
		if math.Abs(t) > 1e12 {
			return f, fmt.Errorf(`"t" is %s, too large for seconds`, strconv.FormatFloat(t, 'g', -1, 64))
		}
		f.Time = time.UnixMicro(int64(t * 1e6)).UTC()
	}
	switch {
	case j.Raw != nil && j.Msg == nil:
		f.Data = []byte(*j.Raw)
	case j.Msg == nil || j.Raw != nil:
		return f, fmt.Errorf(`want "msg" or "raw"`)
	}
	return f, nil
}

// Tap returns frames that show everything that passes to monitor, one call at
// a time, before it is sent and after it was received. read is the direction
// of what Read brings: ToClient at a client's end. now stamps the frames.
func Tap(f jsonrpc.Frames, read Dir, now func() time.Time, monitor func(Frame)) jsonrpc.Frames {
	t := &tap{Frames: f, read: read, now: now, monitor: monitor}
	if c, ok := f.(jsonrpc.CloseWriter); ok {
		return &halfTap{t, c}
	}
	return t
}

type tap struct {
	jsonrpc.Frames
	read    Dir
	now     func() time.Time
	mu      sync.Mutex
	monitor func(Frame)
}

// halfTap is a tap on a transport that can close one direction.
type halfTap struct {
	*tap
	jsonrpc.CloseWriter
}

func (t *tap) Read() ([]byte, error) {
	frame, err := t.Frames.Read()
	if err == nil {
		t.show(t.read, frame)
	}
	return frame, err
}

func (t *tap) Write(frame []byte) error {
	other := ToAgent
	if t.read == ToAgent {
		other = ToClient
	}
	t.show(other, append([]byte(nil), frame...))
	return t.Frames.Write(frame)
}

func (t *tap) show(dir Dir, data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.monitor(Frame{Time: t.now(), Dir: dir, Data: data})
}
