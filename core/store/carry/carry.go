// Package carry copies the content of one database into another one, of the other engine
// or of the same: SQLite into PostgreSQL and back.
//
// The source is read in one snapshot and is not changed. The target is a database of the
// same version that has no rows yet, or an unfinished copy of the same source, which Copy
// completes. Until the copy is complete and verified, the target has a row in metadata that
// Unfinished finds; the last commit deletes it.
package carry

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/migrations"
	"gatehouse/core/store/tenure"
)

// content ends a query about the rows of metadata that are copied: neither the marker, nor
// which gateway writes to the database, which is of each database alone.
const content = ` WHERE key NOT IN ($1, $2)`

// Marker is the key in metadata of an unfinished copy; its value identifies the source.
const Marker = "carry.unfinished"

// Unfinished reports whether the database is a copy that is not complete: the program must
// not use it.
func Unfinished(ctx context.Context, q store.Queryer) (bool, error) {
	_, found, err := store.Metadata(ctx, q, Marker)
	return found, err
}

// Finished returns core.Invalid for a copy that is not complete, with what to do.
func Finished(ctx context.Context, q store.Queryer) error {
	unfinished, err := Unfinished(ctx, q)
	if err == nil && unfinished {
		err = core.Errorf(core.Invalid, "the database is a copy that is not complete: run 'gatehouse migrate' again, as before, or the 'gatehouse restore' that began it, or use the database that it is a copy of (GATEHOUSE_DATABASE_URL)")
	}
	return err
}

// Steps of a copy, for Progress.
const (
	Comparing = "comparing" // what an interrupted copy has left
	Copying   = "copying"
	Verifying = "verifying"
)

// A Progress is called as a step begins and after each batch of rows, with the rows and bytes
// of the step so far.
type Progress func(step string, rows int, bytes int64)

// A Report describes a copy.
type Report struct {
	Tables  int      `json:"tables"`
	Rows    int64    `json:"rows"`
	Kept    int      `json:"kept"`     // tables that an interrupted copy had copied already
	LeftOut []string `json:"left_out"` // tables and columns of the source that this program does not have
}

