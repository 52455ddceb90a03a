package store_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/migrations"
	"gatehouse/core/store/storetest"
)

var adoptionDay = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const adoptionStamp = "2026-03-01T12:00:00.000000Z"

// Rows for every table. The values that a reader of the new tables could trip
// over are there: NULL, blobs, damaged JSON, times that are none, names that
// break quoting, rows of sessions that are gone.
const (
	oldSessions = `INSERT INTO sessions (id, title, module, source, working_directory, vault_root, model, message_count, archived, created_at, last_accessed, continued_from, metadata) VALUES
	('s1', 'Tea & "quotes"', 'chat', 'parachute', 'Projects/tea', '/home/me/Parachute', 'claude-opus-4', 7, 0, '2025-01-02T03:04:05.678901+00:00', '2025-01-03 04:05:06', NULL,
		'{"trust_level": "vault", "permissions": {"read": ["**/*"], "trust_mode": true}, "big": 12345678901234567890, "html": "<b>&"}'),
	('s2', NULL, 'daily', 'telegram', NULL, NULL, NULL, NULL, NULL, '2025-01-02T03:04:05Z', '2025-06-01T10:00:00+02:00', 's1',
		'{"trust_level": "sandboxed", "permissions": {"trust_mode": true, "bash": false}}'),
	('s3', '', 'chat', 'claude-code', NULL, NULL, NULL, 'many', 'yes', 'yesterday', '2025-02-02 02:02:02', NULL, '{broken'),
	('s4', 'no level', 'build', 'chatgpt', NULL, NULL, NULL, 2, 1, '2025-01-02', '1735787045', NULL, NULL),
	('s5', 'odd level', 'chat', 'parachute', NULL, NULL, NULL, 2, 0, '2025-01-02T03:04:05', '', NULL, '{"trust_level": "root"}'),
	('s6', 'bound', 'chat', 'parachute', NULL, NULL, NULL, 2, 0, '2025-01-02T03:04:05', '2025-01-02T03:04:05', NULL, '{"platform": "telegram", "permissions": {"trust_mode": true}}'),
	('s7', 'list', 'chat', 'claude', NULL, NULL, NULL, 2, 0, '2025-01-02T03:04:05', '2025-01-02T03:04:05', NULL, '[1, 2]'),
	(NULL, 'no id', 'chat', 'parachute', NULL, NULL, NULL, 1, 0, '2025-01-02T03:04:05', '2025-01-02T03:04:05', NULL, 'null'),
	('x''; DROP TABLE sessions; --', x'00ff41', 'chat', 'parachute', NULL, NULL, NULL, 1, 0, '2025-01-02T03:04:05', '2025-01-02T03:04:05', NULL, '')`
	oldRest = `INSERT INTO session_tags VALUES ('s1', 'tea', '2025-01-02 03:04:05'), ('s1', 'Mixed', '2025-01-02 03:04:05'), ('s1', 'mixed', '2025-01-02 03:04:06'), ('gone', 'orphan', '2025-01-02T03:04:05Z'), ('s2', 'late', 'never');
	INSERT INTO session_contexts VALUES ('s1', 'Projects/tea', '2025-01-02 03:04:05'), ('gone', 'Else', '2025-01-02 03:04:05');
	INSERT INTO chunks VALUES ('chunk:s1:content:0', 's1', 'session', 'content', 0, 'how long tea', x'deadbeef00', '2025-01-02T03:04:05.1+01:00'), (NULL, 's1', 'session', 'content', 1, 'x', NULL, '2025-01-02T03:04:05Z');
	INSERT INTO index_manifest VALUES ('s1', 'session', 'abc', 'Tea', '2025-01-02T03:04:05Z', 2, NULL, '{"a": 1}'), ('s2', 'session', NULL, NULL, '2025-01-02T03:04:05Z', 0, NULL, 'not json');
	INSERT INTO metadata VALUES ('embedding_model', 'nomic', '2025-01-02 03:04:05'), ('null', NULL, 'soon')`
	oldCurator = `INSERT INTO curator_sessions VALUES ('c1', 's1', 'odd'), ('c2', 'gone', NULL); INSERT INTO curator_queue (session_id, status) VALUES ('s1', 'done'), (NULL, 'waiting')`
	oldPairing = `INSERT INTO pairing_requests VALUES
	('p1', 'telegram', '1001', 'Ada', '1001', 'approved', 'vault', '2025-01-01 00:00:00', '2025-01-01T01:00:00+01:00', 'admin'),
	('p2', 'telegram', '1002', NULL, '-5005', 'approved', NULL, '2025-01-02T00:00:00Z', NULL, NULL),
	('p3', 'telegram', '1001', 'Ada', '1001', 'denied', NULL, '2025-02-01 00:00:00', '2025-02-01 00:00:01', 'admin'),
	('p4', 'telegram', '1001', 'Ada', '1001', 'pending', NULL, '2025-03-01 00:00:00', NULL, NULL),
	('p5', 'discord', '1001', '` + "\u202e" + `evil<b>', '777', 'approved', 'full', '2025-01-03T00:00:00Z', '2025-01-03T00:00:00Z', 'admin'),
	('p6', 'telegram', '1003', 'Cy', '1003', 'pending', NULL, 'long ago', NULL, NULL),
	('p7', 'telegram', '1004', 'Di', '1004', 'approved', 'root', '2025-01-04T00:00:00Z', 'some day', 'admin'),
	('p8', 'telegram', '1005', 'Ed', '1005', 'denied', 'vault', '2025-01-04T00:00:00Z', '2025-01-05T00:00:00Z', 'admin'),
	('p9', 'telegram', '1006', 'Flo', '1006', 'Approved', 'vault', '2025-01-04T00:00:00Z', '2025-01-05T00:00:00Z', 'admin'),
	(NULL, 'telegram', '1007', 'Gus', '1007', 'approved', 'sandboxed', '2025-01-06T00:00:00Z', '2025-01-06T00:00:00Z', 'admin')`
)

