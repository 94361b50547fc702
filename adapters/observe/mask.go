package observe

import (
	"bytes"
	"io"
	"sync"
)

// shortest is the length below which a secret is not masked: shorter values
// would hit ordinary words.
const shortest = 6

// masker writes lines with known secret values replaced.
type masker struct {
	out     io.Writer
	secrets func() []string
	once    sync.Once
	values  [][]byte
}

// Write masks and writes one line. It reports the whole line as written, so
// that callers do not see the difference in length.
func (m *masker) Write(line []byte) (int, error) {
	m.once.Do(func() {
		if m.secrets == nil {
			return
		}
		for _, s := range m.secrets() {
			if len(s) >= shortest {
				m.values = append(m.values, []byte(s))
			}
		}
	})
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
