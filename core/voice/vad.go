package voice

import "math"

// A Detector reports whether a frame of 20 ms contains speech. It gets the frames
// of one recording in order.
type Detector interface {
	Speech(frame []int16) bool
}

// Energies are mean squares of samples.
const (
	aboveFloor = 4       // times the noise: 6 dB
	leastLoud  = 1_000   // -60 dBFS; anything quieter is silence
	leastNoise = 60      // -72 dBFS
	mostNoise  = 107_000 // -40 dBFS: the most that the first frame is believed to be noise
	rises      = 1.0093  // of the floor in a frame: 2 dB/s
	falls      = 0.25    // of the distance to a quieter frame
	loudest    = 32768 * 32768
)

// Energy is a Detector that compares a frame's energy with that of the noise, which
// it follows: fast when it gets quieter, by 2 dB/s when it gets louder. The zero
// value is ready to use.
type Energy struct{ floor float64 }

// Speech reports whether the frame is 6 dB louder than the noise.
func (e *Energy) Speech(frame []int16) bool {
	loud := energyOf(frame)
	if e.floor == 0 {
		e.floor = min(max(loud, leastNoise), mostNoise)
	}
	if loud < e.floor {
		e.floor += falls * (loud - e.floor)
	} else {
		e.floor = min(e.floor*rises, loud)
	}
	e.floor = max(e.floor, leastNoise)
	return loud > leastLoud && loud > aboveFloor*e.floor
}

// energyOf returns the mean square of samples, 0 for none.
func energyOf(pcm []int16) float64 {
	if len(pcm) == 0 {
		return 0
	}
	sum := int64(0)
	for _, v := range pcm {
		sum += int64(v) * int64(v)
	}
	return math.Min(float64(sum)/float64(len(pcm)), loudest)
}
