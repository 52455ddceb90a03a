package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"gatehouse/cmd/loadgen/index"
	"gatehouse/cmd/loadgen/report"
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
	d := &report.Index{}
	if err := json.Unmarshal(out, &d.IndexFigures); err != nil {
		return err
	}
	d.WordTimes, d.HybridTimes = report.Summary(d.Words), report.Summary(d.Hybrid)
	d.Words, d.Hybrid = nil, nil // their percentiles are enough
	b.data.Index = d
	return nil
}
