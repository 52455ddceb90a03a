package store

import (
	"context"
	"errors"
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
	// Again reports whether the same transaction may succeed when it is run again.
	Again func(error) bool
	// Lost reports whether the connection is gone.
	Lost func(error) bool
}

var server *Server

// Use makes databases on servers known to Open. It is called in an init, once.
func Use(s Server) { server = &s }

// OnServer reports whether a database's address is PostgreSQL's.
func OnServer(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

var errNoServer = core.Errorf(core.Invalid, "this program was built for SQLite alone and cannot use a PostgreSQL server: name a file instead")

// openPostgres connects to the schema that d.path names, refuses one that is
// not ours, and migrates.
func (d *DB) openPostgres(ctx context.Context, password string) (err error) {
	if server == nil {
		return errNoServer
	}
	d.engine = postgreSQL(*server)
	if d.write, err = server.Open(d.path, password, false, 2); err != nil { // the writer's, and one for migrations at start
		return err
	}
	if d.conn, err = d.write.Connx(ctx); err != nil {
		return err
	}
	if err := d.lockServer(ctx, d.conn); err != nil {
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
	if d.read, err = server.Open(d.path, password, true, readers); err != nil {
		return err
	}
	return d.read.PingContext(ctx)
}

// lockPause is between two tries of a lock that another session has. That of a process
// that was killed has it until the server notices.
const lockPause = 50 * time.Millisecond

// lockKey is the advisory lock of a schema; they are by database.
const lockKey = `hashtextextended('gatehouse ' || current_schema(), 0)`

// lockServer takes the lock of Options.Alone for the session of conn, which has it until
// it ends. It waits some seconds, and then is core.Busy and says who has it.
func (d *DB) lockServer(ctx context.Context, conn *sqlx.Conn) error {
	for begun := time.Now(); d.alone != 0; {
		var got bool
		if err := conn.GetContext(ctx, &got, `SELECT pg_try_advisory_lock(`+lockKey+`)`); err != nil {
			return err
		}
		if got {
			return nil
		}
		if time.Since(begun) >= d.alone {
			return core.Errorf(core.Busy, "another gateway uses this database%s: stop it, or give this gateway a schema of its own (search_path)", holder(ctx, conn))
		}
		if !core.Sleep(ctx, core.System{}, lockPause) {
			return ctx.Err()
		}
	}
	return nil
}

// holder returns where the session that has the lock comes from, in parentheses; "" if the
// server does not tell.
func holder(ctx context.Context, conn *sqlx.Conn) string {
	var text string
	_ = conn.GetContext(ctx, &text, `SELECT ' (process ' || l.pid || ' of the server, from ' || coalesce(host(a.client_addr), 'the same machine') ||
		', since ' || to_char(a.backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC)'
		FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND (l.classid::bigint << 32) + l.objid::bigint = `+lockKey+` LIMIT 1`)
	return text
}

// A Found is what Look found in a database on a server.
type Found struct {
	Version  int64             // of the newest migration; 0: the schema is empty
	Server   string            // of the server, such as 15.18
	Metadata map[string]string // of the keys that were asked for
}

// Look reads from the database on a server without creating, migrating or locking
// anything; a gateway may be running.
func Look(ctx context.Context, dsn, password string, keys ...string) (found Found, err error) {
	if server == nil {
		return found, errNoServer
	}
	db, err := server.Open(dsn, password, true, 1)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.GetContext(ctx, &found.Server, `SELECT current_setting('server_version')`); err != nil {
		return found, err
	}
	var ours bool
	if err := db.GetContext(ctx, &ours, `SELECT to_regclass('schema_version') IS NOT NULL`); err != nil {
		return found, err
	}
	if ours {
		if found.Version, err = (migrations.Ledger{Engine: migrations.Postgres}).Version(ctx, db.DB); err != nil {
			return found, err
		}
	}
	if err := server.Check(ctx, db, found.Version, migrations.Baseline, migrations.Newest(migrations.Postgres)); err != nil || !ours {
		return found, err
	}
	found.Metadata = map[string]string{}
	for _, key := range keys {
		var value string
		if err := db.GetContext(ctx, &value, `SELECT coalesce(value, '') FROM metadata WHERE key = $1`, key); err != nil && !errors.Is(err, ErrNoRows) {
			return found, err
		}
		found.Metadata[key] = value
	}
	return found, nil
}