// original makes a filled database of the original system.
func original(t testing.TB, version int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := storetest.Original(t, path, version)
	fill := []string{oldSessions, oldRest}
	if version >= 10 {
		fill = append(fill, `UPDATE sessions SET agent_type = 'orchestrator' WHERE id = 's1'`)
	}
	if version <= 10 {
		fill = append(fill, oldCurator)
	}
	if version >= 12 {
		fill = append(fill, oldPairing)
	}
	run(t, db, fill...)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func run(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
}

func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// lines are the rows of a query, each value as SQLite would write it.
func lines(t testing.TB, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	var out []string
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		var parts []string
		for _, v := range values {
			switch v := (*v.(*any)).(type) {
			case nil:
				parts = append(parts, "NULL")
			case []byte:
				parts = append(parts, string(v))
			case time.Time:
				parts = append(parts, v.Format(time.RFC3339Nano))
			default:
				parts = append(parts, fmt.Sprint(v))
			}
		}
		out = append(out, strings.Join(parts, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// dump is everything that is in the file.
func dump(t testing.TB, path string) string {
	t.Helper()
	db := raw(t, path)
	defer db.Close()
	if got := lines(t, db, `PRAGMA integrity_check`); !slices.Equal(got, []string{"ok"}) {
		t.Fatalf("integrity of %s: %v", path, got)
	}
	var b strings.Builder
	for _, s := range lines(t, db, `SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_master ORDER BY type, name`) {
		fmt.Fprintln(&b, s)
	}
	for _, table := range lines(t, db, `SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`) {
		all := lines(t, db, `SELECT * FROM "`+table+`"`)
		slices.Sort(all)
		fmt.Fprintln(&b, table, strings.Join(all, "\n"))
	}
	return b.String()
}

// adopted opens (and so takes over) the database at path and closes it again.
func adopted(t testing.TB, path string) {
	t.Helper()
	db, err := store.Open(context.Background(), path, store.Options{Clock: coretest.NewClock(adoptionDay)})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func expect(t testing.TB, db *sql.DB, query string, want ...string) {
	t.Helper()
	if got := lines(t, db, query); !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", query, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func TestAdoptionCarriesEverySessionWithItsMeaning(t *testing.T) {
	for version := 9; version <= 12; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			path := original(t, version)
			adopted(t, path)
			db := raw(t, path)
			agent := "orchestrator"
			if version == 9 {
				agent = "NULL"
			}
			expect(t, db, `SELECT id, title, module, source, working_directory, vault_root, model, message_count, archived, created_at, last_accessed, continued_from, agent_type FROM sessions WHERE id IN ('s1', 's2') ORDER BY id`,
				`s1|Tea & "quotes"|chat|parachute|Projects/tea|/home/me/Parachute|claude-opus-4|7|0|2025-01-02T03:04:05.678901Z|2025-01-03T04:05:06.000000Z|NULL|`+agent,
				`s2|NULL|daily|telegram|NULL|NULL|NULL|0|0|2025-01-02T03:04:05.000000Z|2025-06-01T08:00:00.000000Z|s1|NULL`)
			expect(t, db, `SELECT id, user_id, trust_level, title_source, metadata FROM sessions WHERE id LIKE 's_' ORDER BY id`,
				`s1|1|vault|user|{"big":12345678901234567890,"html":"<b>&","permissions":{"read":["**/*"],"trust_mode":true}}`,
				`s2|0|sandboxed|default|{"permissions":{"bash":false}}`,
				`s3|1|sandboxed|default|NULL`,
				`s4|1|full|user|NULL`,
				`s5|1|sandboxed|user|{"trust_level": "root"}`,
				`s6|0|sandboxed|user|{"permissions":{},"platform":"telegram"}`,
				`s7|1|full|user|[1, 2]`)
			expect(t, db, `SELECT id, created_at, last_accessed, message_count, archived FROM sessions WHERE id IN ('s3', 's4', 's5') ORDER BY id`,
				`s3|2025-02-02T02:02:02.000000Z|2025-02-02T02:02:02.000000Z|0|0`,
				`s4|2025-01-02T00:00:00.000000Z|2025-01-02T03:04:05.000000Z|2|1`,
				`s5|2025-01-02T03:04:05.000000Z|2025-01-02T03:04:05.000000Z|2|0`)
			expect(t, db, `SELECT count(*), count(id), count(DISTINCT id) FROM sessions`, `9|9|9`)
			expect(t, db, `SELECT count(*), hex(max(title)) FROM sessions WHERE id = 'x''; DROP TABLE sessions; --'`, `1|00FF41`)
			expect(t, db, `SELECT count(*) FROM sessions WHERE id LIKE 'adopted-%' AND title = 'no id'`, `1`)
			// What could not be carried over as it stood is kept as it stood.
			expect(t, db, `SELECT coalesce(id, 'NULL'), created_at, last_accessed, message_count, archived, metadata FROM adopted_sessions ORDER BY adopted_row`,
				`s3|yesterday|2025-02-02 02:02:02|many|yes|{broken`, `s5|2025-01-02T03:04:05||2|0|{"trust_level": "root"}`,
				`NULL|2025-01-02T03:04:05|2025-01-02T03:04:05|1|0|null`)
		})
	}
}

func TestAdoptionLosesNoRowOfTheOtherTables(t *testing.T) {
	for version := 9; version <= 12; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			path := original(t, version)
			adopted(t, path)
			db := raw(t, path)
			expect(t, db, `SELECT session_id, tag, created_at FROM session_tags ORDER BY 1, 2`,
				`s1|mixed|2025-01-02T03:04:05.000000Z`, `s1|tea|2025-01-02T03:04:05.000000Z`, `s2|late|`+adoptionStamp)
			expect(t, db, `SELECT session_id, tag, created_at FROM adopted_session_tags ORDER BY 1, 2`,
				`gone|orphan|2025-01-02T03:04:05Z`, `s1|Mixed|2025-01-02 03:04:05`, `s2|late|never`)
			expect(t, db, `SELECT session_id, folder_path, added_at FROM session_contexts`, `s1|Projects/tea|2025-01-02T03:04:05.000000Z`)
			expect(t, db, `SELECT session_id, folder_path, added_at FROM adopted_session_contexts`, `gone|Else|2025-01-02 03:04:05`)
			// What was indexed is made again, from the files, by rules of our own.
			expect(t, db, `SELECT count(*) FROM chunks`, `0`)
			expect(t, db, `SELECT count(*) FROM index_manifest`, `0`)
			expect(t, db, `SELECT content_id, metadata FROM adopted_index_manifest`, `s2|not json`)
			expect(t, db, `SELECT * FROM metadata ORDER BY 1`, `embedding_model|nomic|2025-01-02T03:04:05.000000Z`, `null|NULL|`+adoptionStamp)
			expect(t, db, `SELECT key, updated_at FROM adopted_metadata`, `null|soon`)
			if version <= 10 {
				expect(t, db, `SELECT id, parent_session_id, "odd ""name" FROM adopted_curator_sessions ORDER BY 1`, `c1|s1|odd`, `c2|gone|NULL`)
				expect(t, db, `SELECT id, session_id, status FROM adopted_curator_queue ORDER BY 1`, `1|s1|done`, `2|NULL|waiting`)
			}
			expect(t, db, `SELECT name FROM sqlite_master WHERE name LIKE 'original%' OR name LIKE 'curator%'`)
			expect(t, db, `PRAGMA foreign_key_check`)
		})
	}
}

