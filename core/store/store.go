// Package store opens the database, SQLite or PostgreSQL, and runs transactions
// the same way on both (engine.go has the differences). It knows only its own
// tables: metadata, schema_version and audit_events. SQL is in the package that
// owns the table, with $1 placeholders. Only adoption, which converts a database
// of the original system to our first layout, knows all tables.
//
// There is one writer goroutine. It takes the closures that are queued, at most
// maxGroup, runs them one after the other and commits them together; if one fails,
// all are run again, each in its own savepoint. It never delays a commit to get a
// larger group.
package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"gatehouse/core"
	"gatehouse/core/store/integrity"
	"gatehouse/core/store/reading"
	"gatehouse/core/store/tenure"
)

// Options for Open; the zero value works.
type Options struct {
	Clock core.Clock   // nil: the system's
	Log   *slog.Logger // nil: none
	// OnCommit is called after each commit with the number of its closures.
	OnCommit func(group int)
	// Password is for a database on a server whose address has none.
	Password string
	// Alone, if not 0, refuses a database on a server that another process has opened so,
	// with core.Busy after this time: each transaction runs on a connection with the lock.
	Alone time.Duration
	// OnTaken, if not nil, is called when another process has it open so after the connection
	// was lost: nothing is written from then on.
	OnTaken func()
}

// A Queryer reads: the DB (its own snapshot per statement) and a Tx (its own writes too).
type Queryer interface {
	// Get fills dest (a struct with db tags, or a scalar) from one row; ErrNoRows
	// without one.
	Get(ctx context.Context, dest any, query string, args ...any) error
	// Select fills dest, a pointer to a slice, from all rows.
	Select(ctx context.Context, dest any, query string, args ...any) error
}

// ErrNoRows is what Get returns when nothing matches.
var ErrNoRows = sql.ErrNoRows

// ErrClosed is returned by Tx after Close.
var ErrClosed = errors.New("the database is closed")

// readers bounds the pool of reading connections.
const readers = 4

// A DB is an open database. Close it.
type DB struct {
	clock core.Clock
	log   *slog.Logger
	read  reading.Pool
	write *sqlx.DB
	conn  *sqlx.Conn // the writer's one connection, used by the writer goroutine only
	path  string

	engine engine
	tenure *tenure.Tenure // on a server, with Options.Alone

	queue    chan *job // unbuffered: a job is taken or it waits in its caller
	onCommit func(int)
	stmts    map[string]*stmt // of conn; writer goroutine only; bounded by the program's texts
	known    *recalled        // writer goroutine only; nil: nothing is recalled
	commits  atomic.Int64
	synced   atomic.Int64 // of commits, those that were on the disk at once
	ran      atomic.Int64 // statements of the writer
	reads    atomic.Int64 // statements of the readers

	// Of the writer goroutine: whether commits leave the disk out now, whether the last one
	// did, and when it has to be there after all.
	soon, waiting bool
	unsynced      *time.Timer

	closing chan struct{}
	done    chan struct{}
	once    sync.Once
}

// Open opens or creates the SQLite database at path and migrates it; it keeps a
// copy of an existing file next to it first. It returns an error for a program
// without FTS5 and for an unknown database.
//
// A path that is a postgres:// URL is a PostgreSQL database, with the schema of
// its parameter search_path; nothing is read from the environment, and no copy is
// kept. It needs package postgres in the program, else it is core.Invalid.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.OnCommit == nil {
		o.OnCommit = func(int) {}
	}
	d := &DB{
		clock: o.Clock, log: o.Log, path: path, onCommit: o.OnCommit, engine: sqlite,
		queue: make(chan *job), stmts: map[string]*stmt{}, known: newRecalled(),
		closing: make(chan struct{}), done: make(chan struct{}), unsynced: time.NewTimer(maxUnsynced),
	}
	d.unsynced.Stop()
	open, name := d.open, path
	if OnServer(path) {
		open = func(ctx context.Context) error { return d.openPostgres(ctx, o.Password) }
		name = "PostgreSQL" // the URL may hold a password
		d.known = nil       // other processes may write too
		if o.Alone != 0 && server != nil {
			d.tenure = tenure.New(o.Alone, server.Lock, o.OnTaken)
		}
	}
	if err := open(ctx); err != nil {
		d.closePools()
		return nil, integrity.Start(name, err)
	}
	go d.writer()
	return d, nil
}

// Path returns the path given to Open: a file, or a URL that may hold a password.
func (d *DB) Path() string { return d.path }

// Now returns the clock's time as tables store it.
func (d *DB) Now() string { return core.Stamp(d.clock.Now()) }

// Commits counts the commits so far.
func (d *DB) Commits() int64 { return d.commits.Load() }

// Synced counts those of them that waited for the disk.
func (d *DB) Synced() int64 { return d.synced.Load() }

// Statements counts the statements that transactions have run so far.
func (d *DB) Statements() int64 { return d.ran.Load() }

// Reads counts the statements that were run on the pool of readers so far.
func (d *DB) Reads() int64 { return d.reads.Load() }

// Get implements Queryer on the pool of readers.
func (d *DB) Get(ctx context.Context, dest any, query string, args ...any) error {
	d.reads.Add(1)
	return d.read.Get(ctx, dest, d.engine.bind(query), d.engine.args(args)...)
}

// Select implements Queryer on the pool of readers.
func (d *DB) Select(ctx context.Context, dest any, query string, args ...any) error {
	d.reads.Add(1)
	return d.read.Select(ctx, dest, d.engine.bind(query), d.engine.args(args)...)
}

// Check answers "does the database work" by writing: a statement that changes
// nothing would succeed on a full disk.
func (d *DB) Check(ctx context.Context) error {
	return d.Tx(ctx, func(tx *Tx) error { return SetMetadata(ctx, tx, "store.check", core.Stamp(tx.Time())) })
}

// End has every transaction fail with err from now on: another process has taken the database,
// which was opened with Options.Alone. OnTaken is called.
func (d *DB) End(err error) { d.tenure.End(err) }

// Close finishes the writes that have begun, checkpoints and closes.
func (d *DB) Close() error {
	d.once.Do(func() { close(d.closing) })
	<-d.done
	return d.closePools()
}

func (d *DB) closePools() error {
	var errs []error
	for _, s := range d.stmts {
		errs = append(errs, s.Close())
	}
	if d.conn != nil {
		if d.engine.farewell != "" {
			_, _ = d.conn.ExecContext(context.Background(), d.engine.farewell)
		}
		errs = append(errs, d.conn.Close())
	}
	for _, p := range []*sqlx.DB{d.read.DB, d.write} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}

// OutOfFiles is core.OutOfFiles for errors of the database too.
func OutOfFiles(err error) bool { return integrity.OutOfFiles(err) }