// Copy copies all tables but the ledger of migrations from one database to another and
// compares both by the hash of each table. from is only read. Both must have the layout of
// this program, and no other process may write to the target. progress may be nil. After an
// error or an interruption, the same call completes the copy; after a complete one it only
// compares.
func Copy(ctx context.Context, from, to *Side, progress Progress) (Report, error) {
	c := &copying{from: from, to: to, progress: progress, digests: map[string]digest{}}
	report, err := c.run(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return report, err
}

// A copying is one call of Copy.
type copying struct {
	from, to *Side
	progress Progress
	report   Report
	tables   []table
	digests  map[string]digest // of the source's tables

	step  string
	rows  int
	bytes int64
}

func (c *copying) run(ctx context.Context) (Report, error) {
	for _, s := range []*Side{c.from, c.to} {
		if err := s.checkVersion(ctx); err != nil {
			return c.report, err
		}
	}
	source, end, err := c.from.snapshot(ctx)
	if err != nil {
		return c.report, err
	}
	defer end()
	target, release, err := c.to.alone(ctx)
	if err != nil {
		return c.report, err
	}
	defer release()
	if err := c.plan(ctx, source, target); err != nil {
		return c.report, err
	}
	resumed, err := c.begin(ctx, source, target)
	if errors.Is(err, errComplete) {
		return c.report, nil
	}
	if err != nil {
		return c.report, err
	}
	for _, t := range c.tables {
		if err := c.table(ctx, source, target, t, resumed); err != nil {
			return c.report, err
		}
	}
	if err := c.verify(ctx, target); err != nil {
		return c.report, err
	}
	if _, err := target.ExecContext(ctx, `DELETE FROM metadata WHERE key = $1`, Marker); err != nil {
		return c.report, fmt.Errorf("complete the copy: %w", err)
	}
	return c.report, nil
}

// begin marks the target as an unfinished copy of the source. It reports whether it was one
// already, and returns an error if it has rows of anything else.
func (c *copying) begin(ctx context.Context, source, target conn) (resumed bool, err error) {
	id, err := identify(ctx, source)
	if err != nil {
		return false, err
	}
	var marks []string
	if marks, err = texts(ctx, source, `SELECT key FROM metadata WHERE key = $1`, Marker); err == nil && len(marks) > 0 {
		return false, core.Errorf(core.Conflict, "%s is an unfinished copy: complete it first, with the command that began it", c.from.name)
	}
	if err == nil {
		marks, err = texts(ctx, target, `SELECT coalesce(value, '') FROM metadata WHERE key = $1`, Marker)
	}
	if err != nil {
		return false, err
	}
	if len(marks) > 0 && marks[0] != id {
		return false, core.Errorf(core.Conflict, "%s has an unfinished copy of another database: %s", c.to.name, c.to.emptyHint())
	}
	if len(marks) > 0 {
		return true, nil
	}
	used, err := usedTable(ctx, target, c.tables)
	if err != nil {
		return false, err
	}
	if used != "" {
		return false, c.repeated(ctx, source, target, used)
	}
	_, err = target.ExecContext(ctx, `INSERT INTO metadata (key, value, updated_at) VALUES ($1, $2, '')`, Marker, id)
	return false, err
}

// usedTable returns a table that has rows; "" if there is none.
func usedTable(ctx context.Context, q conn, tables []table) (string, error) {
	for _, t := range tables {
		var some bool
		query, args := `SELECT 1 FROM `+quote(t.name), []any(nil)
		if t.name == "metadata" {
			query, args = query+content, []any{Marker, tenure.Key}
		}
		if err := q.QueryRowContext(ctx, `SELECT EXISTS (`+query+`)`, args...).Scan(&some); err != nil {
			return "", err
		}
		if some {
			return t.name, nil
		}
	}
	return "", nil
}

// errComplete is what begin returns for a target that has been copied already.
var errComplete = errors.New("the copy is complete")

// repeated returns errComplete if the target, which has rows and no marker, has the same
// content as the source: a call was interrupted after its last commit.
func (c *copying) repeated(ctx context.Context, source, target conn, used string) error {
	for _, t := range c.tables {
		same, err := c.compare(ctx, source, target, t)
		if err != nil {
			return err
		}
		if !same {
			return c.to.inUse(used)
		}
	}
	return errComplete
}

// Vacant returns core.Conflict if the database has rows and is not an unfinished copy.
func (s *Side) Vacant(ctx context.Context) error {
	tables, err := s.tables(ctx, s.db)
	if err != nil {
		return err
	}
	marks, err := texts(ctx, s.db, `SELECT key FROM metadata WHERE key = $1`, Marker)
	if err != nil || len(marks) > 0 {
		return err
	}
	used, err := usedTable(ctx, s.db, tables)
	if err == nil && used != "" {
		err = s.inUse(used)
	}
	return err
}

func (s *Side) inUse(table string) error {
	return core.Errorf(core.Conflict, "%s is in use already (its table %s has rows): %s", s.name, table, s.emptyHint())
}

// table copies a table, unless an earlier call has copied it.
func (c *copying) table(ctx context.Context, source conn, target *sql.Conn, t table, resumed bool) (err error) {
	if resumed {
		same, err := c.compare(ctx, source, target, t)
		if same && err == nil {
			err = c.settle(ctx, source, target, t)
		}
		if err != nil || same {
			return err
		}
		if err := c.to.empty(ctx, target, t); err != nil {
			return fmt.Errorf("empty table %s: %w", t.name, err)
		}
	}
	c.begun(Copying)
	w := newWriter(target, c.to.engine, t)
	c.digests[t.name], err = c.from.read(ctx, source, t, func(row []any, size int) error {
		if c.to.engine == migrations.Postgres {
			if err := t.storable(row); err != nil {
				return err
			}
		}
		if full := w.add(row, size); !full {
			return nil
		}
		return c.flush(ctx, w)
	})
	if err == nil {
		err = c.flush(ctx, w)
	}
	if err == nil {
		err = c.settle(ctx, source, target, t)
	}
	if err != nil {
		return fmt.Errorf("copy table %s: %w", t.name, err)
	}
	c.report.Tables++
	c.report.Rows += c.digests[t.name].rows
	return nil
}

// settle is called when all rows of a table are in the target: new ones get higher keys than
// the source has ever given.
func (c *copying) settle(ctx context.Context, source, target conn, t table) error {
	last, err := c.from.last(ctx, source, t)
	if err != nil {
		return err
	}
	return c.to.settle(ctx, target, t, last)
}

// compare reports whether the table is the same on both sides.
func (c *copying) compare(ctx context.Context, source, target conn, t table) (same bool, err error) {
	c.begun(Comparing)
	have, err := c.to.read(ctx, target, t, c.count)
	if err != nil {
		return false, err
	}
	want, err := c.from.read(ctx, source, t, func([]any, int) error { return nil })
	if err != nil || have != want {
		return false, err
	}
	c.digests[t.name] = want
	c.report.Tables++
	c.report.Kept++
	c.report.Rows += want.rows
	return true, nil
}

// flush writes the rows that w has collected.
func (c *copying) flush(ctx context.Context, w *writer) error {
	n, size := len(w.rows), w.size
	if err := w.flush(ctx); err != nil {
		return err
	}
	c.add(n, size)
	return nil
}

// verify reads the target and compares it with what was read of the source.
func (c *copying) verify(ctx context.Context, target conn) error {
	c.begun(Verifying)
	for _, t := range c.tables {
		have, err := c.to.read(ctx, target, t, c.count)
		if err != nil {
			return fmt.Errorf("verify table %s: %w", t.name, err)
		}
		if want := c.digests[t.name]; have != want {
			return core.Errorf(core.Conflict, "table %s of the copy differs from the source: it has %d rows (%s), and the source %d (%s). Nothing else may write to the new database. Run the command again: it copies that table again",
				t.name, have.rows, have.short(), want.rows, want.short())
		}
	}
	return nil
}

func (c *copying) begun(step string) {
	if c.step != step {
		c.step, c.rows, c.bytes = step, 0, 0
		c.add(0, 0)
	}
}

// count is a visitor of rows that are only read.
func (c *copying) count(_ []any, size int) error {
	c.rows++
	c.bytes += int64(size)
	if c.rows%batchRows == 0 {
		c.add(0, 0)
	}
	return nil
}

func (c *copying) add(rows, size int) {
	c.rows += rows
	c.bytes += int64(size)
	if c.progress != nil {
		c.progress(c.step, c.rows, c.bytes)
	}
}

// plan lists the tables, those that others refer to first.
func (c *copying) plan(ctx context.Context, source, target conn) error {
	have, err := c.from.tables(ctx, source)
	if err != nil {
		return err
	}
	want, err := c.to.tables(ctx, target)
	if err != nil {
		return err
	}
	c.report.LeftOut = []string{}
	for i, t := range want {
		other, ok := find(have, t.name)
		if !ok {
			return core.Errorf(core.Invalid, "%s lacks the table %s: it was not made by this program alone", c.from.name, t.name)
		}
		if want[i], err = t.join(other); err != nil {
			return err
		}
		for _, col := range other.columns {
			if !slices.ContainsFunc(t.columns, func(x column) bool { return x.name == col.name }) {
				c.report.LeftOut = append(c.report.LeftOut, t.name+"."+col.name)
			}
		}
	}
	for _, t := range have {
		if _, ok := find(want, t.name); !ok {
			c.report.LeftOut = append(c.report.LeftOut, t.name)
		}
	}
	c.tables, err = sorted(want)
	return err
}

// identify returns what distinguishes a database from others: when its first migrations
// were applied.
func identify(ctx context.Context, q conn) (string, error) {
	rows, err := texts(ctx, q, `SELECT version || ' ' || applied_at FROM schema_version WHERE version <= $1 ORDER BY version`, migrations.Baseline)
	if err != nil {
		return "", err
	}
	if len(rows) == 0 {
		return "", errors.New("the ledger of migrations has no baseline")
	}
	sum := sha256.New()
	for _, r := range rows {
		fmt.Fprintln(sum, r)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