func TestAdoptionMakesNoOneWhoWasApprovedAStranger(t *testing.T) {
	path := original(t, 12)
	adopted(t, path)
	db := raw(t, path)
	expect(t, db, `SELECT i.platform, i.platform_user_id, a.bot, a.scope, a.place, a.trust_level, a.chat, u.role, u.display, a.expires_at
		FROM access a JOIN users u ON u.id = a.user_id JOIN identities i ON i.user_id = u.id ORDER BY 1, 2`,
		`discord|1001|discord|dm||vault||guest|evil<b>|`, // nobody has full trust in chat; telegram's 1001 was denied in the end
		`telegram|1002|telegram|dm||sandboxed||guest||`,  // approved from a group: the direct chat is not known
		`telegram|1004|telegram|dm||sandboxed|1004|guest|Di|`,
		`telegram|1007|telegram|dm||sandboxed|1007|guest|Gus|`)
	expect(t, db, `SELECT min(id) > 1, count(*) FROM users`, `1|4`) // 1 is the operator
	expect(t, db, `SELECT id, bot, scope, place, status, coalesce(approved_trust_level, ''), created_at, coalesce(resolved_at, ''), expires_at FROM pairing_requests WHERE id LIKE 'p%' ORDER BY id`,
		`p1|telegram|dm||approved|vault|2025-01-01T00:00:00.000000Z|2025-01-01T00:00:00.000000Z|`,
		`p2|telegram|dm||approved||2025-01-02T00:00:00.000000Z||`,
		`p3|telegram|dm||denied||2025-02-01T00:00:00.000000Z|2025-02-01T00:00:01.000000Z|`,
		`p4|telegram|dm||pending||2025-03-01T00:00:00.000000Z||2026-03-15T12:00:00.000000Z`,
		`p5|discord|dm||approved|full|2025-01-03T00:00:00.000000Z|2025-01-03T00:00:00.000000Z|`,
		`p6|telegram|dm||pending||2026-03-01T12:00:00.000000Z||2026-03-15T12:00:00.000000Z`,
		`p7|telegram|dm||approved|root|2025-01-04T00:00:00.000000Z||`,
		`p8|telegram|dm||denied|vault|2025-01-04T00:00:00.000000Z|2025-01-05T00:00:00.000000Z|`,
		`p9|telegram|dm||expired|vault|2025-01-04T00:00:00.000000Z|2025-01-05T00:00:00.000000Z|`)
	expect(t, db, `SELECT coalesce(id, 'NULL'), status, coalesce(resolved_at, '') FROM adopted_pairing_requests ORDER BY adopted_row`,
		`p5|approved|2025-01-03T00:00:00Z`, `p6|pending|`, `p7|approved|some day`, `p9|Approved|2025-01-05T00:00:00Z`, `NULL|approved|2025-01-06T00:00:00Z`)
	expect(t, db, `SELECT count(*) FROM pairing_requests`, `10`)
	// The old unique rule is gone: a second denial is a row like any other.
	run(t, db, `INSERT INTO pairing_requests (id, platform, platform_user_id, platform_chat_id, status, created_at, bot) SELECT 'again', platform, platform_user_id, platform_chat_id, status, created_at, bot FROM pairing_requests WHERE id = 'p3'`)
	if _, err := db.Exec(`INSERT INTO pairing_requests (id, platform, platform_user_id, platform_chat_id, created_at, bot) VALUES ('twice', 'telegram', '1003', '1003', '', 'telegram')`); err == nil {
		t.Error("two requests of one person wait")
	}
	expect(t, db, `SELECT action, subject, detail FROM audit_events`, `database.adopt|v12|{"sessions":9,"requests":10,"users":4}`)
}

