// Package readback reads the histories of Discord's channels back: what came to them while no
// session lived. Until a channel was read, what comes from it over the gateway is held, so that
// the channel keeps its order; other channels do not wait for it.
package readback

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/gateway"
	"gatehouse/connectors/discord/rest"
	"gatehouse/core"
)

const (
	// maxPages bounds what is read back of one channel.
	maxPages = 10
	// maxAge is how old a missed message may be and still be answered.
	maxAge = 24 * time.Hour
	// readers is how many channels are read at a time, and as many more of which something is
	// held.
	readers = 4
	// holdFor and maxHeld bound how long, and how many of, the events of channels that cannot be
	// read wait.
	holdFor = 5 * time.Minute
	maxHeld = 1000
)

// A Mark is how far a channel has been stored.
type Mark struct {
	Channel string `json:"c"`
	Guild   string `json:"g,omitempty"` // "" for a direct message
	Place   string `json:"p,omitempty"` // of a thread: the channel it hangs in
	Message string `json:"m"`
	Owed    bool   `json:"o,omitempty"` // what is behind Message is to be read back
}

// Marks are the known channels, most recently used first.
type Marks = iter.Seq2[string, *Mark]

// Options configure a Reader. All but Random are required.
type Options struct {
	Bot string // configured name
	API *rest.Client
	// Decode returns the message of an event, as inbound.Decoder does. It is called by several
	// goroutines at once.
	Decode func(ctx context.Context, e gateway.Event, session string) (core.Inbound, bool, error)
	Clock  core.Clock
	Random func(n int64) int64
	Log    *slog.Logger
	Beside func(op string, f func()) // runs f in a goroutine of its own
}

// A Reader knows the channels of one bot that are owed. It is not safe for concurrent use.
type Reader struct {
	o       Options
	owed    map[string]*owed
	holding int // events
	asking  int // requests under way
	pages   chan Page
	pause   time.Time // no channel is asked for before
	absent  int       // tries without a connection, in a row
}

type owed struct {
	mark   *Mark
	pages  int
	asking bool
	failed int       // tries in a row
	since  time.Time // of the first of them
	next   time.Time // not asked for before
	held   []held
	late   bool // nothing is held any more
}

type held struct {
	in  core.Inbound
	seq int64
	at  time.Time
}

// New returns a Reader that owes nothing.
func New(o Options) *Reader {
	r := &Reader{o: o, owed: map[string]*owed{}}
	r.Begin()
	return r
}

// Begin begins a connection: what was held and asked for is dropped, because the platform sends the
// one again, and the other is asked for again.
func (r *Reader) Begin() {
	r.holding, r.asking, r.pages = 0, 0, make(chan Page, 2*readers)
	for _, o := range r.owed {
		o.held, o.asking = nil, false
	}
}

// Reset forgets which channels are owed.
func (r *Reader) Reset() {
	clear(r.owed)
	r.Begin()
}

// Owe has the channel of a mark read from there on. The mark moves with what is read.
func (r *Reader) Owe(m *Mark) {
	m.Owed = true
	r.owed[m.Channel] = &owed{mark: m}
}

// Done reports whether no channel is owed.
func (r *Reader) Done() bool { return len(r.owed) == 0 }

// Pages returns where the pages come that were asked for since Begin.
func (r *Reader) Pages() <-chan Page { return r.pages }

// Hold keeps an event of an owed channel back until Finish or Late returns it; false for any
// other. Pressed buttons, which belong to a message of the bot, do not wait.
func (r *Reader) Hold(in core.Inbound, seq int64) bool {
	o := r.owed[in.Chat]
	if o == nil || o.late || in.Malformed != "" || in.Kind == core.KindCallback || in.Standing != "" {
		return false
	}
	o.held = append(o.held, held{in, seq, r.o.Clock.Now()})
	r.holding++
	return true
}

// Storable returns the last event up to seen with none behind it that is held.
func (r *Reader) Storable(seen int64) int64 {
	for _, o := range r.owed {
		if len(o.held) > 0 {
			seen = min(seen, o.held[0].seq-1)
		}
	}
	return seen
}

func (r *Reader) release(o *owed) []core.Inbound {
	page := make([]core.Inbound, len(o.held))
	for i, h := range o.held {
		page[i] = h.in
	}
	r.holding -= len(page)
	o.held = nil
	return page
}

