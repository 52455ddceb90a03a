package connectors

import (
	"sync"
	"time"

	"gatehouse/core"
)

// maxPaced bounds the chats of a Pace. The chat that was idle longest is evicted,
// which permits at most one extra burst.
const maxPaced = 10_000

// A Rate is one message in each interval, and a burst after a pause.
type Rate struct {
	Every time.Duration
	Burst int
}

// due returns how long until one more message fits and leaves room for spare
// more, if the earlier ones are paid for at paid.
func (r Rate) due(paid, now time.Time, spare int) time.Duration {
	if !paid.After(now) {
		return 0
	}
	return max(0, paid.Sub(now)-time.Duration(r.Burst-spare-1)*r.Every)
}

// A Pace limits how fast one bot sends: per chat, for all kinds of calls there, and
// in all. K is the platform's key of a chat. It is safe for concurrent use.
type Pace[K comparable] struct {
	clock core.Clock
	on    bool // off: only limits from the platform apply
	bot   Rate
	chat  func(K) Rate

	mu      sync.Mutex
	all     time.Time // when everything sent by the bot is paid for
	blocked time.Time // a limit of the whole bot
	chats   *LRU[K, paced]
}

type paced struct {
	rate    Rate
	paid    time.Time // when what was sent is paid for
	blocked time.Time // a limit of the chat
}

// NewPace returns a Pace with the rates of the bot and of each chat. With on false
// only the platform's own limits apply (Block, BlockAll).
func NewPace[K comparable](clock core.Clock, on bool, bot Rate, chat func(K) Rate) *Pace[K] {
	return &Pace[K]{clock: clock, on: on, bot: bot, chat: chat, chats: NewLRU[K, paced](maxPaced)}
}

// of returns the chat's entry, until that of another chat is made. The caller holds mu.
func (p *Pace[K]) of(chat K) *paced {
	if e := p.chats.use(chat); e != nil {
		return e
	}
	p.chats.Put(chat, paced{rate: p.chat(chat)})
	return p.chats.use(chat)
}

func (p *Pace[K]) wait(e *paced, now time.Time, chatSpare, botSpare int) time.Duration {
	wait := max(0, e.blocked.Sub(now), p.blocked.Sub(now))
	if !p.on {
		return wait
	}
	return max(wait, e.rate.due(e.paid, now, chatSpare), p.bot.due(p.all, now, botSpare))
}

// Wait returns how long until a message may be sent.
func (p *Pace[K]) Wait(chat K) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.chats.use(chat)
	if e == nil {
		e = &paced{rate: p.chat(chat)}
	}
	return p.wait(e, p.clock.Now(), 0, 0)
}

// Take counts a message, also one that is early.
func (p *Pace[K]) Take(chat K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(p.of(chat), p.clock.Now(), 1)
}

func (p *Pace[K]) count(e *paced, now time.Time, share time.Duration) {
	if !p.on {
		return
	}
	e.paid = later(e.paid, now).Add(e.rate.Every / share)
	p.all = later(p.all, now).Add(p.bot.Every / share)
}

// Try counts a call that may be left out, and reports whether there is room for it
// and one message after it, so that no preview delays a final. share calls count
// as one message.
func (p *Pace[K]) Try(chat K, share time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, now := p.of(chat), p.clock.Now()
	if p.wait(e, now, 1, 2) > 0 {
		return false
	}
	p.count(e, now, share)
	return true
}

// Block blocks the chat for d, as the platform requires.
func (p *Pace[K]) Block(chat K, d time.Duration) {
	if d <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.of(chat)
	e.blocked = later(e.blocked, p.clock.Now().Add(d))
}

// BlockAll blocks the whole bot for d.
func (p *Pace[K]) BlockAll(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocked = later(p.blocked, p.clock.Now().Add(d))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