func TestAnAdoptedDatabaseHasTheTablesOfAFreshOne(t *testing.T) {
	storetest.SQLiteOnly(t, "the original system's databases are files")
	fresh := storetest.Open(t, nil)
	tables := `SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master WHERE name NOT LIKE 'adopted%' AND name NOT LIKE 'sqlite_sequence' ORDER BY 1, 2`
	want := lines(t, raw(t, fresh.Path()), tables)
	for version := 9; version <= 12; version++ {
		path := original(t, version)
		adopted(t, path)
		expect(t, raw(t, path), tables, want...)
	}
}

func TestASecondStartAfterAdoptionChangesNothing(t *testing.T) {
	for version := 9; version <= 12; version++ {
		path := original(t, version)
		adopted(t, path)
		before, files := dump(t, path), beside(t, path)
		adopted(t, path)
		if dump(t, path) != before {
			t.Errorf("v%d: the second start changed the database", version)
		}
		if got := beside(t, path); !slices.Equal(got, files) {
			t.Errorf("v%d: files after the second start: %v, before %v", version, got, files)
		}
	}
}

// beside are the names of the files around the database, without SQLite's own.
func beside(t testing.TB, path string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "-wal") && !strings.HasSuffix(e.Name(), "-shm") {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestACopyOfTheOriginalDatabaseIsKeptNextToIt(t *testing.T) {
	for version := 9; version <= 12; version++ {
		path := original(t, version)
		before := dump(t, path)
		adopted(t, path)
		kept := fmt.Sprintf("%s.v%d.bak", path, version)
		if dump(t, kept) != before {
			t.Errorf("v%d: the copy differs from what was taken over", version)
		}
		if st, err := os.Stat(kept); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("v%d: the copy's mode is %v, %v", version, st.Mode(), err)
		}
		if st, _ := os.Stat(path); st.Mode().Perm() != 0o600 {
			t.Errorf("v%d: the adopted file's mode is %v", version, st.Mode())
		}
		// The original system could still start on the copy: foreign eyes see its layout.
		if v, adopt, err := store.Examine(t.Context(), kept); err != nil || !adopt || v != int64(version) {
			t.Errorf("v%d: the copy looks like v%d, %v, %v", version, v, adopt, err)
		}
	}
}

