// Package dispatch handles claimed turns of the queue: it runs commands, buttons
// and messages, renders replies before the transaction that acknowledges the
// turn, and publishes the terminal event after it. While a run streams, its chat
// shows typing and a disposable preview.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/command"
	"gatehouse/core/orchestrator"
	"gatehouse/core/queue"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/runs"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// A Screen shows what is not final. Its errors are logged only: no message is lost.
type Screen interface {
	// Preview shows part in message id, or in a new message if id is "", and
	// returns the message's id. Without text it deletes the message. After
	// core.ErrInDoubt a new message may exist whose id is unknown.
	Preview(ctx context.Context, to core.Address, id string, part core.Part) (string, error)
	Typing(ctx context.Context, to core.Address) error
	Acknowledge(ctx context.Context, to core.Address, callbackID, text string) error
	// React sets the bot's emoji under a message, or removes it with "".
	React(ctx context.Context, to core.Address, messageID, emoji string) error
}

// Options are the parts that a Dispatcher works on.
type Options struct {
	Clock   core.Clock
	Log     *slog.Logger
	Queue   *queue.Queue
	Outbox  *outbox.Outbox
	Runs    *orchestrator.Orchestrator
	Events  *runs.Store
	Bus     *bus.Bus
	Ends    *Ends
	Running *Running
	Screen  Screen
	// Render converts a reply in Markdown to parts for the chat's platform; pure.
	Render func(to core.Address, markdown string) []core.Part
	// Commands holds the handlers by name, without slash.
	Commands map[string]command.Handler
	Unknown  command.Handler // a command without a handler
	Callback command.Handler // a pressed button; Outcome.Text is shown on the button
	Answer   command.Handler // an answer to an open question
	// Attach copies the files that an answer in Markdown shows, if the turn's
	// sender may read them, so that they do not change before they are sent.
	// Notes explain which are left out. Nil: answers have no files.
	Attach func(ctx context.Context, t *orchestrator.Turn, markdown string) (parts []core.Part, notes []string)
	// Detach removes such copies that are not sent after all. Nil: they stay.
	Detach func(files []core.File)
	// Scheduled returns what the end of a run of core.ScheduleBot stores and sends, in the
	// transaction that acknowledges it. Required where there are such runs.
	Scheduled func(ctx context.Context, t *orchestrator.Turn, res orchestrator.Result) (write func(context.Context, *store.Tx) error, replies []core.Reply)
	// Keep stores the files of a message without a run in the vault, best
	// effort. Nil: they stay with the platform.
	Keep  func(ctx context.Context, in *core.Inbound)
	Stage func(name string, d time.Duration) // gatehouse_gateway_overhead_seconds
}

// A Dispatcher handles turns; it is the queue's Handler.
type Dispatcher struct {
	*Reactions
	o      Options
	guests *guests
}

// New returns a Dispatcher.
func New(o Options) *Dispatcher {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Stage == nil {
		o.Stage = func(string, time.Duration) {}
	}
	return &Dispatcher{newReactions(o.Screen, o.Clock, o.Log), o, newGuests(o.Queue)}
}

// Handle runs t to its end and acknowledges it, or returns it to the queue.
func (d *Dispatcher) Handle(ctx context.Context, t *queue.Turn) {
	d.o.Stage("queue", t.Waited)
	in := t.First()
	if in.Slot != "" && t.Preview() == "" { // the message for the answer exists already
		if err := d.o.Queue.SetPreview(ctx, t, in.Slot); err != nil && !errors.Is(err, queue.ErrFenced) {
			d.o.Log.WarnContext(ctx, "keep the place of an answer", "bot", in.Bot, "err", err)
		}
	}
	var err error
	switch {
	case t.Err != nil:
		err = d.refuse(ctx, t)
	case in.Kind == core.KindCallback:
		err = d.callback(ctx, t)
	case in.Kind == core.KindCommand:
		h := d.o.Commands[in.Command]
		if h == nil {
			h = d.o.Unknown
		}
		err = d.command(ctx, t, h)
	case in.Kind == core.KindAnswer:
		err = d.command(ctx, t, d.o.Answer)
	case in.Unsupported != "" && in.Text == "":
		err = d.unsupported(ctx, t)
	default:
		err = d.run(ctx, t)
	}
	if err != nil {
		d.fail(ctx, t, err)
	}
}

