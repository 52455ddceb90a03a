package main

import (
	"strconv"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store/storetest"
)

// background is the time in which the gateway itself sends about one statement.
const background = 100 * time.Millisecond

// maxStatements is what a page of the panel may cost, its menu included.
const maxStatements = 23

// rows puts n rows of everything that the panel lists into the database, from
// the first on; those that are there already stay.
func (w *world) rows(first, n int) {
	w.t.Helper()
	now, later := core.Stamp(time.Now()), core.Stamp(time.Now().Add(time.Hour))
	numbers := `WITH RECURSIVE k(i) AS (SELECT ` + strconv.Itoa(first) + ` UNION ALL SELECT i + 1 FROM k WHERE i < ` + strconv.Itoa(first+n-1) + `) `
	ask := `'{"session":"` + manySession + `","user":2,"trust":"vault","bot":"telegram","request":{"id":"ask-' || i || '","tool_name":"Write","kind":"write","path":"a.md","expires_at":"` + later + `"}}'`
	for _, q := range []string{
		`INSERT INTO users (id, display, role, created_at) ` + numbers + `SELECT 1000 + i, 'Person ' || i, 'guest', '` + now + `' FROM k`,
		`INSERT INTO identities (platform, platform_user_id, user_id, display, created_at) ` + numbers + `SELECT 'telegram', 1000 + i, 1000 + i, 'Account ' || i, '` + now + `' FROM k`,
		`INSERT INTO access (bot, user_id, scope, trust_level, at) ` + numbers + `SELECT 'telegram', 1000 + i, 'dm', 'vault', '` + now + `' FROM k`,
		`INSERT INTO access (bot, user_id, scope, place, trust_level, at) ` + numbers + `SELECT 'telegram', 1001, 'group', 'g' || i, 'vault', '` + now + `' FROM k`,
		`INSERT INTO blocks (platform, platform_user_id, bot, at) ` + numbers + `SELECT 'telegram', 1000 + i, '*', '` + now + `' FROM k`,
		`INSERT INTO places (bot, place, name, enabled, at) ` + numbers + `SELECT 'telegram', 'g' || i, 'Group ' || i, i % 2, '` + now + `' FROM k`,
		`INSERT INTO invites (id, hash, bot, trust_level, scope, expires_at, uses_left, "by", at) ` + numbers + `SELECT 'i' || i, 'h' || i, 'telegram', 'vault', 'dm', '` + later + `', 1, 1, '` + now + `' FROM k`,
		`INSERT INTO pairing_requests (id, platform, platform_user_id, platform_chat_id, status, created_at, bot, code, code_expires_at, expires_at, first_message)
			` + numbers + `SELECT 'p' || i, 'telegram', 500000 + i, 500000 + i, 'pending', '` + now + `', 'telegram', 'C' || i, '` + later + `', '` + later + `', 'hello' FROM k`,
		`INSERT INTO pairing_requests (id, platform, platform_user_id, platform_chat_id, status, approved_trust_level, created_at, resolved_at, resolved_by, bot)
			` + numbers + `SELECT 'd' || i, 'telegram', 600000 + i, 600000 + i, 'approved', 'vault', '` + now + `', '` + now + `', 'operator via panel', 'telegram' FROM k`,
		`INSERT INTO sessions (id, title, source, message_count, created_at, last_accessed, agent_type, user_id, trust_level)
			` + numbers + `SELECT printf('00000000-0000-4000-8000-%012d', i), 'Conversation ' || i, 'telegram', 8, '` + now + `', '` + now + `', 'vault-agent', 1 + (i % 2) * 1000, 'sandboxed' FROM k`,
		`INSERT INTO projects (project_id, user_id, name, name_key, created_at) ` + numbers + `SELECT 'pr' || i, 1 + (i % 2) * 1000, 'Project ' || i, 'project ' || i, '` + now + `' FROM k`,
		`UPDATE sessions SET project_id = 'pr1' WHERE project_id IS NULL`,
		`INSERT INTO attachments (path, user_id, session_id, run, at) ` + numbers + `SELECT 'a' || i, 1001, '` + manySession + `', 'run-' || i, '` + now + `' FROM k`,
		`INSERT INTO session_tags (session_id, tag, created_at) ` + numbers + `SELECT printf('00000000-0000-4000-8000-%012d', i), 'tag' || i, '' FROM k`,
		`INSERT INTO session_tags (session_id, tag, created_at) ` + numbers + `SELECT '` + manySession + `', 'more' || i, '' FROM k`,
		`INSERT INTO runs (id, session_id, attempt, state, bot, chat, user_id, model, started, ended)
			` + numbers + `SELECT 'run-' || i, '` + manySession + `', 1, 'done', 'telegram', '7', 1001, 'local/quote', '` + now + `', '` + now + `' FROM k`,
		`INSERT INTO usage (at, run, session_id, user_id, bot, model, input, output, micro_usd)
			` + numbers + `SELECT '` + now + `', 'run-' || i, '` + manySession + `', 1000 + i, 'telegram', 'model/' || i, 900, 40, 2100 FROM k`,
		`INSERT INTO asks (id, kind, bot, chat, payload, created_at, expires_at) ` + numbers + `SELECT 'ask-' || i, 'permission', 'telegram', '7', ` + ask + `, '` + now + `', '` + later + `' FROM k`,
		`INSERT INTO asks (id, kind, bot, chat, payload, state, decision, decided_by, decided_at, created_at)
			` + numbers + `SELECT 'old-' || i, 'permission', 'telegram', '7', ` + ask + `, 'decided', 'granted', 'operator via panel', '` + now + `', '` + now + `' FROM k`,
		`INSERT INTO tool_grants (id, session_id, user_id, trust, kind, pattern, granted_by, created_at)
			` + numbers + `SELECT 'g' || i, '` + manySession + `', 1000 + i, 'vault', 'write', 'Notes/' || i || '/*', 'operator', '` + now + `' FROM k`,
		`INSERT INTO inbox (bot, update_id, chat, lane, kind, message_id, sender, payload, state, error, run, received_at)
			` + numbers + `SELECT 'telegram', 'dead:' || i, 'c' || i, 'dead', 'message', i, 1000 + i, '{"text":"x"}', 'dead', 'no answer', 'run-1', '` + now + `' FROM k`,
		`INSERT INTO inbox (bot, update_id, chat, lane, kind, message_id, sender, payload, state, request, received_at)
			` + numbers + `SELECT 'telegram', 'held:' || i, 'h' || i, 'held', 'message', i, 500000 + i, '{"text":"x"}', 'held', 'p' || i, '` + now + `' FROM k`,
		`INSERT INTO outbox (bot, chat, key, ordinal, body, state, created_at) ` + numbers + `SELECT 'telegram', 'c' || i, 'run:run-1', i, '{"text":"x"}', 'unknown', '` + now + `' FROM k`,
		`INSERT INTO app_sessions (session_id, status, version, pid, boot_id, started_at, heartbeat_at, ended_at) ` + numbers + `SELECT 's' || i, 'clean', 'dev', i, '', '` + now + `', '` + now + `', '` + now + `' FROM k`,
		`INSERT INTO error_reports (report_id, error_type, error_message, place, traceback, context, version, count, first_at, last_at)
			` + numbers + `SELECT 'e' || i, 'error', 'message ' || i, 'place', '', '{"bot":"telegram"}', 'dev', i, '` + now + `', '` + now + `' FROM k`,
		`INSERT INTO audit_events (at, user_id, via, action, subject) ` + numbers + `SELECT '` + now + `', 1000 + i, 'panel', 'access.revoke', i FROM k`,
		`INSERT INTO api_keys (id, label, sha256, user_id, trust_level, created_at) ` + numbers + `SELECT 'k' || i, 'Key ' || i, 'sha' || i, 1000 + i, 'vault', '` + now + `' FROM k`,
	} {
		w.exec(q)
	}
}