func TestAnEarlierCopyIsNeitherLostNorTakenForTheNewOne(t *testing.T) {
	path := original(t, 12)
	stop := errors.New("stop")
	for range 2 { // two starts that came to nothing: the same copy
		if err := store.AdoptStepwise(t.Context(), path, core.System{}, func(string) error { return stop }); !errors.Is(err, stop) {
			t.Fatal(err)
		}
	}
	if got := beside(t, path); !slices.Equal(got, []string{"sessions.db", "sessions.db.v12.bak"}) {
		t.Errorf("after two attempts: %v", got)
	}
	first := dump(t, path+".v12.bak")
	db := raw(t, path) // the original system goes on for a while
	run(t, db, `INSERT INTO sessions (id, title, created_at, last_accessed) VALUES ('later', 'Later', '2025-09-09', '2025-09-09')`)
	db.Close()
	second := dump(t, path)
	adopted(t, path)
	if dump(t, path+".v12.bak") != first || dump(t, path+".v12-2.bak") != second {
		t.Error("the copies are not what was there at each attempt")
	}
}

func TestGooseContinuesFromAnAdoptedLedger(t *testing.T) {
	for version := 9; version <= 12; version++ {
		path := original(t, version)
		adopted(t, path)
		db := raw(t, path)
		want := map[int][]string{9: {"0", "1001"}, 10: {"0", "10", "1001"}, 11: {"0", "10", "11", "1001"}, 12: {"0", "10", "11", "12", "1001"}}[version]
		expect(t, db, `SELECT version FROM schema_version WHERE version <= 1001 ORDER BY 1`, want...)
		expect(t, db, `SELECT count(*) FROM schema_version WHERE applied_at NOT LIKE '____-__-__T__:__:__.______Z'`, "0")
		files := fstest.MapFS{"9999_later.sql": {Data: []byte("-- +goose Up\nCREATE TABLE later (id INTEGER);\n-- +goose Down\nDROP TABLE later;\n")}}
		ours := migrations.Files(migrations.SQLite)
		names, err := fs.Glob(ours, "*.sql")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			b, _ := fs.ReadFile(ours, n)
			files[n] = &fstest.MapFile{Data: b}
		}
		p, err := goose.NewProvider("", db, files, goose.WithStore(migrations.Ledger{Engine: migrations.SQLite, Clock: core.System{}}), goose.WithDisableGlobalRegistry(true))
		if err != nil {
			t.Fatal(err)
		}
		done, err := p.Up(t.Context())
		if err != nil || len(done) != 1 || done[0].Source.Version != 9999 {
			t.Errorf("v%d: the next migration: %v, %v", version, done, err)
		}
		if n, err := p.GetDBVersion(t.Context()); n != 9999 || err != nil {
			t.Errorf("v%d: goose is at %d, %v", version, n, err)
		}
	}
}

