// Package why has the chat commands of councils of several models: /why shows why an
// answer was chosen, and /pick takes one of the answers that contradict each other.
package why

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gatehouse/connectors/chat/arguments"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/council/choice"
	"gatehouse/core/council/ledger"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

const (
	maxText  = 600 // bytes of an option in a list
	maxModel = 80  // characters of a model's name that an answer repeats

	maxButton = 64 // characters of a button's label
)

// Ledger has the council's questions (Picks).
type Ledger interface {
	Last(ctx context.Context, user int64, conversation string) (ledger.View, error)
	Query(ctx context.Context, user int64, id string) (ledger.View, error)
	PickIn(ctx context.Context, tx *store.Tx, user int64, query, model string) (ledger.Picked, error)
}

// Conversations finds the conversation of a chat.
type Conversations interface {
	Current(ctx context.Context, q store.Queryer, at core.Address) (session.Session, bool, error)
}

// Commands handles /why, /pick and the buttons under the answers of a dispute.
type Commands struct {
	db     *store.DB
	ledger Ledger
	outbox Outbox
	at     Conversations
}

// New returns the commands.
func New(db *store.DB, l Ledger, o Outbox, at Conversations) *Commands {
	return &Commands{db, l, o, at}
}

// Commands returns /why and /pick. guests returns why guests cannot use them now, or nil.
func (c *Commands) Commands(guests func() error) []command.Command {
	return []command.Command{
		{Name: "why", About: texts.Text("about_why"), Guests: guests, Private: true, Run: c.Why},
		{Name: "pick", About: texts.Text("about_pick"), Args: texts.Text("args_pick"), Guests: guests, Private: true, Run: c.Pick},
	}
}

// last returns the sender's last question to a council in the chat's conversation, or
// false.
func (c *Commands) last(ctx context.Context, r command.Request) (v ledger.View, found bool, err error) {
	s, bound, err := c.at.Current(ctx, c.db, r.In.Address)
	if err != nil || !bound || r.User <= 0 {
		return v, false, err
	}
	v, err = c.ledger.Last(ctx, r.User, s.ID)
	if core.KindOf(err) == core.NotFound {
		return v, false, nil
	}
	return v, err == nil, err
}

// Why shows why the last answer was chosen, with buttons while a dispute is open.
func (c *Commands) Why(ctx context.Context, r command.Request) (command.Outcome, error) {
	v, found, err := c.last(ctx, r)
	if err != nil {
		return command.Outcome{}, err
	}
	if !found {
		return command.Respond("why_none")
	}
	return offer(r, v, explained(v)), nil
}

// explained is why an answer was chosen.
func explained(v ledger.View) string {
	text := texts.Text("why", texts.With{"Model": name(v.Winner), "Accuracy": v.Level, "Wanted": v.Asked, "Confidence": v.Confidence, "Because": v.Reason, "Explored": v.Explored,
		"Disputed": v.PickUntil != nil, "Unpicked": v.Callout == choice.CalloutDisagreement && v.Picked == "", "Chose": v.Picked != "", "Domain": texts.Escape(v.Domain)})
	var b strings.Builder
	b.WriteString(text + "\n")
	compared := comparison(v)
	for i, run := range v.Runs {
		b.WriteString("\n" + line(v, run, i == compared))
	}
	b.WriteString("\n\n" + spent(v))
	return b.String()
}

// Spent returns the calls and the cost of the sender's last question to a council in a direct
// chat; "" without one, and where it cannot be read.
func (c *Commands) Spent(ctx context.Context, r command.Request) string {
	if r.In.Group() {
		return ""
	}
	v, found, err := c.last(ctx, r)
	if err != nil || !found {
		return ""
	}
	return spent(v)
}

func spent(v ledger.View) string {
	return texts.Text("why_cost", texts.With{"Calls": v.Calls, "Cost": cost(v.MicroUSD)})
}

// comparison returns the index of the run that compared the answers, which is stored as
// a review; -1 if there is none.
func comparison(v ledger.View) int {
	if v.Note == nil || v.Note.Judge == nil {
		return -1
	}
	reviews := map[string]int{} // at most one for each member and the judge
	for _, r := range v.Note.Reviews {
		reviews[r.Model]++
	}
	return slices.IndexFunc(v.Runs, func(run ledger.RunView) bool {
		if run.Round != ledger.RoundReview {
			return false
		}
		reviews[run.Model]--
		return reviews[run.Model] < 0
	})
}

// line describes what one member did.
func line(v ledger.View, run ledger.RunView, compared bool) string {
	answered := run.Round == ledger.RoundAnswer
	return texts.Text("why_member", texts.With{"Model": name(run.Model), "Review": !answered, "Compared": compared, "Failed": run.State != "ok",
		"Shown": answered && run.Model == v.Winner, "Picked": answered && v.Picked != "" && run.Model == v.Picked,
		"Weight": number(run.Utility), "Welfare": number(run.Welfare), "Verdict": run.Verdict})
}

func number(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.2f", *v)
}

func cost(micro *int64) string {
	if micro == nil {
		return ""
	}
	return core.Dollars(*micro)
}

func name(model string) string { return texts.Escape(plain(model)) }

// plain returns a model's name where no Markdown is read.
func plain(model string) string { return core.CutRunes(core.CleanName(model), maxModel) }

