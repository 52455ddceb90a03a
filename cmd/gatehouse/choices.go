package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"gatehouse/connectors"
	"gatehouse/core"
	"gatehouse/core/dispatch"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/store"
)

// asked is the actor of whoever was asked; Denied for anybody else.
func (c *chat) asked(ctx context.Context, call dispatch.Call, ask permission.Ask) (core.Actor, error) {
	user, _, err := c.book.User(ctx, c.db, call.In.From)
	if err != nil {
		return core.Actor{}, err
	}
	if user == 0 || user != ask.User {
		return core.Actor{}, core.Errorf(core.Denied, "Somebody else was asked that.")
	}
	return core.Actor{User: user, Via: "chat"}, nil
}

// choose decides about work that a restart has interrupted. Going on is a
// message like any other, in its sender's name.
func (c *chat) choose(ctx context.Context, call dispatch.Call, ask permission.Ask, option string) (dispatch.Outcome, error) {
	if o, ok := offered(ask); ok {
		return c.take(ctx, call, ask, o, option)
	}
	by, err := c.asked(ctx, call, ask)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	if ask.State != permission.Open {
		return dispatch.Outcome{}, core.Errorf(core.Conflict, "That is settled already.")
	}
	out := dispatch.Outcome{Text: "Stopped", Write: func(ctx context.Context, tx *store.Tx) error {
		_, err := c.desk.Decide(ctx, tx, ask.ID, option, by)
		if core.KindOf(err) == core.Conflict {
			return nil // its time ended this moment; the press counts all the same
		}
		return err
	}}
	if option != orchestrator.GoOn {
		return out, nil
	}
	out.Text = "Going on"
	row := core.Inbound{UpdateID: "choice:" + ask.ID, Address: call.In.Address, Kind: core.KindMessage, MessageID: call.In.MessageID,
		From: call.In.From, At: call.In.At, Text: "Go on.", Addressed: true}
	return out, c.queue.Put(ctx, []core.Inbound{row}, nil)
}

// A question is one of those that a model asks a person.
type question struct {
	Question    string `json:"question"`
	Header      string `json:"header"`
	MultiSelect bool   `json:"multiSelect"`
	Options     []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
}

// maxQuestions is how many bytes of questions and options a chat shows: with
// what stands around them they fit into one message on every platform.
const maxQuestions = 1700

// optWrite is the option of the button that opens a form, on platforms that
// have forms.
const optWrite = "write"

// questionPart shows questions; a single one with a single choice has buttons,
// and behind them, or alone, stands the one that opens a form.
func questionPart(a permission.Ask, qs []question) core.Part {
	var b strings.Builder
	room := maxQuestions / max(1, len(qs))
	for i, q := range qs {
		if len(qs) > 1 {
			fmt.Fprintf(&b, "%d. ", i+1)
		}
		b.WriteString(core.CutRunes(q.Question, room/2) + "\n")
		for _, o := range q.Options {
			line := o.Label
			if o.Description != "" {
				line += ": " + o.Description
			}
			b.WriteString("- " + core.CutRunes(line, room/8) + "\n")
		}
	}
	part, form := core.Part{}, core.Button{Label: "Answer…", Data: a.Data(optWrite), Form: true}
	if len(qs) == 1 && !qs[0].MultiSelect {
		for i, o := range qs[0].Options {
			part.Buttons = append(part.Buttons, []core.Button{{Label: core.CutRunes(o.Label, maxButton), Data: a.Data(strconv.Itoa(i))}})
		}
		form.Label = "Other…"
		b.WriteString("\nChoose, or answer in your own words.")
	} else {
		b.WriteString("\nAnswer in one message, in your own words.")
	}
	part.Buttons = append(part.Buttons, []core.Button{form})
	part.Text = b.String()
	return part
}

