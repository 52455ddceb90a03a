package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"gatehouse/core"
	"gatehouse/core/store/tenure"
)

// A gateway that is frozen (SIGSTOP, a paused virtual machine) or cut off from the server keeps
// its locks. One that stands by and has not seen it beat for Silence ends its session of the
// server, whose lock is then free, and takes the vault's lock from it. Whatever the frozen one
// does when it wakes, it cannot commit, and sends nothing whose commit is older than Silence; its
// next beat tells it to end.

// steady is between two looks at most, for them to count as one silence: this gateway may
// have been frozen itself, or the server away.
const steady = Every + 3*time.Second

// errReplaced means that another gateway has taken the place of this one.
var errReplaced = errors.New("another gateway has taken the place of this one")

// unlessReplaced returns errReplaced if this process was replaced.
func (k *keeper) unlessReplaced(ctx context.Context) error {
	if k.Replaced == nil {
		return nil
	}
	var is bool
	err := k.db.GetContext(ctx, &is, `SELECT EXISTS (SELECT 1 FROM nodes WHERE process = $1 AND state IN ($2, $3))`, k.process, replacing, replaced)
	if err == nil && is {
		return errReplaced
	}
	return err
}

// A silence is what one that stands by has seen of those that serve.
type silence struct {
	beats       string    // of all of them, as text
	since, last time.Time // by the machine's clock
}

// lasts notes what was seen now, and reports whether it has not changed for Silence.
func (s *silence) lasts(beats string, at time.Time) bool {
	if beats != s.beats || s.last.IsZero() || at.Sub(s.last) > steady || at.Before(s.last) {
		s.beats, s.since = beats, at
	}
	s.last = at
	return at.Sub(s.since) >= Silence
}

// watch replaces the gateway that has the database's lock when none that serves has been seen to beat for
// Silence. It finishes what another one has begun, which ended in between.
func (k *keeper) watch(ctx context.Context) error {
	if !k.noted {
		return nil
	}
	var seen struct {
		Beats string `db:"beats"`
		Begun bool   `db:"begun"`
	}
	err := k.db.GetContext(ctx, &seen, `SELECT coalesce(string_agg(process || ' ' || seen, ' ' ORDER BY process), '') AS beats, coalesce(bool_or(state = '`+replacing+`'), false) AS begun
		FROM nodes WHERE state IN ('`+Serving+`', '`+replacing+`')`)
	if err != nil {
		k.silence = silence{}
		return err
	}
	if !k.silence.lasts(seen.Beats, k.Clock.Now()) || seen.Beats == "" {
		return nil
	}
	if err := k.Able(ctx); err != nil {
		return fmt.Errorf("this one cannot serve either: %w", err)
	}
	if !seen.Begun {
		if done, err := k.endSession(ctx, seen.Beats); err != nil || !done {
			return err
		}
	}
	return k.steal(ctx)
}

// endSession ends the session of the gateway that has the database, if the server still has one, and reports
// whether it may be replaced: not while that session does something.
func (k *keeper) endSession(ctx context.Context, beats string) (done bool, err error) {
	tx, err := k.db.BeginTxx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // nothing, once it is committed
	var still string
	if err := tx.GetContext(ctx, &still, `SELECT coalesce(string_agg(process || ' ' || seen, ' ' ORDER BY process), '') FROM
		(SELECT process, seen FROM nodes WHERE state = '`+Serving+`' FOR UPDATE) AS held`); err != nil || still != beats {
		return false, err
	}
	var sessions struct {
		Silent int `db:"silent"`
		All    int `db:"all_held"`
	}
	if err := tx.GetContext(ctx, &sessions, `SELECT count(*) AS all_held, count(*) FILTER (WHERE a.state_change < clock_timestamp() - make_interval(secs => $1)) AS silent`+tenure.Holders, Silence.Seconds()); err != nil || sessions.Silent < sessions.All {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE nodes SET state = '`+replacing+`' WHERE state = '`+Serving+`'`); err != nil {
		return false, err
	}
	if err := tx.Commit(); err != nil {
		return false, err
	}
	var ended int
	if err := k.db.GetContext(ctx, &ended, `SELECT count(pg_terminate_backend(a.pid))`+tenure.Holders); err != nil {
		return false, fmt.Errorf("end the session of the gateway that has the database: %w", err)
	}
	k.Log.Warn("the gateway that has the database is not heard of: its session was ended, to take its place", "for", Silence, "sessions", ended)
	return true, nil
}

// stealWait is how long the server may take to end a session.
const stealWait = 3 * time.Second

// steal takes the vault's lock while no gateway has the database.
func (k *keeper) steal(ctx context.Context) error {
	tx, err := k.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if free, err := k.lock(ctx, tx); err != nil || !free {
		return err // another one serves by now
	}
	if err := k.Steal(); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, settled); err != nil {
		return err
	}
	k.silence = silence{}
	return tx.Commit()
}

// settled ends what was begun.
const settled = `UPDATE nodes SET state = '` + replaced + `' WHERE state = '` + replacing + `'`

// lock takes the database's lock until the end of tx, and reports whether it was free.
func (k *keeper) lock(ctx context.Context, tx *sqlx.Tx) (free bool, err error) {
	for end := time.Now().Add(stealWait); ; {
		if err = tx.GetContext(ctx, &free, `SELECT pg_try_advisory_xact_lock(`+tenure.LockKey+`)`); err != nil || free || time.Now().After(end) {
			return free, err
		}
		if !core.Sleep(ctx, core.System{}, 50*time.Millisecond) {
			return false, ctx.Err()
		}
	}
}
