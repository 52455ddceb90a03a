// Package tenure lets one gateway at a time write to a database on a server. Its session has a
// lock there; a gateway that lost its connection goes on only if no other one has had the lock in between. It owns
// the key Key of the table metadata.
package tenure

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"gatehouse/core"
)

// LockKey is the advisory lock of the gateway that uses a schema; they are by database.
const LockKey = `hashtextextended('gatehouse ' || current_schema(), 0)`

// Holders is the FROM of a query about the sessions that have the lock: l of pg_locks and
// a of pg_stat_activity.
const Holders = `
	FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
	WHERE l.locktype = 'advisory' AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND (l.classid::bigint << 32) + l.objid::bigint = ` + LockKey

// A Tenure is this process's. A nil one is of a database that has no lock.
type Tenure struct {
	wait time.Duration
	lock func(ctx context.Context, conn *sqlx.Conn, wait time.Duration, session *string) error

	session string // that has the lock; of the writer's goroutine alone
	name    string // of this tenure; "" until Begin

	over context.Context // ends with the tenure
	end  context.CancelCauseFunc
}

// New returns a Tenure that waits at most so long for a lock that another gateway has; lock is
// postgres.Lock. onTaken is called once when another gateway has taken the database; it may be nil.
func New(wait time.Duration, lock func(ctx context.Context, conn *sqlx.Conn, wait time.Duration, session *string) error, onTaken func()) *Tenure {
	t := &Tenure{wait: wait, lock: lock}
	t.over, t.end = context.WithCancelCause(context.Background())
	if onTaken != nil {
		context.AfterFunc(t.over, onTaken)
	}
	return t
}

// Take takes the lock for the session of conn; core.Busy while another gateway has it.
func (t *Tenure) Take(ctx context.Context, conn *sqlx.Conn) error {
	if t == nil {
		return nil
	}
	return t.lock(ctx, conn, t.wait, &t.session)
}

// Key is the key in metadata of the name of the tenure: it is no content of the database.
const Key = "store.tenure"

// Begin notes in the database, which has its tables, that the gateway with the lock is this one.
func (t *Tenure) Begin(ctx context.Context, conn *sqlx.Conn) error {
	if t == nil {
		return nil
	}
	name, err := Renew(ctx, conn)
	t.name = name
	return err
}

// Renew ends the tenure of whoever has the database, and returns the name of the next.
func Renew(ctx context.Context, q sqlx.ExecerContext) (name string, err error) {
	name = rand.Text()
	_, err = q.ExecContext(ctx, `INSERT INTO metadata (key, value, updated_at) VALUES ($1, $2, $3)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`, Key, name, core.Stamp(time.Now()))
	return name, err
}

// Again is Take for a new connection after the loss of the one before. It is core.Busy, and the
// tenure is over, if another gateway has the lock or has had it in between.
func (t *Tenure) Again(conn *sqlx.Conn) error {
	if t == nil {
		return nil
	}
	err := t.Take(t.over, conn)
	if err == nil {
		err = t.same(t.over, conn)
	}
	if core.KindOf(err) == core.Busy {
		t.End(err)
	}
	if over := t.Err(); over != nil {
		return over
	}
	return err
}

func (t *Tenure) same(ctx context.Context, conn *sqlx.Conn) error {
	var name string
	err := conn.GetContext(ctx, &name, `SELECT coalesce(value, '') FROM metadata WHERE key = $1`, Key)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if name != t.name {
		return core.Errorf(core.Busy, "another gateway has had this database since the connection to it was lost")
	}
	return nil
}

// End ends the tenure: nothing is written from now on, and every transaction fails with err.
func (t *Tenure) End(err error) {
	if t != nil {
		t.end(err)
	}
}

// Err returns what has ended the tenure, or nil.
func (t *Tenure) Err() error {
	if t == nil {
		return nil
	}
	return context.Cause(t.over)
}
