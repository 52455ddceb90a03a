package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"gatehouse/cmd/loadgen/index"
)

// indexCmd measures the index in a process of its own, whose memory is that of the index.
type indexCmd struct {
	Dir      string `arg:"" type:"existingdir"`
	Passages int    `arg:""`
}

// Run prints the figures as JSON.
func (c *indexCmd) Run(ctx context.Context) error {
	f, err := index.Measure(ctx, c.Dir, c.Passages, searches)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}

// searches is how many of each kind are timed.
const searches = 300

type indexData struct {
	index.Figures
	WordTimes   percentiles `json:"words"`
	HybridTimes percentiles `json:"hybrid"`
}

func (b *bench) index(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(b.dir, "index-")
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, self, "index", dir, fmt.Sprint(b.c.Passages))
	child.Stderr = os.Stderr
	out, err := child.Output()
	if err != nil {
		return err
	}
	d := &indexData{}
	if err := json.Unmarshal(out, &d.Figures); err != nil {
		return err
	}
	d.WordTimes, d.HybridTimes = summary(d.Words), summary(d.Hybrid)
	d.Words, d.Hybrid = nil, nil // their percentiles are enough
	b.data.Index = d
	return nil
}

// indexGoals judges the search index.
func (b *bench) indexGoals() []line {
	d := b.data.Index
	if d == nil {
		return nil
	}
	with := fmt.Sprintf(", %d passages", d.Passages)
	fill := line{what: "search index: filled without vectors" + with, goal: "≥ 2000/s", measured: fmt.Sprintf("%.0f/s", d.Filled), met: d.Filled >= 2000}
	if !fill.met {
		fill.missed = fmt.Sprintf("by %.0f %%", (1-d.Filled/2000)*100)
	}
	return []line{
		fill,
		atMost("search by two words, p50"+with, d.WordTimes.P50, 3, "ms", ""),
		atMost("search by two words, p99"+with, d.WordTimes.P99, 20, "ms", ""),
		atMost("search by words and meaning, 384 dimensions, p99"+with, d.HybridTimes.P99, 40, "ms", ""),
		atMost("search index: memory at rest, by how much it grows"+with, d.Grown, 6, "MiB", ""),
	}
}

func (b *bench) indexDetails(say func(string, ...any)) {
	if d := b.data.Index; d != nil {
		say("\nSearch index, in process: %d passages of 200 words, %.0f MiB; %.0f vectors a second stored. Of the searches a third are for the 20 most frequent words, a third for ordinary and a third for rare ones; the time of an embedding server is not in them.",
			d.Passages, float64(d.Bytes)/(1<<20), d.Vectors)
	}
}
