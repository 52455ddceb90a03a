package main

import (
	"context"
	"errors"
	"time"
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
	d := &memoryData{Settle: b.c.Settle.String()}
	time.Sleep(2 * time.Second)
	if d.Idle, _, err = gw.child.memory(); err != nil {
		return errors.Join(err, gw.end(), bare.end())
	}
	before, err := gw.series(ctx)
	if err != nil {
		return errors.Join(err, gw.end(), bare.end())
	}
	d.GoroutinesIdle = before["go_goroutines"]
	r, err := b.bout(ctx, gw, bare)
	if err != nil {
		return errors.Join(err, gw.end(), bare.end())
	}
	d.Peak = r.Peak
	if _, d.BarePeak, err = bare.child.memory(); err != nil {
		return errors.Join(err, gw.end(), bare.end())
	}
	b.data.Memory = d
	b.data.settled = make(chan settling, 1)
	b.data.settled <- settling{gw, time.Now().Add(b.c.Settle)}
	return bare.end()
}

// lateMemory waits for the rest of the settling time and reads.
func (b *bench) lateMemory() error {
	if b.data.settled == nil {
		return nil
	}
	s := <-b.data.settled
	b.data.settled = nil
	ctx, cancel := context.WithDeadline(context.Background(), s.due.Add(time.Minute))
	defer cancel()
	if wait := time.Until(s.due); wait > 0 {
		b.say("waiting %v for the memory after the burst …", wait.Round(time.Second))
		time.Sleep(wait)
	}
	d := b.data.Memory
	var err error
	if d.After, _, err = s.gw.child.memory(); err != nil {
		return errors.Join(err, s.gw.end())
	}
	after, err := s.gw.series(ctx)
	if err != nil {
		return errors.Join(err, s.gw.end())
	}
	d.GoroutinesAfter, d.HeapAfter = after["go_goroutines"], after["go_memstats_heap_inuse_bytes"]/(1<<20)
	_, err = b.settle(ctx, s.gw)
	return err
}
