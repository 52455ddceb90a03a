package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"gatehouse/connectors"
	"gatehouse/connectors/discord/gateway"
	"gatehouse/connectors/discord/rest"
	"gatehouse/connectors/discord/wire"
	"gatehouse/core"
)

const (
	// maxWaiting and maxWaitingBytes bound what has come and is not stored yet.
	// Beyond, the connection is given up; the platform keeps the rest for RESUME.
	maxWaiting      = 4096
	maxWaitingBytes = 64 << 20
	pageLimit       = 100 // events stored in one transaction
	// keepEvery is how often a position is stored that moved without a row.
	keepEvery = 10 * time.Second
)

// An intake holds events between the connection and the store.
type intake struct {
	mu     sync.Mutex
	events []gateway.Event
	bytes  int
	bell   chan struct{} // one token: something came
}

func newIntake() *intake { return &intake{bell: make(chan struct{}, 1)} }

func (i *intake) clear() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.events, i.bytes = nil, 0
}

// take adds an event; false when there is no room. One event always fits.
func (i *intake) take(e gateway.Event) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.events) >= maxWaiting || i.bytes > maxWaitingBytes {
		return false
	}
	i.events = append(i.events, e)
	i.bytes += len(e.Data)
	select {
	case i.bell <- struct{}{}:
	default:
	}
	return true
}

// page takes out the oldest events.
func (i *intake) page() []gateway.Event {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := min(len(i.events), pageLimit)
	page := i.events[:n:n]
	if i.events = i.events[n:]; len(i.events) == 0 {
		i.events = nil
	}
	for _, e := range page {
		i.bytes -= len(e.Data)
	}
	return page
}

// beside runs f beside the events that are processed. A panic of f is logged and affects
// nothing else.
func (r *receiver) beside(op string, f func()) {
	connectors.Go(&r.tasks, r.bot.o.Log, r.bot.o.Name, op, f)
}

// process stores events until over is closed and none is left, or ctx ends. It returns
// an error if that ends the connection; a panic is one.
func (r *receiver) process(ctx context.Context, over <-chan struct{}) (err error) {
	defer connectors.Recover(r.bot.o.Log, r.bot.o.Name, "process events", &err)
	asking, cancel := context.WithCancel(ctx)
	defer cancel() // what is not read back yet is asked for again
	for ended := false; ; {
		page := r.intake.page()
		if len(page) > 0 {
			if err := r.handle(ctx, page); err != nil || ctx.Err() != nil {
				return err
			}
		} else if ended {
			return nil
		}
		wake, err := r.readBack(ctx, asking)
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		if len(page) > 0 {
			continue
		}
		select {
		case <-r.intake.bell:
		case p := <-r.back.Pages():
			if err := r.take(ctx, p); err != nil {
				return ignoreEnd(ctx, err)
			}
		case <-wake:
		case <-ctx.Done():
			return nil
		case <-over:
			ended = true
		}
	}
}

// handle stores a page of events in order. Events before a READY or RESUMED are stored
// first.
func (r *receiver) handle(ctx context.Context, events []gateway.Event) error {
	var page []core.Inbound
	flush := func() error {
		err := r.put(ctx, page, r.storable())
		page = nil
		return err
	}
	for _, e := range events {
		if e.Type == "READY" || e.Type == "RESUMED" {
			if err := flush(); err != nil {
				return ignoreEnd(ctx, err)
			}
			if err := r.greet(ctx, e); err != nil {
				return ignoreEnd(ctx, err)
			}
			r.seen = max(r.at.Seq, e.Seq)
			continue
		}
		if aside := r.aside(ctx, e); aside != nil {
			r.beside("answer an interaction", aside)
			r.seen = max(r.seen, e.Seq)
			continue
		}
		in, ok, err := r.decode(ctx, e)
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		if ok {
			r.removed(e, &in)
			page = append(page, r.back.Pass(in)...)
			if !r.back.Hold(in, e.Seq) {
				page = append(page, in)
			}
		}
		if e.Malformed == "" && e.Seq > r.seen || e.Seq == r.seen+1 {
			r.seen = e.Seq
		}
	}
	return ignoreEnd(ctx, flush())
}

