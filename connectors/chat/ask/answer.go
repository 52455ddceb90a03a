package ask

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gatehouse/connectors"
	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/command"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// check returns an error unless the ask is open and for the sender of r.
func (b *Buttons) check(r command.Request, a ask.Ask) error {
	switch {
	case r.User == 0 || r.User != a.User:
		return texts.Error(core.Denied, "asked_another")
	case a.State != ask.Open || !a.ExpiresAt.IsZero() && !b.o.Clock.Now().Before(a.ExpiresAt):
		return texts.Error(core.Conflict, "settled")
	}
	return nil
}

// A Wait is what waits for a message in its chat.
type Wait struct {
	Answers bool   // it answers a question, or is what a command waited for
	Next    bool   // the latter: the command waits for no other message
	Asked   string // a question that it does not answer
}

// Take returns what waits for in, a new message, in its chat. A forwarded message, which
// another user wrote, answers no question, and neither does a voice message or another file,
// of which an answer would have nothing.
func (b *Buttons) Take(ctx context.Context, tx *store.Tx, in *core.Inbound) (Wait, error) {
	if core.OfSession(in.Bot) || in.Again != "" {
		return Wait{}, nil
	}
	user, _, err := b.o.Users.User(ctx, tx, in.From)
	if err != nil || user == 0 {
		return Wait{}, err
	}
	a, ok, err := b.waiting(ctx, tx, in, user)
	switch {
	case err != nil || !ok, a.Kind == ask.KindNext && in.Forwarded():
		return Wait{}, err
	case a.Kind == ask.KindNext:
		return Wait{Answers: true, Next: true}, b.assign(ctx, tx, in, a, user)
	case in.Forwarded() || !answerable(in):
		return Wait{Asked: a.ID}, nil
	}
	return Wait{Answers: true}, nil
}

// answerable reports whether in has a text, and no files of its sender.
func answerable(in *core.Inbound) bool {
	return strings.TrimSpace(in.Text) != "" && !slices.ContainsFunc(in.Files, func(f core.File) bool { return !f.Quoted })
}

// Remind posts, once for each question, that it still waits: in's sender wrote something
// that does not answer it, and that is answered after it.
func (b *Buttons) Remind(ctx context.Context, tx *store.Tx, in *core.Inbound, asked string) error {
	part := core.Part{Text: texts.Text("question_waits")}
	if in.Group() {
		part.ReplyTo = in.MessageID
	}
	return postOnce(ctx, tx, b.o.Mail, core.Reply{Address: in.Address, Key: "notice:asked:" + asked, Parts: []core.Part{part}})
}

// Form returns the form that the button of a question opens, with a field for
// each question. It is for the user who was asked, while they have access.
func (b *Buttons) Form(ctx context.Context, r command.Request) (connectors.Form, error) {
	id, option, ok := ask.SplitData(r.In.Callback.Data)
	gone := texts.Error(core.Invalid, "button_gone")
	if !ok || option != OptionWrite {
		return connectors.Form{}, gone
	}
	a, err := b.o.Asks.ByID(ctx, b.o.DB, id)
	if core.KindOf(err) == core.NotFound || err == nil && (a.Bot != r.In.Bot || a.Chat != r.In.Chat || a.Kind != ask.KindQuestion) {
		return connectors.Form{}, gone
	}
	if err != nil {
		return connectors.Form{}, err
	}
	var trust core.Trust
	if err := b.o.DB.Tx(ctx, func(tx *store.Tx) error { trust, err = b.o.Access.Trust(ctx, tx, r.In); return err }); err != nil {
		return connectors.Form{}, err
	}
	if trust == core.Stranger {
		return connectors.Form{}, texts.Error(core.Denied, "asked_another")
	}
	if err := b.check(r, a); err != nil {
		return connectors.Form{}, err
	}
	f := connectors.Form{Title: texts.Text("form_title")}
	for _, question := range Questions(a) {
		f.Fields = append(f.Fields, field(question))
	}
	return f, nil
}

