package dispatch

import (
	"context"
	"errors"
	"strings"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/orchestrator"
	"gatehouse/core/queue"
	"gatehouse/core/store"
)

// run has a message answered.
func (d *Dispatcher) run(ctx context.Context, t *queue.Turn) (err error) {
	turn := t.Work.(*orchestrator.Turn)
	turn.Trust = t.Trust
	in := t.First()
	stream := d.o.Bus.Begin(bus.Info{Run: t.Run, Session: turn.Session.ID, Bot: in.Bot, Chat: in.Chat, User: turn.User, Attempt: turn.Attempt, Started: t.Taken})
	d.o.Events.Watch(t.Run, turn.Attempt, source{stream}, in.Turn == nil)
	defer d.o.Events.Unwatch(t.Run, turn.Attempt)
	ended := false
	defer func() {
		if p := recover(); p != nil {
			d.o.Log.ErrorContext(ctx, "run panicked", "run", t.Run, "panic", p)
			err = d.endBroken(ctx, t, turn, stream, "internal", "Something went wrong inside the gateway.", errPanic)
		}
		if !ended && err != nil {
			d.leave(t, turn, stream)
		}
	}()
	if in.Turn != nil && (turn.Attempt > 1 || t.Attempt > 1) && !in.Turn.Respond {
		return d.endBroken(ctx, t, turn, stream, "interrupted", "The gateway was interrupted while it answered.", nil)
	}
	res, err := d.answer(ctx, t, turn, stream)
	switch {
	case errors.Is(err, errGuest):
		return d.endBroken(ctx, t, turn, stream, "busy", core.TextOf(errGuest), nil)
	case errors.Is(err, queue.ErrShutdown) && in.Turn != nil:
		return d.endBroken(ctx, t, turn, stream, "shutdown", "The gateway is stopping.", nil)
	case err != nil && in.Turn != nil && !errors.Is(err, queue.ErrFenced):
		return d.endBroken(ctx, t, turn, stream, "internal", "Something went wrong inside the gateway.", err)
	case err != nil:
		return err
	}
	if err := d.finish(ctx, t, stream, res); err != nil {
		return err
	}
	ended = true
	return nil
}

var errPanic = errors.New("the run panicked")

// answer runs the turn with its chat looking on.
func (d *Dispatcher) answer(ctx context.Context, t *queue.Turn, turn *orchestrator.Turn, stream *bus.Stream) (orchestrator.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	in := t.First()
	a := &active{cancel: cancel, session: turn.Session.ID, bot: in.Bot, user: turn.User, lane: strings.TrimSuffix(t.Lane, "#control")}
	defer d.begin(t.Lane, a, t.Taken)()
	leave, err := d.enter(ctx, t, turn)
	if err != nil {
		return orchestrator.Result{}, err
	}
	defer leave()
	turn.Waiting = func(on bool) {
		if on {
			d.o.Queue.Park(t)
		} else {
			d.o.Queue.Unpark(t)
		}
	}
	if in.Turn != nil {
		return d.o.Runs.Run(ctx, turn, func(e core.Event) { stream.Publish(e) })
	}
	show := d.watch(ctx, t)
	defer show.end()
	turn.Progress = show.progress
	return d.o.Runs.Run(ctx, turn, func(e core.Event) {
		stream.Publish(e)
		show.see(e)
	})
}

// finish commits the run's end and then, and only then, tells it.
func (d *Dispatcher) finish(ctx context.Context, t *queue.Turn, stream *bus.Stream, res orchestrator.Result) error {
	began := d.o.Clock.Now()
	last := []core.Event{res.Terminal, core.MessageStop{}}
	persist := t.First().Turn != nil || stream.WasStored()
	r := queue.Result{Write: func(ctx context.Context, tx *store.Tx) error {
		if err := res.Write(ctx, tx); err != nil || !persist {
			return err
		}
		pieces := source{stream}.Unstored()
		for i, e := range last {
			data, err := core.EncodeEvent(e)
			if err != nil {
				return err
			}
			pieces = append(pieces, orchestrator.Piece{N: stream.Next() + i, Data: data})
		}
		return d.o.Events.Store(ctx, tx, t.Run, stream.Info().Attempt, pieces)
	}}
	if text := d.final(res); text != "" && t.First().Turn == nil {
		reply := d.reply(t, "run:"+t.Run, text)
		if n := len(reply.Parts); n > 0 && len(res.Buttons) > 0 {
			reply.Parts[n-1].Buttons = [][]core.Button{res.Buttons}
		}
		r.Replies = []core.Reply{reply}
	}
	if err := d.o.Queue.Ack(ctx, t, r); err != nil {
		return err
	}
	d.o.Stage("commit", d.o.Clock.Now().Sub(began))
	for _, e := range last {
		stream.Publish(e)
	}
	stream.End()
	return nil
}

// final is what the chat reads at the end of a run, in Markdown.
func (d *Dispatcher) final(res orchestrator.Result) string {
	switch e := res.Terminal.(type) {
	case core.Aborted:
		if res.Response == "" {
			return d.o.Texts.Stopped
		}
		return res.Response + "\n\n*" + d.o.Texts.Stopped + "*"
	case core.Failed:
		text := d.o.Texts.Failed(e.Message, e.CanRetry)
		if res.Response == "" {
			return text
		}
		return res.Response + "\n\n" + text
	}
	return res.Response
}

// endBroken ends a run whose answer will not come, with an error event. With
// cause, a chat's turn is left to be tried again.
func (d *Dispatcher) endBroken(ctx context.Context, t *queue.Turn, turn *orchestrator.Turn, stream *bus.Stream, code, message string, cause error) error {
	if t.First().Turn == nil {
		return cause
	}
	if cause != nil {
		d.o.Log.ErrorContext(ctx, "run failed", "run", t.Run, "err", cause)
	}
	failed := core.Failed{Code: code, Message: message, CanRetry: true, SessionID: turn.Session.ID}
	write := func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE runs SET state = 'error', ended = $1, error = $2 WHERE id = $3`, core.Stamp(tx.Time()), code, t.Run)
		return err
	}
	return d.finish(context.WithoutCancel(ctx), t, stream, orchestrator.Result{State: "error", Terminal: failed, Write: write})
}

// leave closes the stream of an attempt without an end. After the last attempt
// there will be no other: readers get the error now.
func (d *Dispatcher) leave(t *queue.Turn, turn *orchestrator.Turn, stream *bus.Stream) {
	if t.Attempt < queue.MaxAttempts {
		stream.Leave()
		return
	}
	stream.Publish(core.Failed{Code: "internal", Message: "The gateway could not answer this.", SessionID: turn.Session.ID})
	stream.Publish(core.MessageStop{})
	stream.End()
}

// source is a bus stream as the event store sees it.
type source struct{ *bus.Stream }

func (s source) Unstored() []orchestrator.Piece {
	entries := s.Stream.Unstored()
	out := make([]orchestrator.Piece, len(entries))
	for i, e := range entries {
		out[i] = orchestrator.Piece{N: e.N, Data: e.Data}
	}
	return out
}
