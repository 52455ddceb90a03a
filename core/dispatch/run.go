package dispatch

import (
	"context"
	"errors"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/orchestrator"
	"gatehouse/core/queue"
	"gatehouse/core/queue/halt"
	"gatehouse/core/runs"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// run answers a message with a run.
func (d *Dispatcher) run(ctx context.Context, t *queue.Turn) (err error) {
	turn := t.Work.(*orchestrator.Turn)
	turn.Trust = t.Trust
	in := t.First()
	stream := d.o.Bus.Begin(bus.Info{Run: t.Run, Session: turn.Session.ID, Bot: in.Bot, Chat: in.Chat, Lane: chatLane(t), User: turn.User, Attempt: turn.Attempt, Started: t.Taken})
	d.o.Events.Watch(t.Run, turn.Attempt, source{stream}, in.Turn == nil)
	defer d.o.Events.Unwatch(t.Run, turn.Attempt)
	defer func() {
		if p := recover(); p != nil {
			d.o.Log.ErrorContext(ctx, "run panicked", "run", t.Run, "panic", p)
			err = d.endBroken(ctx, t, turn, stream, "internal", texts.Text("fault_internal"), errPanic)
		}
		if err != nil {
			stream.Leave() // without another attempt, Abandon publishes the end
		}
	}()
	if in.Turn != nil && (turn.Attempt > 1 || t.Attempt > 1) && !in.Turn.Respond {
		return d.endBroken(ctx, t, turn, stream, "interrupted", texts.Text("fault_interrupted"), nil)
	}
	res, err := d.answer(ctx, t, turn, stream)
	switch {
	case errors.Is(err, errGuest):
		return d.endBroken(ctx, t, turn, stream, "busy", texts.Text("guest_busy", texts.With{"Most": guestRuns}), nil)
	case stopped(ctx, err) && once(in):
		return d.endBroken(ctx, t, turn, stream, "shutdown", texts.Text("fault_stopping"), nil)
	case err != nil && once(in) && !errors.Is(err, queue.ErrFenced):
		return d.endBroken(ctx, t, turn, stream, "internal", texts.Text("fault_internal"), err)
	case err != nil:
		return err
	}
	return d.finish(ctx, t, stream, res)
}

var errPanic = errors.New("the run panicked")

// answer runs the turn and shows its progress in the chat.
func (d *Dispatcher) answer(ctx context.Context, t *queue.Turn, turn *orchestrator.Turn, stream *bus.Stream) (orchestrator.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer func() {
		switch cause := context.Cause(ctx); { // also where the end cannot be stored
		case errors.Is(cause, errInterrupted):
			t.Stop(turn.Session.ID, halt.Interrupted)
		case errors.Is(cause, orchestrator.ErrAborted):
			t.Stop(turn.Session.ID, halt.Aborted)
		}
	}()
	in := t.First()
	a := &active{cancel: cancel, session: turn.Session.ID, bot: in.Bot, user: turn.User, run: t.Run, lane: chatLane(t), from: in.From.ID, seq: t.Seq()}
	if in.Turn != nil {
		a.key = in.Turn.Key
	}
	defer d.o.Running.begin(t.Lane, a, t.Taken)()
	switch why, is := t.Stopped(turn.Session.ID); { // before it could be stopped as a run, or in an attempt whose end was not stored
	case is && why == halt.Interrupted:
		cancel(errInterrupted)
	case is:
		cancel(orchestrator.ErrAborted)
	}
	leave, err := d.guests.enter(ctx, t, turn)
	if err != nil {
		return orchestrator.Result{}, err
	}
	defer leave()
	turn.Last = once(in) || t.Attempt >= queue.MaxAttempts
	turn.Waiting = func(on bool) {
		if on {
			d.o.Queue.Park(t)
		} else {
			d.o.Queue.Unpark(t)
		}
	}
	if in.Turn != nil {
		return d.o.Runs.Run(ctx, turn, func(e core.Event) { d.publish(ctx, cancel, stream, e) })
	}
	show := d.watch(ctx, t)
	defer show.end()
	turn.Progress, turn.Heard = show.progress, show.hear
	d.mark(t, Begins)
	defer d.mark(t, "")
	res, err := d.o.Runs.Run(ctx, turn, func(e core.Event) {
		d.publish(ctx, cancel, stream, e)
		show.see(e)
	})
	res.Notes = show.noted()
	if _, cut := res.Terminal.(core.Aborted); cut && errors.Is(context.Cause(ctx), errInterrupted) {
		show.end()
		res.Quiet = res.Response == "" && t.Preview() == "" // the next message is answered instead
	}
	return res, err
}

// finish commits the run's end, and publishes it only after the commit.
func (d *Dispatcher) finish(ctx context.Context, t *queue.Turn, stream *bus.Stream, res orchestrator.Result) error {
	began := d.o.Clock.Now()
	persist := stream.Seal(res.Terminal, core.MessageStop{})
	// This attempt replaces an earlier one that may be stored.
	persist = persist || t.First().Turn != nil || stream.Info().Attempt > 1
	r := queue.Result{Write: func(ctx context.Context, tx *store.Tx) error {
		if err := res.Write(ctx, tx); err != nil || !persist {
			return err
		}
		return d.o.Events.Append(ctx, tx, t.Run, stream.Info().Attempt, pieces(stream.Rest()))
	}}
	switch in := t.First(); {
	case in.Turn == nil:
		r.Replies = d.final(ctx, t, res)
		r.Anew = in.Slot == "" && notifies(d.o.Clock.Now().Sub(t.Taken), res.Terminal) // a slash command has its place
	case in.Bot == core.ScheduleBot:
		var write func(context.Context, *store.Tx) error
		end := r.Write
		write, r.Replies = d.o.Scheduled(ctx, t.Work.(*orchestrator.Turn), res)
		r.Write = func(ctx context.Context, tx *store.Tx) error {
			if err := end(ctx, tx); err != nil {
				return err
			}
			return write(ctx, tx)
		}
	}
	if err := d.o.Queue.Ack(ctx, t, r); err != nil {
		if kept, known := d.kept(ctx, t, stream.Info().Attempt, err); !kept {
			if known {
				d.detach(r.Replies)
			}
			return err
		}
	}
	d.o.Stage("commit", d.o.Clock.Now().Sub(began))
	stream.Finish(persist)
	return nil
}

// attention is how long a user is expected to watch an answer being written. An edit of
// the preview notifies nobody on any platform.
const attention = 10 * time.Second

// notifies reports whether the answer of a run that took so long and ended with end has to
// notify the readers of its chat. A user who stops a run watches it.
func notifies(took time.Duration, end core.Event) bool {
	_, stopped := end.(core.Aborted)
	return took >= attention && !stopped
}

// kept reports whether the commit that failed has ended the run after all: its answer was
// lost with the connection to the server. The turn is settled then. known is false where that was
// not found out.
func (d *Dispatcher) kept(ctx context.Context, t *queue.Turn, attempt int, err error) (is, known bool) {
	if errors.Is(err, queue.ErrFenced) || errors.Is(err, store.ErrClosed) {
		return false, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	defer cancel()
	for {
		switch row, err := d.o.Events.ByRun(ctx, t.Run); {
		case err == nil && (row.State == "running" || row.Attempt != attempt), core.KindOf(err) == core.NotFound:
			return false, true
		case err == nil:
			_ = d.o.Queue.Fail(ctx, t, queue.ErrFenced) // which has no error
			return true, true
		case !core.Sleep(ctx, d.o.Clock, time.Second):
			return false, false
		}
	}
}

// detach removes the copies of files that replies show which were not stored: the next attempt
// makes its own.
func (d *Dispatcher) detach(replies []core.Reply) {
	var files []core.File
	for _, r := range replies {
		for _, p := range r.Parts {
			if p.File != nil {
				files = append(files, *p.File)
			}
		}
	}
	if d.o.Detach != nil && len(files) > 0 {
		d.o.Detach(files)
	}
}

// publish publishes an event of a run. If storage is behind, the run waits for up
// to storeWait and is cancelled then.
func (d *Dispatcher) publish(ctx context.Context, cancel context.CancelCauseFunc, stream *bus.Stream, e core.Event) {
	stream.Publish(e)
	full := stream.Full()
	if full == nil {
		return
	}
	select {
	case <-full:
	case <-ctx.Done():
	case <-d.o.Clock.After(storeWait):
		cancel(errNotStored)
	}
}

// storeWait bounds how long a run waits for its events to be stored.
const storeWait = 30 * time.Second

var errNotStored = errors.New("the run's events could not be stored")

// final returns the reply to a chat at the end of a run: the answer, the notes
// under it, and the files that it shows.
func (d *Dispatcher) final(ctx context.Context, t *queue.Turn, res orchestrator.Result) []core.Reply {
	if res.Quiet {
		return nil
	}
	text := d.answered(res) + res.Notes
	var files []core.Part
	turn, ran := t.Work.(*orchestrator.Turn)
	if _, done := res.Terminal.(core.Done); done && ran && d.o.Attach != nil {
		var notes []string
		files, notes = d.o.Attach(ctx, turn, res.Response)
		text += noted(notes)
	}
	if text = strings.TrimLeft(text, "\n"); text == "" {
		return nil
	}
	reply := d.reply(t, "run:"+t.Run, text)
	if n := len(reply.Parts); n > 0 {
		reply.Parts[n-1].Buttons = under(t, res, n)
	}
	reply.Parts = append(reply.Parts, files...)
	return append([]core.Reply{reply}, d.asides(t, res)...)
}

// asides returns the messages behind an answer.
func (d *Dispatcher) asides(t *queue.Turn, res orchestrator.Result) (out []core.Reply) {
	for _, a := range res.Asides {
		reply := d.reply(t, a.Key, a.Text)
		if n := len(reply.Parts); n > 0 && len(a.Buttons) > 0 {
			reply.Parts[n-1].Buttons = [][]core.Button{a.Buttons}
		}
		out = append(out, reply)
	}
	return out
}

// answered returns the answer in Markdown.
func (d *Dispatcher) answered(res orchestrator.Result) string {
	switch e := res.Terminal.(type) {
	case core.Done:
		if e.StopReason == "max_tokens" {
			return strings.TrimLeft(res.Response+"\n\n*"+texts.Text("answer_cut")+"*", "\n")
		}
	case core.Aborted:
		if res.Response == "" {
			return texts.Text("stopped")
		}
		return res.Response + "\n\n*" + texts.Text("stopped") + "*"
	case core.Failed:
		text := texts.Text("failed", texts.With{"Reason": e.Message, "Again": e.CanRetry && !texts.AsksAgain(e.Message)})
		if res.Response == "" {
			return text
		}
		return res.Response + "\n\n" + text
	}
	return res.Response
}

// endBroken ends an API run without an answer, with an error event. For any other
// turn it returns cause, so that the turn is retried.
func (d *Dispatcher) endBroken(ctx context.Context, t *queue.Turn, turn *orchestrator.Turn, stream *bus.Stream, code, message string, cause error) error {
	if !requested(t.First()) {
		return cause
	}
	if cause != nil {
		d.o.Log.ErrorContext(ctx, "run failed", "run", t.Run, "err", cause)
	}
	failed := core.Failed{Code: code, Message: message, CanRetry: true, SessionID: turn.Session.ID}
	write := func(ctx context.Context, tx *store.Tx) error {
		return runs.Break(ctx, tx, t.Run, code)
	}
	return d.finish(context.WithoutCancel(ctx), t, stream, orchestrator.Result{State: "error", Terminal: failed, Write: write})
}

// A source is a bus stream for the event store.
type source struct{ *bus.Stream }

func (s source) Unstored() []runs.Piece { return pieces(s.Stream.Unstored()) }

func pieces(entries []bus.Entry) []runs.Piece {
	out := make([]runs.Piece, len(entries))
	for i, e := range entries {
		out[i] = runs.Piece{N: e.N, Data: e.Data}
	}
	return out
}
