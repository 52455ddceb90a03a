package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// fill writes a past into the database of a gateway that has made its tables
// and ended: rows finished messages with their replies and runs, lanes known
// chats with their sessions. Everything is a day old at most, so that the
// housekeeping has no reason to remove it. The chats are shared out among bots.
// Where the bots had come to is forgotten: their platforms will be new ones.
func fill(ctx context.Context, dir string, bots []string, rows, lanes int) (took time.Duration, bytes int64, err error) {
	began := time.Now()
	db, err := sql.Open("sqlite3", "file:"+databaseOf(dir)+"?_journal_mode=WAL&_synchronous=OFF")
	if err != nil {
		return 0, 0, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	const stamp = `strftime('%Y-%m-%dT%H:%M:%S.000000Z', 'now', '-' || (n % 72000) || ' seconds')`
	count := func(n int) string {
		return fmt.Sprintf(`WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n < %d) `, n)
	}
	bot := fmt.Sprintf(`CASE n %% %d %% 2 WHEN 0 THEN '%s' ELSE '%s' END, `, max(lanes, 1), bots[0], bots[len(bots)-1])
	for _, q := range []string{
		`PRAGMA cache_size = -200000`,
		`BEGIN`,
		`INSERT INTO lane (key, ver, pending, not_before, epoch) ` + count(lanes) + `SELECT 'session:f' || n, 9, 0, '', 9 FROM c`,
		`INSERT INTO sessions (id, title, created_at, last_accessed, user_id, working_directory, vault_root) ` + count(lanes) +
			`SELECT 'f' || n, 'A conversation', ` + stamp + `, ` + stamp + `, n + 1000, '', '' FROM c`,
		`INSERT INTO chats (bot, chat, session_id, updated_at) ` + count(lanes) + `SELECT ` + bot + `'f' || n, 'f' || n, ` + stamp + ` FROM c`,
		`INSERT INTO inbox (bot, update_id, chat, lane, kind, message_id, sender, trust, state, run, attempts, sent_at, received_at) ` + count(rows) +
			`SELECT ` + bot + fmt.Sprintf(`'f:' || n, 'f' || (n %% %d), 'session:f' || (n %% %d), 'message', n, 'filled', 'sandboxed', 'done', 'run-' || n, 1, `, lanes, lanes) +
			stamp + `, ` + stamp + ` FROM c`,
		`INSERT INTO outbox (bot, chat, key, ordinal, body, state, attempts, platform_message_id, created_at, sent_at) ` + count(rows) +
			`SELECT ` + bot + fmt.Sprintf(`'f' || (n %% %d), 'run:run-' || n, 0, '{}', 'sent', 1, n, `, lanes) + stamp + `, ` + stamp + ` FROM c`,
		`INSERT INTO runs (id, session_id, attempt, state, bot, chat, user_id, model, started, ended) ` + count(rows) +
			fmt.Sprintf(`SELECT 'run-' || n, 'f' || (n %% %d), 1, 'done', %s'f' || (n %% %d), 1, 'local/quote', `, lanes, bot, lanes) + stamp + `, ` + stamp + ` FROM c`,
		`DELETE FROM cursors`,
		`COMMIT`,
		`PRAGMA wal_checkpoint(TRUNCATE)`,
	} {
		if lanes == 0 {
			break
		}
		if _, err := db.ExecContext(ctx, q); err != nil {
			return 0, 0, fmt.Errorf("fill the database: %w", err)
		}
	}
	var pages, size int64
	if err := db.QueryRowContext(ctx, `PRAGMA page_count`).Scan(&pages); err != nil {
		return 0, 0, err
	}
	if err := db.QueryRowContext(ctx, `PRAGMA page_size`).Scan(&size); err != nil {
		return 0, 0, err
	}
	return time.Since(began), pages * size, nil
}
