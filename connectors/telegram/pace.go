package telegram

import (
	"container/list"
	"sync"
	"time"

	"gatehouse/core"
)

// The platform's pace (https://core.telegram.org/bots/faq, "My bot is hitting
// limits"): about one message a second in one chat with short bursts, 20 a
// minute in a group, 30 a second over all chats. Ours stay below each within
// any window: a group gets 3 at once and 17 a minute after that.
const (
	chatEvery  = time.Second
	chatBurst  = 3
	groupEvery = 3500 * time.Millisecond
	groupBurst = 3
	botEvery   = 40 * time.Millisecond
	botBurst   = 5
	// typingShare is what the typing sign costs of a message: it is no
	// message, but it goes through the same gate.
	typingShare = 4
	// maxPaced bounds how many chats are remembered. The one that was idle
	// longest gives way; what is lost with it is at most one burst.
	maxPaced = 10_000
)

// A gate is the pace of one bot: one pause per chat, shared by sending,
// editing, drafts and typing. Chats are told by their number: threads of one
// group share its pace, and a negative number is a group.
type gate struct {
	clock core.Clock
	on    bool // off: only retry_after counts

	mu    sync.Mutex
	all   time.Time // when everything sent by the bot is paid for
	chats map[int64]*list.Element
	order *list.List // of *paced, last used first
}

type paced struct {
	chat    int64
	paid    time.Time // when what was sent is paid for
	blocked time.Time // retry_after
	draft   int64     // number of the draft now shown, see Bot.draft
}

func newGate(clock core.Clock, on bool) *gate {
	return &gate{clock: clock, on: on, chats: map[int64]*list.Element{}, order: list.New()}
}

// of finds or makes the chat's entry. The caller holds mu.
func (g *gate) of(chat int64) *paced {
	if e, ok := g.chats[chat]; ok {
		g.order.MoveToFront(e)
		return e.Value.(*paced)
	}
	if g.order.Len() >= maxPaced {
		last := g.order.Back()
		delete(g.chats, last.Value.(*paced).chat)
		g.order.Remove(last)
	}
	p := &paced{chat: chat}
	g.chats[chat] = g.order.PushFront(p)
	return p
}

func rate(chat int64) (every time.Duration, burst int) {
	if chat < 0 {
		return groupEvery, groupBurst
	}
	return chatEvery, chatBurst
}

// due is how long until one more fits, when what was sent is paid for at paid.
func due(paid, now time.Time, every time.Duration, burst int) time.Duration {
	if !paid.After(now) {
		return 0
	}
	return max(0, paid.Sub(now)-time.Duration(burst-1)*every)
}

func (g *gate) waitLocked(p *paced, now time.Time, chatBurst, botBurst int) time.Duration {
	wait := max(0, p.blocked.Sub(now))
	if !g.on {
		return wait
	}
	every, _ := rate(p.chat)
	return max(wait, due(p.paid, now, every, chatBurst), due(g.all, now, botEvery, botBurst))
}

// wait is how long until a message may be sent; 0 is now.
func (g *gate) wait(chat int64) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	e, ok := g.chats[chat]
	if !ok {
		e = &list.Element{Value: &paced{chat: chat}}
	}
	_, burst := rate(chat)
	return g.waitLocked(e.Value.(*paced), g.clock.Now(), burst, botBurst)
}

// take counts a message, whether or not it was its time.
func (g *gate) take(chat int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(g.of(chat), g.clock.Now(), 1)
}

func (g *gate) count(p *paced, now time.Time, share time.Duration) {
	if !g.on {
		return
	}
	every, _ := rate(p.chat)
	p.paid = later(p.paid, now).Add(every / share)
	g.all = later(g.all, now).Add(botEvery / share)
}

// try counts something droppable if there is room for it and for one message
// behind it, so that no preview ever delays a final.
func (g *gate) try(chat int64, share time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, now := g.of(chat), g.clock.Now()
	_, burst := rate(chat)
	if g.waitLocked(p, now, burst-1, botBurst-2) > 0 {
		return false
	}
	g.count(p, now, share)
	return true
}

// block holds the chat for d: the platform's retry_after.
func (g *gate) block(chat int64, d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.of(chat)
	p.blocked = later(p.blocked, g.clock.Now().Add(d))
}

// draft is the number of the draft that stands in the chat now, from 1 on;
// with end the next one gets a new number.
func (g *gate) draft(chat int64, end bool) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.of(chat)
	n := p.draft + 1
	if end {
		p.draft = n
	}
	return n
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
