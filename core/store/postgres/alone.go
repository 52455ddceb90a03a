package postgres

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"gatehouse/core"
	"gatehouse/core/store/migrations"
	"gatehouse/core/store/tenure"
)

// lockPause is between two tries of a lock that another session has. That of a process
// that was killed has it until the server notices.
const lockPause = 50 * time.Millisecond

// sessionName tells a session of the server from a later one with the same number.
const sessionName = `pid || ' ' || extract(epoch FROM backend_start)`

// schema has no row if there is no schema to work in.
const schema = `SELECT s FROM current_schema() AS s WHERE s IS NOT NULL`

func noSchema(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return core.Errorf(core.Invalid, "the schema that search_path names does not exist, or this user may not use it: CREATE SCHEMA … AUTHORIZATION …")
	}
	return err
}

// Lock takes the advisory lock of the schema for the session of conn, which has it until it
// ends, and puts the session's name into session. The one that was there is that of the
// session that had the lock before: a server may not have noticed that its connection is
// lost, so it is ended first. Lock waits at most so long, and then is core.Busy and says who
// has the lock.
func Lock(ctx context.Context, conn *sqlx.Conn, wait time.Duration, session *string) error {
	if err := conn.GetContext(ctx, new(string), schema); err != nil {
		return noSchema(err)
	}
	if _, err := conn.ExecContext(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE `+sessionName+` = $1`, *session); err != nil {
		return err
	}
	var name string
	if err := conn.GetContext(ctx, &name, `SELECT `+sessionName+` FROM pg_stat_activity WHERE pid = pg_backend_pid()`); err != nil {
		return err
	}
	for begun := time.Now(); ; {
		var got bool
		if err := conn.GetContext(ctx, &got, `SELECT pg_try_advisory_lock(`+tenure.LockKey+`)`); err != nil {
			return err
		}
		if got {
			*session = name
			return nil
		}
		if time.Since(begun) >= wait {
			who, _ := holder(ctx, conn) // "" where the server does not tell
			return core.Errorf(core.Busy, "another gateway uses this database%s: stop it, or give this gateway a schema of its own (search_path)", who)
		}
		if !core.Sleep(ctx, core.System{}, lockPause) {
			return ctx.Err()
		}
	}
}

// holder returns where the session that has the lock comes from, in parentheses; "" if none
// has it.
func holder(ctx context.Context, q sqlx.QueryerContext) (text string, err error) {
	err = sqlx.GetContext(ctx, q, &text, `SELECT ' (process ' || l.pid || ' of the server, from ' || coalesce(host(a.client_addr), 'the same machine') ||
		', since ' || coalesce(to_char(a.backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'), '?') || ' UTC)' `+tenure.Holders+` LIMIT 1`)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return text, err
}

// A Found is what Look found in a database on a server.
type Found struct {
	Version  int64             // of the newest migration; 0: the schema is empty
	Server   string            // of the server, such as 15.18
	Holder   string            // where the gateway is that has the lock, in parentheses; "": none has
	Metadata map[string]string // of the keys that were asked for
}

// Look reads from the database on a server without creating, migrating or locking
// anything; a gateway may be running. While one creates the tables it is core.Busy.
func Look(ctx context.Context, dsn, password string, keys ...string) (found Found, err error) {
	db, err := Open(dsn, password, true, 1)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var replica bool
	if err := db.QueryRowContext(ctx, `SELECT current_setting('server_version'), pg_is_in_recovery()`).Scan(&found.Server, &replica); err != nil {
		return found, err
	}
	if replica {
		return found, core.Errorf(core.Busy, "the PostgreSQL server is a replica or still starts: it only reads")
	}
	if err := db.GetContext(ctx, new(string), schema); err != nil {
		return found, noSchema(err)
	}
	if found.Holder, err = holder(ctx, db); err != nil {
		return found, err
	}
	var ours bool
	if err := db.GetContext(ctx, &ours, `SELECT to_regclass('schema_version') IS NOT NULL`); err != nil {
		return found, err
	}
	if ours {
		found.Version, err = migrations.Ledger{Engine: migrations.Postgres}.Version(ctx, db.DB)
	}
	if err == nil {
		err = Check(ctx, db, found.Version, migrations.Baseline, migrations.Newest(migrations.Postgres))
	}
	if err != nil && found.Version < migrations.Baseline { // the version and the tables are not of one moment
		if who, e := holder(ctx, db); e == nil && who != "" {
			found.Holder = who
			return found, core.Errorf(core.Busy, "another gateway%s creates the tables", who)
		}
	}
	if err != nil || !ours {
		return found, err
	}
	found.Metadata = map[string]string{}
	for _, key := range keys {
		var value string
		if err := db.GetContext(ctx, &value, `SELECT coalesce(value, '') FROM metadata WHERE key = $1`, key); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return found, err
		}
		found.Metadata[key] = value
	}
	return found, nil
}
