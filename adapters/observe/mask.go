package observe

import (
	"bytes"
	"io"
)

// shortest is the length below which a secret is not masked: shorter values
// would hit ordinary words.
const shortest = 6

// masker writes lines with known secret values replaced. It is written to by
// the log's ring alone, one line at a time.
type masker struct {
	out     io.Writer
	secrets func() []string
	asked   int // how many values secrets returned the last time
	values  [][]byte
}

// Write masks and writes one line. It reports the whole line as written, so
// that callers do not see the difference in length.
func (m *masker) Write(line []byte) (int, error) {
	m.learn()
	masked := line
	for _, v := range m.values {
		if bytes.Contains(masked, v) {
			masked = bytes.ReplaceAll(masked, v, []byte("[secret]"))
		}
	}
	if _, err := m.out.Write(masked); err != nil {
		return 0, err
	}
	return len(line), nil
}

// learn takes up the values that are new.
func (m *masker) learn() {
	if m.secrets == nil {
		return
	}
	all := m.secrets()
	for _, s := range all[m.asked:] {
		if len(s) >= shortest {
			m.values = append(m.values, []byte(s))
		}
	}
	m.asked = len(all)
}
