package main

import (
	"context"
	"errors"
	"time"

	"gatehouse/cmd/loadgen/report"
)

// A settling is the memory part's last reading, taken while other parts go on.
type settling struct {
	gw  *side
	due time.Time
}

func (b *bench) memory(ctx context.Context) error {
	gw, bare, err := b.pair(ctx, b.c.Chats, true)
	if err != nil {
		return err
	}
	d := &report.Memory{Settle: b.c.Settle.String()}
	time.Sleep(2 * time.Second)
	if d.Idle, _, err = gw.Child.Memory(); err != nil {
		return errors.Join(err, gw.end(), bare.end())
	}
	if d.IdleOwn, err = gw.Child.Own(); err != nil {
		return errors.Join(err, gw.end(), bare.end())
	}
	before, err := gw.Series(ctx)
	if err != nil {
		return errors.Join(err, gw.end(), bare.end())
	}
	d.GoroutinesIdle = before["go_goroutines"]
	r, err := b.bout(ctx, gw, bare)
	if err != nil {
		return errors.Join(err, gw.end(), bare.end())
	}
	d.Peak = r.Peak
	if _, d.BarePeak, err = bare.Child.Memory(); err != nil {
		return errors.Join(err, gw.end(), bare.end())
	}
	b.data.Memory = d
	b.settling = settling{gw, time.Now().Add(b.c.Settle)}
	return bare.end()
}

// lateMemory waits for the rest of the settling time, reads and ends that gateway.
func (b *bench) lateMemory(ctx context.Context) error {
	gw, due := b.settling.gw, b.settling.due
	if gw == nil {
		return nil
	}
	b.settling = settling{}
	if wait := time.Until(due); wait > 0 {
		b.say("waiting %v for the memory after the burst …", wait.Round(time.Second))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), gw.end())
		}
	}
	d := b.data.Memory
	var err error
	if d.After, _, err = gw.Child.Memory(); err != nil {
		return errors.Join(err, gw.end())
	}
	if d.AfterOwn, err = gw.Child.Own(); err != nil {
		return errors.Join(err, gw.end())
	}
	after, err := gw.Series(ctx)
	if err != nil {
		return errors.Join(err, gw.end())
	}
	d.GoroutinesAfter, d.HeapAfter = after["go_goroutines"], after["go_memstats_heap_inuse_bytes"]/(1<<20)
	_, err = b.settle(ctx, gw)
	return err
}
