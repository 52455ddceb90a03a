package report

import (
	"sort"
	"time"
)

// Percentiles of a set of times, in milliseconds.
type Percentiles struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// Summary returns the percentiles of d, which it sorts.
func Summary(d []time.Duration) Percentiles {
	if len(d) == 0 {
		return Percentiles{}
	}
	sort.Slice(d, func(i, j int) bool { return d[i] < d[j] })
	at := func(q float64) float64 { return MS(d[min(len(d)-1, int(q*float64(len(d))))]) }
	return Percentiles{N: len(d), P50: at(.5), P95: at(.95), P99: at(.99), Max: MS(d[len(d)-1])}
}

// MS returns d in milliseconds.
func MS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Median returns the median of list, 0 of none.
func Median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	s := append([]float64(nil), list...)
	sort.Float64s(s)
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