// aside returns the work on an event that is answered immediately and never stored;
// nil for any other.
func (r *receiver) aside(ctx context.Context, e gateway.Event) func() {
	if e.Type != "INTERACTION_CREATE" {
		return nil
	}
	return r.bot.answers.Aside(ctx, e.Data, func() (core.Inbound, error) { return r.bot.decoder.Read(ctx, e) })
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// lookupTries limits the requests for one event's channel that end with an error of the
// platform. Then the event becomes malformed, so that it does not block all others.
const lookupTries = 8

// decode is Decoder.Decode with retries while the channel cannot be looked up. It returns
// an error if the token is refused.
func (r *receiver) decode(ctx context.Context, e gateway.Event) (core.Inbound, bool, error) {
	for n := 1; ; n++ {
		in, ok, err := r.bot.decoder.Decode(ctx, e, r.at.ID)
		if err == nil {
			return in, ok, nil
		}
		var f *rest.Failure
		if n >= lookupTries && errors.As(err, &f) && f.Status >= 500 {
			e.Malformed = "its channel cannot be looked up: " + f.Error()
			continue
		}
		if err := r.await(ctx, err, n); err != nil {
			return in, false, err
		}
		if n >= lookupTries { // only answers of the platform count, not its absence
			n = lookupTries - 1
		}
	}
}

// await waits before the n-th next try of asking the platform for something
// that events wait for.
func (r *receiver) await(ctx context.Context, err error, n int) error {
	b := r.bot
	var f *rest.Failure
	if !errors.As(err, &f) {
		return err
	}
	if f.RefusesToken() {
		return b.denied("401 " + f.Text)
	}
	wait := connectors.Backoff(n, b.o.Random)
	if f.Status == 429 {
		wait = cmp.Or(f.After, connectors.UnnamedWait)
	}
	r.report(core.BotState{State: core.Degraded, Reason: "Discord does not answer questions about channels; trying again", LastError: f.Error()})
	if !core.Sleep(ctx, b.o.Clock, wait) {
		return ctx.Err()
	}
	return nil
}

// greet begins or goes on with a session.
func (r *receiver) greet(ctx context.Context, e gateway.Event) error {
	b := r.bot
	r.up.Store(true)
	b.o.Metrics.alive(b.o.Name, b.o.Clock.Now())
	if e.Type == "RESUMED" {
		application := r.at.Application
		r.beside("register commands", func() { b.answers.Deploy(ctx, application) })
		b.o.Metrics.resume(b.o.Name, resumed)
		r.standing()
		return nil
	}
	var ready wire.Ready
	if err := json.Unmarshal(e.Data, &ready); err != nil || ready.Session == "" {
		return errors.New("the gateway's READY cannot be read")
	}
	b.decoder.SetUsername(ready.User.Username)
	r.beside("register commands", func() { b.answers.Deploy(ctx, ready.Application.ID) })
	r.identified = b.o.Clock.Now()
	r.at = position{Session: gateway.Session{ID: ready.Session, Seq: e.Seq, URL: ready.URL}, Application: ready.Application.ID, Limited: r.at.Limited}
	// The session is stored only behind which channels are to be read back: who ends in
	// between must not go on with it, and miss the rest.
	if err := r.catchUp(ctx, &ready, e.Seq); err != nil {
		r.forget()
		return err
	}
	r.standing()
	return nil
}

// catchUp has what came before a session stored, and then stores the session. A panic is an error.
func (r *receiver) catchUp(ctx context.Context, ready *wire.Ready, seq int64) (err error) {
	defer connectors.Recover(r.bot.o.Log, r.bot.o.Name, "catch up", &err)
	if err = r.missing(ctx, ready); err == nil {
		err = r.owe(ctx)
	}
	if err == nil {
		err = r.commit(ctx, nil, seq)
	}
	return err
}

// standing reports how the connection is, when it is well.
func (r *receiver) standing() {
	s := core.BotState{State: core.Running, LastSuccess: r.bot.o.Clock.Now(), Username: r.bot.decoder.Username()}
	if r.at.Limited {
		s.State, s.Reason = core.Degraded, contentOff
	}
	r.report(s)
}

func (r *receiver) cursor(seq int64) *core.Cursor {
	at := r.at
	at.Seq = seq
	raw, err := json.Marshal(at)
	if err != nil { // strings and numbers always have JSON
		return nil
	}
	return &core.Cursor{Name: r.bot.cursorName(), Value: string(raw)}
}

// put stores a page, and its position with the last of it. A position without rows is committed every keepEvery only: events
// that RESUME repeats are not stored twice.
func (r *receiver) put(ctx context.Context, page []core.Inbound, seq int64) error {
	for ; len(page) > pageLimit; page = page[pageLimit:] { // with what was held
		if err := r.commit(ctx, page[:pageLimit], r.at.Seq); err != nil {
			return err
		}
	}
	if len(page) > 0 || r.bot.o.Clock.Now().Sub(r.kept) >= keepEvery {
		return r.commit(ctx, page, seq)
	}
	r.at.Seq = seq
	r.stored.Store(seq)
	return nil
}

// commit stores a page with the position behind it, trying again until it is
// stored or ctx ends; then the position counts and channels are remembered.
func (r *receiver) commit(ctx context.Context, page []core.Inbound, seq int64) error {
	r.meet(ctx, page)
	if err := r.store(ctx, page, r.cursor(seq)); err != nil {
		return err
	}
	r.at.Seq, r.keptSeq, r.kept = seq, seq, r.bot.o.Clock.Now()
	r.stored.Store(seq)
	r.remember(page)
	r.saveMarks(ctx, false)
	return nil
}

// store calls Put until it succeeds, then answers pressed buttons.
func (r *receiver) store(ctx context.Context, page []core.Inbound, cursor *core.Cursor) error {
	b := r.bot
	pressed, stored := b.answers.Expect(page), false
	defer func() {
		if !stored {
			b.answers.Release(pressed)
		}
	}()
	for {
		err := r.in.Put(ctx, page, cursor)
		if stored = err == nil; stored {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.stuck++
		wait := connectors.Backoff(r.stuck, b.o.Random)
		b.o.Log.ErrorContext(ctx, "discord events not stored", "bot", b.o.Name, "err", err, "retry_in", wait)
		r.report(core.BotState{State: core.Degraded, Reason: storeReason, LastError: b.redact.Replace(err.Error())})
		if !core.Sleep(ctx, b.o.Clock, wait) {
			return ctx.Err()
		}
	}
	if r.stuck > 0 {
		r.stuck = 0
		r.standing()
	}
	for _, in := range page {
		if respond := b.answers.Stored(ctx, &in, pressed); respond != nil {
			r.beside("answer an interaction", respond)
		}
	}
	return nil
}
