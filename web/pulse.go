package web

import (
	"container/list"
	"sync"
	"time"

	"gatehouse/core"
)

// A Pulse beats the heart of many streams with one goroutine and one timer,
// which are there while a stream is.
type Pulse struct {
	clock core.Clock

	mu    sync.Mutex
	due   list.List // of *member, whose turn is next in front; bounded by the open streams
	going bool
	empty chan struct{} // holds a token when the last member has left
}

type member struct {
	at   time.Time
	beat func()
}

// NewPulse keeps time by clock; nil is the system's.
func NewPulse(clock core.Clock) *Pulse {
	if clock == nil {
		clock = core.System{}
	}
	return &Pulse{clock: clock, empty: make(chan struct{}, 1)}
}

// join has beat called every Heartbeat from now on, until leave is called; it
// is not called any more when that has returned. beat must not wait.
func (p *Pulse) join(beat func()) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.due.PushBack(&member{p.clock.Now().Add(Heartbeat), beat})
	if !p.going {
		p.going = true
		go p.run()
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.due.Remove(e); p.due.Len() == 0 {
			select {
			case p.empty <- struct{}{}:
			default:
			}
		}
	}
}

func (p *Pulse) run() {
	for {
		wait, more := p.round()
		if !more {
			return
		}
		select {
		case <-p.clock.After(wait):
		case <-p.empty:
		}
	}
}

// round beats who is due, and returns how long until the next one is. All wait
// equally long, so that a stream that was served is the last again.
func (p *Pulse) round() (wait time.Duration, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	for e := p.due.Front(); e != nil; e = p.due.Front() {
		m := e.Value.(*member)
		if wait = m.at.Sub(now); wait > 0 {
			return wait, true
		}
		m.at = now.Add(Heartbeat)
		p.due.MoveToBack(e)
		m.beat()
	}
	p.going = false
	return 0, false
}
