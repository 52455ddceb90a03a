package ask

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/command"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// offerLife is how long the buttons of a command work.
const offerLife = time.Hour

// maxOffered bounds the buttons of one offer. The text lists all choices.
const maxOffered = 25

// An Offer is a choice of buttons under the answer to a command. Pressing one is
// the same as sending the command with that argument, for the user to whom it
// was offered. It is stored as the payload of an ask.
type Offer struct {
	Command string         `json:"command"`
	Others  map[int]string `json:"others,omitempty"` // by button: the command that it sends in place of Command
	Args    []string       `json:"args"`             // by button
	Labels  []string       `json:"labels"`           // by button
	Key     string         `json:"key"`              // of the reply that shows them
	Text    string         `json:"text"`             // of that reply, kept when the buttons go
}

// Add appends a button if there is room.
func (o *Offer) Add(label, arg string) { o.AddOf(o.Command, label, arg) }

// AddOf appends a button of another command if there is room.
func (o *Offer) AddOf(command, label, arg string) {
	if len(o.Args) == maxOffered {
		return
	}
	if command != o.Command {
		if o.Others == nil {
			o.Others = map[int]string{} // at most maxOffered
		}
		o.Others[len(o.Args)] = command
	}
	o.Args, o.Labels = append(o.Args, arg), append(o.Labels, core.CutRunes(core.Visible(label), maxButton))
}

// Offer returns an outcome with the buttons of o under text, one a row. A user
// who is known only as a member of a group gets the text alone.
func (b *Buttons) Offer(r command.Request, text string, o Offer) (command.Outcome, error) {
	if r.User == 0 || len(o.Args) == 0 {
		return command.Outcome{Text: text}, nil
	}
	o.Key, o.Text = command.NoticeKey(r.Seq), text
	payload, err := json.Marshal(o)
	if err != nil {
		return command.Outcome{}, err
	}
	a := ask.Ask{ID: ask.NewID(), Kind: ask.KindChoice, Bot: r.In.Bot, Chat: r.In.Chat,
		User: r.User, Payload: string(payload), ExpiresAt: r.In.At.Add(offerLife)}
	if now := b.o.Clock.Now(); now.After(r.In.At) { // the platform's clock may differ
		a.ExpiresAt = now.Add(offerLife)
	}
	out := command.Outcome{Text: text, Write: func(ctx context.Context, tx *store.Tx) error {
		_, err := b.o.Asks.Open(ctx, tx, a)
		if core.KindOf(err) == core.Busy {
			return nil // the text names the command
		}
		return err
	}}
	for i, label := range o.Labels {
		out.Buttons = append(out.Buttons, []core.Button{{Label: label, Data: a.Data(strconv.Itoa(i))}})
	}
	return out, nil
}

// choice handles a button of an offer, of the choice after an interrupted run, or of a text
// that its sender may have answered.
func (b *Buttons) choice(ctx context.Context, r command.Request, a ask.Ask, option string) (command.Outcome, error) {
	if r.User == 0 || r.User != a.User {
		return command.Outcome{}, texts.Error(core.Denied, "asked_another")
	}
	var o Offer
	if json.Unmarshal([]byte(a.Payload), &o) == nil && o.Command != "" {
		return b.take(ctx, r, a, o, option)
	}
	var said ask.Said
	if json.Unmarshal([]byte(a.Payload), &said) == nil && said.Text != "" {
		if !b.o.Clock.Now().Before(a.ExpiresAt) {
			return command.Outcome{}, texts.Error(core.Conflict, "settled")
		}
		out, err := b.goOn(ctx, r, a, option, said.Text)
		out.Text, out.Edit = texts.Text("voice_pressed_answer"), &command.Edit{Key: said.Key, Text: said.Shown}
		return out, err
	}
	return b.goOn(ctx, r, a, option, texts.Text("said_go_on"))
}

// take stores the command of a button in the inbox, where it waits for what is
// being answered, and removes the buttons.
func (b *Buttons) take(ctx context.Context, r command.Request, a ask.Ask, o Offer, option string) (command.Outcome, error) {
	i, err := strconv.Atoi(option)
	if err != nil || i < 0 || i >= min(len(o.Args), len(o.Labels)) {
		return command.Outcome{}, texts.Error(core.Invalid, "button_gone")
	}
	if a.State != ask.Open || !b.o.Clock.Now().Before(a.ExpiresAt) {
		return command.Outcome{}, texts.Error(core.Conflict, "settled_again", texts.With{"Command": o.Command})
	}
	row := core.Inbound{UpdateID: "choice:" + a.ID, Address: r.In.Address, Kind: core.KindCommand, MessageID: r.In.MessageID,
		From: r.In.From, At: r.In.At, Command: cmp.Or(o.Others[i], o.Command), Text: o.Args[i], Addressed: true, PlaceName: r.In.PlaceName, Topic: r.In.Topic, Aside: r.In.Aside}
	// Several messages keep their buttons; a press answers that they are used.
	edit := command.Edit{Key: o.Key, Text: o.Text + "\n\n✓ " + texts.Escape(core.CleanName(o.Labels[i]))}
	out := command.Outcome{Text: o.Labels[i], Edit: &edit, Write: func(ctx context.Context, tx *store.Tx) error {
		_, err := b.o.Asks.Decide(ctx, tx, a.ID, option, r.By())
		if core.KindOf(err) == core.Conflict {
			return nil
		}
		return err
	}}
	return out, b.o.Inbox.Put(ctx, []core.Inbound{row}, nil)
}

// goOn continues a run that a restart has interrupted, or leaves it. Continuing
// is a message with this text in the sender's name.
func (b *Buttons) goOn(ctx context.Context, r command.Request, a ask.Ask, option, text string) (command.Outcome, error) {
	if a.State != ask.Open {
		return command.Outcome{}, texts.Error(core.Conflict, "settled")
	}
	out := command.Outcome{Text: texts.Text("choice_pressed_stop"), Write: func(ctx context.Context, tx *store.Tx) error {
		_, err := b.o.Asks.Decide(ctx, tx, a.ID, option, r.By())
		if core.KindOf(err) == core.Conflict {
			return nil // it has just expired; the press counts
		}
		return err
	}}
	if option != ask.OptionGoOn {
		return out, nil
	}
	out.Text = texts.Text("choice_pressed_go_on")
	row := core.Inbound{UpdateID: "choice:" + a.ID, Address: r.In.Address, Kind: core.KindMessage, MessageID: r.In.MessageID,
		From: r.In.From, At: r.In.At, Text: text, Addressed: true, PlaceName: r.In.PlaceName, Topic: r.In.Topic}
	return out, b.o.Inbox.Put(ctx, []core.Inbound{row}, nil)
}
