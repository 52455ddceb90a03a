package carry

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"gatehouse/core"
	"gatehouse/core/store/migrations"
	"gatehouse/core/store/tenure"
)

// A Side is one of the two databases of a copy. Close it.
type Side struct {
	engine migrations.Engine
	name   string // for errors
	db     *sql.DB
}

// Source opens the SQLite database at path for reading; nothing is created or migrated.
func Source(path string) (*Side, error) { return file(path, "ro") }

// Target opens the SQLite database at path, which store.Open has migrated, for writing.
func Target(path string) (*Side, error) { return file(path, "rw") }

func file(path, mode string) (*Side, error) {
	q := url.Values{"mode": {mode}, "_busy_timeout": {"5000"}, "_foreign_keys": {"on"}, "_synchronous": {"FULL"}}
	db, err := sql.Open("sqlite3", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path)}).String()+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	return &Side{migrations.SQLite, "the database " + path, db}, nil
}

// Server returns the PostgreSQL database that db is connected to, which store.Open has
// migrated. The Side closes db.
func Server(db *sql.DB) *Side { return &Side{migrations.Postgres, "the database on the server", db} }

// Close closes the connections.
func (s *Side) Close() error { return s.db.Close() }

// A conn reads and writes: a connection, or a transaction on it.
type conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// checkVersion returns an error if the database has another layout than this program's.
func (s *Side) checkVersion(ctx context.Context) error {
	have, err := migrations.Ledger{Engine: s.engine}.Version(ctx, s.db)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	switch newest := migrations.Newest(s.engine); {
	case have < newest:
		return core.Errorf(core.Invalid, "%s has version %d, and this program %d: start this program once with it ('gatehouse serve'), which migrates it, stop it, and try again", s.name, have, newest)
	case have > newest:
		return core.Errorf(core.Invalid, "%s is newer (version %d) than this program (version %d): use the newer program", s.name, have, newest)
	}
	return nil
}

// snapshot begins to read the database as it is now. end ends that.
func (s *Side) snapshot(ctx context.Context) (q conn, end func(), err error) {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return nil, nil, err
	}
	begin := []string{`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`, `SET LOCAL statement_timeout = 0`, `SET LOCAL idle_in_transaction_session_timeout = 0`}
	if s.engine == migrations.SQLite {
		if begin, err = vocabularies(ctx, c); err != nil {
			_ = c.Close()
			return nil, nil, err
		}
		begin = append(begin, `BEGIN`, `SELECT count(*) FROM schema_version`)
	}
	end = func() {
		_, _ = c.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		_ = c.Close()
	}
	for _, text := range begin {
		if _, err := c.ExecContext(ctx, text); err != nil {
			end()
			return nil, nil, fmt.Errorf("read %s: %w", s.name, err)
		}
	}
	return c, end, nil
}

// lockKey is the advisory lock of a schema that is copied into. A copy also takes that of
// gateways, which serve no database that is being copied into.
const lockKey = `hashtextextended('gatehouse carry ' || current_schema(), 0)`

