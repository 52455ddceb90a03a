// Package readback reads the histories of Discord's channels back: what came to them while no
// session lived. Until a channel was read, the messages that come from it over the gateway are held,
// so that the channel keeps its order; other channels do not wait for it. Only what a history
// contains is held: what is dropped of it is read again.
package readback

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/gateway"
	"gatehouse/connectors/discord/rest"
	"gatehouse/connectors/discord/wire"
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
	// maxOwed bounds the channels that are owed, with those of sessions before.
	maxOwed = 1000
)

// A Mark is how far a channel has been stored.
type Mark struct {
	Channel string `json:"c"`
	Guild   string `json:"g,omitempty"` // "" for a direct message
	Place   string `json:"p,omitempty"` // of a thread: the channel it hangs in
	Message string `json:"m"`
	Owed    bool   `json:"o,omitempty"` // what is behind Message is to be read back
	Gone    bool   `json:"-"`           // the channel is gone or closed to the bot
}

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
	order   []*owed // as in owed, first those that were owed first
	holding int     // events
	asking  int     // requests under way
	pages   chan Page
	pause   time.Time // no channel is asked for before
	absent  int       // tries without a connection, in a row
}

type owed struct {
	mark   *Mark
	pages  int
	asking bool
	since  time.Time // what was missed came before
	failed int       // tries in a row
	next   time.Time // not asked for before
	held   []held
	late   bool // nothing is held any more
	read   bool // to its end
}

type held struct {
	in  core.Inbound
	seq int64 // 0: of a session that has ended
	at  time.Time
}

// New returns a Reader that owes nothing.
func New(o Options) *Reader {
	r := &Reader{o: o, owed: map[string]*owed{}}
	r.Begin()
	return r
}

// Begin begins a connection: what was asked for is asked for again. What is held stays so, for no
// longer than if the connection had not ended.
func (r *Reader) Begin() {
	r.asking, r.pages = 0, make(chan Page, 2*readers)
	for _, o := range r.order {
		o.asking = false
	}
}

// Renew begins a session: no position in it is before what is held.
func (r *Reader) Renew() {
	r.Begin()
	for _, o := range r.order {
		for i := range o.held {
			o.held[i].seq = 0
		}
	}
}

// Owe has what was missed until now in the channel of a mark read from there on, behind those that
// are owed already. The mark moves with what is read. What is known of a channel that was owed before stays.
func (r *Reader) Owe(m *Mark) {
	m.Owed = true
	o := r.owed[m.Channel]
	if o == nil {
		o = &owed{}
	} else {
		r.order = slices.DeleteFunc(r.order, func(x *owed) bool { return x == o })
	}
	o.mark, o.since, o.pages, o.late = m, r.o.Clock.Now(), 0, false
	r.owed[m.Channel] = o
	r.order = append(r.order, o)
}

// Mark returns the mark of an owed channel, nil for any other.
func (r *Reader) Mark(channel string) *Mark {
	if o := r.owed[channel]; o != nil && !o.mark.Gone {
		return o.mark
	}
	return nil
}

// Marks returns the marks of the owed channels.
func (r *Reader) Marks() []*Mark {
	list := make([]*Mark, len(r.order))
	for i, o := range r.order {
		list[i] = o.mark
	}
	return list
}

// Done reports whether no channel is owed.
func (r *Reader) Done() bool { return len(r.owed) == 0 }

// Pages returns where the pages come that were asked for since Begin.
func (r *Reader) Pages() <-chan Page { return r.pages }

// Hold keeps a message of an owed channel, or an edit of one that may be missed, back until Pass, Finish
// or Late returns it; false for any other event. What no history contains does not wait.
func (r *Reader) Hold(in core.Inbound, seq int64) bool {
	o := r.owed[in.Chat]
	if o == nil || o.late || in.Malformed != "" || interaction(in) {
		return false
	}
	switch in.Kind {
	case core.KindMessage, core.KindCommand:
	case core.KindEdit:
		if !wire.Newer(in.MessageID, o.mark.Message) {
			return false
		}
	default:
		return false
	}
	if slices.ContainsFunc(o.held, func(h held) bool { return h.in.UpdateID == in.UpdateID }) {
		return true // RESUME repeats it
	}
	o.held = append(o.held, held{in, seq, r.o.Clock.Now()})
	r.holding++
	return true
}

// interaction reports whether an event is a slash command or a pressed button.
func interaction(in core.Inbound) bool { return strings.HasPrefix(in.UpdateID, "interaction:") }

// Pass returns what was held and is to be stored before an event: a slash command, which nobody
// repeats, does not wait for what was missed, but for what was written before it.
func (r *Reader) Pass(in core.Inbound) []core.Inbound {
	o := r.owed[in.Chat]
	if o == nil || len(o.held) == 0 || !interaction(in) || in.Kind == core.KindCallback {
		return nil
	}
	return r.release(o)
}

// Storable returns the last event up to seen with none behind it that is held.
func (r *Reader) Storable(seen int64) int64 {
	for _, o := range r.order {
		if i := slices.IndexFunc(o.held, func(h held) bool { return h.seq > 0 }); i >= 0 {
			seen = min(seen, o.held[i].seq-1)
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

// Late returns the owed channels that are not to be read any more, because they are gone, too many,
// or all that was missed in them is too old, and what was held for too long of others.
func (r *Reader) Late() (over []*Mark, late []core.Inbound) {
	if len(r.owed) == 0 {
		return nil, nil
	}
	now := r.o.Clock.Now()
	full := r.holding > maxHeld
	for i, o := range r.order {
		if o.mark.Gone || i >= maxOwed || now.Sub(o.since) > maxAge {
			over = append(over, o.mark)
			continue
		}
		if len(o.held) > 0 && (full || now.Sub(o.held[0].at) >= holdFor) {
			r.o.Log.Warn("channel not read back in time; what is new there is stored first", "bot", r.o.Bot, "channel", o.mark.Channel)
			o.late = true
			late = append(late, r.release(o)...)
		}
	}
	return over, late
}

// Ask asks for pages of owed channels whose turn it is, first of those of which something is held. It
// returns when to call Late and Ask again, if no page comes before.
func (r *Reader) Ask(ctx context.Context, session string) (wake <-chan time.Time) {
	if len(r.owed) == 0 {
		return nil
	}
	now := r.o.Clock.Now()
	next := now.Add(holdFor)
	var first, then []*owed
	for _, o := range r.order {
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
	for _, list := range [][]*owed{first, then} { // one that fails gets its turn behind the others
		slices.SortStableFunc(list, func(x, y *owed) int { return x.next.Compare(y.next) })
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
		o.read = true
	}
	o.read = o.read || !p.more
	return o.read
}

// Finish ends the reading of a channel, and returns what was held of it.
func (r *Reader) Finish(m *Mark) []core.Inbound {
	o := r.owed[m.Channel]
	delete(r.owed, m.Channel)
	r.order = slices.DeleteFunc(r.order, func(x *owed) bool { return x == o })
	m.Owed = false
	if !o.read && !m.Gone {
		r.o.Log.Warn("channel not read back", "bot", r.o.Bot, "channel", m.Channel, "tries", o.failed)
	}
	return r.release(o)
}
