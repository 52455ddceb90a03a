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
	alone  func() error // instead of f: between transactions, on the writer's goroutine
	done   chan struct{}
}

// Tx runs f in a transaction and returns when it is committed and on the disk,
// or with the error of f or of the commit, and then nothing of it is kept.
// Other closures may share the commit, and none of them meets what another did
// wrong. f may be run again (where one of those it shared with has failed), so
// it assigns its results and does not add to them; what must happen once goes
// to OnCommit.
// ctx bounds the wait for the writer; once begun, a transaction is not torn.
//
// On PostgreSQL, a transaction that loses against another one (a deadlock) is
// run again, at most maxAgain times in all. Where the connection is lost during
// the commit itself nobody can say whether it was kept: that is an error and
// nothing is run again.
func (d *DB) Tx(ctx context.Context, f func(*Tx) error) error {
	j := &job{ctx: context.WithoutCancel(ctx), f: f, done: make(chan struct{})}
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
		return err
	}
	return t.noted(s.GetContext(context.WithoutCancel(ctx), dest, args...))
}

// Select implements Queryer.
func (t *Tx) Select(ctx context.Context, dest any, query string, args ...any) error {
	s, err := t.db.stmt(query)
	if err != nil {
		return err
	}
	return t.noted(s.SelectContext(context.WithoutCancel(ctx), dest, args...))
}

// Exec runs a statement and says how many rows it changed. Texts are constant:
// each is prepared once and kept.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	s, err := t.db.stmt(query)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(context.WithoutCancel(ctx), args...)
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
		return 0, err
	}
	res, err := s.ExecContext(context.WithoutCancel(ctx), args...)
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

// Time is one time for the whole transaction.
func (t *Tx) Time() time.Time { return t.now }

// OnCommit has f called after the commit, before Tx returns, in order. f must
// not wait for another transaction.
func (t *Tx) OnCommit(f func()) { t.after = append(t.after, f) }

// stmt is a prepared statement of the writer's.
type stmt struct {
	*sqlx.Stmt
	writes string // see written
}

// stmt is the statement with that text, which is about to be run.
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

// writer is the one goroutine that writes.
func (d *DB) writer() {
	defer close(d.done)
	group := make([]*job, 0, maxGroup)
	for {
		group = group[:0]
		var last *job
		select {
		case j := <-d.queue:
			if last = j; j.alone == nil {
				group = append(group, j)
			}
		case <-d.closing:
			return
		}
	company:
		for len(group) < maxGroup && last.alone == nil {
			select {
			case j := <-d.queue:
				if last = j; j.alone == nil {
					group = append(group, j)
				}
			default:
				break company
			}
		}
		if len(group) > 0 {
			d.commitGroup(group)
		}
		if last.alone != nil {
			last.err = last.alone()
			close(last.done)
		}
	}
}

// commitGroup runs every job and answers each. A commit that fails with
// company is repeated for each job alone, so that one cannot fail another.
func (d *DB) commitGroup(group []*job) {
	err := d.hopeful(group)
	for runs := 1; err != nil && len(group) == 1 && runs < maxAgain && d.engine.again(err); runs++ {
		_ = d.exec(d.engine.pause)
		err = d.attempt(group)
	}
	if err != nil {
		if len(group) > 1 {
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

// hopeful runs the group in one transaction without savepoints, as nearly all
// jobs end well: a savepoint has the database copy each page that the job
// changes, and write out what it gathers for the search index. Where a job
// fails, or a statement of one that makes nothing of it, all is undone, and who
// had company is run again with savepoints.
func (d *DB) hopeful(group []*job) error {
	if !d.engine.hopeful {
		return d.attempt(group)
	}
	now, err := d.begun()
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
		if len(group) == 1 && (j.err != nil || j.panics != nil) {
			return nil
		}
		return d.attempt(group)
	}
	return d.commit(group)
}

// attempt runs the group in one transaction, each job in its savepoint. The
// error is of begin or commit; what a job does wrong stays with the job.
func (d *DB) attempt(group []*job) error {
	now, err := d.begun()
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

// begun begins a transaction and says its time.
func (d *DB) begun() (time.Time, error) {
	if err := d.begin(); err != nil {
		return time.Time{}, fmt.Errorf("begin: %w", err)
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
