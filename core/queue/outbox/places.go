package outbox

import (
	"context"

	"gatehouse/core/queue/flight"
)

// MaxAtOnce is how many sends of one bot are made at once: fewer than a connector has
// connections, so that none waits for one and previews have some. Rows are marked sending
// only for these; what waits longer is ready, and no crash makes its outcome unknown.
const MaxAtOnce = 48

// MaxBots is how many bots can make as many sends at once with a record of each.
const MaxBots = flight.Slots / (2 * MaxAtOnce)

// A place is held while a reply is marked and sent. The zero value is none.
type place struct{ of chan struct{} }

// placesOf returns the places of a bot that this node sends for, else nil. The
// caller holds b.mu.
func (b *Outbox) placesOf(bot string) chan struct{} {
	if _, ours := b.bots[bot]; !ours {
		return nil
	}
	p := b.places[bot]
	if p == nil {
		p = make(chan struct{}, MaxAtOnce)
		b.places[bot] = p
	}
	return p
}

// enter waits for a place. It returns false when ctx ends first, or the bot is
// not ours.
func (b *Outbox) enter(ctx context.Context, bot string) (place, bool) {
	b.mu.Lock()
	p := b.placesOf(bot)
	b.mu.Unlock()
	if p == nil {
		return place{}, false
	}
	select {
	case p <- struct{}{}:
		return place{p}, true
	case <-ctx.Done():
		return place{}, false
	}
}

// tryEnter returns a place if one is free. The caller holds b.mu.
func (b *Outbox) tryEnter(bot string) (place, bool) {
	p := b.placesOf(bot)
	select {
	case p <- struct{}{}:
		return place{p}, true
	default:
		return place{}, false // also for a bot that is not ours
	}
}

func (p place) leave() {
	if p.of != nil {
		<-p.of
	}
}

// occupy notes that a chat is worked on. The caller holds b.mu.
func (b *Outbox) occupy(key chatKey) {
	b.sending[key] = false
	b.count[key.bot]++
	b.sends.Add(1) // while open is set, so that a stop waits for it
}

// vacate notes that a chat is not worked on any more. The caller holds b.mu.
func (b *Outbox) vacate(key chatKey) {
	delete(b.sending, key)
	if b.count[key.bot]--; b.count[key.bot] <= 0 {
		delete(b.count, key.bot)
	}
}
