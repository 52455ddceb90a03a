package bus

import (
	"context"

	"gatehouse/core"
)

// Ring notifies every listener of topics that they changed. Rings that a listener
// has not received yet become one. Ring never blocks.
func (b *Bus) Ring(topics ...core.Topic) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ch, wanted := range b.rings {
		for _, t := range topics {
			if _, ok := wanted[t]; !ok || wanted[t] {
				continue
			}
			wanted[t] = true
			select {
			case ch <- t:
			default: // the channel has room for every topic once
			}
		}
	}
}

// Listen delivers each topic that rings, coalesced, until ctx ends;
// then the channel is closed.
func (b *Bus) Listen(ctx context.Context, topics ...core.Topic) <-chan core.Topic {
	in, out := make(chan core.Topic, len(topics)), make(chan core.Topic)
	wanted := make(map[core.Topic]bool, len(topics)) // topic → rung and not yet heard
	for _, t := range topics {
		wanted[t] = false
	}
	b.mu.Lock()
	b.rings[in] = wanted
	b.mu.Unlock()
	go func() {
		defer close(out)
		defer func() {
			b.mu.Lock()
			delete(b.rings, in)
			b.mu.Unlock()
		}()
		for {
			select {
			case <-ctx.Done():
				return
			case t := <-in:
				b.mu.Lock()
				wanted[t] = false
				b.mu.Unlock()
				select {
				case out <- t:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}
