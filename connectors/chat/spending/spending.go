// Package spending is the chat command /usage: what the sender's answers have used, and what
// is left of the budgets.
package spending

import (
	"context"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/core/usage"
)

// A Usage handles /usage. All fields are required.
type Usage struct {
	DB     *store.DB
	Clock  core.Clock
	Ledger *usage.Ledger
}

// Run returns what the sender's answers have used, and what is left of the
// budgets. Only the owner and the admins see the budgets of others.
func (u *Usage) Run(ctx context.Context, r command.Request) (command.Outcome, error) {
	if err := r.Known(); err != nil {
		return command.Outcome{}, err
	}
	now := u.Clock.Now().UTC()
	var b strings.Builder
	for _, p := range []struct {
		head  string
		since time.Time
	}{{texts.Text("usage_today"), now.Truncate(24 * time.Hour)}, {texts.Text("usage_month"), now.AddDate(0, 0, -30)}} {
		totals, err := u.Ledger.Own(ctx, u.DB, r.User, p.since)
		if err != nil {
			return command.Outcome{}, err
		}
		b.WriteString(p.head + "\n\n" + totalLines(totals) + "\n")
	}
	left, err := u.Ledger.Left(ctx, u.DB, r.User, r.In.Bot, now)
	if err != nil {
		return command.Outcome{}, err
	}
	for _, l := range left {
		if l.Whose != usage.OfUser && !r.Manages() {
			continue
		}
		left := ""
		if l.Left != (usage.Budget{}) {
			left = l.Left.String()
		}
		b.WriteString(texts.Text("usage_left", texts.With{"Whose": l.Whose, "Month": l.Month, "Budget": l.Budget, "Left": left}) + "\n\n")
	}
	b.WriteString(texts.Text("usage_end"))
	return command.Outcome{Text: b.String()}, nil
}

// totalLines returns a line for each model.
func totalLines(totals []usage.Total) string {
	if len(totals) == 0 {
		return texts.Text("usage_nothing") + "\n"
	}
	var b strings.Builder
	for _, t := range totals {
		b.WriteString(texts.Text("usage_line", texts.With{"Model": t.Model, "Calls": t.Calls, "Tokens": t.Input + t.Output + t.CacheRead + t.CacheWrite,
			"Cost": core.Dollars(t.MicroUSD), "Unpriced": t.Unpriced}) + "\n")
	}
	return b.String()
}
