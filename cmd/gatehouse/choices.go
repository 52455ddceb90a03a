package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gatehouse/connectors"
	"gatehouse/core"
	"gatehouse/core/dispatch"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// asked is the actor of whoever was asked; Denied for anybody else.
func (c *chat) asked(ctx context.Context, call dispatch.Call, ask permission.Ask) (core.Actor, error) {
	user, _, err := c.book.User(ctx, c.db, call.In.From)
	if err != nil {
		return core.Actor{}, err
	}
	if user == 0 || user != ask.User {
		return core.Actor{}, texts.Error(core.Denied, "asked_another")
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
		return dispatch.Outcome{}, texts.Error(core.Conflict, "settled")
	}
	out := dispatch.Outcome{Text: texts.Text("choice_pressed_stop"), Write: func(ctx context.Context, tx *store.Tx) error {
		_, err := c.desk.Decide(ctx, tx, ask.ID, option, by)
		if core.KindOf(err) == core.Conflict {
			return nil // its time ended this moment; the press counts all the same
		}
		return err
	}}
	if option != orchestrator.GoOn {
		return out, nil
	}
	out.Text = texts.Text("choice_pressed_go_on")
	row := core.Inbound{UpdateID: "choice:" + ask.ID, Address: call.In.Address, Kind: core.KindMessage, MessageID: call.In.MessageID,
		From: call.In.From, At: call.In.At, Text: texts.Text("said_go_on"), Addressed: true}
	return out, c.queue.Put(ctx, []core.Inbound{row}, nil)
}

// A question is one of those that a model asks a person.
type question struct {
	Question    string   `json:"question"`
	Header      string   `json:"header"`
	MultiSelect bool     `json:"multiSelect"`
	Options     []option `json:"options"`
}

type option struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// maxQuestions is how many bytes of questions and options a chat shows: with
// what stands around them they fit into one message on every platform.
const maxQuestions = 1700

// optWrite is the option of the button that opens a form, on platforms that
// have forms.
const optWrite = "write"

// optDone ends a choice of several, on platforms where each press changes one.
const optDone = "done"

// questionPart shows questions; a single one has its options as buttons, and
// behind them, or alone, stands the one that opens a form.
func questionPart(a permission.Ask, qs []question) core.Part {
	var b strings.Builder
	room := maxQuestions / max(1, len(qs))
	for i, q := range qs {
		if len(qs) > 1 {
			fmt.Fprintf(&b, "%d. ", i+1)
		}
		b.WriteString(core.CutRunes(q.Question, room/2) + "\n")
		for n, o := range q.Options {
			line := o.Label
			if o.Description != "" {
				line += ": " + o.Description
			}
			mark := "- "
			if len(qs) == 1 {
				mark = fmt.Sprintf("%d) ", n+1)
			}
			b.WriteString(mark + core.CutRunes(line, room/8) + "\n")
		}
	}
	part, form := core.Part{}, core.Button{Label: texts.Text("button_answer"), Data: a.Data(optWrite), Form: true}
	if len(qs) == 1 {
		picked := pickedOf(a)
		for i, o := range qs[0].Options {
			button := core.Button{Label: core.CutRunes(o.Label, maxButton), Data: a.Data(strconv.Itoa(i))}
			if qs[0].MultiSelect {
				button.Pick, button.Picked = core.PickEntry, slices.Contains(picked, i)
			}
			part.Buttons = append(part.Buttons, []core.Button{button})
		}
		form.Label = texts.Text("button_other")
		if qs[0].MultiSelect {
			part.Buttons = append(part.Buttons, []core.Button{{Label: texts.Text("button_done"), Data: a.Data(optDone), Pick: core.PickDone}})
			b.WriteString("\n" + texts.Text("question_several"))
		} else {
			b.WriteString("\n" + texts.Text("question_one"))
		}
	} else {
		b.WriteString("\n" + texts.Text("question_words"))
	}
	part.Buttons = append(part.Buttons, []core.Button{form})
	part.Text = b.String()
	return part
}

// form is what the button of a question opens: a field for each. It is for who
// was asked, as long as they may talk to the bot there and it is open.
func (c *chat) form(ctx context.Context, in *core.Inbound) (connectors.Form, error) {
	id, option, ok := permission.SplitData(in.Callback.Data)
	gone := texts.Error(core.Invalid, "button_gone")
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
		return connectors.Form{}, cmp.Or(err, texts.Error(core.Denied, "asked_another"))
	}
	if ask.State != permission.Open || !ask.ExpiresAt.IsZero() && !c.clock.Now().Before(ask.ExpiresAt) {
		return connectors.Form{}, texts.Error(core.Conflict, "settled")
	}
	f := connectors.Form{Title: texts.Text("form_title")}
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
	gone := texts.Error(core.Invalid, "button_gone")
	if len(qs) != 1 {
		return dispatch.Outcome{}, gone
	}
	picked, err := picks(call.In.Callback, ask, option)
	if err != nil || len(picked) > 1 && !qs[0].MultiSelect || slices.ContainsFunc(picked, func(i int) bool { return i < 0 || i >= len(qs[0].Options) }) {
		return dispatch.Outcome{}, gone
	}
	if qs[0].MultiSelect && call.In.Callback.Picked == nil && option != optDone {
		return c.toggle(ctx, call, ask, picked[0])
	}
	if len(picked) == 0 {
		return said("question_pick")
	}
	labels := qs[0].labels(picked)
	return dispatch.Outcome{Text: core.CutRunes(labels, 150)}, c.settle(ctx, ask, labels, by)
}

