package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/schedule/daily"
	"gatehouse/core/store"
)

// due returns the newest time of the agent that has come and was not handled. Times before
// the agent was first seen, was switched on or got another schedule are none.
func (s *Scheduler) due(ctx context.Context, a *daily.Agent, now time.Time) (due time.Time, found bool, err error) {
	rule := a.Rule.String() + " " + a.Rule.Zone().String()
	var known struct {
		Rule  string `db:"rule"`
		Since string `db:"since"`
	}
	err = s.o.DB.Get(ctx, &known, `SELECT rule, since FROM schedule_agents WHERE name = $1`, a.Name)
	switch {
	case err != nil && !errors.Is(err, store.ErrNoRows):
		return due, false, err
	case !a.Enabled && err != nil:
		return due, false, nil
	case !a.Enabled:
		return due, false, s.o.DB.Tx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, `DELETE FROM schedule_agents WHERE name = $1`, a.Name)
			return err
		})
	case err != nil || known.Rule != rule:
		return due, false, s.handled(ctx, a.Name, rule, now)
	}
	since := core.TimeOf(known.Since)
	if since.After(now) { // the clock was set back
		return due, false, s.handled(ctx, a.Name, rule, now)
	}
	due, found = a.Rule.Last(since, now, makeUp)
	return due, found, nil
}

// AfterRestore has the agents of a restored database begin anew: their times since the backup
// were most likely handled, so none is made up.
func AfterRestore(ctx context.Context, tx *store.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE schedule_agents SET since = $1 WHERE since < $1`, core.Stamp(tx.Time()))
	return err
}

// goneAfter is how long a file has to be missing until its agent is a new one: programs
// save by deleting and writing again.
const goneAfter = time.Hour

// forgetGone deletes what is stored of agents whose files are gone: one that is restored
// later has no times before that.
func (s *Scheduler) forgetGone(ctx context.Context, set daily.Set, now time.Time) error {
	var names []string
	if err := s.o.DB.Select(ctx, &names, `SELECT name FROM schedule_agents LIMIT 1000`); err != nil {
		return fmt.Errorf("known daily agents: %w", err)
	}
	gone := map[string]time.Time{} // at most 1,000
	for _, name := range names {
		_, there := set.Agent(name)
		if _, broken := set.Fault(name); there || broken {
			continue
		}
		since, before := s.gone[name]
		if !before {
			since = now
		}
		gone[name] = since
		if now.Sub(since) < goneAfter {
			continue
		}
		err := s.o.DB.Tx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, `DELETE FROM schedule_agents WHERE name = $1`, name)
			return err
		})
		if err != nil {
			return fmt.Errorf("forget the daily agent %s: %w", name, err)
		}
		delete(gone, name)
	}
	s.gone = gone
	return nil
}

// handled stores up to when the times of an agent were handled.
func (s *Scheduler) handled(ctx context.Context, name, rule string, since time.Time) error {
	return s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO schedule_agents (name, rule, since) VALUES ($1, $2, $3)
			ON CONFLICT (name) DO UPDATE SET rule = excluded.rule, since = excluded.since`, name, rule, core.Stamp(since))
		return err
	})
}
