package metrics

import (
	"slices"
	"strings"
	"time"
)

const (
	// maxSeries bounds the series of one metric; a histogram has a dozen lines
	// for each.
	maxSeries = 200
	// maxLabel is the longest value of a label, in bytes.
	maxLabel = 100
	// other stands for what has no series of its own.
	other = "other"
)

// vec is a metric with its series by the values of its labels.
type vec struct {
	Family
	series map[string]*series
}

// series is one line of numbers.
type series struct {
	labels  []string
	value   float64  // of a counter or gauge; the sum of a histogram
	count   uint64   // of a histogram
	buckets []uint64 // of a histogram: how many values fell into each, not below it
	bounds  []float64
}

// at returns the series of the given values. The caller holds the mutex.
func (m *Metrics) at(v *vec, labels ...string) *series {
	for i, l := range labels {
		labels[i] = label(l)
	}
	k := key(labels)
	if s := v.series[k]; s != nil {
		return s
	}
	if len(v.series) >= maxSeries {
		labels = slices.Repeat([]string{other}, len(labels))
		k = key(labels)
		if s := v.series[k]; s != nil {
			return s
		}
	}
	s := v.empty(slices.Clone(labels))
	v.series[k] = s
	return s
}

func (v *vec) empty(labels []string) *series {
	s := &series{labels: labels, bounds: v.Buckets}
	if v.Kind == Histogram {
		s.buckets = make([]uint64, len(v.Buckets))
	}
	return s
}

// label makes a value of a label of any text.
func label(s string) string {
	if s == "" {
		return "none"
	}
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\xff", ""), "?")
	if len(s) > maxLabel {
		s = strings.ToValidUTF8(s[:maxLabel], "") + "…"
	}
	return s
}

func (s *series) add(n float64) { s.value += n }

// took adds a duration to a histogram. The clock may have been set back.
func (s *series) took(d time.Duration) {
	seconds := max(d.Seconds(), 0)
	s.value += seconds
	s.count++
	if i, _ := slices.BinarySearch(s.bounds, seconds); i < len(s.buckets) {
		s.buckets[i]++
	}
}

// sorted returns the series in the order of their labels.
func (v *vec) sorted() []*series {
	all := make([]*series, 0, len(v.series))
	for _, s := range v.series {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *series) int { return slices.Compare(a.labels, b.labels) })
	return all
}
