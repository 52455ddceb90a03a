package bus

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"gatehouse/core"
)

// EventID returns the id of a run's event in SSE.
func EventID(run string, attempt, n int) string {
	return run + "." + strconv.Itoa(attempt) + ":" + strconv.Itoa(n)
}

// ParseID reads what EventID wrote; ok is false for anything else.
func ParseID(id string) (run string, attempt, n int, ok bool) {
	rest, num, ok1 := cutLast(id, ':')
	run, att, ok2 := cutLast(rest, '.')
	attempt, err1 := strconv.Atoi(att)
	n, err2 := strconv.Atoi(num)
	return run, attempt, n, ok1 && ok2 && err1 == nil && err2 == nil && run != "" && attempt > 0 && n >= 0
}

func cutLast(s string, sep byte) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// A Follow selects what to read: a session's runs from now on, or one run; after
// an event by id, or from the beginning of what is running.
type Follow struct {
	Session string
	Run     string // only this run; the stream ends with its message_stop
	LastID  string // the last event the reader has

	JustEnded bool // without a running run: begin with the run that ended last, at most JustEnded ago
}

// Follow reads events. The reader is joined before Follow returns, so nothing
// published between the call and the first iteration is missed. The sequence
// ends when ctx does, after message_stop when f.Run is set, or with an error. The
// reader leaves with the end of the iteration, or with ctx where there is none.
func (b *Bus) Follow(ctx context.Context, f Follow) iter.Seq2[Entry, error] {
	r := newReader()
	kept, stored, join, over := b.join(r, f)
	ranged := context.AfterFunc(ctx, func() { b.leave(r, f.Session) })
	return func(yield func(Entry, error) bool) {
		defer b.leave(r, f.Session)
		defer ranged()
		c := &chase{bus: b, f: f, yield: yield}
		c.run, c.attempt, c.n, _ = ParseID(f.LastID)
		if !c.past(ctx, join, stored) || !c.all(kept) {
			return
		}
		if f.Run != "" && over { // or unknown here: what is kept and stored is all
			return
		}
		for {
			e, ok, err := r.next(ctx)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if !ok || !c.one(e) {
				return
			}
		}
	}
}

// join adds r to the stream that f selects and returns what is kept there,
// atomically. stream is nil when f's run is not in memory or the session has none;
// over reports whether stream has ended.
func (b *Bus) join(r *reader, f Follow) (kept []Entry, stored int, stream *Stream, over bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if stream = b.runs[f.Run]; f.Run == "" {
		stream = b.present(f)
	}
	if stream == nil {
		b.wait(f.Session, r)
		return nil, 0, nil, true
	}
	stream.mu.Lock()
	defer stream.mu.Unlock()
	kept = stream.entries(0)
	if len(kept) > 0 {
		stored = kept[0].N - 1
	}
	if stream.closed {
		b.wait(f.Session, r)
	} else {
		stream.readers[r] = true
	}
	return kept, stored, stream, stream.closed
}

// present returns the stream where a reader of a session begins: the running run; else
// with f.JustEnded the one that ended last, if that was recently; else the reader's own,
// or nil. b.mu is held.
func (b *Bus) present(f Follow) *Stream {
	for _, s := range b.runs { // a session has at most one run at a time
		if s.info.Session == f.Session && !s.closed {
			return s
		}
	}
	run, _, _, _ := ParseID(f.LastID)
	own := b.runs[run]
	if own != nil && own.info.Session != f.Session {
		own = nil
	}
	if !f.JustEnded {
		return own
	}
	since := b.Clock.Now().Add(-JustEnded)
	for _, run := range slices.Backward(b.done) { // by their end
		s := b.runs[run]
		if s == own || s.ended.Before(since) {
			return own
		}
		if s.info.Session == f.Session {
			return s
		}
	}
	return own
}

func (b *Bus) leave(r *reader, session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if rs := b.waiting[session]; rs != nil {
		delete(rs, r)
		if len(rs) == 0 {
			delete(b.waiting, session)
		}
	}
	for _, s := range b.runs {
		s.mu.Lock()
		delete(s.readers, r)
		s.mu.Unlock()
	}
}

// A chase yields entries in order, each once.
type chase struct {
	bus     *Bus
	f       Follow
	yield   func(Entry, error) bool
	run     string
	attempt int
	n       int
}

