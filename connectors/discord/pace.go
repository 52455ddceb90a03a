package discord

import (
	"sync"
	"time"

	"gatehouse/core"
)

// The platform's pace (https://discord.com/developers/docs/topics/rate-limits):
// 50 requests a second in all, and per channel what its headers say, usually 5
// messages in 5 seconds. Ours hold the same before the first header is seen.
const (
	chatEvery = time.Second
	chatBurst = 5
	botEvery  = 25 * time.Millisecond
	botBurst  = 10
	// typingShare is what the typing sign costs of a message: it has a limit of
	// its own, but goes through the same gate.
	typingShare = 4
	// maxPaced bounds how many channels are remembered. The one that was idle
	// longest gives way; what is lost with it is at most one burst.
	maxPaced = 10_000
)

// A gate is the pace of one bot: one pause per channel, shared by sending,
// editing and typing.
type gate struct {
	clock core.Clock
	on    bool // off: only what the platform says counts

	mu      sync.Mutex
	all     time.Time // when everything sent by the bot is paid for
	blocked time.Time // a global limit
	chats   *lru[*paced]
}

type paced struct {
	paid    time.Time // when what was sent is paid for
	blocked time.Time // retry_after, or an empty bucket
}

func newGate(clock core.Clock, on bool) *gate {
	return &gate{clock: clock, on: on, chats: newLRU[*paced](maxPaced)}
}

// of finds or makes the channel's entry. The caller holds mu.
func (g *gate) of(chat string) *paced {
	p, ok := g.chats.get(chat)
	if !ok {
		p = &paced{}
		g.chats.put(chat, p)
	}
	return p
}

// due is how long until one more fits, when what was sent is paid for at paid.
func due(paid, now time.Time, every time.Duration, burst int) time.Duration {
	if !paid.After(now) {
		return 0
	}
	return max(0, paid.Sub(now)-time.Duration(burst-1)*every)
}

func (g *gate) waitLocked(p *paced, now time.Time, chatBurst, botBurst int) time.Duration {
	wait := max(0, p.blocked.Sub(now), g.blocked.Sub(now))
	if !g.on {
		return wait
	}
	return max(wait, due(p.paid, now, chatEvery, chatBurst), due(g.all, now, botEvery, botBurst))
}

// wait is how long until a message may be sent; 0 is now.
func (g *gate) wait(chat string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, ok := g.chats.get(chat)
	if !ok {
		p = &paced{}
	}
	return g.waitLocked(p, g.clock.Now(), chatBurst, botBurst)
}

// take counts a message, whether or not it was its time.
func (g *gate) take(chat string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(g.of(chat), g.clock.Now(), 1)
}

func (g *gate) count(p *paced, now time.Time, share time.Duration) {
	if !g.on {
		return
	}
	p.paid = later(p.paid, now).Add(chatEvery / share)
	g.all = later(g.all, now).Add(botEvery / share)
}

// try counts something droppable if there is room for it and for one message
// behind it, so that no preview ever delays a final.
func (g *gate) try(chat string, share time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, now := g.of(chat), g.clock.Now()
	if g.waitLocked(p, now, chatBurst-1, botBurst-2) > 0 {
		return false
	}
	g.count(p, now, share)
	return true
}

// block holds the channel, or with global the whole bot, for d.
func (g *gate) block(chat string, d time.Duration, global bool) {
	if d <= 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	until := g.clock.Now().Add(d)
	if global {
		g.blocked = later(g.blocked, until)
		return
	}
	p := g.of(chat)
	p.blocked = later(p.blocked, until)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
