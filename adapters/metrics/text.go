package metrics

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// contentType is that of the text format.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// ServeHTTP answers a scrape. Who may ask is decided before it.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET is answered here", http.StatusMethodNotAllowed)
		return
	}
	text := m.Text()
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(text) // whoever left does not want it
	}
}

// Text is one scrape.
func (m *Metrics) Text() []byte {
	var now State
	if m.cfg.State != nil {
		now = m.cfg.State()
	}
	p := readProcess()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cfg.State != nil {
		m.look(now)
	}
	m.lookAt(p)
	var out []byte
	for _, v := range m.vecs {
		out = v.write(out)
	}
	return out
}

// look takes over how things stand.
func (m *Metrics) look(now State) {
	m.at(m.running).value = float64(now.Running)
	m.at(m.queued).value = float64(now.Queued)
	m.at(m.asking).value = float64(now.Asking)
	m.at(m.draining).value = 0
	if now.Draining {
		m.at(m.draining).value = 1
	}
	if !now.CertificateEnds.IsZero() {
		m.at(m.certificate).value = unix(now.CertificateEnds)
	}
	for _, s := range m.sessions.series {
		s.value = 0
	}
	for state, n := range now.Sessions {
		m.at(m.sessions, state).value = float64(n)
	}
}

// write appends the lines of a metric; none when it has no series.
func (v *vec) write(out []byte) []byte {
	if len(v.series) == 0 {
		return out
	}
	out = append(out, "# HELP "+v.Name+" "+escape(v.Help, false)+"\n# TYPE "+v.Name+" "+string(v.Kind)+"\n"...)
	for _, s := range v.sorted() {
		if v.Kind != Histogram {
			out = line(out, v.Name, v.Labels, s.labels, s.value)
			continue
		}
		names, below := append(slices.Clone(v.Labels), "le"), uint64(0)
		for i, bound := range v.Buckets {
			below += s.buckets[i]
			out = line(out, v.Name+"_bucket", names, append(slices.Clone(s.labels), number(bound)), float64(below))
		}
		out = line(out, v.Name+"_bucket", names, append(slices.Clone(s.labels), "+Inf"), float64(s.count))
		out = line(out, v.Name+"_sum", v.Labels, s.labels, s.value)
		out = line(out, v.Name+"_count", v.Labels, s.labels, float64(s.count))
	}
	return out
}

// line appends one sample.
func line(out []byte, name string, labels, values []string, value float64) []byte {
	out = append(out, name...)
	for i, l := range labels {
		sep := byte(',')
		if i == 0 {
			sep = '{'
		}
		out = append(append(append(append(out, sep), l...), `="`...), escape(values[i], true)...)
		out = append(out, '"')
	}
	if len(labels) > 0 {
		out = append(out, '}')
	}
	return append(append(append(out, ' '), number(value)...), '\n')
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// escape writes a help text, or the value of a label, as the format wants it.
func escape(s string, quoted bool) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "\n", `\n`)
	if quoted {
		s = strings.ReplaceAll(s, `"`, `\"`)
	}
	return s
}
