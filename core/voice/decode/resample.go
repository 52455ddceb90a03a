package decode

import (
	"math"

	"gatehouse/core/voice"
)

const (
	crossings = 16  // of the filter on each side
	maxPhases = 512 // of the filter that are computed
)

// A resampler changes the rate of a signal to 16 kHz by a windowed sinc filter.
type resampler struct {
	rate   int
	half   int         // taps on each side
	phases [][]float32 // taps for each place between two samples
	in     []float32   // the samples around the next output
	first  int64       // index of in[0]
	n      int64       // outputs so far
	last   int64       // samples after the end; -1 while it is not known
}

func newResampler(rate int) *resampler {
	step, count := rate, voice.Rate
	for step != 0 {
		step, count = count%step, step
	}
	count = min(voice.Rate/count, maxPhases)
	cutoff := min(1, float64(voice.Rate)/float64(rate)) * 0.95
	r := &resampler{rate: rate, half: int(math.Ceil(crossings / cutoff)), last: -1}
	for p := range count {
		taps, sum := make([]float32, 2*r.half), 0.0
		for i := range taps {
			x := float64(i-r.half+1) - float64(p)/float64(count)
			v := cutoff
			if x != 0 {
				v = math.Sin(math.Pi*x*cutoff) / (math.Pi * x)
			}
			v *= 0.5 + 0.5*math.Cos(math.Pi*max(-1, min(1, x/float64(r.half))))
			taps[i], sum = float32(v), sum+v
		}
		for i := range taps {
			taps[i] /= float32(sum)
		}
		r.phases = append(r.phases, taps)
	}
	r.in = make([]float32, r.half-1) // silence before the beginning
	r.first = -int64(len(r.in))
	return r
}

func (r *resampler) add(v float32) { r.in = append(r.in, v) }

// end adds silence after the last sample; false if that was done.
func (r *resampler) end() bool {
	if r.last >= 0 {
		return false
	}
	r.last = r.first + int64(len(r.in))
	r.in = append(r.in, make([]float32, 2*r.half)...)
	return true
}

// next returns the next output, if its samples are there.
func (r *resampler) next() (v float32, ok bool) {
	at := r.n * int64(r.rate)
	whole, part := at/voice.Rate, at%voice.Rate
	if r.last >= 0 && whole >= r.last {
		return 0, false
	}
	from := int(whole-r.first) - r.half + 1
	if from+2*r.half > len(r.in) {
		if from > 4096 {
			r.first += int64(from)
			r.in = append(r.in[:0], r.in[from:]...)
		}
		return 0, false
	}
	taps := r.phases[int(part)*len(r.phases)/voice.Rate]
	for i, x := range r.in[from : from+2*r.half] {
		v += x * taps[i]
	}
	r.n++
	return v, true
}
