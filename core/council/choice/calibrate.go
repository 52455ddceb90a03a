package choice

import "math"

// Bins of a calibration, and how many outcomes it needs.
const (
	Bins       = 10
	MinSamples = 30
)

// A Bin counts the outcomes of answers whose reported confidence was in one tenth of
// the range.
type Bin struct {
	Sum  float64 `json:"sum"`  // of the confidences
	Wins float64 `json:"wins"` // answers that were right
	Runs float64 `json:"runs"`
}

// BinOf returns the bin of a confidence from 0 to 1.
func BinOf(confidence float64) int {
	if !(confidence > 0) {
		return 0
	}
	return min(int(confidence*Bins), Bins-1)
}

// A Calibration maps reported confidences to the share of right answers. The zero
// value maps each to itself.
type Calibration struct {
	at, value []float64 // ascending
}

// Calibrate returns the isotonic regression over the bins: the share of right answers
// grows with the reported confidence. Below MinSamples outcomes it is the identity.
func Calibrate(bins [Bins]Bin) Calibration {
	type block struct{ sum, wins, runs float64 }
	var blocks []block
	total := 0.0
	for _, b := range bins {
		e := Evidence{b.Wins, b.Runs}.valid()
		if e.Runs == 0 || !(b.Sum >= 0) || b.Sum > e.Runs {
			continue
		}
		total += e.Runs
		blocks = append(blocks, block{b.Sum, e.Wins, e.Runs})
		for n := len(blocks); n > 1 && blocks[n-2].wins*blocks[n-1].runs >= blocks[n-1].wins*blocks[n-2].runs; n-- {
			blocks[n-2] = block{blocks[n-2].sum + blocks[n-1].sum, blocks[n-2].wins + blocks[n-1].wins, blocks[n-2].runs + blocks[n-1].runs}
			blocks = blocks[:n-1]
		}
	}
	if total < MinSamples {
		return Calibration{}
	}
	var c Calibration
	for _, b := range blocks {
		c.at, c.value = append(c.at, b.sum/b.runs), append(c.value, b.wins/b.runs)
	}
	return c
}

// Of returns the calibrated confidence, from 0 to 1. Between the means of two blocks
// it is interpolated, outside of them it is the nearest one's.
func (c Calibration) Of(confidence float64) float64 {
	if math.IsNaN(confidence) {
		return Unreported
	}
	confidence = min(max(confidence, 0), 1)
	n := len(c.at)
	if n == 0 {
		return confidence
	}
	if confidence <= c.at[0] {
		return c.value[0]
	}
	for i := 1; i < n; i++ {
		if span := c.at[i] - c.at[i-1]; confidence <= c.at[i] && span > 0 {
			return c.value[i-1] + (c.value[i]-c.value[i-1])*(confidence-c.at[i-1])/span
		}
	}
	return c.value[n-1]
}