func TestOfSeveralApprovalsOfOnePersonTheLatestCounts(t *testing.T) {
	path := original(t, 12)
	db := raw(t, path)
	run(t, db, `ALTER TABLE pairing_requests RENAME TO p`, `CREATE TABLE pairing_requests AS SELECT * FROM p WHERE id = 'p1'`, `DROP TABLE p`,
		`INSERT INTO pairing_requests SELECT 'p0', platform, platform_user_id, 'Ada L.', platform_chat_id, status, 'sandboxed', created_at, '2025-01-01T00:00:01Z', 'me' FROM pairing_requests`,
		`INSERT INTO pairing_requests SELECT 'p2', platform, platform_user_id, 'A.', platform_chat_id, status, 'vault', created_at, '2025-01-01 00:59:00+01:00', 'me' FROM pairing_requests WHERE id = 'p1'`)
	db.Close()
	adopted(t, path)
	expect(t, raw(t, path), `SELECT u.display, a.trust_level, a."by", a.at FROM access a JOIN users u ON u.id = a.user_id`, `Ada L.|sandboxed|me|2025-01-01T00:00:01.000000Z`)
	expect(t, raw(t, path), `SELECT id, status FROM pairing_requests ORDER BY id`, `p0|approved`, `p1|approved`, `p2|approved`)
}

// An old ledger number says little: the original makes all tables at each start.
func TestTheLayoutIsReportedByColumnsNotByTheLedger(t *testing.T) {
	for name, alter := range map[string]string{
		"v12 that still says 10":      `DELETE FROM schema_version WHERE version > 10`,
		"v12 without a ledger":        `DROP TABLE schema_version`,
		"an empty ledger":             `DELETE FROM schema_version`,
		"a ledger that has a row 0":   `INSERT INTO schema_version VALUES (0, 'x')`,
		"with the curator left":       `CREATE TABLE curator_queue (a)`,
		"names in capitals":           `ALTER TABLE session_tags RENAME TO x; ALTER TABLE x RENAME TO Session_TAGS`,
		"other indexes and ANALYZE":   `CREATE INDEX mine ON sessions(title); ANALYZE`,
		"in WAL mode":                 `PRAGMA journal_mode = WAL`,
		"waiting twice (no unique)":   `ALTER TABLE pairing_requests RENAME TO p; CREATE TABLE pairing_requests AS SELECT * FROM p UNION ALL SELECT 'p10', platform, platform_user_id, platform_user_display, platform_chat_id, status, approved_trust_level, created_at, resolved_at, resolved_by FROM p WHERE id IN ('p6', 'p1'); DROP TABLE p; UPDATE pairing_requests SET id = id || rowid WHERE id = 'p10'`,
		"only sessions and a pairing": `DROP TABLE session_tags; DROP TABLE session_contexts; DROP TABLE chunks; DROP TABLE index_manifest; DROP TABLE metadata`,
	} {
		t.Run(name, func(t *testing.T) {
			path := original(t, 12)
			db := raw(t, path)
			run(t, db, alter)
			db.Close()
			adopted(t, path)
			expect(t, raw(t, path), `SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM access), (SELECT max(version) >= 1001 FROM schema_version)`, `9|4|1`)
		})
	}
}

