package usage

import (
	"context"
	"fmt"
	"maps"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// A Budget is what may be used in a day or a month (UTC): tokens of all directions, or
// millionths of a dollar. The zero value sets no bound.
type Budget struct {
	Tokens   int64
	MicroUSD int64
}

// isSet reports whether b limits anything.
func (b Budget) isSet() bool { return b.Tokens > 0 || b.MicroUSD > 0 }

// String returns the budget with its unit: "200000 tokens", "$2.00".
func (b Budget) String() string {
	switch {
	case b.MicroUSD > 0:
		return core.Dollars(b.MicroUSD)
	case b.Tokens > 0:
		return fmt.Sprintf("%d tokens", b.Tokens)
	}
	return "none"
}

// Budgets bound the calls of each user and each bot in a day, and of all
// together. UserMonth is one user's own, in a calendar month.
type Budgets struct {
	UserDay, BotDay, Day, UserMonth Budget
}

// A period is how long a budget lasts; it restarts in UTC.
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

// until returns when the period of now is over.
func (p period) until(now time.Time) time.Time {
	if p.month {
		return p.since(now).AddDate(0, 1, 0)
	}
	return p.since(now).Add(24 * time.Hour)
}

// A bound is a budget with its owner, its period, and the calls that count.
type bound struct {
	whose  string
	budget Budget
	period period
	where  string
	arg    any
}

// bounding returns the budgets that limit a user's calls through a bot. What the gateway
// does for no user has the budget of all alone.
func (b Budgets) bounding(user int64, bot string) (out []bound) {
	for _, x := range []bound{
		{OfUser, b.UserDay, day(), "user_id = $2", user},
		{OfUser, b.UserMonth, month(), "user_id = $2", user},
		{ofBot, b.BotDay, day(), "bot = $2", bot},
		{ofAll, b.Day, day(), "$2 = ''", ""},
	} {
		if x.budget.isSet() && (x.whose == ofAll || user != 0) {
			out = append(out, x)
		}
	}
	return out
}

// The owners of budgets, as in the metric.
const (
	OfUser = "user" // of one user
	ofBot  = "bot"
	ofAll  = "all"
)

var scopes = [...]string{OfUser, ofBot, ofAll}

// WarnAt is the percentage of a budget at which Reserve returns a Limit.
const WarnAt = 80

// staleAfter is when a reservation is settled as it was estimated: no call of
// a model takes that long, so its run is gone.
const staleAfter = 25 * time.Hour

// A Limit is a budget that a call reaches.
type Limit struct {
	Whose  string // OfUser, or "bot" or "all"
	Month  bool   // of a calendar month, not of a day
	Budget Budget
}

// A Refusal is the error of a call that does not fit into a budget. Its kind is
// core.Busy.
type Refusal struct {
	Limit
	Unpriced bool // the budget is in dollars, and the model's price is unknown
	Half     bool // the call is in the background, and what is left is for others
	// Until is when the budget starts again; of several that refuse the call, the last.
	Until time.Time
}

func (r *Refusal) Error() string {
	if r.Unpriced {
		return fmt.Sprintf("the budget (%s, %s) is in dollars and the model has no price", r.Whose, r.Budget)
	}
	if r.Half {
		return fmt.Sprintf("half of the budget (%s, %s) is used up, and the rest is for messages", r.Whose, r.Budget)
	}
	return fmt.Sprintf("the budget (%s, %s) is used up", r.Whose, r.Budget)
}

func (r *Refusal) Unwrap() error { return &core.Error{Kind: core.Busy, Text: r.Error()} }

// Reserve reserves what a call is expected to take, before it is made, if there
// is a budget; the caller passes id to Record or Release. Without a budget id is
// 0 and nothing is written. crossed is a budget of which WarnAt percent are reached with this
// call, or were by what earlier ones took, and which was not returned in this day or month (since
// the start of the program), or the user's last Unread one before it in the same day or
// month, or nil. A call that does not fit is a *Refusal; one in the background must fit into
// the first half of a budget. With the ID of a reservation the call replaces it, which stays if it does not fit.
func (l *Ledger) Reserve(ctx context.Context, db *store.DB, r Row) (id int64, crossed *Limit, err error) {
	hold, err := l.bounds(ctx, db, r.User)
	if err != nil {
		return 0, nil, err
	}
	bounds := hold.bounding(r.User, r.Bot)
	if len(bounds) == 0 {
		return r.ID, nil, nil
	}
	var reached *bound
	var refused *Refusal
	var now time.Time
	err = db.Tx(ctx, func(tx *store.Tx) error {
		reached, refused, now = nil, nil, tx.Time()
		if r.ID != 0 {
			if err := release(ctx, tx, r.ID); err != nil {
				return err
			}
		}
		for i := range bounds {
			b := &bounds[i]
			fit, err := b.fits(ctx, tx, r)
			switch {
			case err != nil:
				return err
			case fit >= usedUp && refused == nil:
				refused = &Refusal{b.limit(), fit == unpriced, r.Background, b.period.until(now)}
			case fit >= usedUp && b.period.until(now).After(refused.Until):
				refused.Until = b.period.until(now)
			case fit == fitsAboveMark && !l.hasWarned(b, now):
				reached = b
			}
		}
		if refused != nil {
			return refused
		}
		return tx.Get(ctx, &id, `INSERT INTO usage (at, run, session_id, user_id, bot, model, input, output, micro_usd, state)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'reserved') RETURNING id`,
			core.Stamp(tx.Time()), r.Run, r.Session, r.User, r.Bot, r.Model, r.Input, r.Output, r.MicroUSD)
	})
	if refused != nil {
		l.metrics.refused.WithLabelValues(refused.Whose).Inc()
	}
	if err != nil {
		return 0, nil, err
	}
	if reached != nil {
		crossed = l.warn(reached, now)
	}
	return id, l.read(r, now, bounds, crossed), nil
}

// A warning is that of a budget, and whose it is.
type warning struct {
	limit Limit
	arg   any // of its bound: the user or the bot
}

// maxWarned bounds the warnings that are remembered. Beyond, those of earlier days and months are
// forgotten, and then all: such a warning is shown once more.
const maxWarned = 10_000

// hasWarned reports whether the warning of b was returned in the present day or month.
func (l *Ledger) hasWarned(b *bound, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.warned[warning{b.limit(), b.arg}].Equal(b.period.since(now))
}

// warn returns the warning of b, which is then remembered; nil if another call was faster.
func (l *Ledger) warn(b *bound, now time.Time) *Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.warned) >= maxWarned {
		maps.DeleteFunc(l.warned, func(_ warning, since time.Time) bool {
			return !since.Equal(day().since(now)) && !since.Equal(month().since(now))
		})
	}
	if len(l.warned) >= maxWarned {
		clear(l.warned)
	}
	limit, since := b.limit(), b.period.since(now)
	of := warning{limit, b.arg}
	if l.warned[of].Equal(since) {
		return nil
	}
	l.warned[of] = since
	return &limit
}