// alone returns the one connection that writes a copy. release lets others copy.
func (s *Side) alone(ctx context.Context) (c *sql.Conn, release func(), err error) {
	if c, err = s.db.Conn(ctx); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.name, err)
	}
	release = func() {
		if s.engine == migrations.Postgres {
			_, _ = c.ExecContext(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock_all()`)
		}
		_ = c.Close()
	}
	if err := s.prepare(ctx, c); err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return c, release, nil
}

func (s *Side) prepare(ctx context.Context, c *sql.Conn) error {
	if s.engine == migrations.SQLite {
		begin, err := vocabularies(ctx, c)
		for _, text := range begin {
			if _, failed := c.ExecContext(ctx, text); failed != nil {
				return failed
			}
		}
		return err
	}
	if _, err := c.ExecContext(ctx, `SET statement_timeout = 0`); err != nil {
		return err
	}
	var locked bool
	if err := c.QueryRowContext(ctx, `SELECT pg_try_advisory_lock(`+lockKey+`)`).Scan(&locked); err != nil {
		return err
	}
	if !locked {
		return core.Errorf(core.Conflict, "another process copies into this database now: wait until it ends")
	}
	if err := c.QueryRowContext(ctx, `SELECT pg_try_advisory_lock(`+tenure.LockKey+`)`).Scan(&locked); err != nil {
		return err
	}
	if !locked {
		return core.Errorf(core.Busy, "a gateway uses this database: stop it first")
	}
	return nil
}

// emptyHint explains how to empty the database.
func (s *Side) emptyHint() string {
	if s.engine == migrations.SQLite {
		return "move the file away, with those that end in -wal and -shm, or name another place (GATEHOUSE_DATABASE_URL)"
	}
	return "name an empty database or schema, or delete what it has (DROP SCHEMA … CASCADE; CREATE SCHEMA …)"
}

// empty deletes the rows of a table, and of those that refer to it.
func (s *Side) empty(ctx context.Context, q conn, t table) error {
	switch {
	case t.name == "metadata":
		_, err := q.ExecContext(ctx, `DELETE FROM metadata`+content, Marker, tenure.Key)
		return err
	case s.engine == migrations.Postgres:
		_, err := q.ExecContext(ctx, `TRUNCATE `+quote(t.name)+` CASCADE`)
		return err
	case t.words:
		_, err := q.ExecContext(ctx, `INSERT INTO `+quote(t.name)+` (`+quote(t.name)+`) VALUES ('delete-all')`)
		return err
	}
	_, err := q.ExecContext(ctx, `DELETE FROM `+quote(t.name))
	return err
}

// last returns the highest key that the database has given to a row of the table, 0 if it
// keeps no count.
func (s *Side) last(ctx context.Context, q conn, t table) (n int64, err error) {
	switch {
	case t.identity == "":
		return 0, nil
	case s.engine == migrations.Postgres:
		err = q.QueryRowContext(ctx, `SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, $2)::regclass), 0)`, quote(t.name), t.identity).Scan(&n)
	default:
		err = q.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = $1`, t.name).Scan(&n)
	}
	if err != nil {
		return 0, fmt.Errorf("last key: %w", err)
	}
	return n, nil
}

// settle has new rows of a table get keys above those that it has and above last, and the
// server know how many rows there are.
func (s *Side) settle(ctx context.Context, q conn, t table, last int64) error {
	if s.engine != migrations.Postgres {
		return s.settleSQLite(ctx, q, t, last)
	}
	if t.identity != "" {
		if _, err := q.ExecContext(ctx, `SELECT setval(pg_get_serial_sequence($1, $2), greatest(m, 1), m >= 1) FROM (SELECT greatest(coalesce(max(`+quote(t.identity)+`), 0), $3) AS m FROM `+quote(t.name)+`) AS x`,
			quote(t.name), t.identity, last); err != nil {
			return fmt.Errorf("next key: %w", err)
		}
	}
	_, err := q.ExecContext(ctx, `ANALYZE `+quote(t.name))
	return err
}

// settleSQLite has a table that keeps count of its keys go on above last.
func (s *Side) settleSQLite(ctx context.Context, q conn, t table, last int64) error {
	if t.identity == "" || last == 0 {
		return nil
	}
	_, err := q.ExecContext(ctx, `INSERT INTO sqlite_sequence (name, seq) SELECT name, 0 FROM sqlite_master
		WHERE type = 'table' AND name = $1 AND sql LIKE '%AUTOINCREMENT%' AND name NOT IN (SELECT name FROM sqlite_sequence)`, t.name)
	if err == nil {
		_, err = q.ExecContext(ctx, `UPDATE sqlite_sequence SET seq = max(seq, $1) WHERE name = $2`, last, t.name)
	}
	if err != nil {
		return fmt.Errorf("next key: %w", err)
	}
	return nil
}

// texts returns the rows of a query with one column of text.
func texts(ctx context.Context, q conn, query string, args ...any) (list []string, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, rows.Err()
}
