package carry_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/carry"
	"gatehouse/core/store/fulltext"
	"gatehouse/core/store/postgres"
	"gatehouse/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }

// rowsOfEach of large are several batches. Other tables have fewer rows.
const rowsOfEach = 1203

var large = []string{"sessions", "users", "chunks", "lane", "run_events", "rollups", "admin_sessions"}

// side opens the database for a copy.
func side(t *testing.T, at string, write bool) *carry.Side {
	t.Helper()
	var s *carry.Side
	var err error
	switch {
	case strings.Contains(at, "://"):
		db, e := postgres.Open(at, "", !write, 2)
		if err = e; e == nil {
			s = carry.Server(db.DB)
		}
	case write:
		s, err = carry.Target(at)
	default:
		s, err = carry.Source(at)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// fresh creates an empty database of this run's engine.
func fresh(t *testing.T) string {
	at := storetest.Fresh(t)
	closed(t, storetest.OpenAt(t, at, nil))
	return at
}

// file creates an empty database in a file.
func file(t *testing.T) string {
	at := filepath.Join(t.TempDir(), "chat.db")
	closed(t, storetest.OpenAt(t, at, nil))
	return at
}

func closed(t *testing.T, db *store.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// move copies and fails the test on an error.
func move(t *testing.T, from, to string) carry.Report {
	t.Helper()
	r, err := carry.Copy(t.Context(), side(t, from, false), side(t, to, true), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func lite(t *testing.T, at string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+at+"?_foreign_keys=on&_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func list(t *testing.T, db *sql.DB, query string, args ...any) (all []string) {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatal(query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(query, err)
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(query, err)
	}
	return all
}

const plainTables = `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT IN ('schema_version', 'nodes') ORDER BY name`

// samples are values of columns that may have any.
var samples = map[string][]any{
	"TEXT":             {"", "plain", "Zoë 日本語 👩‍👩‍👧", "it's \"quoted\" \\ %_ $1 ?", " spaces \t\r\n", strings.Repeat("long ", 200), "\u00e9 e\u0301", "{\"a\":\"\\u0000\"}"},
	"INTEGER":          {int64(0), int64(1), int64(-1), int64(1<<63 - 1), int64(-1 << 63), int64(1) << 40},
	"DOUBLE PRECISION": {0.0, -1.5, 0.1, 1e300, -2.0, 5e-324},
	"BLOB":             {[]byte{}, []byte{0, 1, 2, 0xff, 0}, bytes.Repeat([]byte{0xfe, 0}, 300), []byte("text")},
}

// fill creates rows in each table of a database in a file: values of every kind, NULL where
// it may be, and in columns that are unique or refer to another table one value for a row.
func fill(t *testing.T, at string, n int) {
	t.Helper()
	db := lite(t, at)
	if _, err := db.Exec(`PRAGMA foreign_keys = off; BEGIN`); err != nil {
		t.Fatal(err)
	}
	for _, table := range list(t, db, plainTables) {
		bound := list(t, db, `SELECT i.name FROM pragma_index_list($1) l, pragma_index_info(l.name) i WHERE l."unique" UNION
			SELECT "from" FROM pragma_foreign_key_list($1) UNION SELECT name FROM pragma_table_info($1) WHERE pk > 0`, table)
		columns := list(t, db, `SELECT name FROM pragma_table_info($1)`, table)
		kinds := list(t, db, `SELECT type || CASE WHEN "notnull" THEN '' ELSE '?' END FROM pragma_table_info($1)`, table)
		var marks []string
		for range columns {
			marks = append(marks, "?")
		}
		insert, err := db.Prepare(`INSERT INTO "` + table + `" ("` + strings.Join(columns, `", "`) + `") VALUES (` + strings.Join(marks, ", ") + `)`)
		if err != nil {
			t.Fatal(err)
		}
		few := n
		if !slices.Contains(large, table) {
			few = min(n, 30)
		}
		for i := 1; i <= few; i++ {
			var row []any
			for j, name := range columns {
				kind, null := strings.CutSuffix(kinds[j], "?")
				values := samples[kind]
				if len(values) == 0 {
					t.Fatalf("column %s.%s has the type %q", table, name, kind)
				}
				switch v := values[(i+j)%len(values)]; {
				case slices.Contains(bound, name) && kind == "INTEGER":
					row = append(row, i)
				case slices.Contains(bound, name):
					row = append(row, fmt.Sprintf("ключ %d", i))
				case null && i%3 == 0:
					row = append(row, nil)
				default:
					row = append(row, v)
				}
			}
			if _, err := insert.Exec(row...); err != nil {
				t.Fatalf("%s: %v: %v", table, err, row)
			}
		}
		_ = insert.Close()
	}
	for i := 1; i <= n; i++ {
		if _, err := db.Exec(`INSERT INTO session_words (rowid, words, starts, keys) VALUES ($1, $2, 'ha hal', $3)`, i, fmt.Sprintf("hallo wörld 日 本 n%d again hallo", i), fmt.Sprintf("u%d", i%2)); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(`INSERT INTO document_words (rowid, title, words, keys) VALUES ($1, $2, 'xylophone music', '')`, i, []string{"", "title"}[i%2]); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(`INSERT INTO guest_words (rowid, title, words, keys) VALUES ($1, 'g7wtitle', 'g7wgreen g7wtea', $2)`, i, "g7 g7w\ue000tag"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(`COMMIT`); err != nil {
		t.Fatal(err)
	}
	if faults := list(t, db, `SELECT "table" FROM pragma_foreign_key_check`); len(faults) > 0 {
		t.Fatal("rows without parents: ", faults)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// content returns the rows of each table of a database in a file, with their types.
func content(t *testing.T, at string) map[string][]string {
	t.Helper()
	db, all := lite(t, at), map[string][]string{}
	for _, table := range list(t, db, plainTables) {
		var cells []string
		for _, c := range list(t, db, `SELECT name FROM pragma_table_info($1)`, table) {
			cells = append(cells, `typeof("`+c+`") || quote("`+c+`")`)
		}
		all[table] = list(t, db, `SELECT `+strings.Join(cells, ` || ',' || `)+` FROM "`+table+`" ORDER BY 1`)
	}
	return all
}

func same(t *testing.T, a, b map[string][]string) {
	t.Helper()
	if len(a) != len(b) || len(a) < 40 {
		t.Errorf("%d and %d tables", len(a), len(b))
	}
	for table := range a {
		if len(a[table]) == 0 || !slices.Equal(a[table], b[table]) {
			t.Errorf("table %s differs: %d and %d rows", table, len(a[table]), len(b[table]))
		}
	}
}

// finds counts the rows of a full-text table with the words next to each other.
func finds(t *testing.T, db *store.DB, table, column string, words ...string) (n int) {
	t.Helper()
	match, args := db.Match(table, []fulltext.Term{{Columns: []string{column}, Words: words}}, 1)
	if err := db.Get(t.Context(), &n, `SELECT count(*) FROM `+table+` WHERE `+match, args...); err != nil {
		t.Fatal(err)
	}
	return n
}

func checkSearch(t *testing.T, at string) {
	t.Helper()
	db := storetest.OpenAt(t, at, nil)
	defer closed(t, db)
	for _, q := range []struct {
		table, column string
		words         []string
		want          int
	}{
		{"session_words", "words", []string{"hallo"}, rowsOfEach},
		{"session_words", "words", []string{"wörld", "日", "本", "n7", "again", "hallo"}, 1},
		{"session_words", "words", []string{"again", "wörld"}, 0},
		{"session_words", "starts", []string{"hal"}, rowsOfEach},
		{"session_words", "keys", []string{"u1"}, (rowsOfEach + 1) / 2},
		{"document_words", "words", []string{"xylophone", "music"}, rowsOfEach},
		{"document_words", "title", []string{"title"}, (rowsOfEach + 1) / 2},
		{"guest_words", "words", []string{"g7wgreen", "g7wtea"}, rowsOfEach},
		{"guest_words", "keys", []string{"g7w\ue000tag"}, rowsOfEach},
	} {
		if n := finds(t, db, q.table, q.column, q.words...); n != q.want {
			t.Errorf("%s: %q is in %d rows of %s, want %d", at, q.words, n, q.table, q.want)
		}
	}
}

func sumOf(t *testing.T, at string) (sum [32]byte) {
	t.Helper()
	b, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}

func TestADatabaseGoesToTheOtherEngineAndBackAndIsIdentical(t *testing.T) {
	from, middle, back := file(t), fresh(t), file(t)
	fill(t, from, rowsOfEach)
	before := sumOf(t, from)
	r := move(t, from, middle)
	checkSearch(t, middle)
	if second := move(t, middle, back); second.Rows != r.Rows || second.Tables != r.Tables {
		t.Errorf("%+v back, and %+v there", second, r)
	}
	if sumOf(t, from) != before {
		t.Error("the source was changed")
	}
	want, rows := content(t, from), 3*rowsOfEach // the full-text tables
	for _, list := range want {
		rows += len(list)
	}
	if r.Tables != len(want)+3 || r.Rows != int64(rows) || len(r.LeftOut) > 0 {
		t.Errorf("%+v, want %d tables and %d rows", r, len(want)+3, rows)
	}
	same(t, want, content(t, back))
	checkSearch(t, from)
	checkSearch(t, back)
	for _, at := range []string{middle, back} {
		db := storetest.OpenAt(t, at, nil)
		unfinished, err := carry.Unfinished(t.Context(), db)
		if err != nil || unfinished {
			t.Errorf("unfinished: %v, %v", unfinished, err)
		}
		var id int64
		err = db.Tx(t.Context(), func(tx *store.Tx) (err error) {
			id, err = tx.Insert(t.Context(), `INSERT INTO users (display, created_at) VALUES ('new', '')`)
			return err
		})
		if err != nil || id != rowsOfEach+1 {
			t.Errorf("the next user is %d, %v", id, err)
		}
		closed(t, db)
	}
}

// A number that was given to a message is not given again, also when the row is gone.
func TestNumbersGoOnAfterThoseThatTheSourceHasGiven(t *testing.T) {
	from, middle, back := file(t), fresh(t), file(t)
	db := lite(t, from)
	if _, err := db.Exec(`INSERT INTO sqlite_sequence (name, seq) VALUES ('inbox', 4711)`); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	move(t, from, middle)
	move(t, middle, back)
	for _, at := range []string{middle, back} {
		db := storetest.OpenAt(t, at, nil)
		var id int64
		if err := db.Tx(t.Context(), func(tx *store.Tx) error {
			return tx.Get(t.Context(), &id, `INSERT INTO inbox (bot, update_id, chat, lane, kind, state, received_at) VALUES ('b', 'new', '', '', '', '', '') RETURNING seq`)
		}); err != nil || id != 4712 {
			t.Errorf("the next message is %d, %v", id, err)
		}
		closed(t, db)
	}
}

// Full-text rows that were deleted and written again are carried as they are now.
func TestOnlyWhatTheIndexHasNowIsCarried(t *testing.T) {
	from, to := file(t), fresh(t)
	fill(t, from, 3)
	db := lite(t, from)
	for _, q := range []string{
		`DELETE FROM session_words WHERE rowid = 2`, `INSERT INTO session_words (rowid, words, starts, keys) VALUES (2, 'written later', '', '')`,
		`INSERT INTO session_words (rowid, words, starts, keys) VALUES (99, 'orphan', '', '')`, `DELETE FROM document_words WHERE rowid = 3`,
	} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(q, err)
		}
	}
	_ = db.Close()
	move(t, from, to)
	got := storetest.OpenAt(t, to, nil)
	for word, want := range map[string]int{"hallo": 2, "later": 1, "orphan": 0} {
		if n := finds(t, got, "session_words", "words", word); n != want {
			t.Errorf("%d rows with %s, want %d", n, word, want)
		}
	}
	if n := finds(t, got, "document_words", "words", "music"); n != 2 {
		t.Errorf("%d documents", n)
	}
}

var errKilled = errors.New("killed")

func TestAnInterruptedCopyIsMarkedAndIsCompletedByTheNext(t *testing.T) {
	from, to, back := file(t), fresh(t), file(t)
	fill(t, from, rowsOfEach)
	other := file(t)
	ctx := t.Context()
	for _, batches := range []int{1, 40, 30} {
		ending, kill := context.WithCancelCause(ctx)
		n := 0
		_, err := carry.Copy(ending, side(t, from, false), side(t, to, true), func(step string, _ int, _ int64) {
			if n++; step == carry.Copying && n >= batches {
				kill(errKilled)
			}
		})
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		db := storetest.OpenAt(t, to, nil)
		if unfinished, err := carry.Unfinished(ctx, db); !unfinished || err != nil {
			t.Errorf("after %d batches: %v, %v", batches, unfinished, err)
		}
		closed(t, db)
	}
	if _, err := carry.Copy(ctx, side(t, other, false), side(t, to, true), nil); core.KindOf(err) != core.Conflict || !strings.Contains(err.Error(), "another database") {
		t.Errorf("another source: %v", err)
	}
	if _, err := carry.Copy(ctx, side(t, to, false), side(t, back, true), nil); core.KindOf(err) != core.Conflict || !strings.Contains(err.Error(), "unfinished") {
		t.Errorf("an unfinished source: %v", err)
	}
	if r := move(t, from, to); r.Kept < 10 {
		t.Errorf("%d tables of the interrupted copies were kept", r.Kept)
	}
	checkSearch(t, to)
	move(t, to, back)
	same(t, content(t, from), content(t, back))
}

// A source that was used between two calls is copied as it is at the second.
func TestACopyOfASourceThatHasChangedIsBroughtUpToDate(t *testing.T) {
	from, to, back := file(t), fresh(t), file(t)
	fill(t, from, 20)
	ending, kill := context.WithCancelCause(t.Context())
	_, err := carry.Copy(ending, side(t, from, false), side(t, to, true), func(step string, _ int, _ int64) {
		if step == carry.Verifying {
			kill(errKilled)
		}
	})
	if !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	db := lite(t, from)
	for _, q := range []string{`UPDATE sessions SET title = 'changed' WHERE rowid = 3`, `DELETE FROM session_tags`, `DELETE FROM users WHERE id = 7`, `INSERT INTO session_tags SELECT id, 'new', '' FROM sessions`} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(q, err)
		}
	}
	_ = db.Close()
	move(t, from, to)
	move(t, to, back)
	same(t, content(t, from), content(t, back))
}

func TestAChangedRowIsFoundByTheVerification(t *testing.T) {
	for table, query := range map[string]string{
		"sessions":      `UPDATE sessions SET title = 'changed' WHERE id = 'ключ 5'`,
		"lane":          `DELETE FROM lane WHERE key = 'ключ 5'`,
		"session_words": `DELETE FROM session_words WHERE rowid = 5`,
	} {
		from, to := file(t), fresh(t)
		fill(t, from, 40)
		done := false
		_, err := carry.Copy(t.Context(), side(t, from, false), side(t, to, true), func(step string, _ int, _ int64) {
			if step != carry.Verifying || done {
				return
			}
			done = true
			db := storetest.OpenAt(t, to, nil)
			defer closed(t, db)
			if err := db.Tx(t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(t.Context(), query); return err }); err != nil {
				t.Error(err)
			}
		})
		if core.KindOf(err) != core.Conflict || !strings.Contains(err.Error(), "table "+table+" ") {
			t.Errorf("%s: %v", query, err)
		}
		if r := move(t, from, to); r.Kept < r.Tables-10 {
			t.Errorf("%s: %d of %d tables were kept", query, r.Kept, r.Tables)
		}
	}
}

func TestADatabaseWithRowsOrOfAnotherVersionIsRefused(t *testing.T) {
	ctx := t.Context()
	from, used := file(t), fresh(t)
	db := storetest.OpenAt(t, used, nil)
	if err := db.Save(ctx, "setting:x", "1"); err != nil {
		t.Fatal(err)
	}
	closed(t, db)
	if _, err := carry.Copy(ctx, side(t, from, false), side(t, used, true), nil); core.KindOf(err) != core.Conflict || !strings.Contains(err.Error(), "metadata has rows") {
		t.Errorf("used: %v", err)
	}
	for change, want := range map[string]string{`DELETE FROM schema_version WHERE version = (SELECT max(version) FROM schema_version)`: "start this program once", `INSERT INTO schema_version VALUES (999999, '')`: "newer"} {
		old := file(t)
		raw := lite(t, old)
		if _, err := raw.Exec(change); err != nil {
			t.Fatal(err)
		}
		_ = raw.Close()
		if _, err := carry.Copy(ctx, side(t, old, false), side(t, fresh(t), true), nil); core.KindOf(err) != core.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change, err)
		}
	}
}

func TestATextThatPostgresCannotStoreIsNamed(t *testing.T) {
	storetest.PostgresOnly(t, "SQLite stores any text")
	for value, want := range map[string]string{`'a' || char(0) || 'b'`: "zero byte", `CAST(x'61ff' AS TEXT)`: "not UTF-8", `x'00'`: "zero byte"} {
		from := file(t)
		fill(t, from, 5)
		db := lite(t, from)
		if _, err := db.Exec(`UPDATE sessions SET title = ` + value + ` WHERE rowid = 4`); err != nil {
			t.Fatal(err)
		}
		_ = db.Close()
		_, err := carry.Copy(t.Context(), side(t, from, false), side(t, fresh(t), true), nil)
		if err == nil {
			t.Fatal("it was copied")
		}
		for _, part := range []string{"table sessions", "column title", `id = "ключ 4"`, want} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q", value, err, part)
			}
		}
	}
}