// Late returns the owed channels that are not to be read any more, because their marks are
// forgotten or what was missed is too old, and what was held for too long of others.
func (r *Reader) Late(marks Marks) (over []*Mark, late []core.Inbound) {
	if len(r.owed) == 0 {
		return nil, nil
	}
	now := r.o.Clock.Now()
	gone := maps.Clone(r.owed)
	full := r.holding > maxHeld
	for id := range marks {
		o := r.owed[id]
		if o == nil || o.failed > 0 && now.Sub(o.since) > maxAge {
			continue
		}
		delete(gone, id)
		if len(o.held) > 0 && (full || now.Sub(o.held[0].at) >= holdFor) {
			r.o.Log.Warn("channel not read back in time; what is new there is stored first", "bot", r.o.Bot, "channel", id)
			o.late = true
			late = append(late, r.release(o)...)
		}
	}
	for _, o := range gone {
		over = append(over, o.mark)
	}
	return over, late
}

// Ask asks for pages of owed channels whose turn it is, first of those of which something is held. It
// returns when to call Late and Ask again, if no page comes before.
func (r *Reader) Ask(ctx context.Context, session string, marks Marks) (wake <-chan time.Time) {
	if len(r.owed) == 0 {
		return nil
	}
	now := r.o.Clock.Now()
	next := now.Add(holdFor)
	var first, then []*owed
	for id := range marks {
		o := r.owed[id]
		if o == nil {
			continue
		}
		if len(o.held) > 0 {
			next = earlier(next, o.held[0].at.Add(holdFor))
		}
		at := o.next
		if at.Before(r.pause) {
			at = r.pause
		}
		switch {
		case o.asking:
		case now.Before(at):
			next = earlier(next, at)
		case len(o.held) > 0:
			first = append(first, o)
		default:
			then = append(then, o)
		}
	}
	for i, o := range append(first, then...) {
		if r.asking < readers || i < len(first) && r.asking < 2*readers {
			r.ask(ctx, session, o)
		}
	}
	return r.o.Clock.After(next.Sub(now))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Take counts a page that came, and returns the channel's mark; nil if the channel is not owed.
// A failed one is asked for again, at the time that Discord names if it names one.
func (r *Reader) Take(p Page) *Mark {
	r.asking--
	o := r.owed[p.channel]
	if o == nil {
		return nil
	}
	o.asking = false
	switch {
	case p.Err == nil:
		r.absent, o.failed = 0, 0
	case !p.Hidden:
		r.later(o, p.Err)
	}
	return o.mark
}

// later waits with one channel, or with all when there is no connection or the whole bot is to wait.
func (r *Reader) later(o *owed, f *rest.Failure) {
	now := r.o.Clock.Now()
	if f.Offline() {
		r.absent++
		r.pause = now.Add(connectors.Backoff(r.absent, r.o.Random))
		return
	}
	if o.failed++; o.failed == 1 {
		o.since = now
		r.o.Log.Warn("channel not read back; trying again", "bot", r.o.Bot, "channel", o.mark.Channel, "err", f)
	}
	o.next = now.Add(connectors.Backoff(o.failed, r.o.Random))
	if f.Status == http.StatusTooManyRequests {
		o.next = now.Add(cmp.Or(f.After, connectors.UnnamedWait))
		if f.Global && o.next.After(r.pause) {
			r.pause = o.next
		}
	}
}

// Stored moves a mark behind a page that is stored, and reports whether it was the channel's last.
func (r *Reader) Stored(p Page) (last bool) {
	o := r.owed[p.channel]
	if p.last != "" {
		o.mark.Message = p.last
	}
	o.pages++
	if p.more && o.pages >= maxPages {
		r.o.Log.Warn("not all of a channel was read back", "bot", r.o.Bot, "channel", p.channel, "messages", maxPages*pageSize)
		return true
	}
	return !p.more
}

// Finish ends the reading of a channel, and returns what was held of it.
func (r *Reader) Finish(m *Mark) []core.Inbound {
	o := r.owed[m.Channel]
	delete(r.owed, m.Channel)
	m.Owed = false
	if o.failed > 0 {
		r.o.Log.Warn("channel not read back", "bot", r.o.Bot, "channel", m.Channel, "tries", o.failed)
	}
	return r.release(o)
}
