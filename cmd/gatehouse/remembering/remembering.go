// Package remembering joins the memory of corrections to runs, chats and councils.
package remembering

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"

	chatmemory "gatehouse/connectors/chat/memory"
	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/council/ledger"
	"gatehouse/core/memory"
	"gatehouse/core/orchestrator"
	"gatehouse/core/store"
)

// Judged are answers of councils, which the next turn judges; *ledger.Store is one.
type Judged interface {
	Settle(ctx context.Context, tx *store.Tx, t ledger.Turn) (ledger.Blame, error)
}

// Options for New. All but Off and Judged are required.
type Options struct {
	Store *memory.Store
	// Off has runs learn and recall nothing. Councils still learn from the next turn
	// whether their answer was right.
	Off    bool
	Judged Judged // nil: there is no council
	Log    *slog.Logger
	Clock  core.Clock
	// Open opens a question of a chat. A full desk is core.Busy.
	Open func(ctx context.Context, tx *store.Tx, a ask.Ask) (ask.Ask, error)
}

// A Runs is the memory as runs use it.
type Runs struct{ o Options }

// New returns a Runs.
func New(o Options) *Runs { return &Runs{o} }

// Remember learns from the turn's message and returns what belongs into its prompt.
func (r *Runs) Remember(ctx context.Context, t *orchestrator.Turn, s orchestrator.Said) (out orchestrator.Remembered, err error) {
	m := memory.Message{User: t.User, Source: "run:" + t.Run, Session: t.Session.ID, Project: t.Session.Project, Text: t.Text(), Question: s.Question, Answer: s.Answer, Model: s.Model}
	next := ledger.Turn{User: t.User, Conversation: t.Session.ID, Query: t.Run}
	if own(t) && r.o.Judged != nil {
		next.Verdict = verdicts[r.o.Store.Opinion(m)]
	}
	if r.o.Off {
		out.Write = func(ctx context.Context, tx *store.Tx, _ bool, _, _ string) error { return r.settle(ctx, tx, next, "") }
		return out, nil
	}
	learnt := memory.Learnt{}
	if own(t) {
		if learnt, err = r.o.Store.Hear(ctx, m); err != nil {
			return out, err
		}
	}
	recalled, err := r.o.Store.Recall(ctx, t.User, memory.Place{Session: m.Session, Project: m.Project}, m.Text, s.Window)
	if err != nil { // the answer matters more
		r.o.Log.ErrorContext(ctx, "the memory of a person could not be read", "user", t.User, "err", err)
	}
	all := append(recalled.Standing, recalled.Relevant...)
	out.IDs = recalled.IDs()
	out.Standing, out.Relevant = memory.Block(recalled.Standing), memory.Block(recalled.Relevant)
	opens := r.tell(t, learnt, &out)
	run, session := t.Run, t.Session.ID
	out.Write = func(ctx context.Context, tx *store.Tx, done bool, model, answer string) error {
		if err := r.settle(ctx, tx, next, learnt.Correction.ID); err != nil {
			return err
		}
		for _, a := range opens {
			if _, err := r.o.Open(ctx, tx, a); err != nil && core.KindOf(err) != core.Busy { // the panel shows it too
				return err
			}
		}
		if !done {
			return nil
		}
		return r.o.Store.Used(ctx, tx, all, memory.Use{Run: run, Session: session, Model: model, Answer: answer})
	}
	return out, nil
}

// verdicts are what opinions on an answer say about its model.
var verdicts = map[memory.Opinion]string{memory.FoundRight: ledger.Correct, memory.FoundWrong: ledger.Incorrect}

// settle stores how the turn judges the council's answer before it, and what that did to
// the score of its model with the correction that the turn is.
func (r *Runs) settle(ctx context.Context, tx *store.Tx, next ledger.Turn, correction string) error {
	if r.o.Judged == nil {
		return nil
	}
	b, err := r.o.Judged.Settle(ctx, tx, next)
	if err != nil || next.Verdict != ledger.Incorrect {
		return err
	}
	return r.o.Store.Blamed(ctx, tx, next.User, correction, b.Delta)
}

// own reports whether the message is the sender's own text, for the first time.
func own(t *orchestrator.Turn) bool {
	for i := range t.Rows {
		if q := t.Rows[i].Quote; q != nil && q.Forwarded || t.Rows[i].Again != "" {
			return false
		}
	}
	return true
}

// tell adds to out the text about what was learnt, and returns the questions of its buttons.
func (r *Runs) tell(t *orchestrator.Turn, l memory.Learnt, out *orchestrator.Remembered) []ask.Ask {
	said := chatmemory.Say(l)
	if said.Text == "" {
		return nil
	}
	out.Notice = said.Text
	in := &t.Rows[0]
	if in.Turn != nil {
		return nil
	}
	aside := orchestrator.Aside{Key: "memory:" + t.Run, Text: said.Text}
	said.Offer.Key, said.Offer.Text = aside.Key, said.Text
	payload, err := json.Marshal(said.Offer)
	if len(said.Offer.Args) == 0 || err != nil {
		out.Asides = append(out.Asides, aside)
		return nil
	}
	a := ask.Ask{ID: ask.NewID(), Kind: ask.KindChoice, Bot: in.Bot, Chat: in.Chat, User: t.User, Payload: string(payload), ExpiresAt: r.o.Clock.Now().Add(memory.Answer)}
	for i, label := range said.Offer.Labels {
		aside.Buttons = append(aside.Buttons, core.Button{Label: label, Data: a.Data(strconv.Itoa(i))})
	}
	out.Asides = append(out.Asides, aside)
	return []ask.Ask{a}
}
