package original

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/mattn/go-sqlite3"

	"gatehouse/core"
)

// A Target is the layout that a database is taken over into.
type Target struct {
	Tables  string // the statements that make its tables
	Ledger  string // the statement that makes the ledger of migrations
	Version int64  // what Tables is in the ledger
	Newest  int64  // the newest version that this program knows
}

// An Adoption takes one database of the original system over.
type Adoption struct {
	Target
	Path  string // of the database's file
	Clock core.Clock
	Log   *slog.Logger
	// Copy keeps a copy of a database of this version next to its file and
	// returns the path of the copy.
	Copy func(ctx context.Context, db *sql.DB, path string, version int64) (string, error)
	Step func(statement string) error // called before each statement; nil but in tests
}

// Examine returns what Run would do with the database, and changes nothing:
// version is the newest number of its ledger (0 without one), or for a database
// of the original system the number of its layout, and adopt is then true. Its
// errors are those of Run.
func Examine(ctx context.Context, db *sql.DB, t Target) (version int64, adopt bool, err error) {
	l, err := readLayout(ctx, db)
	if err != nil {
		return 0, false, err
	}
	if adopt, err = l.original(t); adopt {
		return l.version(), true, nil
	}
	return l.ledger, false, err
}

// Run adopts the database when it is the original system's: it keeps a copy next
// to it, the path of which it returns, and then moves every row into our baseline
// in one transaction. An error or a crash leaves the file as it was. Other
// databases stay unchanged, and copied is ""; an unknown one is an error. The
// connections of db must not change the file.
func (a Adoption) Run(ctx context.Context, db *sql.DB) (copied string, err error) {
	l, err := readLayout(ctx, db)
	if err != nil {
		return "", err
	}
	if old, err := l.original(a.Target); err != nil || !old {
		return "", err
	}
	c, err := db.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.Raw(registerAdoption); err != nil {
		return "", err
	}
	return a.run(ctx, db, c, l)
}

// run adopts the database with c, which has our functions.
func (a Adoption) run(ctx context.Context, db *sql.DB, c *sql.Conn, l layout) (string, error) {
	a.Log.Info("taking over the original system's database; a large one takes a while", "path", a.Path, "version", l.version())
	if err := a.wholeFile(ctx, c); err != nil {
		return "", err
	}
	// From here on there is no other writer, so the copy is what is adopted.
	if _, err := c.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return "", fmt.Errorf("take over the original system's database (is the original system still running?): %w", err)
	}
	copied, done, err := a.locked(ctx, db, c)
	if err != nil || copied == "" {
		_, _ = c.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		return "", err
	}
	a.Log.Info("the original system's database was taken over", append([]any{"path", a.Path, "copy", copied}, done...)...)
	if err := os.Chmod(a.Path, 0o600); err != nil {
		a.Log.Warn("the database may be read by others", "path", a.Path, "error", err)
	}
	return copied, nil
}

// wholeFile moves what is in a write-ahead log into the database's file, and has
// the adoption use a rollback journal: then the file is the whole database at any
// failure, also when there is no room for a checkpoint.
func (a Adoption) wholeFile(ctx context.Context, c *sql.Conn) error {
	var mode string
	err := c.QueryRowContext(ctx, `PRAGMA journal_mode = DELETE`).Scan(&mode)
	if err == nil && mode != "delete" {
		err = fmt.Errorf("its journal stays %s", mode)
	}
	if err != nil {
		return fmt.Errorf("take over the original system's database (is the original system still running?): %w", err)
	}
	return nil
}

func registerAdoption(conn any) error {
	c, ok := conn.(*sqlite3.SQLiteConn)
	if !ok {
		return fmt.Errorf("driver %T", conn)
	}
	for name, f := range Functions() {
		if err := c.RegisterFunc(name, f, true); err != nil {
			return err
		}
	}
	return nil
}

// locked does the work of Run inside the transaction that c holds, and commits.
// done is what was taken over, for the log; copied is "" if there was nothing to
// do after all.
func (a Adoption) locked(ctx context.Context, db *sql.DB, c *sql.Conn) (copied string, done []any, err error) {
	l, err := readLayout(ctx, c)
	if err != nil {
		return "", nil, err
	}
	if old, err := l.original(a.Target); err != nil || !old {
		return "", nil, err
	}
	if copied, err = a.Copy(ctx, db, a.Path, l.version()); err != nil {
		return "", nil, err
	}
	x := &adopter{Adoption: a, ctx: ctx, c: c, l: l, now: core.Stamp(a.Clock.Now())}
	count := func() (err error) {
		done, err = x.summary()
		return err
	}
	commit := func() error { return x.exec(`COMMIT`) }
	for _, do := range []func() error{x.renameOriginals, x.build, x.carry, x.admit, x.keepRest, x.record, x.clear, x.check, count, commit} {
		if err := do(); err != nil {
			return "", nil, fmt.Errorf("take over the original system's database: %w", err)
		}
	}
	return copied, append([]any{"version", l.version()}, done...), nil
}

// An adopter is one adoption's transaction.
type adopter struct {
	Adoption
	ctx context.Context
	c   *sql.Conn
	l   layout
	now string
}

func (x *adopter) exec(query string, args ...any) error {
	if x.Step != nil {
		if err := x.Step(query); err != nil {
			return err
		}
	}
	_, err := x.c.ExecContext(x.ctx, query, args...)
	return err
}

