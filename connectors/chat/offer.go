package chat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/permission"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// offerLife is how long a command's buttons work.
const offerLife = time.Hour

// An offer is a command's choice of buttons: pressing one is the command typed
// with that argument, by the person who was offered it. It is a choice's payload.
type offer struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`   // by button
	Labels  []string `json:"labels"` // by button
	Key     string   `json:"key"`    // of the reply that shows them
	Text    string   `json:"text"`   // that stays when they are gone
}

// maxOffered bounds the buttons of one offer: the text lists the rest.
const maxOffered = 25

// add puts one more button on the offer, if there is room.
func (o *offer) add(label, arg string) {
	if len(o.Args) == maxOffered {
		return
	}
	o.Args, o.Labels = append(o.Args, arg), append(o.Labels, core.CutRunes(core.Visible(label), ask.MaxButton))
}

// offer is an outcome with o's buttons below text, one a line.
func (c *Chat) offer(ctx context.Context, call command.Call, text string, o offer) (command.Outcome, error) {
	user, _, err := c.o.Book.User(ctx, c.o.DB, call.In.From)
	if err != nil || user == 0 || len(o.Args) == 0 {
		return command.Outcome{Text: text}, err
	}
	o.Key, o.Text = command.NoticeKey(call.Seq), text
	payload, err := json.Marshal(o)
	if err != nil {
		return command.Outcome{}, err
	}
	a := permission.Ask{ID: strings.ToLower(rand.Text()[:permission.IDLength]), Kind: permission.KindChoice, Bot: call.In.Bot, Chat: call.In.Chat,
		User: user, Payload: string(payload), ExpiresAt: call.In.At.Add(offerLife)}
	if now := c.o.Clock.Now(); now.After(call.In.At) { // the platform's time is its own
		a.ExpiresAt = now.Add(offerLife)
	}
	out := command.Outcome{Text: text, Write: func(ctx context.Context, tx *store.Tx) error {
		_, err := c.o.Desk.Open(ctx, tx, a)
		if core.KindOf(err) == core.Busy {
			return nil // the command can be typed, as the text says
		}
		return err
	}}
	for i, label := range o.Labels {
		out.Buttons = append(out.Buttons, []core.Button{{Label: label, Data: a.Data(strconv.Itoa(i))}})
	}
	return out, nil
}

// offered is what a choice offers; false where it is another kind of choice.
func offered(a permission.Ask) (o offer, ok bool) {
	return o, json.Unmarshal([]byte(a.Payload), &o) == nil && o.Command != ""
}

// take carries out a pressed button of an offer: its command is put in line as
// if it were typed, so that it comes behind what is being answered, and the
// buttons go.
func (c *Chat) take(ctx context.Context, call command.Call, a permission.Ask, o offer, option string) (command.Outcome, error) {
	by, err := c.asked(ctx, call, a)
	if err != nil {
		return command.Outcome{}, err
	}
	i, err := strconv.Atoi(option)
	if err != nil || i < 0 || i >= min(len(o.Args), len(o.Labels)) {
		return command.Outcome{}, texts.Error(core.Invalid, "button_gone")
	}
	if a.State != permission.Open || !c.o.Clock.Now().Before(a.ExpiresAt) {
		return command.Outcome{}, texts.Error(core.Conflict, "settled_again", texts.With{"Command": o.Command})
	}
	row := core.Inbound{UpdateID: "choice:" + a.ID, Address: call.In.Address, Kind: core.KindCommand, MessageID: call.In.MessageID,
		From: call.In.From, At: call.In.At, Command: o.Command, Text: o.Args[i], Addressed: true, PlaceName: call.In.PlaceName, Topic: call.In.Topic, Aside: call.In.Aside}
	parts := c.o.Render(call.In.Address, o.Text+"\n\n✓ "+plain(o.Labels[i]))
	out := command.Outcome{Text: o.Labels[i], Write: func(ctx context.Context, tx *store.Tx) error {
		if _, err := c.o.Desk.Decide(ctx, tx, a.ID, option, by); err != nil && core.KindOf(err) != core.Conflict {
			return err
		}
		if len(parts) != 1 { // a text of several messages keeps its buttons, which say that they are used up
			return nil
		}
		err := c.o.Queue.Post(ctx, tx, core.Reply{Address: call.In.Address, Key: o.Key, First: 1, Replaces: "@" + o.Key + "/0", Parts: slices.Clone(parts)})
		if core.KindOf(err) == core.Conflict {
			return nil
		}
		return err
	}}
	return out, c.o.Queue.Put(ctx, []core.Inbound{row}, nil)
}