// form is what the button of a question opens: a field for each. It is for who
// was asked, as long as they may talk to the bot there and it is open.
func (c *chat) form(ctx context.Context, in *core.Inbound) (connectors.Form, error) {
	id, option, ok := permission.SplitData(in.Callback.Data)
	gone := core.Errorf(core.Invalid, "This button is not known any more.")
	if !ok || option != optWrite {
		return connectors.Form{}, gone
	}
	ask, err := c.desk.ByID(ctx, c.db, id)
	if core.KindOf(err) == core.NotFound || err == nil && (ask.Bot != in.Bot || ask.Chat != in.Chat || ask.Kind != permission.KindQuestion) {
		return connectors.Form{}, gone
	}
	if err != nil {
		return connectors.Form{}, err
	}
	var trust core.Trust
	if err := c.db.Tx(ctx, func(tx *store.Tx) error { trust, err = c.book.Trust(ctx, tx, in); return err }); err != nil {
		return connectors.Form{}, err
	}
	if _, err := c.asked(ctx, dispatch.Call{In: in}, ask); err != nil || trust == core.Stranger {
		return connectors.Form{}, cmp.Or(err, core.Errorf(core.Denied, "Somebody else was asked that."))
	}
	if ask.State != permission.Open || !ask.ExpiresAt.IsZero() && !c.clock.Now().Before(ask.ExpiresAt) {
		return connectors.Form{}, core.Errorf(core.Conflict, "That is settled already.")
	}
	f := connectors.Form{Title: "Your answer"}
	for _, q := range questionsOf(ask) {
		f.Fields = append(f.Fields, q.field())
	}
	return f, nil
}

// field shows what a question is called and asks, with its options as a hint.
func (q question) field() connectors.Field {
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
func (c *chat) answerBy(ctx context.Context, call dispatch.Call, ask permission.Ask, option string) (dispatch.Outcome, error) {
	by, err := c.asked(ctx, call, ask)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	qs := questionsOf(ask)
	if option == optWrite {
		return c.answerForm(ctx, call, ask, qs, by)
	}
	i, err := strconv.Atoi(option)
	if err != nil || len(qs) != 1 || i < 0 || i >= len(qs[0].Options) {
		return dispatch.Outcome{}, core.Errorf(core.Invalid, "This button is not known any more.")
	}
	label := qs[0].Options[i].Label
	return dispatch.Outcome{Text: core.CutRunes(label, 150)}, c.settle(ctx, ask, label, by)
}

// answerForm gives each question what was written in its field.
func (c *chat) answerForm(ctx context.Context, call dispatch.Call, ask permission.Ask, qs []question, by core.Actor) (dispatch.Outcome, error) {
	fields := call.In.Callback.Fields
	if len(fields) == 0 || len(fields) > len(qs) { // no form came up
		return dispatch.Outcome{}, core.Errorf(core.Invalid, "Write your answer as a message.")
	}
	answers := map[string]string{}
	for i, text := range fields {
		answers[qs[i].Question] = text
	}
	return dispatch.Outcome{Text: "Answered"}, c.give(ctx, ask, answers, by)
}

// answer takes a message as the answer to the question that waits in its chat.
func (c *chat) answer(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	user, _, err := c.book.User(ctx, c.db, call.In.From)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	var ask permission.Ask
	var open bool
	err = c.db.Tx(ctx, func(tx *store.Tx) (err error) {
		ask, open, err = c.desk.Waiting(ctx, tx, call.In.Bot, call.In.Chat, user)
		return err
	})
	if err != nil {
		return dispatch.Outcome{}, err
	}
	if !open {
		return said("That question is no longer open. Write it again, and it is a message to me.")
	}
	return dispatch.Outcome{}, c.settle(ctx, ask, call.In.Text, core.Actor{User: user, Via: "chat"})
}

// settle gives text as the answer to every question of ask.
func (c *chat) settle(ctx context.Context, ask permission.Ask, text string, by core.Actor) error {
	answers := map[string]string{}
	for _, q := range questionsOf(ask) {
		answers[q.Question] = text
	}
	return c.give(ctx, ask, answers, by)
}

func (c *chat) give(ctx context.Context, ask permission.Ask, answers map[string]string, by core.Actor) error {
	b, err := json.Marshal(answers)
	if err != nil {
		return err
	}
	return c.guard.Answer(ctx, ask.ID, b, by)
}

// questionsOf are the questions in an ask's payload.
func questionsOf(ask permission.Ask) []question {
	var p struct {
		Questions []question `json:"questions"`
	}
	_ = json.Unmarshal([]byte(ask.Payload), &p)
	return p.Questions
}