// PostgreSQL indexes no value of more than 2,704 bytes.
func TestARowThatTheTargetRefusesIsNamed(t *testing.T) {
	storetest.PostgresOnly(t, "SQLite indexes any text")
	from := file(t)
	fill(t, from, 5)
	db := lite(t, from)
	if _, err := db.Exec(`UPDATE attachments SET path = 'key' || hex(randomblob(4000)) WHERE rowid = 3`); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	_, err := carry.Copy(t.Context(), side(t, from, false), side(t, fresh(t), true), nil)
	if err == nil || !strings.Contains(err.Error(), "table attachments") || !strings.Contains(err.Error(), `path = "key`) {
		t.Error(err)
	}
}

func TestOneCopyWritesADatabaseAtATime(t *testing.T) {
	storetest.PostgresOnly(t, "a file is protected by the vault's lock")
	from, to := file(t), fresh(t)
	fill(t, from, rowsOfEach)
	var second error
	_, err := carry.Copy(t.Context(), side(t, from, false), side(t, to, true), func(string, int, int64) {
		if second == nil {
			_, second = carry.Copy(t.Context(), side(t, from, false), side(t, to, true), nil)
		}
	})
	if err != nil || core.KindOf(second) != core.Conflict || !strings.Contains(second.Error(), "another process") {
		t.Errorf("first %v, second %v", err, second)
	}
}

// What an adopted database has besides is named, and is not copied.
func TestTablesOfTheSourceAloneAreNamed(t *testing.T) {
	from := file(t)
	db := lite(t, from)
	if _, err := db.Exec(`CREATE TABLE curator_queue (id INTEGER PRIMARY KEY, status VARCHAR); INSERT INTO curator_queue VALUES (1, 'x'); ALTER TABLE users ADD COLUMN extra REAL`); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	if r := move(t, from, fresh(t)); !slices.Equal(r.LeftOut, []string{"users.extra", "curator_queue"}) {
		t.Errorf("left out: %q", r.LeftOut)
	}
}