// past yields what lies before the kept events: the rest of the run that the
// reader was at, from storage.
func (c *chase) past(ctx context.Context, s *Stream, before int) bool {
	run, attempt := c.run, c.attempt
	if c.f.Run != "" && run != c.f.Run {
		run, attempt = c.f.Run, 0
	}
	if s != nil && (run == "" || run == s.info.Run) {
		run = s.info.Run
		if attempt != s.info.Attempt { // an older attempt's events are void: the new one comes whole
			if attempt > 0 && !c.gap(s.info.Attempt) {
				return false
			}
			c.run, c.attempt, c.n = run, s.info.Attempt, 0
		}
		if before <= c.n {
			return true
		}
		return c.fromStorage(ctx, run, s.info.Attempt, before)
	}
	if run == "" {
		return true
	}
	latest, gone, err := c.bus.latest(ctx, run)
	if err != nil {
		return c.yield(Entry{}, err)
	}
	if latest = max(latest, gone); latest == 0 {
		latest = attempt
	}
	if attempt > 0 && latest != attempt && !c.gap(latest) {
		return false
	}
	if latest != attempt {
		c.n = 0
	}
	c.run, c.attempt = run, latest
	if gone > 0 && !c.ended(run, latest) || !c.fromStorage(ctx, run, latest, 1<<62) {
		return false
	}
	if s == nil || before == 0 {
		return true
	}
	c.run, c.attempt, c.n = s.info.Run, s.info.Attempt, 0 // the present run began since
	return c.fromStorage(ctx, c.run, c.attempt, before)
}

func (c *chase) fromStorage(ctx context.Context, run string, attempt, upTo int) bool {
	entries, err := c.bus.load(ctx, run, attempt, c.n)
	if err != nil {
		c.yield(Entry{}, err)
		return false
	}
	for _, e := range entries {
		if e.N > upTo {
			break
		}
		if e.N > c.n+1 && !c.lost(run, attempt, e.N-1) {
			return false
		}
		if !c.one(e) {
			return false
		}
	}
	if upTo < 1<<62 && c.n < upTo {
		return c.lost(run, attempt, upTo)
	}
	return true
}

// behindAll is the number of the event that ends a run of which nothing is stored: no attempt has
// as many.
const behindAll = 1<<31 - 1

// ended yields the end of a run that has ended and of which nothing is stored, unless the reader
// has it.
func (c *chase) ended(run string, attempt int) bool {
	if c.n >= behindAll {
		return true
	}
	stop := core.MessageStop{}
	return c.lost(run, attempt, behindAll-1) &&
		c.one(Entry{Session: c.f.Session, Run: run, Attempt: attempt, N: behindAll, Type: stop.EventType(), Data: encode(stop)})
}

// lost delivers a notice that the events up to n are not in storage.
func (c *chase) lost(run string, attempt, n int) bool {
	g := core.Gap{From: EventID(run, attempt, c.n+1), To: EventID(run, attempt, n)}
	c.n = n
	return c.notice(g, run, attempt, n)
}

// gap delivers a notice that the events of an older attempt are void.
func (c *chase) gap(newer int) bool {
	return c.notice(core.Gap{From: EventID(c.run, c.attempt, c.n), To: EventID(c.run, newer, 0)}, c.run, newer, 0)
}

func (c *chase) notice(g core.Gap, run string, attempt, n int) bool {
	return c.yield(Entry{Session: c.f.Session, Run: run, Attempt: attempt, N: n, Type: g.EventType(), Data: encode(g), Event: g}, nil)
}

func (c *chase) all(es []Entry) bool {
	for _, e := range es {
		if !c.one(e) {
			return false
		}
	}
	return true
}

// one yields e unless the reader has it; it reports whether to go on.
func (c *chase) one(e Entry) bool {
	if c.f.Run != "" && e.Run != c.f.Run {
		return true
	}
	if e.Run == c.run && e.Attempt == c.attempt && e.N <= c.n {
		return !c.last(e) // who has the end waits for nothing, also before the stream is closed
	}
	if e.Run == c.run && e.Attempt < c.attempt {
		return true
	}
	if e.Run == c.run && e.Attempt > c.attempt && c.n > 0 {
		if !c.gap(e.Attempt) {
			return false
		}
	}
	c.run, c.attempt, c.n = e.Run, e.Attempt, e.N
	if !c.yield(e, nil) {
		return false
	}
	return !c.last(e)
}

// last reports whether e is the end of what is followed.
func (c *chase) last(e Entry) bool {
	return c.f.Run != "" && e.Type == core.MessageStop{}.EventType()
}
