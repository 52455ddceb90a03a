package store_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// Sessions as the original system's program writes them: its own, and those of
// its bots, which name their chat.
const productSessions = `INSERT INTO sessions (id, title, source, message_count, created_at, last_accessed, metadata, trust_level, linked_bot_platform, linked_bot_chat_id, linked_bot_chat_type, archived) VALUES
	('own', 'Tea', 'parachute', 4, '2026-02-01T10:00:00.5+00:00', '2026-02-02T10:00:00+00:00', '{"permissions": {"trustMode": true, "trustLevel": "full"}}', 'full', NULL, NULL, NULL, 0),
	('null', 'No level', 'claude-code', 4, '2026-02-01T10:00:00+00:00', '2026-02-02T10:00:00+00:00', NULL, NULL, NULL, NULL, NULL, 0),
	('box', 'Careful', 'parachute', 4, '2026-02-01T10:00:00+00:00', '2026-02-02T10:00:00+00:00', '{"trust_level": "vault"}', 'sandboxed', NULL, NULL, NULL, 0),
	('odd', 'Odd level', 'parachute', 4, '2026-02-01T10:00:00+00:00', '2026-02-02T10:00:00+00:00', '{}', 'root', NULL, NULL, NULL, 0),
	('ada-old', 'Telegram - Ada', 'telegram', 2, '2026-02-01T10:00:00+00:00', '2026-02-02T10:00:00+00:00', '{"linked_bot": {"platform": "telegram"}}', 'vault', 'telegram', '1001', 'dm', 0),
	('ada', 'Telegram - Ada', 'telegram', 6, '2026-02-03T10:00:00+00:00', '2026-02-04T10:00:00+00:00', '{"linked_bot": {"platform": "telegram"}, "permissions": {"trust_mode": true}}', 'full', 'telegram', '1001', 'dm', 0),
	('ada-archived', 'Telegram - Ada', 'telegram', 6, '2026-02-03T10:00:00+00:00', '2026-02-05T10:00:00+00:00', NULL, 'vault', 'telegram', '1001', 'dm', 1),
	('bo', 'Discord - Bo', 'discord', 6, '2026-02-03T10:00:00+00:00', '2026-02-04T10:00:00+00:00', NULL, 'sandboxed', 'discord', '777', 'dm', 0),
	('group', 'Telegram - a group', 'telegram', 6, '2026-02-03T10:00:00+00:00', '2026-02-04T10:00:00+00:00', NULL, 'sandboxed', 'telegram', '-5005', 'group', 0),
	('eve', 'Telegram - Eve', 'telegram', 6, '2026-02-03T10:00:00+00:00', '2026-02-04T10:00:00+00:00', NULL, 'vault', 'telegram', '1003', 'dm', 0)`

const productRequests = `INSERT INTO pairing_requests VALUES
	('r1', 'telegram', '1001', 'Ada', '1001', 'approved', 'vault', '2026-02-01T09:00:00.123456+00:00', '2026-02-01T09:30:00.123456+00:00', 'owner'),
	('r2', 'discord', '2002', 'Bo', '777', 'approved', 'sandboxed', '2026-02-01T09:00:00+00:00', '2026-02-01T09:30:00+00:00', 'owner'),
	('r3', 'telegram', '1003', 'Eve', '1003', 'approved', 'vault', '2026-02-01T09:00:00+00:00', '2026-02-01T09:30:00+00:00', 'owner'),
	('r4', 'telegram', '1003', 'Eve', '1003', 'denied', NULL, '2026-02-02T09:00:00+00:00', '2026-02-02T09:30:00+00:00', 'owner'),
	('r5', 'telegram', '1004', 'Di', '-5005', 'approved', 'full', '2026-02-01T09:00:00+00:00', '2026-02-01T09:30:00+00:00', 'owner'),
	('r6', 'telegram', '1005', 'Cy', '1005', 'pending', NULL, '2026-02-01T09:00:00+00:00', NULL, NULL)`

