package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gatehouse/connectors"
	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// asked is the actor of whoever was asked; Denied for anybody else.
func (c *Chat) asked(ctx context.Context, call command.Call, a permission.Ask) (core.Actor, error) {
	user, _, err := c.o.Book.User(ctx, c.o.DB, call.In.From)
	if err != nil {
		return core.Actor{}, err
	}
	if user == 0 || user != a.User {
		return core.Actor{}, texts.Error(core.Denied, "asked_another")
	}
	return core.Actor{User: user, Via: "chat"}, nil
}

// choose decides about work that a restart has interrupted. Going on is a
// message like any other, in its sender's name.
func (c *Chat) choose(ctx context.Context, call command.Call, a permission.Ask, option string) (command.Outcome, error) {
	if o, ok := offered(a); ok {
		return c.take(ctx, call, a, o, option)
	}
	by, err := c.asked(ctx, call, a)
	if err != nil {
		return command.Outcome{}, err
	}
	if a.State != permission.Open {
		return command.Outcome{}, texts.Error(core.Conflict, "settled")
	}
	out := command.Outcome{Text: texts.Text("choice_pressed_stop"), Write: func(ctx context.Context, tx *store.Tx) error {
		_, err := c.o.Desk.Decide(ctx, tx, a.ID, option, by)
		if core.KindOf(err) == core.Conflict {
			return nil // its time ended this moment; the press counts all the same
		}
		return err
	}}
	if option != orchestrator.GoOn {
		return out, nil
	}
	out.Text = texts.Text("choice_pressed_go_on")
	row := core.Inbound{UpdateID: "choice:" + a.ID, Address: call.In.Address, Kind: core.KindMessage, MessageID: call.In.MessageID,
		From: call.In.From, At: call.In.At, Text: texts.Text("said_go_on"), Addressed: true}
	return out, c.o.Queue.Put(ctx, []core.Inbound{row}, nil)
}

// Form is what the button of a question opens: a field for each. It is for who
// was asked, as long as they may talk to the bot there and it is open.
func (c *Chat) Form(ctx context.Context, in *core.Inbound) (connectors.Form, error) {
	id, option, ok := permission.SplitData(in.Callback.Data)
	gone := texts.Error(core.Invalid, "button_gone")
	if !ok || option != ask.OptionWrite {
		return connectors.Form{}, gone
	}
	a, err := c.o.Desk.ByID(ctx, c.o.DB, id)
	if core.KindOf(err) == core.NotFound || err == nil && (a.Bot != in.Bot || a.Chat != in.Chat || a.Kind != permission.KindQuestion) {
		return connectors.Form{}, gone
	}
	if err != nil {
		return connectors.Form{}, err
	}
	var trust core.Trust
	if err := c.o.DB.Tx(ctx, func(tx *store.Tx) error { trust, err = c.o.Book.Trust(ctx, tx, in); return err }); err != nil {
		return connectors.Form{}, err
	}
	if _, err := c.asked(ctx, command.Call{In: in}, a); err != nil || trust == core.Stranger {
		return connectors.Form{}, cmp.Or(err, texts.Error(core.Denied, "asked_another"))
	}
	if a.State != permission.Open || !a.ExpiresAt.IsZero() && !c.o.Clock.Now().Before(a.ExpiresAt) {
		return connectors.Form{}, texts.Error(core.Conflict, "settled")
	}
	f := connectors.Form{Title: texts.Text("form_title")}
	for _, q := range ask.Questions(a) {
		f.Fields = append(f.Fields, field(q))
	}
	return f, nil
}

// field returns the form field of a question, with its options as a hint.
func field(q ask.Question) connectors.Field {
	labels := make([]string, len(q.Options))
	for i, o := range q.Options {
		labels[i] = core.Visible(o.Label)
	}
	text := core.Visible(q.Question)
	f := connectors.Field{Label: core.Visible(q.Header), About: text, Hint: strings.Join(labels, ", ")}
	if f.Label == "" {
		f.Label, f.About = text, ""
	}
	return f
}

