package store_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Numbers of deleted messages and replies are part of keys that a database still has.
func TestADatabaseInUseGoesOnWithNumbersThatNothingHas(t *testing.T) {
	baseline, err := os.ReadFile("migrations/1001_baseline.sql")
	if err != nil {
		t.Fatal(err)
	}
	tables := strings.Join(regexp.MustCompile(`(?s)CREATE TABLE (inbox|outbox|cursors) .*?\n\);`).FindAllString(string(baseline), -1), "\n") +
		`ALTER TABLE inbox ADD COLUMN burst TEXT NOT NULL DEFAULT ''; CREATE TABLE corrections (source TEXT NOT NULL);`
	const row = `INSERT INTO inbox (seq, bot, update_id, chat, lane, kind, state, received_at, burst) VALUES (7, 'b', 'u', 'c', 'l', 'message', 'dead', 't', 'x');
		INSERT INTO outbox (seq, bot, chat, key, ordinal, body, state, created_at) VALUES (8, 'b', 'c', 'k', 0, '{}', 'sent', 't')`
	for name, test := range map[string]struct {
		before string
		rows   string
		low    bool
	}{
		"new":              {low: true},
		"in use":           {before: row, rows: "7 b u c l message dead t x|8 b c k 0 {} sent t"},
		"in use and empty": {before: `INSERT INTO cursors (name, value, updated_at) VALUES ('telegram:1', '1', 't')`},
		"corrections":      {before: `INSERT INTO corrections (source) VALUES ('chat:7')`},
	} {
		t.Run(name, func(t *testing.T) {
			db := migrated(t, "1260_numbers.sqlite.sql", tables, test.before)
			var rows string
			if err := db.QueryRow(`SELECT coalesce((SELECT seq || ' ' || bot || ' ' || update_id || ' ' || chat || ' ' || lane || ' ' || kind || ' ' || state || ' ' || received_at || ' ' || burst FROM inbox) || '|' ||
				(SELECT seq || ' ' || bot || ' ' || chat || ' ' || key || ' ' || ordinal || ' ' || body || ' ' || state || ' ' || created_at FROM outbox), '')`).Scan(&rows); err != nil || rows != test.rows {
				t.Errorf("rows %q, %v", rows, err)
			}
			for _, insert := range []string{
				`INSERT INTO inbox (bot, update_id, chat, lane, kind, state, received_at) VALUES ('b', 'new', '', '', '', '', '') RETURNING seq`,
				`INSERT INTO outbox (bot, chat, key, ordinal, body, state, created_at) VALUES ('b', '', 'new', 0, '', '', '') RETURNING seq`,
			} {
				var seq int64
				if err := db.QueryRow(insert).Scan(&seq); err != nil || (seq < 1000) != test.low {
					t.Errorf("%s: %d, %v", insert, seq, err)
				}
			}
		})
	}
}