// product makes a filled database as the original system's program does.
func product(t testing.TB, version int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions.db")
	db := storetest.Product(t, path, version)
	run(t, db, productSessions)
	if version >= 12 {
		run(t, db, productRequests)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDatabasesOfTheOriginalsOwnProgramAreAdopted(t *testing.T) {
	for _, version := range []int{11, 12} {
		path := product(t, version)
		if v, adopt, err := store.Examine(t.Context(), path); v != int64(version) || !adopt || err != nil {
			t.Errorf("v%d: Examine = %d, %v, %v", version, v, adopt, err)
		}
		before := dump(t, path)
		adopted(t, path)
		db := raw(t, path)
		expect(t, db, `SELECT count(*) FROM sessions`, `10`)
		expect(t, db, `SELECT id, user_id, trust_level, coalesce(metadata, '') FROM sessions WHERE id IN ('own', 'null', 'box', 'odd') ORDER BY id`,
			`box|1|sandboxed|{}`, `null|1|full|`, `odd|1|sandboxed|{}`, `own|1|full|{"permissions": {"trustMode": true, "trustLevel": "full"}}`)
		expect(t, db, `SELECT id, trust_level, linked_bot_platform, linked_bot_chat_id, linked_bot_chat_type FROM adopted_sessions WHERE id IN ('odd', 'group') ORDER BY id`,
			`group|sandboxed|telegram|-5005|group`, `odd|root|NULL|NULL|NULL`)
		if got := dump(t, path+map[int]string{11: ".v11.bak", 12: ".v12.bak"}[version]); got != before {
			t.Errorf("v%d: the copy differs from what was there", version)
		}
	}
}

func TestAnAdoptedChatContinuesTheSessionOfThePersonApprovedThere(t *testing.T) {
	path := product(t, 12)
	adopted(t, path)
	db := raw(t, path)
	owner := `SELECT s.id, coalesce(i.platform || ':' || i.platform_user_id, s.user_id), s.trust_level FROM sessions s LEFT JOIN identities i ON i.user_id = s.user_id
		WHERE s.id IN ('ada', 'ada-old', 'ada-archived', 'bo', 'eve', 'group') ORDER BY 1`
	expect(t, db, owner, `ada|telegram:1001|vault`, `ada-archived|telegram:1001|vault`, `ada-old|telegram:1001|vault`, `bo|discord:2002|sandboxed`,
		`eve|0|vault`, `group|0|sandboxed`) // no one's: only the operator sees them
	expect(t, db, `SELECT bot, chat, thread, place, session_id, kind, updated_at FROM chats ORDER BY bot, chat`,
		`discord|777|||bo|dm|2026-02-04T10:00:00.000000Z`, `telegram|1001|||ada|dm|2026-02-04T10:00:00.000000Z`)
	expect(t, db, `SELECT bot, chat FROM access ORDER BY bot, chat`, `discord|777`, `telegram|`, `telegram|1001`)
	expect(t, db, `SELECT metadata FROM sessions WHERE id = 'ada'`, `{"linked_bot":{"platform":"telegram"},"permissions":{}}`)
}

func TestADenialAfterAnApprovalCounts(t *testing.T) {
	path := product(t, 12)
	adopted(t, path)
	db := raw(t, path)
	expect(t, db, `SELECT i.platform, i.platform_user_id, a.trust_level FROM access a JOIN identities i ON i.user_id = a.user_id ORDER BY 1, 2`,
		`discord|2002|sandboxed`, `telegram|1001|vault`, `telegram|1004|vault`) // 1003 was denied last
	expect(t, db, `SELECT id, status FROM pairing_requests WHERE platform_user_id = '1003' ORDER BY id`, `r3|approved`, `r4|denied`)

	// The other way round, and a decision at the very same time.
	path = product(t, 12)
	old := raw(t, path)
	run(t, old, `UPDATE pairing_requests SET resolved_at = '2026-02-03 00:00:00' WHERE id = 'r3'`,
		`INSERT INTO pairing_requests SELECT 'r7', platform, platform_user_id, platform_user_display, platform_chat_id, 'denied', NULL, created_at, resolved_at, resolved_by FROM pairing_requests WHERE id = 'r1'`)
	old.Close()
	adopted(t, path)
	expect(t, raw(t, path), `SELECT i.platform_user_id FROM access a JOIN identities i ON i.user_id = a.user_id ORDER BY 1`, `1003`, `1004`, `2002`)
}

func TestAdoptionLogsWhatWasTakenOver(t *testing.T) {
	var log bytes.Buffer
	db, err := store.Open(t.Context(), product(t, 12), store.Options{Clock: coretest.NewClock(adoptionDay), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, want := range []string{"version=12", "copy=", "sessions=10", "people_with_access=3", "people_denied=1", "requests_pending=1", "chats=2"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, log.String())
		}
	}
}
