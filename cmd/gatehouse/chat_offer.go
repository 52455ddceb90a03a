package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/dispatch"
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
	o.Args, o.Labels = append(o.Args, arg), append(o.Labels, core.CutRunes(core.Visible(label), maxButton))
}

// offer is an outcome with o's buttons below text, one a line.
func (c *chat) offer(ctx context.Context, call dispatch.Call, text string, o offer) (dispatch.Outcome, error) {
	user, _, err := c.book.User(ctx, c.db, call.In.From)
	if err != nil || user == 0 || len(o.Args) == 0 {
		return dispatch.Outcome{Text: text}, err
	}
	o.Key, o.Text = dispatch.NoticeKey(call.Seq), text
	payload, err := json.Marshal(o)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	ask := permission.Ask{ID: strings.ToLower(rand.Text()[:permission.IDLength]), Kind: permission.KindChoice, Bot: call.In.Bot, Chat: call.In.Chat,
		User: user, Payload: string(payload), ExpiresAt: call.In.At.Add(offerLife)}
	if now := c.clock.Now(); now.After(call.In.At) { // the platform's time is its own
		ask.ExpiresAt = now.Add(offerLife)
	}
	out := dispatch.Outcome{Text: text, Write: func(ctx context.Context, tx *store.Tx) error {
		_, err := c.desk.Open(ctx, tx, ask)
		if core.KindOf(err) == core.Busy {
			return nil // the command can be typed, as the text says
		}
		return err
	}}
	for i, label := range o.Labels {
		out.Buttons = append(out.Buttons, []core.Button{{Label: label, Data: ask.Data(strconv.Itoa(i))}})
	}
	return out, nil
}

// offered is what a choice offers; false where it is another kind of choice.
func offered(ask permission.Ask) (o offer, ok bool) {
	return o, json.Unmarshal([]byte(ask.Payload), &o) == nil && o.Command != ""
}

// take carries out a pressed button of an offer: its command is put in line as
// if it were typed, so that it comes behind what is being answered, and the
// buttons go.
func (c *chat) take(ctx context.Context, call dispatch.Call, ask permission.Ask, o offer, option string) (dispatch.Outcome, error) {
	by, err := c.asked(ctx, call, ask)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	i, err := strconv.Atoi(option)
	if err != nil || i < 0 || i >= min(len(o.Args), len(o.Labels)) {
		return dispatch.Outcome{}, texts.Error(core.Invalid, "button_gone")
	}
	if ask.State != permission.Open || !c.clock.Now().Before(ask.ExpiresAt) {
		return dispatch.Outcome{}, texts.Error(core.Conflict, "settled_again", texts.With{"Command": o.Command})
	}
	row := core.Inbound{UpdateID: "choice:" + ask.ID, Address: call.In.Address, Kind: core.KindCommand, MessageID: call.In.MessageID,
		From: call.In.From, At: call.In.At, Command: o.Command, Text: o.Args[i], Addressed: true, PlaceName: call.In.PlaceName, Topic: call.In.Topic, Aside: call.In.Aside}
	parts := c.render(call.In.Address, o.Text+"\n\n✓ "+plain(o.Labels[i]))
	out := dispatch.Outcome{Text: o.Labels[i], Write: func(ctx context.Context, tx *store.Tx) error {
		if _, err := c.desk.Decide(ctx, tx, ask.ID, option, by); err != nil && core.KindOf(err) != core.Conflict {
			return err
		}
		if len(parts) != 1 { // a text of several messages keeps its buttons, which say that they are used up
			return nil
		}
		err := c.queue.Post(ctx, tx, core.Reply{Address: call.In.Address, Key: o.Key, First: 1, Replaces: "@" + o.Key + "/0", Parts: slices.Clone(parts)})
		if core.KindOf(err) == core.Conflict {
			return nil
		}
		return err
	}}
	return out, c.queue.Put(ctx, []core.Inbound{row}, nil)
}
