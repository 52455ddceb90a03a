package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/stage"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/store/storetest"
)

// A gateway over the database of the original system: who was approved there
// writes and is answered, without a word about pairing; who was denied or is
// new is not; the owner's sessions are there. So it is after a restart.
func TestWhoWasApprovedInTheOriginalSystemIsAnsweredWithoutPairing(t *testing.T) {
	t.Parallel()
	sim := telegramtest.New(telegramtest.Options{FloodOff: true})
	t.Cleanup(func() { _ = sim.Close() })
	ada, eve, dan := sim.NewUser("Ada"), sim.NewUser("Eve"), sim.NewUser("Dan")
	dir := t.TempDir()
	path := filepath.Join(dir, "vault", "Chat", "sessions.db")
	if err := stage.Fill(filepath.Join(dir, "vault")); err != nil { // before anything else is there
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	old := storetest.Product(t, path, 12)
	for _, s := range []string{
		fmt.Sprintf(`INSERT INTO pairing_requests VALUES ('r1', 'telegram', '%d', 'Ada', '%[1]d', 'approved', 'sandboxed', '2025-01-02 03:04:05', '2025-01-02T04:00:00+00:00', 'admin')`, ada.ID()),
		fmt.Sprintf(`INSERT INTO pairing_requests VALUES ('r2', 'telegram', '%d', 'Dan', '%[1]d', 'pending', NULL, '2025-01-02 03:04:05', NULL, NULL)`, dan.ID()),
		`INSERT INTO sessions (id, title, source, created_at, last_accessed, metadata) VALUES ('0a8f7f6e-7a3d-4a5e-9a55-1f2b3c4d5e6f', 'Old talk', 'parachute', '2025-01-02 03:04:05', '2025-01-02 03:04:05', '{"trust_level": "vault"}')`,
		// Eve was approved, and denied later.
		fmt.Sprintf(`INSERT INTO pairing_requests VALUES ('r3', 'telegram', '%d', 'Eve', '%[1]d', 'approved', 'vault', '2025-01-02 03:04:05', '2025-01-02T04:00:00+00:00', 'admin')`, eve.ID()),
		fmt.Sprintf(`INSERT INTO pairing_requests VALUES ('r4', 'telegram', '%d', 'Eve', '%[1]d', 'denied', NULL, '2025-01-03 03:04:05', '2025-01-03T04:00:00+00:00', 'admin')`, eve.ID()),
		// Ada's conversation with the original's bot.
		fmt.Sprintf(`INSERT INTO sessions (id, title, source, created_at, last_accessed, trust_level, linked_bot_platform, linked_bot_chat_id, linked_bot_chat_type) VALUES
			('1b8f7f6e-7a3d-4a5e-9a55-1f2b3c4d5e6f', 'Telegram - Ada', 'telegram', '2025-01-02 03:04:05', '2025-01-02 03:04:05', 'vault', 'telegram', '%d', 'dm')`, ada.ID()),
		// Rows that could make a reader stumble.
		`INSERT INTO sessions (id, title, source, message_count, archived, created_at, last_accessed, metadata) VALUES
			(NULL, x'00ff', 'parachute', 'many', NULL, 'yesterday', '', '{broken'), ('../../../etc/passwd', 'Path', 'claude', -1, 0, '', '', '[]')`,
		`INSERT INTO session_tags VALUES ('../../../etc/passwd', 'Tag', 'never'), ('gone', 'orphan', '')`,
		`INSERT INTO pairing_requests VALUES (NULL, 'telegram', '77', x'ff', '77', 'approved', 'root', '', '', NULL)`,
	} {
		if _, err := old.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	w := newWorldOn(t, sim, dir, nil)

	ada.Send("How long should green tea brew?")
	m := w.hears(ada.DM(), func(telegramtest.Message) bool { return true })
	if first := w.hearsText(ada, "Public/"); !strings.Contains(first.Text, "tea") {
		t.Errorf("the answer: %q", first.Text)
	}
	if strings.Contains(strings.ToLower(m.Text), "code") || strings.Contains(strings.ToLower(m.Text), "pair") {
		t.Errorf("somebody approved was asked to pair: %q", m.Text)
	}
	if n := w.count(`SELECT count(*) FROM pairing_requests WHERE platform_user_id = $1 AND status = 'pending'`, fmt.Sprint(ada.ID())); n != 0 {
		t.Error("somebody approved waits for a decision")
	}

	// Who waited there waits here, and can be let in.
	dan.Send("hello, tea?")
	r := w.request(dan)
	if r.ID != "r2" {
		t.Errorf("the request that waited was replaced by %+v", r)
	}
	if status, body := w.call("POST", "/api/bots/pairing/r2/approve", map[string]string{}); status != 200 {
		t.Errorf("approve: %d %s", status, body)
	}
	w.hearsText(dan, "Public/")

	// Ada went on where she was.
	if n := w.count(`SELECT message_count FROM sessions WHERE id = '1b8f7f6e-7a3d-4a5e-9a55-1f2b3c4d5e6f'`); n != 2 {
		t.Errorf("the adopted conversation has %d messages after one answer", n)
	}

	// Strangers stay strangers, and so does who was denied in the end.
	eve.Send("How long should green tea brew?")
	if r := w.request(eve); r.Status != "pending" {
		t.Errorf("a stranger's request: %+v", r)
	}

	for _, page := range []struct{ path, want string }{
		{"/api/chat", "Old talk"}, {"/api/chat", "etc/passwd"}, {"/api/bots/pairing", `"r1"`}, {"/api/bots/access", `"77"`},
	} {
		if status, body := w.call("GET", page.path, nil); status != 200 || !strings.Contains(body, page.want) {
			t.Errorf("%s: %d, without %q: %s", page.path, status, page.want, body)
		}
	}
	w.stop()
	w.start()
	ada.Send("And black tea?")
	w.hears(ada.DM(), func(again telegramtest.Message) bool { return again.ID > m.ID && strings.Contains(again.Text, "tea") })
}