// picks are the options that a press stands for: one, all that were chosen in
// a menu, or with Done those that were changed to be so before.
func picks(cb *core.Callback, ask permission.Ask, option string) (out []int, err error) {
	if option == optDone {
		return pickedOf(ask), nil
	}
	all := []string{option}
	if cb.Picked != nil {
		all = nil
		for _, data := range cb.Picked {
			id, o, ok := permission.SplitData(data)
			if !ok || id != ask.ID {
				return nil, texts.Error(core.Invalid, "menu_gone")
			}
			all = append(all, o)
		}
	}
	for _, o := range all {
		i, err := strconv.Atoi(o)
		if err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// labels are those of some options, as they are answered.
func (q question) labels(picked []int) string {
	out := make([]string, len(picked))
	for n, i := range picked {
		out[n] = q.Options[i].Label
	}
	return strings.Join(out, ", ")
}

// toggle takes an option into the choice, or out of it, and shows that.
func (c *chat) toggle(_ context.Context, call dispatch.Call, ask permission.Ask, option int) (dispatch.Outcome, error) {
	if ask.State != permission.Open || !c.clock.Now().Before(ask.ExpiresAt) {
		return dispatch.Outcome{}, texts.Error(core.Conflict, "settled")
	}
	return dispatch.Outcome{Write: func(ctx context.Context, tx *store.Tx) error {
		now, err := c.desk.ByID(ctx, tx, ask.ID) // two presses may come at once
		if err != nil {
			return err
		}
		picked := pickedOf(now)
		if i := slices.Index(picked, option); i >= 0 {
			picked = slices.Delete(picked, i, i+1)
		} else {
			picked = append(picked, option)
		}
		slices.Sort(picked)
		if now.Payload, err = withPicked(now.Payload, picked); err != nil {
			return err
		}
		if open, err := c.desk.Amend(ctx, tx, now.ID, now.Payload); err != nil || !open {
			return err
		}
		err = c.queue.Post(ctx, tx, core.Reply{Address: call.In.Address, Key: fmt.Sprintf("pick:%s:%d", ask.ID, call.Seq),
			Replaces: "@" + askKey(ask.ID, 0) + "/0", Parts: []core.Part{questionPart(now, questionsOf(now))}})
		if core.KindOf(err) == core.Conflict {
			return nil
		}
		return err
	}}, nil
}

// pickedOf are the options that are chosen so far.
func pickedOf(ask permission.Ask) []int {
	var p struct {
		Picked []int `json:"picked"`
	}
	_ = json.Unmarshal([]byte(ask.Payload), &p)
	return p.Picked
}

// withPicked is an ask's payload with these options chosen.
func withPicked(payload string, picked []int) (string, error) {
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(payload), &all); err != nil {
		return "", err
	}
	var err error
	if all["picked"], err = json.Marshal(picked); err != nil {
		return "", err
	}
	b, err := json.Marshal(all)
	return string(b), err
}

// byNumber is what a text stands for that names options of a single question by
// their numbers ("2", "1, 3"); any other text is itself.
func byNumber(qs []question, text string) string {
	if len(qs) != 1 {
		return text
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || unicode.IsSpace(r) })
	picked := []int{}
	for _, w := range words {
		n, err := strconv.Atoi(strings.TrimRight(w, ".)"))
		if err != nil || n < 1 || n > len(qs[0].Options) {
			return text
		}
		picked = append(picked, n-1)
	}
	is := func(o option) bool { return strings.TrimSpace(o.Label) == strings.TrimSpace(text) }
	slices.Sort(picked)
	if picked = slices.Compact(picked); len(picked) == 0 || len(picked) > 1 && !qs[0].MultiSelect || slices.ContainsFunc(qs[0].Options, is) {
		return text
	}
	return qs[0].labels(picked)
}

// answerForm gives each question what was written in its field.
func (c *chat) answerForm(ctx context.Context, call dispatch.Call, ask permission.Ask, qs []question, by core.Actor) (dispatch.Outcome, error) {
	fields := call.In.Callback.Fields
	if len(fields) == 0 || len(fields) > len(qs) { // no form came up
		return dispatch.Outcome{}, texts.Error(core.Invalid, "question_no_form")
	}
	answers := map[string]string{}
	for i, text := range fields {
		answers[qs[i].Question] = text
	}
	return dispatch.Outcome{Text: texts.Text("question_pressed")}, c.give(ctx, ask, answers, by)
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
		return said("question_closed")
	}
	return dispatch.Outcome{}, c.settle(ctx, ask, byNumber(questionsOf(ask), call.In.Text), core.Actor{User: user, Via: "chat"})
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
