// Package remembering joins the memory of corrections to runs, chats and councils.
package remembering

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"time"

	chatmemory "gatehouse/connectors/chat/memory"
	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/council/ledger"
	"gatehouse/core/memory"
	"gatehouse/core/memory/check"
	"gatehouse/core/memory/extract"
	"gatehouse/core/orchestrator"
	"gatehouse/core/session"
	"gatehouse/core/store"
)

// Judged are answers of councils, which the next turn judges; *ledger.Store is one.
type Judged interface {
	Settle(ctx context.Context, tx *store.Tx, t ledger.Turn) (ledger.Blame, error)
}

// A Reader has a model read messages for corrections after they were answered; *extract.Reader
// is one.
type Reader interface {
	On() bool
	Offer(j extract.Job)
}

// Options for New. All but Off, Judged and Reader are required.
type Options struct {
	Store *memory.Store
	// Off has runs learn and recall nothing. Councils still learn from the next turn
	// whether their answer was right.
	Off    bool
	Judged Judged // nil: there is no council
	Reader Reader // nil: no model reads messages
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
	m := memory.Message{User: t.User, Source: "run:" + t.Run, Session: t.Session.ID, Project: t.Session.Project, Text: written(t, s.Voice), Question: s.Question, Answer: s.Answer, Model: s.Model, Untold: untold(t)}
	next := ledger.Turn{User: t.User, Conversation: t.Session.ID, After: s.Run}
	if own(t) && r.o.Judged != nil {
		next.Verdict = verdicts[r.o.Store.Opinion(m)]
	}
	if r.o.Off {
		out.Write = func(ctx context.Context, tx *store.Tx, _ orchestrator.Given) error {
			return r.settle(ctx, tx, next, "")
		}
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
	out.IDs, out.Wishes = recalled.IDs(), wishes(all)
	out.Standing, out.Relevant = recalled.Blocks()
	opens := r.tell(t, learnt, &out)
	run, session := t.Run, t.Session.ID
	out.Write = func(ctx context.Context, tx *store.Tx, g orchestrator.Given) error {
		if err := r.settle(ctx, tx, next, learnt.Correction.ID); err != nil {
			return err
		}
		for _, a := range opens {
			if _, err := r.o.Open(ctx, tx, a); err != nil && core.KindOf(err) != core.Busy { // the panel shows it too
				return err
			}
		}
		if !g.Done {
			return nil
		}
		if r.o.Reader != nil && own(t) && !m.Untold && r.o.Reader.On() {
			if j := job(t, &m, &learnt); len(j.Sentences) > 0 {
				tx.OnCommit(func() { r.o.Reader.Offer(j) })
			}
		}
		return r.o.Store.Used(ctx, tx, all, memory.Use{Run: run, Session: session, Model: g.Model, Answer: g.Answer, Followed: g.Followed, Rewritten: g.Again})
	}
	return out, nil
}

// mostBroken is the most that orchestrator.Wish counts.
const mostBroken = 3

// wishes returns those of the corrections that say how answers are to be.
func wishes(all []memory.Correction) (out []orchestrator.Wish) {
	for i := range all {
		c := &all[i]
		if !c.Wish() {
			continue
		}
		w := orchestrator.Wish{ID: c.ID, Text: c.Text, Broken: min(c.Broken(), mostBroken), Length: check.Lengthy(c.Text)}
		if checks := c.Checks(); len(checks) > 0 {
			w.Met = func(answer string) bool { return len(check.Broken(checks, answer)) == 0 }
		}
		out = append(out, w)
	}
	return out
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

// written returns the turn's message with what its sender said in voice messages, in a group without the
// bot's name before it.
func written(t *orchestrator.Turn, voice string) string {
	text := t.Text()
	if called := t.Rows[0].Called; called != "" {
		if rest, ok := strings.CutPrefix(text, called); ok {
			text = strings.TrimLeft(rest, " \t\n,:")
		}
	}
	return strings.TrimSpace(text + "\n\n" + voice)
}

// own reports whether the message is the sender's own text, for the first time.
func own(t *orchestrator.Turn) bool {
	for i := range t.Rows {
		if t.Rows[i].Forwarded() || t.Rows[i].Again != "" {
			return false
		}
	}
	return true
}

// untold reports whether the sender would not see what is learnt of the message: clients of
// the OpenAI endpoints show the answer alone, and often put texts of others into a message.
func untold(t *orchestrator.Turn) bool {
	o := t.Rows[0].Turn
	return o != nil && o.Module == session.SingleModule
}

// tell adds to out the text about what was learnt, and returns the questions of its buttons.
func (r *Runs) tell(t *orchestrator.Turn, l memory.Learnt, out *orchestrator.Remembered) []ask.Ask {
	said := chatmemory.Say(l, t.Rows[0].Address)
	if said.Text == "" {
		return nil
	}
	out.Notice = said.Text
	in := &t.Rows[0]
	if in.Turn != nil {
		return nil
	}
	aside := orchestrator.Aside{Key: "memory:" + t.Run, Text: said.Text}
	buttons, opens := choices(said, aside.Key, in.Address, t.User, r.o.Clock.Now())
	aside.Buttons = buttons
	out.Asides = append(out.Asides, aside)
	return opens
}

// choices returns the buttons of a message about a correction, and the question that they
// answer; none where it has none.
func choices(said chatmemory.Said, key string, at core.Address, user int64, now time.Time) (buttons []core.Button, opens []ask.Ask) {
	said.Offer.Key, said.Offer.Text = key, said.Text
	payload, err := json.Marshal(said.Offer)
	if len(said.Offer.Args) == 0 || err != nil {
		return nil, nil
	}
	a := ask.Ask{ID: ask.NewID(), Kind: ask.KindChoice, Bot: at.Bot, Chat: at.Chat, User: user, Payload: string(payload), ExpiresAt: now.Add(memory.Answer)}
	for i, label := range said.Offer.Labels {
		buttons = append(buttons, core.Button{Label: label, Data: a.Data(strconv.Itoa(i))})
	}
	return buttons, []ask.Ask{a}
}

// job returns the turn's message for a model to read later.
func job(t *orchestrator.Turn, m *memory.Message, l *memory.Learnt) extract.Job {
	in := &t.Rows[0]
	j := extract.Job{Message: *m, Run: t.Run, Bot: in.Bot, Trust: t.Trust, Sentences: memory.Readable(m, l)}
	if in.Turn == nil {
		j.At = in.Address
	}
	if l.Outcome == memory.Asked && l.Correction.Via == memory.ViaRules {
		j.Found = l.Correction.ID
	}
	return j
}

// Cards notify users in a chat of what a model found in their messages. All fields are
// required.
type Cards struct {
	Clock  core.Clock
	Open   func(ctx context.Context, tx *store.Tx, a ask.Ask) (ask.Ask, error)
	Post   func(ctx context.Context, tx *store.Tx, r core.Reply) error
	Render func(to core.Address, markdown string) []core.Part
	// Reach reports whether a chat may be written to unasked.
	Reach func(ctx context.Context, q store.Queryer, to core.Address, whose *int64) (bool, error)
}

// Ask posts a card to the chat of the message, in tx. A chat that may not be written to
// without being asked gets none: the panel and /memory show the card too.
func (c Cards) Ask(ctx context.Context, tx *store.Tx, j *extract.Job, l memory.Learnt) error {
	said := chatmemory.Say(l, j.At)
	if j.At.Chat == "" || said.Text == "" {
		return nil
	}
	if ok, err := c.Reach(ctx, tx, j.At, nil); err != nil || !ok {
		return err
	}
	reply := core.Reply{Address: j.At, Key: "memory:" + l.Correction.ID, Parts: c.Render(j.At, said.Text)}
	buttons, opens := choices(said, reply.Key, j.At, j.User, c.Clock.Now())
	for _, a := range opens {
		if _, err := c.Open(ctx, tx, a); core.KindOf(err) == core.Busy {
			return nil
		} else if err != nil {
			return err
		}
	}
	if n := len(reply.Parts); n > 0 && len(buttons) > 0 {
		reply.Parts[n-1].Buttons = [][]core.Button{buttons}
	}
	return c.Post(ctx, tx, reply)
}
