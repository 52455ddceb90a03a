package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/cmd/loadgen/child"
	"gatehouse/cmd/loadgen/field"
	"gatehouse/cmd/loadgen/model"
	"gatehouse/cmd/loadgen/report"
)

// wordEvery is the interval of a slow model's tokens; waitFor is how long all wait.
// quietAfter is how long nothing changes in the chats once all is done: their previews
// count as answers, and on a busy machine the finals come with pauses.
const (
	wordEvery  = 5 * time.Second
	waitFor    = 15 * time.Second
	quietAfter = 5 * time.Second
)

// waiting measures what many runs cost that wait for a slow model, each in a
// chat of its own, its preview growing.
func (b *bench) waiting(ctx context.Context) error {
	m, err := model.Open()
	if err != nil {
		return err
	}
	m.Set(model.Plan{Slow: wordEvery})
	gw, err := b.side(ctx, b.c.Waiting, "", func(s *side) (*child.Child, error) {
		return child.Gateway(ctx, b.c.Program, s.Field, s.dir, modelEnv(m))
	})
	if err != nil {
		return errors.Join(err, m.Close())
	}
	d, err := wait(ctx, gw, m)
	if err != nil {
		return errors.Join(err, m.Close(), gw.end())
	}
	m.Release()
	if err := until(ctx, time.Minute, func() bool { return m.Busy() == 0 }); err != nil {
		return errors.Join(fmt.Errorf("%d answers did not end: %w", m.Busy(), err), m.Close(), gw.end())
	}
	if err := gw.Await(ctx, len(gw.Chats), time.Minute, quietAfter); err != nil {
		return errors.Join(err, m.Close(), gw.end())
	}
	b.data.Waiting = d
	d.Verdict, err = b.settle(ctx, gw) // every message has its answer
	return errors.Join(err, m.Close())
}

// wait has every chat ask, and reads what the gateway is while all wait.
func wait(ctx context.Context, gw *side, m *model.Server) (*report.Waiting, error) {
	time.Sleep(2 * time.Second)
	d := &report.Waiting{Runs: len(gw.Chats)}
	var err error
	if d.Idle, _, err = gw.Memory(); err != nil {
		return nil, err
	}
	before, err := gw.Series(ctx)
	if err != nil {
		return nil, err
	}
	if err := gw.ResetPeak(); err != nil {
		return nil, err
	}
	for i, c := range gw.Chats {
		if _, err := c.Say(i, field.Text(i)); err != nil {
			return nil, err
		}
	}
	if err := until(ctx, time.Minute, func() bool { return m.Waiting() == d.Runs }); err != nil {
		return nil, fmt.Errorf("of %d runs %d wait for the model: %w", d.Runs, m.Waiting(), err)
	}
	_, used, err := gw.measured(func() ([]field.Sample, error) {
		select {
		case <-time.After(waitFor):
		case <-ctx.Done():
		}
		return nil, context.Cause(ctx)
	})
	if err != nil {
		return nil, err
	}
	if n := m.Busy(); n != d.Runs {
		return nil, fmt.Errorf("of %d runs %d still wait for the model", d.Runs, n)
	}
	d.CPU = used.Seconds() / waitFor.Seconds()
	if d.Now, d.Peak, err = gw.Memory(); err != nil {
		return nil, err
	}
	after, err := gw.Series(ctx)
	if err != nil {
		return nil, err
	}
	n := float64(d.Runs)
	d.Goroutines = (after["go_goroutines"] - before["go_goroutines"]) / n
	d.Heap = (after["go_memstats_heap_inuse_bytes"] - before["go_memstats_heap_inuse_bytes"]) / n / 1024
	d.Stack = (after["go_memstats_stack_inuse_bytes"] - before["go_memstats_stack_inuse_bytes"]) / n / 1024
	return d, nil
}

// until waits for ok, at most so long.
func until(ctx context.Context, limit time.Duration, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
