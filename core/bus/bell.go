package bus

import "context"

// TopicChats is rung when a run begins, and when it or its attempt ends.
const TopicChats = "chats"

// Ring notifies every listener of topics that they changed. Rings that a listener
// has not received yet become one. Ring never blocks.
func (b *Bus) Ring(topics ...string) {
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

// Listen delivers the name of each topic that rings, coalesced, until ctx ends;
// then the channel is closed.
func (b *Bus) Listen(ctx context.Context, topics ...string) <-chan string {
	in, out := make(chan string, len(topics)), make(chan string)
	wanted := make(map[string]bool, len(topics)) // topic → rung and not yet heard
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
