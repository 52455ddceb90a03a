package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

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

// questionPart shows questions; a single one with a single choice has buttons.
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
	part := core.Part{}
	if len(qs) == 1 && !qs[0].MultiSelect {
		for i, o := range qs[0].Options {
			part.Buttons = append(part.Buttons, []core.Button{{Label: core.CutRunes(o.Label, maxButton), Data: a.Data(strconv.Itoa(i))}})
		}
		b.WriteString("\nChoose, or answer in your own words.")
	} else {
		b.WriteString("\nAnswer in one message, in your own words.")
	}
	part.Text = b.String()
	return part
}

// answerBy answers a question by one of its buttons.
func (c *chat) answerBy(ctx context.Context, call dispatch.Call, ask permission.Ask, option string) (dispatch.Outcome, error) {
	by, err := c.asked(ctx, call, ask)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	qs := questionsOf(ask)
	i, err := strconv.Atoi(option)
	if err != nil || len(qs) != 1 || i < 0 || i >= len(qs[0].Options) {
		return dispatch.Outcome{}, core.Errorf(core.Invalid, "This button is not known any more.")
	}
	label := qs[0].Options[i].Label
	return dispatch.Outcome{Text: core.CutRunes(label, 150)}, c.settle(ctx, ask, label, by)
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
