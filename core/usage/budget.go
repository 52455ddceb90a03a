package usage

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// A Budget is what may be used in a day or a month (UTC): tokens of all directions, or
// millionths of a dollar. The zero value sets no bound.
type Budget struct {
	Tokens   int64
	MicroUSD int64
}

func (b Budget) stands() bool { return b.Tokens > 0 || b.MicroUSD > 0 }

// String is the budget as people write it: "200000 tokens", "$2.00".
func (b Budget) String() string {
	switch {
	case b.MicroUSD > 0:
		return fmt.Sprintf("$%.2f", float64(b.MicroUSD)/1e6)
	case b.Tokens > 0:
		return fmt.Sprintf("%d tokens", b.Tokens)
	}
	return "none"
}

// Budgets bound the calls of each person and each bot in a day, and of all
// together. UserMonth is one person's own, in a calendar month.
type Budgets struct {
	UserDay, BotDay, Day, UserMonth Budget
}

// A period is how long a budget lasts; it begins anew in UTC.
type period struct {
	month bool
	since func(now time.Time) time.Time
}

func day() period {
	return period{false, func(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour) }}
}

func month() period {
	return period{true, func(now time.Time) time.Time {
		now = now.UTC()
		return time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	}}
}

// A bound is a budget with whose it is, for how long, and which calls count.
type bound struct {
	whose  string
	budget Budget
	period period
	where  string
	arg    any
}

// bounding are the budgets of b that stand, for a person's calls through a bot.
func (b Budgets) bounding(user int64, bot string) (out []bound) {
	for _, x := range []bound{
		{OfUser, b.UserDay, day(), "user_id = $2", user},
		{OfUser, b.UserMonth, month(), "user_id = $2", user},
		{ofBot, b.BotDay, day(), "bot = $2", bot},
		{ofAll, b.Day, day(), "$2 = ''", ""},
	} {
		if x.budget.stands() {
			out = append(out, x)
		}
	}
	return out
}

// Whose a budget is, as the metric and the catalogue of texts name it.
const (
	OfUser = "user" // the person's own
	ofBot  = "bot"
	ofAll  = "all"
)

var scopes = [...]string{OfUser, ofBot, ofAll}

// warnAt is the part of a budget, in percent, whose crossing is told.
const warnAt = 80

// staleAfter is when a reservation is settled as it was estimated: no call of
// a model takes that long, so its run is gone.
const staleAfter = 25 * time.Hour

// Reserve sets aside what a call is expected to take, before it is made, where
// a budget stands; id is then to be settled with Record or given back with
// Release. Without a budget it is 0 and nothing is written. notice is a word
// for the person when this call crosses 80 % of a budget. A used-up budget, and
// a budget in dollars with a model whose price nobody knows, is core.Busy in
// words for the person.
func (l *Ledger) Reserve(ctx context.Context, db *store.DB, r Row) (id int64, notice string, err error) {
	hold, err := l.bounds(ctx, db, r.User)
	if err != nil {
		return 0, "", err
	}
	bounds := hold.bounding(r.User, r.Bot)
	if len(bounds) == 0 {
		return 0, "", nil
	}
	refused := ""
	err = db.Tx(ctx, func(tx *store.Tx) error {
		notice, refused = "", ""
		for _, b := range bounds {
			fit, err := b.fits(ctx, tx, r)
			switch {
			case err != nil:
				return err
			case fit >= usedUp:
				refused = b.whose
				return b.refusal(fit)
			case fit == fitsCrossing:
				notice = texts.Text("budget_warning", texts.With{"Percent": warnAt, "Whose": b.whose, "Month": b.period.month, "Budget": b.budget})
			}
		}
		return tx.Get(ctx, &id, `INSERT INTO usage (at, run, session_id, user_id, bot, model, input, output, micro_usd, state)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'reserved') RETURNING id`,
			core.Stamp(tx.Time()), r.Run, r.Session, r.User, r.Bot, r.Model, r.Input, r.Output, r.MicroUSD)
	})
	if refused != "" {
		l.metrics.refused.WithLabelValues(refused).Inc()
	}
	if err != nil {
		return 0, "", err
	}
	return id, notice, nil
}

// Whether a call fits into what is left of a day's budget.
const (
	fitsWell     = iota
	fitsCrossing // it is the one that crosses the warning's mark
	usedUp
	unpriced
)

// refusal says why a call does not fit, for the person.
func (b bound) refusal(why int) error {
	if why == unpriced {
		return texts.Error(core.Busy, "budget_unpriced", texts.With{"Whose": b.whose, "Budget": b.budget})
	}
	return texts.Error(core.Busy, "budget_used", texts.With{"Whose": b.whose, "Month": b.period.month, "Budget": b.budget})
}

// fits says whether r fits into what is left of a budget.
func (b bound) fits(ctx context.Context, tx *store.Tx, r Row) (int, error) {
	used, err := usedSince(ctx, tx, b.period.since(tx.Time()), b.where, b.arg)
	if err != nil {
		return fitsWell, err
	}
	was, more, most := used.Tokens, r.Input+r.Output, b.budget.Tokens
	if b.budget.MicroUSD > 0 {
		if r.MicroUSD == nil {
			return unpriced, nil
		}
		was, more, most = used.MicroUSD, *r.MicroUSD, b.budget.MicroUSD
	}
	if was+more > most {
		return usedUp, nil
	}
	mark := most / 100 * warnAt
	if was < mark && was+more >= mark {
		return fitsCrossing, nil
	}
	return fitsWell, nil
}

// Release gives a reservation back: the call was not made.
func (l *Ledger) Release(ctx context.Context, db *store.DB, id int64) error {
	if id == 0 {
		return nil
	}
	return db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM usage WHERE id = $1 AND state = 'reserved'`, id)
		return err
	})
}

const settleStale = `UPDATE usage SET state = 'settled' WHERE state = 'reserved' AND at < $1`

// SettleStale settles, as they were estimated, reservations whose run has
// ended without settling them: after a crash. It says how many.
func (l *Ledger) SettleStale(ctx context.Context, db *store.DB) (n int, err error) {
	err = db.Tx(ctx, func(tx *store.Tx) error {
		changed, err := tx.Exec(ctx, settleStale, core.Stamp(tx.Time().Add(-staleAfter)))
		n = int(changed)
		return err
	})
	return n, err
}
