package store_test

import (
	"database/sql"
	"strings"
	"testing"
)

// The first form of migration 1018 did not create the index of the newest requests.
func TestADatabaseOfTheFirst1018GetsTheIndexOfRequests(t *testing.T) {
	for _, before := range []string{"", `CREATE INDEX pairing_requests_created ON pairing_requests(created_at DESC, id)`} {
		db := migrated(t, "1019_newest_requests.sql", `CREATE TABLE pairing_requests (id TEXT PRIMARY KEY, created_at TEXT NOT NULL)`, before)
		var found int
		if err := db.QueryRow(`SELECT count(*) FROM sqlite_master WHERE name = 'pairing_requests_created'`).Scan(&found); err != nil || found != 1 {
			t.Errorf("after %q: %d, %v", before, found, err)
		}
	}
}

// wantLines fails where a query of one text does not return these lines.
func wantLines(t *testing.T, db *sql.DB, query, want string) {
	t.Helper()
	if got := strings.Join(lines(t, db, query), "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestRequestsOfAnEarlierVersionAreListedByTheAccessThatThereIs(t *testing.T) {
	db := migrated(t, "1292_requests_by_access.sql",
		`CREATE TABLE pairing_requests (id TEXT PRIMARY KEY, platform TEXT NOT NULL, platform_user_id TEXT NOT NULL, status TEXT NOT NULL, approved_trust_level TEXT, created_at TEXT NOT NULL,
			resolved_at TEXT, resolved_by TEXT, bot TEXT NOT NULL, scope TEXT NOT NULL, place TEXT NOT NULL, expires_at TEXT NOT NULL, blocked INTEGER NOT NULL DEFAULT 0);
		CREATE TABLE identities (platform TEXT, platform_user_id TEXT, user_id INTEGER);
		CREATE TABLE access (bot TEXT, user_id INTEGER, scope TEXT, place TEXT, trust_level TEXT, at TEXT, "by" TEXT)`,
		`INSERT INTO identities VALUES ('t', '7', 57), ('t', '8', 58), ('t', '9', 59), ('t', '10', 60)`,
		`INSERT INTO access VALUES ('tg', 57, 'dm', '', 'vault', '5', 'panel 1'), ('other', 58, 'dm', '', 'vault', '1', 'panel 1'), ('tg', 59, 'dm', '', 'vault', '1', 'panel 1')`,
		`INSERT INTO pairing_requests (id, platform, platform_user_id, bot, scope, place, status, approved_trust_level, created_at, resolved_at, resolved_by, expires_at, blocked) VALUES
			('given again', 't', '7', 'tg', 'dm', '', 'denied', 'sandboxed', '1', '3', 'old', '9', 0),
			('given before', 't', '8', 'other', 'dm', '', 'denied', 'sandboxed', '1', '6', 'old', '9', 0),
			('its group', 't', '7', 'tg', 'group', 'g', 'approved', 'vault', '1', '2', 'first', '9', 0),
			('revoked', 't', '8', 'tg', 'group', 'g', 'denied', 'vault', '1', '4', 'old', '9', 0),
			('sibling', 't', '8', 'tg', 'dm', '', 'approved', '', '1', '2', 'first', '9', 0),
			('elsewhere', 't', '8', 'other', 'dm', '', 'approved', 'vault', '1', '2', 'first', '9', 0),
			('approved since', 't', '8', 'tg', 'group', 'h', 'approved', 'vault', '1', '5', 'first', '9', 0),
			('has access', 't', '9', 'tg', 'dm', '', 'approved', 'vault', '1', '2', 'first', '9', 0),
			('lost group', 't', '9', 'tg', 'group', 'g', 'approved', 'vault', '1', '2', 'first', '9', 0),
			('row beside', 't', '9', 'tg', 'group', 'g', 'denied', NULL, '3', '3', 'old', '3', 0),
			('only denied', 't', '10', 'tg', 'dm', '', 'denied', NULL, '1', '3', 'old', '9', 0),
			('not revoked', 't', '10', 'tg', 'dm', '', 'approved', 'vault', '1', '2', 'first', '9', 0),
			('blocked', 't', '10', 'tg', 'dm', '', 'denied', NULL, '1', '3', 'old', '3', 1)`)
	wantLines(t, db, `SELECT id || ': ' || status || ' ' || coalesce(approved_trust_level, '-') || ' ' || resolved_at || ' ' || resolved_by || ' ' || expires_at FROM pairing_requests ORDER BY id`, `approved since: approved vault 5 first 9
blocked: denied - 3 old 3
elsewhere: approved vault 2 first 9
given again: approved vault 5 panel 1 3
given before: approved vault 1 panel 1 1
has access: approved vault 2 first 9
its group: denied vault 3 old 3
lost group: denied - 3 old 3
not revoked: approved vault 2 first 9
only denied: denied - 3 old 9
revoked: denied vault 4 old 9
sibling: denied sandboxed 4 old 4`)
	var left int
	if err := db.QueryRow(`SELECT count(*) FROM sqlite_master WHERE type = 'table'`).Scan(&left); err != nil || left != 3 {
		t.Errorf("%d tables are left: %v", left, err)
	}
}

func TestWhatABlockTookAtAnEarlierVersionIsListedAsRevoked(t *testing.T) {
	db := migrated(t, "1293_lost_by_blocks.sql",
		`CREATE TABLE pairing_requests (id TEXT PRIMARY KEY, platform TEXT NOT NULL, platform_user_id TEXT NOT NULL, platform_chat_id TEXT NOT NULL DEFAULT '', status TEXT NOT NULL, approved_trust_level TEXT,
			created_at TEXT NOT NULL, resolved_at TEXT, resolved_by TEXT, bot TEXT NOT NULL, scope TEXT NOT NULL DEFAULT 'dm', place TEXT NOT NULL DEFAULT '', expires_at TEXT NOT NULL, replied_at TEXT NOT NULL DEFAULT '');
		CREATE TABLE identities (platform TEXT, platform_user_id TEXT, user_id INTEGER);
		CREATE TABLE access (bot TEXT, user_id INTEGER, scope TEXT, place TEXT);
		CREATE TABLE blocks (platform TEXT, platform_user_id TEXT, bot TEXT, "by" TEXT, at TEXT, took TEXT NOT NULL DEFAULT '');
		CREATE TABLE audit_events (at TEXT, user_id INTEGER, via TEXT, action TEXT, subject TEXT, detail TEXT);
		CREATE TABLE outbox (bot TEXT, chat TEXT, key TEXT, created_at TEXT);
		CREATE TABLE admin_totp (user_id INTEGER, at TEXT);
		CREATE TABLE metadata (key TEXT PRIMARY KEY, value TEXT, updated_at TEXT)`,
		`INSERT INTO identities VALUES ('t', '1', 51), ('t', '2', 52), ('t', '3', 53), ('t', '4', 54), ('t', '5', 55), ('t', '6', 56)`,
		`INSERT INTO access VALUES ('tg', 53, 'dm', '')`,
		`INSERT INTO blocks VALUES ('t', '2', '*', 'operator via chat', '5', ''), ('t', '6', '*', 'operator', '5', '[]')`,
		`INSERT INTO audit_events VALUES ('3', 1, 'panel', 'access.block', 't:1', '{"bot":"tg"}'), ('4', 1, 'panel', 'access.block', 't:3', '{"bot":"tg"}'), ('4', 1, 'panel', 'access.block', 't:4', '{"bot":"other"}'),
			('4', 2, 'api', 'access.revoke', '55', '{"bot":"tg"}')`,
		`INSERT INTO outbox VALUES ('tg', 'c5', 'pair:gone:revoked-u1', '6')`,
		`INSERT INTO admin_totp VALUES (1, '2')`,
		`INSERT INTO pairing_requests (id, platform, platform_user_id, platform_chat_id, bot, status, approved_trust_level, created_at, resolved_at, resolved_by, expires_at) VALUES
			('was blocked', 't', '1', 'c1', 'tg', 'approved', 'vault', '1', '2', 'first', '9'),
			('approved since', 't', '1', 'c1', 'tg', 'approved', 'vault', '1', '4', 'first', '9'),
			('is blocked', 't', '2', 'c2', 'tg', 'approved', NULL, '1', '2', 'first', '9'),
			('has access', 't', '3', 'c3', 'tg', 'approved', 'vault', '1', '2', 'first', '9'),
			('blocked elsewhere', 't', '4', 'c4', 'tg', 'approved', 'vault', '1', '2', 'first', '9'),
			('a false name', 't', '5', 'c5', 'tg', 'denied', 'vault', '1', '4', 'someone else', '4'),
			('can be undone', 't', '6', 'c6', 'tg', 'approved', 'vault', '1', '2', 'first', '9'),
			('a false date', 't', '7', 'c7', 'tg', 'denied', 'vault', '3', '1', 'first', '1')`)
	wantLines(t, db, `SELECT rtrim(id || ': ' || status || ' ' || coalesce(approved_trust_level, '-') || ' ' || resolved_at || ' ' || resolved_by || ' ' || expires_at || ' ' || cooled || ' ' || replied_at) FROM pairing_requests ORDER BY id`, `a false date: denied vault 3 first 3 1
a false name: denied vault 4 user 2 via api 4 0 6
approved since: approved vault 4 first 9 0
blocked elsewhere: approved vault 2 first 9 0
can be undone: approved vault 2 first 9 0
has access: approved vault 2 first 9 0
is blocked: denied sandboxed 5 operator via chat 5 1
was blocked: denied vault 3 operator via panel 3 1`)
	var compact string
	if err := db.QueryRow(`SELECT value || updated_at FROM metadata WHERE key = 'content_keys.compact'`).Scan(&compact); err != nil || compact != "12" {
		t.Errorf("the file is not rewritten at the next start: %q, %v", compact, err)
	}
}

// tablesOfEndedBlocks is what 1294 reads.
const tablesOfEndedBlocks = `CREATE TABLE pairing_requests (id TEXT PRIMARY KEY, platform TEXT NOT NULL, platform_user_id TEXT NOT NULL, platform_user_display TEXT NOT NULL DEFAULT '', platform_chat_id TEXT NOT NULL DEFAULT '',
		status TEXT NOT NULL, approved_trust_level TEXT, created_at TEXT NOT NULL, resolved_at TEXT, resolved_by TEXT, bot TEXT NOT NULL, scope TEXT NOT NULL DEFAULT 'dm', place TEXT NOT NULL DEFAULT '',
		expires_at TEXT NOT NULL DEFAULT '', blocked INTEGER NOT NULL DEFAULT 0, cooled INTEGER NOT NULL DEFAULT 0);
	CREATE TABLE identities (platform TEXT, platform_user_id TEXT, user_id INTEGER, display TEXT NOT NULL DEFAULT '');
	CREATE TABLE access (bot TEXT, user_id INTEGER, scope TEXT, place TEXT);
	CREATE TABLE blocks (platform TEXT, platform_user_id TEXT, bot TEXT, "by" TEXT, at TEXT, took TEXT NOT NULL DEFAULT '');
	CREATE TABLE invites (bot TEXT, uses_left INTEGER, at TEXT);
	CREATE TABLE audit_events (at TEXT, user_id INTEGER, via TEXT, action TEXT, subject TEXT, detail TEXT)`

func TestAnInvitationFromBeforeABlockOfAnEarlierVersionRestoresNothing(t *testing.T) {
	day := func(n string) string { return "2026-02-" + n + "T10:00:00.000000Z" }
	end := func(n string) string { return "2026-02-" + n + "T11:22:33.123456Z" }
	db := migrated(t, "1294_ended_blocks.sql",
		tablesOfEndedBlocks,
		`INSERT INTO identities VALUES ('t', '1', 51, ''), ('t', '2', 52, ''), ('t', '3', 53, ''), ('t', '4', 54, 'Ada'), ('t', '5', 55, ''), ('t', '6', 56, ''), ('t', '7', 57, ''), ('t', '8', 58, ''), ('t', '9', 59, '')`,
		`INSERT INTO access VALUES ('tg', 56, 'dm', '')`,
		`INSERT INTO invites VALUES ('tg', 3, '`+day("05")+`'), ('tg', 0, '`+day("01")+`'), ('late', 3, '`+day("27")+`'), ('discord', 3, '`+day("05")+`')`,
		`INSERT INTO blocks VALUES ('t', '4', '*', 'operator via chat', '`+day("12")+`', ''), ('t', '5', 'tg', 'operator', '`+day("12")+`', '[]')`,
		`INSERT INTO audit_events VALUES
			('`+day("10")+`', 1, 'panel', 'access.block', 't:1', '{"bot":"tg"}'), ('`+end("16")+`', 1, 'panel', 'access.unblock', 't:1', '{"bot":"tg"}'),
			('`+day("10")+`', 1, 'panel', 'access.block', 't:2', '{"bot":"*"}'), ('`+end("12")+`', 1, 'panel', 'access.unblock', 't:2', '{"bot":"*"}'),
			('`+day("10")+`', 2, 'chat', 'pairing.block', 'of a group', '{"bot":"tg"}'), ('`+end("12")+`', 1, 'panel', 'access.unblock', 't:3', '{"bot":"tg"}'),
			('`+day("10")+`', 1, 'panel', 'access.block', 't:6', '{"bot":"tg"}'), ('`+end("12")+`', 1, 'panel', 'access.unblock', 't:6', '{"bot":"tg"}'),
			('`+day("10")+`', 1, 'panel', 'access.block', 't:7', '{"bot":"tg"}'), ('`+day("10")+`', 1, 'panel', 'access.undo', 't:7', '{"bot":"tg","was":"blocked"}'),
			('`+day("10")+`', 1, 'panel', 'access.block', 't:10', '{"bot":"tg"}'), ('`+end("10")+`', 1, 'panel', 'access.undo', 't:10', '{"bot":"tg","was":"blocked"}'),
			('`+day("10")+`', 1, 'panel', 'access.block', 't:11', '{"bot":"tg"}'), ('`+day("11")+`', 1, 'panel', 'access.block', 't:11', '{"bot":"tg"}'), ('`+end("12")+`', 1, 'panel', 'access.unblock', 't:11', '{"bot":"tg"}'),
			('`+day("10")+`', 1, 'panel', 'access.block', 't:8', '{"bot":"tg"}'), ('`+end("12")+`', 1, 'panel', 'access.unblock', 't:8', '{"bot":"tg"}'),
			('`+day("10")+`', 1, 'panel', 'access.block', 't:9', '{"bot":"tg"}'), ('`+end("12")+`', 1, 'panel', 'access.unblock', 't:9', '{"bot":"tg"}')`,
		`INSERT INTO pairing_requests (id, platform, platform_user_id, bot, scope, status, approved_trust_level, created_at, resolved_at, resolved_by, expires_at, blocked, cooled) VALUES
			('seven days before the end', 't', '1', 'tg', 'dm', 'denied', 'vault', '`+day("08")+`', '`+end("09")+`', 'operator', '`+end("09")+`', 0, 0),
			('as 1293 left it', 't', '2', 'tg', 'dm', 'denied', 'vault', '`+day("08")+`', '`+day("08")+`', 'operator', '`+day("08")+`', 0, 1),
			('undone', 't', '10', 'tg', 'dm', 'denied', 'vault', '`+day("01")+`', '`+end("03")+`', 'operator', '`+end("03")+`', 0, 0),
			('denied by then', 't', '10', 'tg', 'dm', 'denied', 'vault', '`+day("01")+`', '`+day("03")+`', 'operator', '`+day("03")+`', 0, 0),
			('blocked twice', 't', '11', 'tg', 'dm', 'denied', 'vault', '`+day("01")+`', '`+day("11")+`', 'operator', '`+day("11")+`', 0, 1),
			('is blocked', 't', '4', 'elsewhere', 'dm', 'denied', 'vault', '`+day("01")+`', '`+day("12")+`', 'operator', '`+day("12")+`', 0, 1),
			('of a group', 't', '3', 'tg', 'group', 'denied', NULL, '`+day("09")+`', '`+day("10")+`', 'user 2', '`+day("16")+`', 1, 0),
			('blocked by a request', 't', '3', 'tg', 'dm', 'approved', 'vault', '`+day("07")+`', '`+day("07")+`', 'operator', '`+day("14")+`', 0, 0),
			('approved since', 't', '3', 'tg', 'group', 'approved', 'vault', '`+day("13")+`', '`+day("13")+`', 'operator', '`+day("20")+`', 0, 0),
			('has access', 't', '6', 'tg', 'dm', 'approved', 'vault', '`+day("13")+`', '`+day("13")+`', 'operator', '`+day("20")+`', 0, 0),
			('denied before', 't', '8', 'tg', 'dm', 'denied', NULL, '`+day("06")+`', '`+day("06")+`', 'operator', '`+day("13")+`', 0, 0),
			('elsewhere', 'd', '8', 'discord', 'dm', 'denied', NULL, '`+day("06")+`', '`+day("06")+`', 'operator', '`+day("13")+`', 0, 0),
			('denied after', 't', '9', 'tg', 'dm', 'denied', NULL, '`+day("13")+`', '`+day("14")+`', 'operator', '`+day("20")+`', 0, 0)`)
	wantLines(t, db, `SELECT id || ': ' || status || ' ' || coalesce(approved_trust_level, '-') || ' ' || substr(resolved_at, 9, 2) || ' ' || resolved_by || ' ' || substr(expires_at, 9, 2) || ' ' || blocked || cooled
		|| platform_user_display || rtrim(' ' || substr(noted_at, 9, 2)) FROM pairing_requests ORDER BY id`, `approved since: approved vault 13 operator 20 00
as 1293 left it: denied vault 10 operator 10 01 12
blocked by a request: denied vault 10 user 2 via chat 10 01 12
blocked twice: denied vault 11 operator 11 01 12
blocked-1-1-t-4-tg: denied - 12 operator via chat  11Ada
blocked-1-1-t-8-tg: denied - 10 operator via panel  11
denied after: denied - 14 operator 20 00
denied before: denied - 06 operator 13 00
denied by then: denied vault 03 operator 03 00
elsewhere: denied - 06 operator 13 00
has access: approved vault 13 operator 20 00
is blocked: denied vault 12 operator 12 01
of a group: denied - 10 user 2 16 10
seven days before the end: denied vault 10 operator 10 01 16
undone: denied vault 10 operator 10 01`)
	var left int
	if err := db.QueryRow(`SELECT count(*) FROM sqlite_master WHERE type = 'table'`).Scan(&left); err != nil || left != 6 {
		t.Errorf("%d tables are left: %v", left, err)
	}
}

// Names and ids with hyphens make no two rows of one id: the gateway starts.
func TestBlocksOfNamesWithHyphensAreEachARow(t *testing.T) {
	db := migrated(t, "1294_ended_blocks.sql", tablesOfEndedBlocks,
		`INSERT INTO identities VALUES ('t', '4-a', 51, ''), ('t', '4', 52, ''), ('t-4', 'a', 53, '')`,
		`INSERT INTO invites VALUES ('b', 3, '1'), ('a-b', 3, '1')`,
		`INSERT INTO blocks VALUES ('t', '4-a', '*', 'operator', '2', ''), ('t', '4', '*', 'operator', '2', ''), ('t-4', 'a', '*', 'operator', '2', '')`)
	wantLines(t, db, `SELECT platform || ' ' || platform_user_id || ' ' || bot FROM pairing_requests ORDER BY platform, platform_user_id, bot`, `t 4 a-b
t 4 b
t 4-a a-b
t 4-a b
t-4 a a-b
t-4 a b`)
}