func TestAnUnknownLayoutIsRefusedByNameAndLeftAsItWas(t *testing.T) {
	for name, c := range map[string]struct {
		alter string
		want  []string
	}{
		"columns of later versions": {`ALTER TABLE sessions ADD COLUMN workspace_id TEXT; ALTER TABLE sessions ADD COLUMN parent_session_id TEXT`,
			[]string{"sessions.workspace_id", "sessions.parent_session_id"}},
		"an unknown column elsewhere": {`ALTER TABLE pairing_requests ADD COLUMN mood TEXT`, []string{"pairing_requests.mood"}},
		"an unknown table":            {`CREATE TABLE workspaces (id TEXT)`, []string{"unknown tables workspaces"}},
		"a hostile name":              {"CREATE TABLE \"a\nb\x1b[31m\" (id TEXT)", []string{`"a\nb\x1b[31m"`}},
		"a later number":              {`INSERT INTO schema_version VALUES (13, '')`, []string{"version 13", "newer"}},
		"a view":                      {`CREATE VIEW v AS SELECT 1`, []string{"view v"}},
		"a trigger":                   {`CREATE TRIGGER tr AFTER INSERT ON sessions BEGIN SELECT 1; END`, []string{"trigger tr"}},
		"older than 9":                {`ALTER TABLE sessions DROP COLUMN vault_root`, []string{"missing sessions.vault_root"}},
		"no sessions":                 {`DROP TABLE sessions`, []string{"missing sessions"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := original(t, 12)
			db := raw(t, path)
			run(t, db, c.alter)
			db.Close()
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = store.Open(t.Context(), path, store.Options{})
			if core.KindOf(err) != core.Invalid {
				t.Fatalf("Open = %v", err)
			}
			for _, w := range c.want {
				if !strings.Contains(core.TextOf(err), w) {
					t.Errorf("%q does not name %q", core.TextOf(err), w)
				}
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
				t.Errorf("the refused file was changed (%v)", err)
			}
			if got := beside(t, path); len(got) != 1 {
				t.Errorf("files: %v", got)
			}
		})
	}
}

// Whatever statement fails, the file is what it was, and the next start works.
func TestAdoptionThatFailsAtAnyStatementLeavesTheFileAsItWas(t *testing.T) {
	for _, version := range []int{10, 12} {
		path := original(t, version)
		before := dump(t, path)
		boom := errors.New("boom")
		for k := 1; ; k++ {
			n := 0
			err := store.AdoptStepwise(t.Context(), path, coretest.NewClock(adoptionDay), func(string) error {
				if n++; n == k {
					return boom
				}
				return nil
			})
			if err == nil {
				if k < 20 {
					t.Errorf("v%d: only %d statements were failed", version, k-1)
				}
				break
			}
			if !errors.Is(err, boom) {
				t.Fatal(err)
			}
			if dump(t, path) != before {
				t.Fatalf("v%d: failing at statement %d changed the file", version, k)
			}
		}
		if dump(t, path) == before {
			t.Errorf("v%d: was not taken over in the end", version)
		}
		adopted(t, path) // and our own start takes it from there
	}
}