// Behind interrupts the sender's run in the lane where the message means that;
// else it shows under the message that it waits.
func (d *Dispatcher) Behind(in *core.Inbound, lane string, a queue.Admission) {
	if !a.Interrupt || a.User == 0 || !d.o.Running.Interrupt(in.Bot, lane, a.User) {
		d.Reactions.Behind(in)
	}
}

// filesPause is how long a turn waits where no file descriptor is left.
const filesPause = 2 * time.Second

// requested reports whether the turn is that of an API's client.
func requested(in *core.Inbound) bool { return in.Turn != nil && in.Bot != core.ScheduleBot }

// once reports whether a client of the API waits for the turn and does not expect a second
// attempt: it is ended with an error where others are retried.
func once(in *core.Inbound) bool { return requested(in) && !in.Turn.Respond }

// fail returns the turn to the queue: as untried if the gateway stops, else as
// failed, to be retried. Without a file descriptor left nothing was tried.
func (d *Dispatcher) fail(ctx context.Context, t *queue.Turn, err error) {
	stop := stopped(ctx, err)
	if store.OutOfFiles(err) {
		d.o.Log.WarnContext(ctx, "no file descriptor is left, the turn waits: raise LimitNOFILE or ulimit -n", "run", t.Run, "err", err)
		core.Sleep(ctx, d.o.Clock, filesPause)
		stop = true
	}
	ctx = context.WithoutCancel(ctx)
	if stop {
		err = d.o.Queue.GiveBack(ctx, t)
	} else {
		err = d.o.Queue.Fail(ctx, t, err)
	}
	if err != nil && !errors.Is(err, queue.ErrFenced) {
		d.o.Log.ErrorContext(ctx, "settle a failed turn", "run", t.Run, "err", err)
	}
}

// stopped reports whether err is the gateway's stop, or comes of it.
func stopped(ctx context.Context, err error) bool {
	return errors.Is(err, queue.ErrShutdown) || errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), queue.ErrShutdown)
}

// chatLane returns the lane of the messages of t's chat.
func chatLane(t *queue.Turn) string { return strings.TrimSuffix(t.Lane, core.LaneEnd(t.Lane)) }

func call(t *queue.Turn) command.Call {
	return command.Call{In: t.First(), Trust: t.Trust, Seq: t.Seq(), Lane: chatLane(t)}
}

// command answers with h. /stop stops it: compacting a conversation asks a model,
// which may take long.
func (d *Dispatcher) command(ctx context.Context, t *queue.Turn, h command.Handler) error {
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !t.Control {
		defer d.o.Running.begin(t.Lane, &active{cancel: cancel, bot: t.First().Bot, lane: t.Lane, from: t.First().From.ID, seq: t.Seq()}, t.Taken)()
	}
	out, err := h(work, call(t))
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(work), orchestrator.ErrAborted) {
		out, err = command.Outcome{Text: texts.Text("stopped")}, nil
	}
	if core.KindOf(err) != core.Other {
		out, err = command.Outcome{Text: core.TextOf(err)}, nil
	}
	if err != nil {
		return err
	}
	return d.say(ctx, t, out)
}

func (d *Dispatcher) callback(ctx context.Context, t *queue.Turn) error {
	out, err := d.o.Callback(ctx, call(t))
	text := out.Text
	if core.KindOf(err) != core.Other {
		text, err = core.TextOf(err), nil
	}
	if err != nil {
		return err
	}
	if err := d.o.Queue.Ack(ctx, t, queue.Result{Write: d.edited(t, out)}); err != nil {
		return err
	}
	// The decision is stored; only now is the button answered.
	if cb := t.First().Callback; cb != nil {
		if err := d.o.Screen.Acknowledge(ctx, t.First().Address, cb.ID, text); err != nil {
			d.o.Log.DebugContext(ctx, "acknowledge a button", "bot", t.First().Bot, "err", err)
		}
	}
	return nil
}

