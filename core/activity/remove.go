package activity

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/activity/daylog"
	"gatehouse/core/store"
)

// kept is how long exchanges are kept in the database, for the panel. The files stay.
const kept = 90 * 24 * time.Hour

// removeGone removes what was written of sessions that are deleted. What cannot be
// removed stays known, for a later pass.
func (w *Worker) removeGone(ctx context.Context) error {
	var gone []entry
	err := w.o.DB.Select(ctx, &gone, `SELECT session_id, log_day, para_id, time, title FROM activity_entries e
		WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = e.session_id) ORDER BY log_day`)
	if err != nil {
		return fmt.Errorf("deleted sessions in the chat log: %w", err)
	}
	for _, e := range gone {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := w.remove(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// remove removes one entry with the lines of its day.
func (w *Worker) remove(ctx context.Context, e entry) error {
	err := w.rewrite(logFile(e.LogDay), func(old []byte) ([]byte, error) {
		out, left := daylog.Remove(string(old), map[string]bool{e.ID: true})
		if !left {
			return nil, nil
		}
		return []byte(out), nil
	})
	done := w.wrote(logFile(e.LogDay), err)
	for _, name := range around(e.LogDay) {
		err := w.rewrite(name, func(old []byte) ([]byte, error) { return daylog.Drop(old, map[string]bool{e.Session: true}), nil })
		done = w.wrote(name, err) && done
	}
	if !done {
		return nil
	}
	return w.o.DB.Tx(ctx, func(tx *store.Tx) error {
		for _, q := range [...]string{
			`DELETE FROM activity WHERE session_id = $1 AND log_day = $2`,
			`DELETE FROM activity_entries WHERE session_id = $1 AND log_day = $2`,
		} {
			if _, err := tx.Exec(ctx, q, e.Session, e.LogDay); err != nil {
				return fmt.Errorf("forget an entry of the chat log: %w", err)
			}
		}
		return nil
	})
}

// around returns the lists of activity that a day of a chat log, in any time zone, can
// have lines in.
func around(day string) (names []string) {
	at, err := time.Parse(dayForm, day)
	if err != nil {
		return nil
	}
	for d := -1; d <= 1; d++ {
		names = append(names, linesFile(at.AddDate(0, 0, d).Format(dayForm)))
	}
	return names
}

// Tables returns the tables that keep data of users.
func (w *Worker) Tables() []string { return []string{"activity", "activity_entries"} }

// Forget deletes what is known of the user's exchanges and has what was written of them
// removed: their sessions are deleted in the same transaction.
func (w *Worker) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if r.User == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `DELETE FROM activity WHERE user_id = $1`, r.User); err != nil {
		return fmt.Errorf("forget activity: %w", err)
	}
	tx.OnCommit(w.Ring)
	return nil
}

// Merge makes the exchanges of one user another's.
func (w *Worker) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	for _, q := range [...]string{`UPDATE activity SET user_id = $1 WHERE user_id = $2`, `UPDATE activity_entries SET user_id = $1 WHERE user_id = $2`} {
		if _, err := tx.Exec(ctx, q, to, from); err != nil {
			return fmt.Errorf("give activity: %w", err)
		}
	}
	return nil
}

// Chores returns the tables' housekeeping.
func (w *Worker) Chores() []core.Chore {
	return []core.Chore{{Name: "activity", Every: time.Hour, Run: w.prune}}
}

func (w *Worker) prune(ctx context.Context) (n int, err error) {
	w.Ring() // sessions may have been deleted
	err = w.o.DB.Tx(ctx, func(tx *store.Tx) error {
		old, err := tx.Exec(ctx, `DELETE FROM activity WHERE state <> 'new' AND at < $1`, core.Stamp(w.o.Clock.Now().Add(-kept)))
		if err != nil {
			return err
		}
		gone, err := tx.Exec(ctx, `DELETE FROM activity WHERE state = 'fault' AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = activity.session_id)`)
		n = int(old + gone)
		return err
	})
	return n, err
}

// Exports returns the statements of an export.
func (w *Worker) Exports() []store.Export {
	return []store.Export{
		{Name: "activity", Query: `SELECT session_id, at, number, title, agent, summary, state FROM activity WHERE user_id = $1 ORDER BY at DESC LIMIT $2`},
		{Name: "activity_entries", Query: `SELECT session_id, log_day, para_id, time, title FROM activity_entries WHERE user_id = $1 ORDER BY log_day DESC LIMIT $2`},
	}
}
