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
// server, whose lock is then free, and then takes the vault's lock from it. Whatever the frozen one
// does when it wakes, it cannot commit, and sends nothing whose commit is older than Silence; its
// next beat tells it to end.

// steady is between two looks at most, for them to count as one silence: this gateway may
// have been frozen itself, or the server away.
const steady = Every + 3*time.Second

// errReplaced means that another gateway has taken the place of this one.
var errReplaced = fmt.Errorf("another gateway has taken its place, because it was not heard of for %s", Silence)

// errUnlocked means that this one has not got the vault's lock any more.
var errUnlocked = errors.New("another process has taken the vault's lock, or deleted its file .parachute/lock")

// errDeaf means that it cannot read the vault.
var errDeaf = fmt.Errorf("the vault has not answered for %s, and another gateway stands by", deaf)

// unlessReplaced returns errReplaced if this process was replaced.
func (k *keeper) unlessReplaced(ctx context.Context) error {
	if k.Replaced == nil {
		return nil
	}
	var is bool
	err := k.db.GetContext(ctx, &is, `SELECT EXISTS (SELECT 1 FROM nodes WHERE process = $1 AND state = $2)`, k.process, replaced)
	if err == nil && is {
		return errReplaced
	}
	return err
}

// A silence is what one that stands by has seen of the one that serves.
type silence struct {
	beat        string    // the last one
	since, last time.Time // by the machine's clock
}

// lasts notes what was seen now, and reports whether it has not changed for Silence.
func (s *silence) lasts(beat string, at time.Time) bool {
	if beat != s.beat || s.last.IsZero() || at.Sub(s.last) > steady || at.Before(s.last) {
		s.beat, s.since = beat, at
	}
	s.last = at
	return at.Sub(s.since) >= Silence
}

// watch replaces the gateway that has the vault's lock when it has not been seen to beat for
// Silence. A gateway that still starts, and any other program, has not signed the lock.
func (k *keeper) watch(ctx context.Context) error {
	process, err := k.Holder()
	if err != nil || process == "" || !k.noted {
		k.silence = silence{}
		return nil // the vault is missing, or nobody has it: who waits for it says so
	}
	var found []struct {
		State string `db:"state"`
		Seen  int64  `db:"seen"`
	}
	err = k.limited(ctx, func(ctx context.Context) error {
		return k.db.SelectContext(ctx, &found, `SELECT state, seen FROM nodes WHERE process = $1 AND state IN ($2, $3)`, process, Serving, replaced)
	})
	if err != nil || len(found) == 0 {
		k.silence = silence{}
		return err
	}
	if found[0].State == replaced { // by one that ended before it took the vault's lock
		return k.Steal(process)
	}
	if !k.silence.lasts(fmt.Sprint(process, found[0].Seen), k.Clock.Now()) {
		return nil
	}
	able, cancel := context.WithTimeout(ctx, replaceTime)
	defer cancel()
	if err := k.Able(able); err != nil {
		return fmt.Errorf("this one cannot serve either: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, replaceTime)
	defer cancel()
	is, err := k.replace(limited, process, found[0].Seen)
	if err != nil || !is {
		return err
	}
	k.silence = silence{}
	k.Log.Warn("the gateway that serves is not heard of: its session of the database was ended, and its lock of the vault is taken", "for", Silence)
	return k.Steal(process)
}

// Times of a replacement.
const (
	replaceTime = 15 * time.Second // of one try
	lockTime    = 5 * time.Second  // that the server may take to end a session
)

// replace ends the session of a gateway that has the database, if the server still has one, and its tenure; is reports
// that it did. All of it is one transaction, during which no other gateway has the database: if this one ends in between, the
// next one that stands by begins anew; if it ends before it has taken the vault's lock, the next one takes it.
func (k *keeper) replace(ctx context.Context, process string, seen int64) (is bool, err error) {
	tx, err := k.db.BeginTxx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // nothing, once it is committed
	if _, err := tx.ExecContext(ctx, `SET LOCAL idle_in_transaction_session_timeout = '5s'`); err != nil {
		return false, err // this one might be frozen, too
	}
	var still []string
	if err := tx.SelectContext(ctx, &still, `SELECT process FROM nodes WHERE process = $1 AND seen = $2 AND state = $3 FOR UPDATE`, process, seen, Serving); err != nil || len(still) == 0 {
		return false, err // it was heard, or another one was quicker
	}
	if err := endSilent(ctx, tx); err != nil {
		return false, err
	}
	if err := lock(ctx, tx); err != nil {
		return false, err
	}
	if now, err := k.Holder(); err != nil || now != process {
		return false, err
	}
	if _, err := tenure.Renew(ctx, tx); err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE nodes SET state = $1 WHERE process = $2`, replaced, process); err != nil {
		return false, err
	}
	err = tx.Commit()
	return err == nil, err
}

// endSilent ends the sessions that have the database, or returns an error while one of them does
// something.
func endSilent(ctx context.Context, tx *sqlx.Tx) error {
	var works int
	err := tx.GetContext(ctx, &works, `SELECT count(*)`+tenure.Holders+`
		AND NOT coalesce(a.state_change < clock_timestamp() - make_interval(secs => $1) AND (a.state LIKE 'idle%' OR a.wait_event IN ('ClientRead', 'ClientWrite')), false)`, Silence.Seconds())
	if err != nil {
		return err
	}
	if works > 0 {
		return errors.New("its session of the database works, or the server does not tell whether it does (track_activities)")
	}
	var ended int
	if err := tx.GetContext(ctx, &ended, `SELECT count(pg_terminate_backend(a.pid))`+tenure.Holders); err != nil {
		return fmt.Errorf("end its session: %w", err)
	}
	return nil
}

// lock takes the database's lock until the end of tx.
func lock(ctx context.Context, tx *sqlx.Tx) error {
	for end := time.Now().Add(lockTime); ; {
		var free bool
		if err := tx.GetContext(ctx, &free, `SELECT pg_try_advisory_xact_lock(`+tenure.LockKey+`)`); err != nil || free {
			return err
		}
		if time.Now().After(end) {
			return errors.New("its session of the database does not end, or another gateway has it by now")
		}
		if !core.Sleep(ctx, core.System{}, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
}
