package metrics

import (
	"runtime"
	runtimemetrics "runtime/metrics"
)

// process is what the runtime and the system say of this process.
type process struct {
	goroutines, heap, live, memory, gcs float64
	system                              bool // the rest is known
	cpu, resident, fds                  float64
}

func goVersion() string { return runtime.Version() }

// readProcess asks the runtime, which stops nothing for it, and the system.
func readProcess() process {
	samples := []runtimemetrics.Sample{
		{Name: "/sched/goroutines:goroutines"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	runtimemetrics.Read(samples)
	var p process
	for i, to := range []*float64{&p.goroutines, &p.heap, &p.live, &p.memory, &p.gcs} {
		if samples[i].Value.Kind() == runtimemetrics.KindUint64 {
			*to = float64(samples[i].Value.Uint64())
		}
	}
	p.askSystem()
	return p
}

// lookAt takes it over.
func (m *Metrics) lookAt(p process) {
	m.at(m.goroutines).value = p.goroutines
	m.at(m.heap).value = p.heap
	m.at(m.live).value = p.live
	m.at(m.memory).value = p.memory
	m.at(m.gcs).value = p.gcs
	if p.system {
		m.at(m.cpu).value = p.cpu
		m.at(m.resident).value = p.resident
		m.at(m.fds).value = p.fds
	}
}
