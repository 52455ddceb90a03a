// Package fill writes a past into the database of a gateway that does not run.
package fill

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// A Past is how much has happened before: finished messages with their replies
// and runs, known chats with their sessions, and rows of the audit log and as
// many of usage.
type Past struct{ Rows, Lanes, History int }

// Database writes a past into the database of a gateway that has made its tables
// and ended. Messages are a day old at most, so that the housekeeping has no
// reason to remove them. The chats are shared out among bots. Where the bots
// had come to is forgotten: their platforms will be new ones.
func Database(ctx context.Context, path string, bots []string, p Past) (took time.Duration, bytes int64, err error) {
	began := time.Now()
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_synchronous=OFF")
	if err != nil {
		return 0, 0, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute+time.Duration(p.History/1000)*400*time.Millisecond)
	defer cancel()
	texts := []string{`PRAGMA cache_size = -200000`}
	if p.Lanes > 0 {
		texts = append(texts, fillMessages(bots, p.Rows, p.Lanes)...)
	}
	for _, q := range texts {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return 0, 0, fmt.Errorf("fill the database: %w", err)
		}
	}
	if p.History > 0 {
		if err := fillHistory(ctx, db, p.History); err != nil {
			return 0, 0, fmt.Errorf("fill the audit log and usage: %w", err)
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

// count begins a statement that makes the rows 1 to n of c(n).
func count(n int) string {
	return fmt.Sprintf(`WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n < %d) `, n)
}

func fillMessages(bots []string, rows, lanes int) []string {
	const stamp = `strftime('%Y-%m-%dT%H:%M:%S.000000Z', 'now', '-' || (n % 72000) || ' seconds')`
	bot := fmt.Sprintf(`CASE n %% %d %% 2 WHEN 0 THEN '%s' ELSE '%s' END, `, max(lanes, 1), bots[0], bots[len(bots)-1])
	return []string{
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
	}
}

// fillHistory spreads the rows over 90 days, the newest last, as they come in
// life, among 1,000 users. Indexes are made when the rows are there.
func fillHistory(ctx context.Context, db *sql.DB, n int) error {
	rows, err := db.QueryContext(ctx, `SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name IN ('audit_events', 'usage') AND sql IS NOT NULL`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var drop, again []string
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			return err
		}
		drop, again = append(drop, `DROP INDEX `+name), append(again, text)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	stamp := fmt.Sprintf(`strftime('%%Y-%%m-%%dT%%H:%%M:%%S.000000Z', unixepoch() - 7776000 * (%d - n) / %d, 'unixepoch')`, n, n)
	texts := append(drop, `BEGIN`,
		`INSERT INTO audit_events (at, user_id, via, action, subject) `+count(n)+
			`SELECT `+stamp+`, 1 + n % 1000, 'api', CASE n % 3 WHEN 0 THEN 'session.update' WHEN 1 THEN 'tool.allow' ELSE 'key.create' END, 'f' || n % 100000 FROM c`,
		`INSERT INTO usage (at, run, session_id, user_id, bot, model, input, output, micro_usd) `+count(n)+
			`SELECT `+stamp+`, 'past-' || n, 'f' || n % 100000, 1 + n % 1000, CASE n % 2 WHEN 0 THEN 'telegram' ELSE 'discord' END, 'local/quote', 100, 100, 10 FROM c`,
		`COMMIT`)
	for _, q := range append(append(texts, again...), `PRAGMA wal_checkpoint(TRUNCATE)`) {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(strings.Fields(q)[:3], " "), err)
		}
	}
	return nil
}
