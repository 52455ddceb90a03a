package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/jmoiron/sqlx"
)

// maxGroup bounds the closures in one commit.
const maxGroup = 64

// A Tx is one closure's view of the transaction. It is valid only inside the
// closure and only on its goroutine.
type Tx struct {
	db     *DB
	now    time.Time
	after  []func()
	failed bool  // a statement has failed, whatever f made of it
	again  error // one lost against another transaction
}

type job struct {
	ctx    context.Context
	f      func(*Tx) error
	tx     *Tx
	err    error
	panics any
	soon   bool         // the commit need not wait for the disk
	alone  func() error // instead of f: between transactions, on the writer's goroutine
	done   chan struct{}
}

// Tx runs f in a transaction and returns once it is committed and on the disk. On
// an error of f or of the commit it is rolled back and the error returned. Other
// closures may share the commit; one that fails does not affect the others. f may
// be run again (after another one has failed), so it must assign its results, not
// add to them; what must happen once belongs in OnCommit. ctx limits the wait for
// the writer; a running transaction is not interrupted.
//
// On PostgreSQL, a transaction that fails because of another one (a deadlock) is
// run up to maxAgain times. If the connection is lost during the commit, the
// outcome is unknown: that is an error and there is no retry.
func (d *DB) Tx(ctx context.Context, f func(*Tx) error) error {
	return d.do(ctx, &job{ctx: context.WithoutCancel(ctx), f: f, done: make(chan struct{})})
}

func (d *DB) do(ctx context.Context, j *job) error {
	select {
	case d.queue <- j:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-d.closing:
		return ErrClosed
	}
	<-j.done
	if j.panics != nil {
		panic(j.panics)
	}
	return j.err
}

// Get implements Queryer.
func (t *Tx) Get(ctx context.Context, dest any, query string, args ...any) error {
	s, err := t.db.stmt(query)
	if err != nil {
		return t.noted(err)
	}
	return t.noted(s.GetContext(context.WithoutCancel(ctx), dest, t.db.engine.args(args)...))
}

// Select implements Queryer.
func (t *Tx) Select(ctx context.Context, dest any, query string, args ...any) error {
	s, err := t.db.stmt(query)
	if err != nil {
		return t.noted(err)
	}
	return t.noted(s.SelectContext(context.WithoutCancel(ctx), dest, t.db.engine.args(args)...))
}

// Exec runs a statement and returns how many rows it changed. The text must be
// constant: it is prepared once and kept.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	s, err := t.db.stmt(query)
	if err != nil {
		return 0, t.noted(err)
	}
	res, err := s.ExecContext(context.WithoutCancel(ctx), t.db.engine.args(args)...)
	if err != nil {
		return 0, t.noted(err)
	}
	return res.RowsAffected()
}

// Insert runs an INSERT of one row and returns the row's integer key, which the
// database has chosen; ErrNoRows when ON CONFLICT DO NOTHING left it out.
func (t *Tx) Insert(ctx context.Context, query string, args ...any) (int64, error) {
	if t.db.engine.returning != "" {
		var key int64
		err := t.Get(ctx, &key, query+t.db.engine.returning, args...)
		return key, err
	}
	s, err := t.db.stmt(query)
	if err != nil {
		return 0, t.noted(err)
	}
	res, err := s.ExecContext(context.WithoutCancel(ctx), t.db.engine.args(args)...)
	if err != nil {
		return 0, t.noted(err)
	}
	if n, err := res.RowsAffected(); err != nil {
		return 0, err
	} else if n == 0 {
		return 0, ErrNoRows
	}
	return res.LastInsertId()
}

// noted remembers that a statement has failed, and whether that is worth
// another run; it returns the error.
func (t *Tx) noted(err error) error {
	if err == nil || errors.Is(err, ErrNoRows) {
		return err
	}
	t.failed = true
	if t.db.engine.again(err) {
		t.again = err
	}
	return err
}

// Time returns the time of the transaction, the same throughout.
func (t *Tx) Time() time.Time { return t.now }

// OnCommit has f called after the commit, before Tx returns, in order. f must
// not wait for another transaction.
func (t *Tx) OnCommit(f func()) { t.after = append(t.after, f) }

// stmt is a prepared statement of the writer's.
type stmt struct {
	*sqlx.Stmt
	writes string // see written
}

// stmt returns the prepared statement of a text.
func (d *DB) stmt(query string) (*stmt, error) {
	d.ran.Add(1)
	s := d.stmts[query]
	if s == nil {
		prepared, err := d.conn.PreparexContext(context.Background(), d.engine.bind(query))
		if err != nil {
			return nil, err
		}
		s = &stmt{prepared, written(query)}
		d.stmts[query] = s
	}
	d.known.wrote(s.writes)
	return s, nil
}