// field returns the form field of a question, with its options as a hint.
func field(q Question) connectors.Field {
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

// question answers a question by one of its buttons, or by its form.
func (b *Buttons) question(ctx context.Context, r command.Request, a ask.Ask, option string) (command.Outcome, error) {
	if r.User == 0 || r.User != a.User {
		return command.Outcome{}, texts.Error(core.Denied, "asked_another")
	}
	qs := Questions(a)
	if option == OptionWrite {
		return b.answerByForm(ctx, r, a, qs)
	}
	gone := texts.Error(core.Invalid, "button_gone")
	if len(qs) != 1 {
		return command.Outcome{}, gone
	}
	picked, err := Pressed(r.In.Callback, a, option)
	isBad := func(i int) bool { return i < 0 || i >= len(qs[0].Options) }
	if err != nil || len(picked) > 1 && !qs[0].MultiSelect || slices.ContainsFunc(picked, isBad) {
		return command.Outcome{}, gone
	}
	if qs[0].MultiSelect && r.In.Callback.Picked == nil && option != OptionDone {
		return b.toggle(r, a, picked[0])
	}
	if len(picked) == 0 {
		return command.Respond("question_pick")
	}
	labels := qs[0].Labels(picked)
	return command.Outcome{Text: core.CutRunes(labels, maxNotice)}, b.settle(ctx, r, a, sameAnswer(qs, labels))
}

// toggle selects an answer, or deselects it, and shows that.
func (b *Buttons) toggle(r command.Request, a ask.Ask, option int) (command.Outcome, error) {
	if err := b.check(r, a); err != nil {
		return command.Outcome{}, err
	}
	return command.Outcome{Write: func(ctx context.Context, tx *store.Tx) error {
		now, err := b.o.Asks.ByID(ctx, tx, a.ID) // two presses may arrive at once
		if err != nil {
			return err
		}
		if now.Payload, err = toggle(now, option); err != nil {
			return err
		}
		if open, err := b.o.Questions.Amend(ctx, tx, now.ID, now.Payload); err != nil || !open {
			return err
		}
		return postOnce(ctx, tx, b.o.Mail, core.Reply{Address: r.In.Address, Key: fmt.Sprintf("pick:%s:%d", a.ID, r.Seq),
			Replaces: "@" + Key(a.ID, 0) + "/0", Parts: []core.Part{questionsPart(now, Questions(now))}})
	}}, nil
}

// answerByForm answers each question with the text of its field.
func (b *Buttons) answerByForm(ctx context.Context, r command.Request, a ask.Ask, qs []Question) (command.Outcome, error) {
	fields := r.In.Callback.Fields
	if len(fields) == 0 || len(fields) > len(qs) { // the platform opened no form
		return command.Outcome{}, texts.Error(core.Invalid, "question_no_form")
	}
	answers := map[string]string{}
	for i, text := range fields {
		answers[qs[i].Question] = text
	}
	return command.Outcome{Text: texts.Text("question_pressed")}, b.settle(ctx, r, a, answers)
}

// Answer answers the question that waits in the chat with a message.
func (b *Buttons) Answer(ctx context.Context, r command.Request) (command.Outcome, error) {
	var a ask.Ask
	var open bool
	err := b.o.DB.Tx(ctx, func(tx *store.Tx) (err error) {
		a, open, err = b.o.Questions.Waiting(ctx, tx, r.In.Bot, r.In.Chat, r.User)
		return err
	})
	if err != nil {
		return command.Outcome{}, err
	}
	if !open || a.Kind == ask.KindNext { // or Next has settled it
		return command.Respond("question_closed")
	}
	if !answerable(r.In) { // a command waited for it
		return command.Respond("question_waits")
	}
	qs := Questions(a)
	return command.Outcome{}, b.settle(ctx, r, a, sameAnswer(qs, byNumber(qs, r.In.Text)))
}

// sameAnswer returns text as the answer to every question.
func sameAnswer(qs []Question, text string) map[string]string {
	answers := map[string]string{}
	for _, q := range qs {
		answers[q.Question] = text
	}
	return answers
}

func (b *Buttons) settle(ctx context.Context, r command.Request, a ask.Ask, answers map[string]string) error {
	data, err := json.Marshal(answers)
	if err != nil {
		return err
	}
	return b.o.Decisions.Answer(ctx, a.ID, data, r.By())
}