func (x *adopter) number(query string) (n int64, err error) {
	err = x.c.QueryRowContext(x.ctx, query).Scan(&n)
	return n, err
}

// summary counts what the new tables have.
func (x *adopter) summary() (counts []any, err error) {
	for _, c := range [][2]string{
		{"sessions", `SELECT count(*) FROM sessions`},
		{"people_with_access", `SELECT count(*) FROM access`},
		{"people_denied", `SELECT count(*) FROM (SELECT DISTINCT platform, platform_user_id FROM pairing_requests WHERE status = 'denied'
			EXCEPT SELECT platform, platform_user_id FROM identities)`},
		{"requests_pending", `SELECT count(*) FROM pairing_requests WHERE status = 'pending'`},
		{"chats", `SELECT count(*) FROM chats`},
	} {
		n, err := x.number(c[1])
		if err != nil {
			return nil, err
		}
		counts = append(counts, c[0], n)
	}
	return counts, nil
}

func (x *adopter) tables() []string { return slices.Sorted(maps.Keys(x.l.tables)) }

// renameOriginals renames the old tables and drops their indexes, the names of
// which are used again.
func (x *adopter) renameOriginals() error {
	names, err := pairs(x.ctx, x.c, `SELECT '', name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name`)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := x.exec(`DROP INDEX ` + quoted(n[1])); err != nil {
			return err
		}
	}
	for _, t := range x.tables() {
		if err := x.exec(`ALTER TABLE ` + quoted(t) + ` RENAME TO ` + aside(t)); err != nil {
			return err
		}
	}
	return nil
}

// build makes our baseline's tables, in this transaction.
func (x *adopter) build() error { return x.exec(x.Tables) }

func (x *adopter) carry() error {
	for _, c := range carriers {
		if !x.l.has(c.table) {
			continue
		}
		if err := x.exec(fill(x.l, c.table, c.move), x.now); err != nil {
			return fmt.Errorf("%s: %w", c.table, err)
		}
		differs := fill(x.l, c.table, c.differs)
		n, err := x.number(`SELECT count(*) FROM ` + aside(c.table) + ` WHERE ` + differs)
		if err != nil || n == 0 {
			if err != nil {
				return fmt.Errorf("%s: %w", c.table, err)
			}
			continue
		}
		if err := x.exec(keep(x.l, c.table, differs)); err != nil {
			return fmt.Errorf("%s: %w", c.table, err)
		}
	}
	return nil
}

func (x *adopter) admit() error {
	all := people
	if x.l.bound() {
		all = slices.Concat(all, chats)
	}
	for _, q := range append(slices.Clone(all), dropPeople) {
		if err := x.exec(fill(x.l, "sessions", q)); err != nil {
			return err
		}
	}
	return nil
}

// keepRest keeps what we have no use for, such as the curator's tables of versions
// 9 and 10, with every row.
func (x *adopter) keepRest() error {
	for _, t := range x.tables() {
		if originalTables[t].must == nil {
			if err := x.exec(keep(x.l, t, "true")); err != nil {
				return err
			}
		}
	}
	return nil
}

// record writes the ledger as goose will go on with it: its own row 0, the
// original's rows, and our baseline; and one line into the audit log.
func (x *adopter) record() error {
	if err := x.exec(x.Ledger); err != nil {
		return err
	}
	if x.l.has("schema_version") {
		if err := x.exec(`INSERT INTO schema_version (version, applied_at)
			SELECT version, coalesce(adopt_time(applied_at), $1) FROM `+aside("schema_version")+` ORDER BY version`, x.now); err != nil {
			return err
		}
	}
	if err := x.exec(`INSERT INTO schema_version (version, applied_at) VALUES (0, ?1), (?2, ?1) ON CONFLICT (version) DO NOTHING`, x.now, x.Version); err != nil {
		return err
	}
	return x.exec(`INSERT INTO audit_events (at, user_id, via, action, subject, detail)
		SELECT $1, 0, 'upkeep', 'database.adopt', $2, json_object('sessions', (SELECT count(*) FROM sessions),
			'requests', (SELECT count(*) FROM pairing_requests), 'users', (SELECT count(*) FROM users))`, x.now, fmt.Sprint("v", x.l.version()))
}

// check holds the new tables against the old ones before these go.
func (x *adopter) check() error {
	rows, err := x.c.QueryContext(x.ctx, `PRAGMA foreign_key_check`)
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Next() {
		return fmt.Errorf("a row points to nothing")
	}
	return rows.Err()
}

// clear counts, and drops the old tables.
func (x *adopter) clear() error {
	for _, c := range carriers {
		if !x.l.has(c.table) || strings.HasPrefix(c.table, "session_") { // those without a session are only kept
			continue
		}
		n, err := x.number(`SELECT (SELECT count(*) FROM ` + quoted(c.table) + `) - (SELECT count(*) FROM ` + aside(c.table) + `)`)
		if err != nil {
			return err
		}
		if n != 0 {
			return fmt.Errorf("%s: %d rows too many or too few", c.table, n)
		}
	}
	for _, t := range x.tables() {
		if err := x.exec(`DROP TABLE ` + aside(t)); err != nil {
			return err
		}
	}
	return nil
}