// edited returns the write of out, with its edit.
func (d *Dispatcher) edited(t *queue.Turn, out command.Outcome) func(context.Context, *store.Tx) error {
	if out.Edit == nil {
		return out.Write
	}
	to, key := t.First().Address, out.Edit.Key
	parts := d.o.Render(to, out.Edit.Text)
	return func(ctx context.Context, tx *store.Tx) error {
		if out.Write != nil {
			if err := out.Write(ctx, tx); err != nil {
				return err
			}
		}
		if len(parts) != 1 {
			return nil
		}
		err := d.o.Outbox.Post(ctx, tx, core.Reply{Address: to, Key: key, First: 1, Replaces: "@" + key + "/0", Parts: slices.Clone(parts)})
		if core.KindOf(err) == core.Conflict {
			return nil // it was edited before
		}
		return err
	}
}

// say acknowledges a turn without a run, with a reply.
func (d *Dispatcher) say(ctx context.Context, t *queue.Turn, out command.Outcome) error {
	r := queue.Result{Write: out.Write}
	if out.Text != "" {
		reply := d.reply(t, command.NoticeKey(t.Seq()), out.Text)
		if n := len(reply.Parts); n > 0 {
			reply.Parts[n-1].Buttons = out.Buttons
		}
		r.Replies = []core.Reply{reply}
	}
	return d.o.Queue.Ack(ctx, t, r)
}

// unsupported answers a message that cannot be read. An album gets one answer,
// not one for each picture.
func (d *Dispatcher) unsupported(ctx context.Context, t *queue.Turn) error {
	in := t.First()
	if len(in.Files) > 0 && d.o.Keep != nil {
		d.o.Keep(ctx, in)
	}
	said := texts.Text("unsupported", texts.With{"Kind": in.Unsupported})
	if in.Unsupported == "voice message" {
		said = texts.Text("unheard")
	}
	if in.Album == "" {
		return d.say(ctx, t, command.Outcome{Text: said})
	}
	key := fmt.Sprintf("notice:album:%s:%s:%s", in.Bot, in.Chat, in.Album)
	err := d.o.Queue.Ack(ctx, t, queue.Result{Replies: []core.Reply{d.reply(t, key, said)}})
	if core.KindOf(err) == core.Conflict {
		err = d.o.Queue.Ack(ctx, t, queue.Result{})
	}
	return err
}

// reply returns text as a reply to the turn's chat. In a group it quotes the
// message. All parts of the answer to a private command are private.
func (d *Dispatcher) reply(t *queue.Turn, key, text string) core.Reply {
	in := t.First()
	parts := d.o.Render(in.Address, text)
	if in.Group() && len(parts) > 0 {
		parts[0].ReplyTo = in.MessageID
	}
	for i := range parts {
		parts[i].Aside = in.Aside
	}
	return core.Reply{Address: in.Address, Key: key, Parts: parts}
}

// refuse ends a turn that Prepare refused. After a fault of the gateway a chat's
// turn is retried, and an API request gets the error at once.
func (d *Dispatcher) refuse(ctx context.Context, t *queue.Turn) error {
	in := t.First()
	failed := core.Failed{Code: "refused", Message: core.TextOf(t.Err), SessionID: in.Chat}
	if core.KindOf(t.Err) == core.Other {
		if !requested(in) {
			return t.Err
		}
		d.o.Log.ErrorContext(ctx, "turn not prepared", "run", t.Run, "err", t.Err)
		failed.Code, failed.Message = "internal", texts.Text("fault_internal")
	}
	if in.Turn == nil {
		return d.say(ctx, t, command.Outcome{Text: core.TextOf(t.Err)})
	}
	return d.o.Queue.Ack(ctx, t, queue.Result{Refused: true, Write: func(ctx context.Context, tx *store.Tx) error {
		// A repeated request with the same Idempotency-Key gets the same end.
		return d.o.Ends.refuse(ctx, tx, runs.Row{ID: t.Run, Session: in.Chat, User: in.Turn.User}, failed)
	}})
}