// answerBy answers a question by one of its buttons, or by its form.
func (c *Chat) answerBy(ctx context.Context, call command.Call, a permission.Ask, option string) (command.Outcome, error) {
	by, err := c.asked(ctx, call, a)
	if err != nil {
		return command.Outcome{}, err
	}
	qs := ask.Questions(a)
	if option == ask.OptionWrite {
		return c.answerForm(ctx, call, a, qs, by)
	}
	gone := texts.Error(core.Invalid, "button_gone")
	if len(qs) != 1 {
		return command.Outcome{}, gone
	}
	picked, err := ask.Pressed(call.In.Callback, a, option)
	if err != nil || len(picked) > 1 && !qs[0].MultiSelect || slices.ContainsFunc(picked, func(i int) bool { return i < 0 || i >= len(qs[0].Options) }) {
		return command.Outcome{}, gone
	}
	if qs[0].MultiSelect && call.In.Callback.Picked == nil && option != ask.OptionDone {
		return c.toggle(ctx, call, a, picked[0])
	}
	if len(picked) == 0 {
		return said("question_pick")
	}
	labels := qs[0].Labels(picked)
	return command.Outcome{Text: core.CutRunes(labels, 150)}, c.settle(ctx, a, labels, by)
}

// toggle takes an option into the choice, or out of it, and shows that.
func (c *Chat) toggle(_ context.Context, call command.Call, a permission.Ask, option int) (command.Outcome, error) {
	if a.State != permission.Open || !c.o.Clock.Now().Before(a.ExpiresAt) {
		return command.Outcome{}, texts.Error(core.Conflict, "settled")
	}
	return command.Outcome{Write: func(ctx context.Context, tx *store.Tx) error {
		now, err := c.o.Desk.ByID(ctx, tx, a.ID) // two presses may come at once
		if err != nil {
			return err
		}
		if now.Payload, err = ask.Toggle(now, option); err != nil {
			return err
		}
		if open, err := c.o.Desk.Amend(ctx, tx, now.ID, now.Payload); err != nil || !open {
			return err
		}
		err = c.o.Queue.Post(ctx, tx, core.Reply{Address: call.In.Address, Key: fmt.Sprintf("pick:%s:%d", a.ID, call.Seq),
			Replaces: "@" + ask.Key(a.ID, 0) + "/0", Parts: []core.Part{ask.QuestionsPart(now)}})
		if core.KindOf(err) == core.Conflict {
			return nil
		}
		return err
	}}, nil
}

// answerForm gives each question what was written in its field.
func (c *Chat) answerForm(ctx context.Context, call command.Call, a permission.Ask, qs []ask.Question, by core.Actor) (command.Outcome, error) {
	fields := call.In.Callback.Fields
	if len(fields) == 0 || len(fields) > len(qs) { // no form came up
		return command.Outcome{}, texts.Error(core.Invalid, "question_no_form")
	}
	answers := map[string]string{}
	for i, text := range fields {
		answers[qs[i].Question] = text
	}
	return command.Outcome{Text: texts.Text("question_pressed")}, c.give(ctx, a, answers, by)
}

// Answer takes a message as the answer to the question that waits in its chat.
func (c *Chat) Answer(ctx context.Context, call command.Call) (command.Outcome, error) {
	user, _, err := c.o.Book.User(ctx, c.o.DB, call.In.From)
	if err != nil {
		return command.Outcome{}, err
	}
	var a permission.Ask
	var open bool
	err = c.o.DB.Tx(ctx, func(tx *store.Tx) (err error) {
		a, open, err = c.o.Desk.Waiting(ctx, tx, call.In.Bot, call.In.Chat, user)
		return err
	})
	if err != nil {
		return command.Outcome{}, err
	}
	if !open {
		return said("question_closed")
	}
	return command.Outcome{}, c.settle(ctx, a, ask.ByNumber(ask.Questions(a), call.In.Text), core.Actor{User: user, Via: "chat"})
}

// settle gives text as the answer to every question of ask.
func (c *Chat) settle(ctx context.Context, a permission.Ask, text string, by core.Actor) error {
	answers := map[string]string{}
	for _, q := range ask.Questions(a) {
		answers[q.Question] = text
	}
	return c.give(ctx, a, answers, by)
}

func (c *Chat) give(ctx context.Context, a permission.Ask, answers map[string]string, by core.Actor) error {
	b, err := json.Marshal(answers)
	if err != nil {
		return err
	}
	return c.o.Guard.Answer(ctx, a.ID, b, by)
}