// offer shows the options of an open dispute as buttons under a text.
func offer(r command.Request, v ledger.View, text string) command.Outcome {
	out := command.Outcome{Text: text}
	if v.PickUntil == nil {
		return out
	}
	for _, option := range v.Options {
		out.Buttons = append(out.Buttons, []core.Button{{Label: core.CutRunes(texts.Text("pick_button", texts.With{"Model": plain(option.Model)}), maxButton), Data: command.PickDataUnder(v.ID, option.Model, r.Seq)}})
	}
	return out
}

// Pick takes the answer of a model in the last dispute; without one it lists the options.
func (c *Commands) Pick(ctx context.Context, r command.Request) (command.Outcome, error) {
	v, found, err := c.last(ctx, r)
	if err != nil {
		return command.Outcome{}, err
	}
	if !found || len(v.Options) == 0 {
		return command.Respond("pick_none")
	}
	model, ok := chosen(v, r.Args())
	if !ok && r.Args() != "" {
		names := make([]string, len(v.Options))
		for i, o := range v.Options {
			names[i] = name(o.Model)
		}
		return arguments.Wrong(r.Args(), texts.Text("pick_how", texts.With{"Models": strings.Join(names, ", "), "Example": name(v.Options[0].Model)}))
	}
	if !ok {
		return list(r, v)
	}
	return c.take(ctx, r, v.ID, model, false)
}

// chosen returns the option that a text names, by its whole name or the beginning of
// only one.
func chosen(v ledger.View, text string) (model string, ok bool) {
	var met []string
	for _, o := range v.Options {
		if strings.EqualFold(o.Model, text) {
			return o.Model, true
		}
		if text != "" && strings.HasPrefix(strings.ToLower(o.Model), strings.ToLower(text)) {
			met = append(met, o.Model)
		}
	}
	if len(met) != 1 {
		return "", false
	}
	return met[0], true
}

func list(r command.Request, v ledger.View) (command.Outcome, error) {
	var b strings.Builder
	b.WriteString(texts.Text("pick_list"))
	for _, o := range v.Options {
		b.WriteString("\n\n" + texts.Text("pick_option", texts.With{"Model": name(o.Model), "Text": texts.Escape(core.Visible(core.CutRunes(o.Text, maxText)))}))
	}
	return offer(r, v, b.String()), nil
}

// take stores a pick, at once: where the acknowledgement is lost, the same pick again
// changes nothing. The answer to a pressed button has no Markdown.
func (c *Commands) take(ctx context.Context, r command.Request, query, model string, pressed bool) (command.Outcome, error) {
	shown := name
	if pressed {
		shown = plain
	}
	var refused *ledger.PickError
	err := c.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := c.ledger.PickIn(ctx, tx, r.User, query, model)
		return err
	})
	switch {
	case errors.As(err, &refused):
		return command.Respond("pick_refused", texts.With{"Refused": refused.Reason, "Model": shown(refused.Picked)})
	case core.KindOf(err) == core.NotFound:
		return command.Outcome{}, texts.Error(core.Denied, "asked_another")
	case err != nil:
		return command.Outcome{}, err
	}
	return command.Respond("picked", texts.With{"Model": shown(model), "Pressed": pressed})
}

// Press handles a button under the answers of a dispute, or under the reply to /why or /pick,
// which then states what is picked.
func (c *Commands) Press(ctx context.Context, r command.Request, query, mark string) (command.Outcome, error) {
	v, err := c.ledger.Query(ctx, r.User, query)
	if core.KindOf(err) == core.NotFound || r.User <= 0 {
		return command.Outcome{}, texts.Error(core.Denied, "asked_another")
	}
	if err != nil {
		return command.Outcome{}, err
	}
	i := slices.IndexFunc(v.Options, func(o ledger.Option) bool { return command.PickMark(o.Model) == mark })
	if i < 0 {
		return command.Outcome{}, texts.Error(core.Invalid, "button_gone")
	}
	out, err := c.take(ctx, r, query, v.Options[i].Model, true)
	if err != nil {
		return out, err
	}
	key, under, err := c.under(ctx, r)
	if err != nil || !under {
		return out, err
	}
	if v, err = c.ledger.Query(ctx, r.User, query); err != nil {
		return command.Outcome{}, err
	}
	out.Edit = &command.Edit{Key: key, Text: explained(v)}
	return out, nil
}

// under returns the key of the reply that shows the pressed button, false where none does. The
// data of a press may be forged: it counts only for a reply of this chat with that button.
func (c *Commands) under(ctx context.Context, r command.Request) (key string, found bool, err error) {
	seq, ok := command.PickUnder(r.In.Callback.Data)
	if !ok {
		return "", false, nil
	}
	key = command.NoticeKey(seq)
	posted, found, err := c.outbox.Posting(ctx, c.db, key)
	if err != nil || !found || posted.Bot != r.In.Bot || posted.Chat != r.In.Chat {
		return "", false, err
	}
	for i := range posted.Parts {
		for _, row := range posted.Parts[i].Buttons {
			if slices.ContainsFunc(row, func(b core.Button) bool { return b.Data == r.In.Callback.Data }) {
				return key, true, nil
			}
		}
	}
	return "", false, nil
}
