package main

import (
	"context"
	"errors"
	"os"
	"time"

	"gatehouse/cmd/loadgen/field"
	"gatehouse/cmd/loadgen/fill"
	"gatehouse/cmd/loadgen/report"
)

func (b *bench) scale(ctx context.Context) error {
	dir, err := os.MkdirTemp(b.dir, "large-")
	if err != nil {
		return err
	}
	s, err := b.gateway(ctx, 1, dir) // makes the tables
	if err != nil {
		return err
	}
	var bots []string
	for _, p := range s.Platforms {
		bots = append(bots, p.Name)
	}
	if err := s.end(); err != nil {
		return err
	}
	d := &report.Scale{Rows: b.c.Rows, Lanes: b.c.Lanes, History: b.c.History}
	took, bytes, err := fill.Database(ctx, field.Database(dir), bots, fill.Past{Rows: b.c.Rows, Lanes: b.c.Lanes, History: b.c.History})
	if err != nil {
		return err
	}
	d.Fill, d.Bytes = took.Round(time.Second).String(), bytes
	b.say("  filled in %s, %d MiB", d.Fill, bytes>>20)
	sides, err := b.twins(ctx, b.c.Chats, dir)
	if err != nil {
		return err
	}
	if err := errors.Join(b.scaleLatency(ctx, sides, d), b.scaleBurst(ctx, sides, d)); err != nil {
		return errors.Join(err, sides[0].end(), sides[1].end())
	}
	b.data.Scale = d
	return b.endTwins(ctx, sides, d)
}

// twins returns a gateway with a fresh database and one with the filled one.
func (b *bench) twins(ctx context.Context, users int, dir string) (list [2]*side, err error) {
	if list[0], err = b.gateway(ctx, users, ""); err != nil {
		return list, err
	}
	if list[1], err = b.gateway(ctx, users, dir); err != nil {
		return list, errors.Join(err, list[0].end())
	}
	return list, nil
}

func (b *bench) scaleLatency(ctx context.Context, sides [2]*side, d *report.Scale) error {
	var got [2][]field.Sample
	for k := range blocks + 1 {
		for i, s := range sides {
			t, err := s.OneByOne(ctx, min(b.c.Messages, 1500)/blocks)
			if err != nil {
				return err
			}
			if k > 0 { // the first warms up
				got[i] = append(got[i], t...)
			}
		}
	}
	d.Small, d.Large = report.Summary(field.Times(got[0], "")), report.Summary(field.Times(got[1], ""))
	d.P50, d.P99 = d.Large.P50/d.Small.P50, d.Large.P99/d.Small.P99
	return nil
}

func (b *bench) scaleBurst(ctx context.Context, sides [2]*side, d *report.Scale) error {
	var cpus [2][]float64
	var ratios []float64
	for k := range b.c.Rounds + 1 {
		var r [2]float64
		for i, s := range sides {
			l, err := s.round(ctx, b.c.Each)
			if err != nil {
				return err
			}
			r[i] = l.rate
			if k > 0 {
				cpus[i] = append(cpus[i], l.cpu)
			}
		}
		if k > 0 {
			d.Rounds, ratios = append(d.Rounds, r), append(ratios, r[0]/r[1])
		}
	}
	d.Ratio, d.CPU = report.Median(ratios), [2]float64{report.Median(cpus[0]), report.Median(cpus[1])}
	return nil
}

func (b *bench) endTwins(ctx context.Context, sides [2]*side, d *report.Scale) error {
	for i, s := range sides {
		v, err := b.judge(ctx, s)
		if err != nil {
			if i == 0 {
				err = errors.Join(err, sides[1].end())
			}
			return err
		}
		d.Verdict.Add(v)
	}
	return nil
}
