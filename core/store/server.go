package store

import (
	"context"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"gatehouse/core"
	"gatehouse/core/store/migrations"
)

// A Server connects to PostgreSQL and reads its errors. It is what package
// postgres hands to Use when a program links it; one that does not carries none
// of its driver.
type Server struct {
	// Open is a pool of at most conns connections; read-only ones refuse to write.
	// The password, if it is not empty, is in place of the address's.
	Open func(dsn, password string, readOnly bool, conns int) (*sqlx.DB, error)
	// Check refuses a schema that is not ours, or of a newer version than newest.
	Check func(ctx context.Context, db *sqlx.DB, version, baseline, newest int64) error
	// Lock locks the schema for the session of conn, or is core.Busy after wait: see postgres.Lock.
	Lock     func(ctx context.Context, conn *sqlx.Conn, wait time.Duration, session *string) error
	Storable func([]any) []any // arguments that the server can store
	// Again reports whether the same transaction may succeed when it is run again.
	Again func(error) bool
	Lost  func(error) bool // whether the connection is gone
	Ended func(error) bool // whether it was there before
}

var server *Server

// Use makes databases on servers known to Open. It is called in an init, once.
func Use(s Server) { server = &s }

// LockWait is for Options.Alone: a server needs a moment to notice that a gateway was killed.
const LockWait = 10 * time.Second

// OnServer reports whether a database's address is PostgreSQL's.
func OnServer(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// openPostgres connects to the schema that d.path names, refuses one that is
// not ours, and migrates.
func (d *DB) openPostgres(ctx context.Context, password string) (err error) {
	if server == nil {
		return core.Errorf(core.Invalid, "this program was built for SQLite alone and cannot use a PostgreSQL server: name a file instead")
	}
	d.engine = postgreSQL(*server)
	if d.write, err = server.Open(d.path, password, false, 2); err != nil { // the writer's, and one for migrations at start
		return err
	}
	if d.conn, err = d.write.Connx(ctx); err != nil {
		return err
	}
	if err := d.tenure.Take(ctx, d.conn); err != nil {
		return err
	}
	version, err := migrations.Ledger{Engine: migrations.Postgres}.Version(ctx, d.write.DB)
	if err != nil {
		return err
	}
	if err := server.Check(ctx, d.write, version, migrations.Baseline, migrations.Newest(migrations.Postgres)); err != nil {
		return err
	}
	if err := d.migrate(ctx, false); err != nil {
		return err
	}
	if err := d.tenure.Begin(ctx, d.conn); err != nil {
		return err
	}
	d.read.Ended = server.Ended
	if d.read.DB, err = server.Open(d.path, password, true, readers); err != nil {
		return err
	}
	return d.read.PingContext(ctx)
}