// writer is the goroutine that runs all writes.
func (d *DB) writer() {
	defer close(d.done)
	group := make([]*job, 0, maxGroup)
	for {
		clear(group) // what its closures hold is not needed while the writer waits
		group = group[:0]
		var last *job
		select {
		case j := <-d.queue:
			if last = j; j.alone == nil {
				group = append(group, j)
			}
		case <-d.unsynced.C:
			d.sync()
			continue
		case <-d.closing:
			return
		}
	collect:
		for len(group) < maxGroup && last.alone == nil {
			select {
			case j := <-d.queue:
				if last = j; j.alone == nil {
					group = append(group, j)
				}
			default:
				break collect
			}
		}
		if len(group) > 0 {
			d.commitGroup(group)
		}
		if last.alone != nil {
			if last.err = d.durable(nil); last.err == nil {
				last.err = last.alone()
			}
			close(last.done)
		}
	}
}

// commitGroup runs every job and ends each. A failed commit of several is repeated
// for each job alone, so that one cannot fail another.
func (d *DB) commitGroup(group []*job) {
	err := d.commitOptimistically(group)
	for runs := 1; err != nil && len(group) == 1 && runs < maxAgain && d.engine.again(err); runs++ {
		_ = d.exec(d.engine.pause)
		err = d.attempt(group)
	}
	if err != nil {
		if d.tenure != nil && errors.Is(err, errBegin) { // each alone would wait as long again
			for _, j := range group {
				j.err = err
			}
		} else if len(group) > 1 {
			for _, j := range group {
				if j.err == nil && j.panics == nil {
					d.commitGroup([]*job{j})
				} else {
					close(j.done)
				}
			}
			return
		}
		group[0].err = err
	}
	for _, j := range group {
		if j.err == nil && j.panics == nil {
			for _, f := range j.tx.after {
				f()
			}
		}
		close(j.done)
	}
}

// commitOptimistically runs the group in one transaction without savepoints, as
// nearly all jobs succeed: with a savepoint SQLite copies each page that the job
// changes and writes out what it collects for the search index, and PostgreSQL is
// asked twice more. If a job or one of its statements fails, all is rolled back, and
// a group of several is run again with savepoints.
func (d *DB) commitOptimistically(group []*job) error {
	if len(group) > 1 && !d.engine.optimistic {
		return d.attempt(group)
	}
	now, err := d.begun(group)
	if err != nil {
		return err
	}
	for _, j := range group {
		j.tx = &Tx{db: d, now: now}
		j.run()
		if j.err == nil && j.panics == nil && !j.tx.failed {
			continue
		}
		_ = d.exec("ROLLBACK")
		if again := j.tx.again; again != nil {
			j.err, j.panics = nil, nil // they come of it
			return again
		}
		if len(group) == 1 && (j.err != nil || j.panics != nil) {
			return nil
		}
		return d.attempt(group)
	}
	return d.commit(group)
}

// attempt runs the group in one transaction, each job in its savepoint. The
// error is of begin or commit; a job's own error is kept in the job.
func (d *DB) attempt(group []*job) error {
	now, err := d.begun(group)
	if err != nil {
		return err
	}
	for _, j := range group {
		if err := d.exec("SAVEPOINT job"); err != nil {
			_ = d.exec("ROLLBACK")
			return fmt.Errorf("savepoint: %w", err)
		}
		j.tx = &Tx{db: d, now: now}
		j.run()
		if j.tx.again != nil {
			j.err, j.panics = nil, nil // they come of it
			_ = d.exec("ROLLBACK")
			return j.tx.again
		}
		if j.err != nil || j.panics != nil {
			if err := d.exec("ROLLBACK TO job"); err != nil {
				// SQLite gave the whole transaction up (full disk, I/O error).
				_ = d.exec("ROLLBACK")
				return fmt.Errorf("roll back: %w", err)
			}
		}
		if err := d.exec("RELEASE job"); err != nil {
			_ = d.exec("ROLLBACK")
			return fmt.Errorf("release: %w", err)
		}
	}
	return d.commit(group)
}

// errBegin is the cause where no transaction could be begun.
var errBegin = errors.New("begin")

// begun begins a transaction of group and returns its time.
func (d *DB) begun(group []*job) (time.Time, error) {
	if err := d.durable(group); err != nil {
		return time.Time{}, err
	}
	if err := d.begin(); err != nil {
		return time.Time{}, errors.Join(errBegin, err)
	}
	now := d.clock.Now()
	if err := d.fresh(now); err != nil {
		_ = d.exec("ROLLBACK")
		return now, err
	}
	return now, nil
}

// commit ends the group's transaction.
func (d *DB) commit(group []*job) error {
	if err := d.exec("COMMIT"); err != nil {
		_ = d.exec("ROLLBACK")
		err = fmt.Errorf("commit: %w", err)
		if d.engine.lost(err) {
			for _, j := range group {
				if j.err == nil && j.panics == nil {
					j.err = err
				}
			}
			return nil
		}
		return err
	}
	d.committed()
	d.commits.Add(1)
	d.onCommit(len(group))
	return nil
}

func (j *job) run() {
	defer func() {
		if p := recover(); p != nil {
			j.panics = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	j.err, j.panics = nil, nil
	j.err = j.f(j.tx)
}

func (d *DB) exec(query string) error {
	s, err := d.stmt(query)
	if err != nil {
		return err
	}
	_, err = s.ExecContext(context.Background())
	return err
}