// An unread is a warning that no one was shown.
type unread struct {
	limit Limit
	since time.Time // of its day or month
}

// read returns the warning that the user of r is shown of it: crossed, or else what no one was
// shown of an earlier call. It is kept where no one is shown that of r either.
func (l *Ledger) read(r Row, now time.Time, bounds []bound, crossed *Limit) *Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept, isKept := l.unread[r.User]
	for _, b := range bounds {
		since := b.period.since(now)
		switch {
		case r.Unread && crossed != nil && r.User != 0 && b.limit() == *crossed:
			l.unread[r.User] = unread{*crossed, since}
		case !r.Unread && crossed == nil && isKept && kept == unread{b.limit(), since}:
			crossed = &kept.limit
		}
	}
	if r.Unread {
		return nil
	}
	delete(l.unread, r.User)
	return crossed
}

// The results of fits.
const (
	fitsWell      = iota
	fitsAboveMark // and WarnAt percent are reached with it
	usedUp
	unpriced
)

func (b bound) limit() Limit { return Limit{b.whose, b.period.month, b.budget} }

// fits returns whether r fits into what is left of a budget: one of the constants.
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
	limit := most
	if r.Background {
		limit /= 2
	}
	if was+more > limit {
		return usedUp, nil
	}
	if was+more >= most/100*WarnAt {
		return fitsAboveMark, nil
	}
	return fitsWell, nil
}

// Release deletes a reservation whose call was not made.
func (l *Ledger) Release(ctx context.Context, db *store.DB, id int64) error {
	if id == 0 {
		return nil
	}
	return db.Tx(ctx, func(tx *store.Tx) error { return release(ctx, tx, id) })
}

func release(ctx context.Context, tx *store.Tx, id int64) error {
	_, err := tx.Exec(ctx, `DELETE FROM usage WHERE id = $1 AND state = 'reserved'`, id)
	return err
}

const settleStale = `UPDATE usage SET state = 'settled' WHERE state = 'reserved' AND at < $1`

// SettleStale settles reservations that a crash has left, as they were
// estimated, and returns how many.
func (l *Ledger) SettleStale(ctx context.Context, db *store.DB) (n int, err error) {
	err = db.Tx(ctx, func(tx *store.Tx) error {
		changed, err := tx.Exec(ctx, settleStale, core.Stamp(tx.Time().Add(-staleAfter)))
		n = int(changed)
		return err
	})
	return n, err
}
