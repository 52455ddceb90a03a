package report

import (
	"fmt"
	"time"
)

// IndexFigures are what was measured of the search index.
type IndexFigures struct {
	Passages int             `json:"passages"`
	Filled   float64         `json:"filled_per_s"`       // passages, without vectors
	Vectors  float64         `json:"vectors_per_s"`      // stored
	Words    []time.Duration `json:"words_ns,omitempty"` // of one search by two words
	Hybrid   []time.Duration `json:"hybrid_ns,omitempty"`
	Grown    float64         `json:"grown_mib"` // memory of the process that is no page of a file, at rest
	Bytes    int64           `json:"bytes"`     // of the database
}

// Index is what the search index takes, and how long searches do.
type Index struct {
	IndexFigures
	WordTimes   Percentiles `json:"words"`
	HybridTimes Percentiles `json:"hybrid"`
}

// indexGoals judges the search index, by the goals of 100,000 passages or of a million.
func (b *Report) indexGoals() []line {
	d := b.Index
	if d == nil {
		return nil
	}
	with := fmt.Sprintf(", %d passages", d.Passages)
	fill := line{what: "search index: filled without vectors" + with, goal: "≥ 2000/s", measured: fmt.Sprintf("%.0f/s", d.Filled), met: d.Filled >= 2000}
	if !fill.met {
		fill.missed = fmt.Sprintf("by %.0f %%", (1-d.Filled/2000)*100)
	}
	memory := atMost("search index: memory at rest, by how much it grows"+with, d.Grown, 6, "MiB", "")
	if d.Passages >= 1_000_000 { // of so many there is a goal for words alone
		return []line{fill, atMost("search by two words, p99"+with, d.WordTimes.P99, 60, "ms", ""), memory}
	}
	return []line{
		fill,
		atMost("search by two words, p50"+with, d.WordTimes.P50, 3, "ms", ""),
		atMost("search by two words, p99"+with, d.WordTimes.P99, 20, "ms", ""),
		atMost("search by words and meaning, 384 dimensions, p99"+with, d.HybridTimes.P99, 40, "ms", ""),
		memory,
	}
}

func (b *Report) indexDetails(say func(string, ...any)) {
	if d := b.Index; d != nil {
		say("\nSearch index, in process: %d passages of 200 words, %.0f MiB; %.0f vectors a second stored. Of the searches a third are for the 20 most frequent words, a third for ordinary and a third for rare ones; the time of an embedding server is not in them.",
			d.Passages, float64(d.Bytes)/(1<<20), d.Vectors)
	}
}