// manySession is a conversation of which there is a lot.
const manySession = "00000000-0000-4000-8000-000000000001"

// However many rows a page shows, it asks the database the same few questions:
// none for each row. What goes on besides only adds to a count, so that the
// least of several is the page's own.
func TestAPageOfThePanelCostsTheSameStatementsWhateverItShows(t *testing.T) {
	storetest.SQLiteOnly(t, "its rows are made in its words")
	t.Parallel()
	w := newWorld(t, nil)
	pages := []string{"/admin", "/admin/pairing", "/admin/pairing/invites", "/admin/people", "/admin/people?q=person", "/admin/people/1001", "/admin/chats", "/admin/chats?q=conversation",
		"/admin/chats?state=all&tag=tag7", "/admin/chats?user=1001", "/admin/chats?bot=telegram", "/admin/chats?state=failed", "/admin/chats?state=waiting", "/admin/chats/" + manySession, "/admin/chats/trace?run=run-1", "/admin/chats/trace?bot=telegram&id=dead:1", "/admin/approvals", "/admin/agents",
		"/admin/bots", "/admin/models", "/admin/queue", "/admin/settings", "/admin/settings?q=model", "/admin/settings/bots", "/admin/settings/models", "/admin/settings/limits", "/admin/settings/access", "/admin/settings/backups", "/admin/settings/variables", "/admin/audit", "/admin/reports", "/admin/talk", "/admin/journal", "/admin/daily", "/admin/import", "/admin/projects", "/admin/projects?q=project", "/admin/chats?project=pr1", "/admin/search?q=conversation&project=pr1"}
	b := w.browser()
	statements := func() int64 { return w.app.db.Statements() + w.app.db.Reads() }
	cost := func(page string, within func(took time.Duration) int64) (least int64) {
		for range 3 {
			before, begun := statements(), time.Now()
			b.page(page)
			if n := statements() - before - within(time.Since(begun)); least == 0 || n < least {
				least = n
			}
		}
		return least
	}
	exact := func(time.Duration) int64 { return 0 }
	others := func(took time.Duration) int64 { return int64(took / background) }
	w.rows(1, 10)
	few := map[string]int64{}
	for _, page := range pages {
		few[page] = cost(page, exact)
	}
	w.rows(11, 190)
	for _, page := range pages {
		many := cost(page, others)
		for try := 0; many > few[page] && try < 100; try++ { // something goes on besides, such as the indexing of the rows
			many = min(many, cost(page, others))
		}
		t.Logf("%-50s %d statements", page, many)
		if many > few[page] || many > maxStatements {
			t.Errorf("%s: %d statements with 200 rows of everything, %d with 10; want the same, and at most %d", page, many, few[page], maxStatements)
		}
	}
}