// TestAdoptionChild is the process that is killed by the next test.
func TestAdoptionChild(t *testing.T) {
	path, at := os.Getenv("GATEHOUSE_TEST_ADOPT"), os.Getenv("GATEHOUSE_TEST_ADOPT_AT")
	if path == "" {
		t.Skip("only as a child")
	}
	k, err := strconv.Atoi(at)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = store.AdoptStepwise(t.Context(), path, core.System{}, func(string) error {
		if n++; n == k {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAKillInMidAdoptionLeavesTheOldFileUsable(t *testing.T) {
	for _, mode := range []string{"DELETE", "WAL"} {
		path := original(t, 12)
		db := raw(t, path)
		// Enough pages that the transaction spills into the file before its commit.
		run(t, db, `PRAGMA journal_mode = `+mode, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
			INSERT INTO sessions (id, title, created_at, last_accessed) SELECT 'bulk' || i, hex(zeroblob(2000)), '2025-01-01 00:00:00', '2025-01-01 00:00:00' FROM n`)
		db.Close()
		before := dump(t, path)
		killed := 0
		for k := 1; ; k += 9 {
			cmd := exec.Command(os.Args[0], "-test.run=^TestAdoptionChild$")
			cmd.Env = append(os.Environ(), "GATEHOUSE_TEST_ADOPT="+path, fmt.Sprint("GATEHOUSE_TEST_ADOPT_AT=", k))
			out, err := cmd.CombinedOutput()
			if err == nil {
				break // it came to its end before statement k
			}
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%v\n%s", err, out)
			}
			killed++
			if dump(t, path) != before {
				t.Fatalf("%s: a kill at statement %d left another file", mode, k)
			}
		}
		if killed < 3 {
			t.Errorf("%s: killed only %d times", mode, killed)
		}
		adopted(t, path)
		expect(t, raw(t, path), `SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM access)`, `1009|4`)
	}
}

// What the gateway reads of an adopted row must be readable, whatever was in it.
func FuzzAdoptionOfASession(f *testing.F) {
	f.Add("parachute", `{"trust_level": "full", "permissions": {"trust_mode": true}}`, "2025-01-01", "t")
	f.Add("telegram", `{"permissions": null, "trust_level": 7}`, "", "\x00")
	f.Add("", `{"a": 1, "a": 2}`, "x", "'")
	f.Add("discord", `{"permissions": {"trust_mode": true}, "permissions": {}}`, "x", "a key twice")
	f.Add("discord", `{"Permissions": {"Trust_Mode": true}}`, "x", "another case")
	f.Add("discord", `{"permissions": {"trust_mode": true, "trust_mode": null}}`, "x", "inside")
	f.Fuzz(func(t *testing.T, source, metadata, at, title string) {
		path := filepath.Join(t.TempDir(), "a.db")
		db := storetest.Original(t, path, 11)
		if _, err := db.Exec(`INSERT INTO sessions (id, title, source, metadata, created_at, last_accessed) VALUES ('s', $1, $2, $3, $4, $4)`, title, source, metadata, at); err != nil {
			t.Fatal(err)
		}
		db.Close()
		adopted(t, path)
		var user int
		var level, created, gotTitle string
		var meta sql.NullString
		err := raw(t, path).QueryRow(`SELECT user_id, trust_level, created_at, metadata, title FROM sessions WHERE id = 's'`).Scan(&user, &level, &created, &meta, &gotTitle)
		if err != nil || gotTitle != title {
			t.Fatalf("%v, title %q", err, gotTitle)
		}
		if _, err := core.ParseTrust(level); err != nil {
			t.Error(err)
		}
		if at, err := core.ParseStamp(created); err != nil || at.IsZero() {
			t.Errorf("created_at %q, %v", created, err)
		}
		if meta.Valid && !json.Valid([]byte(meta.String)) {
			t.Errorf("metadata %q", meta.String)
		}
		var m struct {
			Permissions struct {
				TrustMode any `json:"trust_mode"`
			} `json:"permissions"`
		}
		if json.Unmarshal([]byte(meta.String), &m) == nil && user != 1 && m.Permissions.TrustMode != nil {
			t.Errorf("a session that is not the owner's never asks: %s", meta.String)
		}
	})
}
