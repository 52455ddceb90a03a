package original

import (
	"fmt"
	"strings"
)

// adoptedWait is how long a request that waited in the original system, where
// requests never expire, waits here from the adoption on.
const adoptedWait = "+14 days"

// aside returns the name of a table of the original system during the adoption.
func aside(table string) string { return quoted("original_" + table) }

// kept returns the name of the table with the unchanged rows of table that do not
// fit into the new layout.
func kept(table string) string { return quoted("adopted_" + table) }

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// carriers move the rows of one table from aside into the baseline's table.
// ?1 is the time of the adoption. differs selects the rows that are also kept
// unchanged, because a value of them had to be changed.
var carriers = []struct{ table, differs, move string }{
	{"sessions",
		`id IS NULL OR typeof(id) = 'blob' OR adopt_time(created_at) IS NULL OR adopt_time(last_accessed) IS NULL
			OR NOT adopt_whole(source, metadata, {trust_level}, {linked_bot_platform}) OR typeof(coalesce(message_count, 0)) <> 'integer' OR coalesce(archived, 0) NOT IN (0, 1)`,
		`INSERT INTO sessions (id, title, module, source, working_directory, vault_root, model, message_count, archived, created_at,
			last_accessed, continued_from, agent_type, metadata, user_id, trust_level, title_source)
		SELECT coalesce(CAST(id AS TEXT), 'adopted-' || rowid || '-' || lower(hex(randomblob(8)))), title, module, source, working_directory,
			vault_root, model, CASE WHEN typeof(message_count) IN ('integer', 'real') THEN CAST(message_count AS INTEGER) ELSE 0 END,
			CASE WHEN typeof(archived) IN ('integer', 'real') THEN archived <> 0 ELSE lower(coalesce(archived, '')) = 'true' END,
			coalesce(adopt_time(created_at), adopt_time(last_accessed), ?1), coalesce(adopt_time(last_accessed), adopt_time(created_at), ?1),
			continued_from, {agent_type}, adopt_metadata(source, metadata, {trust_level}, {linked_bot_platform}),
			adopt_user(source, metadata, {trust_level}, {linked_bot_platform}), adopt_trust(source, metadata, {trust_level}, {linked_bot_platform}),
			CASE WHEN coalesce(title, '') = '' THEN 'default' ELSE 'user' END
		FROM {old} ORDER BY rowid`},
	{"session_tags", // the original did not enforce its foreign keys: a tag may be of no session
		`CAST(session_id AS TEXT) NOT IN (SELECT id FROM sessions) OR tag <> adopt_lower(tag) OR typeof(tag) = 'blob' OR adopt_time(created_at) IS NULL`,
		`INSERT INTO session_tags (session_id, tag, created_at)
		SELECT CAST(session_id AS TEXT), adopt_lower(tag), coalesce(adopt_time(created_at), ?1) FROM {old}
		WHERE CAST(session_id AS TEXT) IN (SELECT id FROM sessions) ORDER BY rowid
		ON CONFLICT (session_id, tag) DO NOTHING`},
	{"session_contexts",
		`CAST(session_id AS TEXT) NOT IN (SELECT id FROM sessions) OR adopt_time(added_at) IS NULL`,
		`INSERT INTO session_contexts (session_id, folder_path, added_at)
		SELECT CAST(session_id AS TEXT), folder_path, coalesce(adopt_time(added_at), ?1) FROM {old}
		WHERE CAST(session_id AS TEXT) IN (SELECT id FROM sessions) ORDER BY rowid`},
	{"chunks", `id IS NULL OR adopt_time(created_at) IS NULL`,
		`INSERT INTO chunks (id, content_id, content_type, field, chunk_index, chunk_text, embedding, created_at)
		SELECT coalesce(id, 'adopted-' || rowid || '-' || lower(hex(randomblob(8)))), content_id, content_type, field, chunk_index,
			chunk_text, embedding, coalesce(adopt_time(created_at), ?1) FROM {old} ORDER BY rowid`},
	{"index_manifest", `content_id IS NULL OR adopt_time(indexed_at) IS NULL OR (metadata IS NOT NULL AND adopt_json(metadata) IS NULL)`,
		`INSERT INTO index_manifest (content_id, content_type, content_hash, title, indexed_at, chunk_count, source_path, metadata)
		SELECT coalesce(content_id, 'adopted-' || rowid || '-' || lower(hex(randomblob(8)))), content_type, content_hash, title,
			coalesce(adopt_time(indexed_at), ?1), chunk_count, source_path, adopt_json(metadata) FROM {old} ORDER BY rowid`},
	{"metadata", `key IS NULL OR adopt_time(updated_at) IS NULL`,
		`INSERT INTO metadata (key, value, updated_at)
		SELECT coalesce(key, 'adopted-' || rowid || '-' || lower(hex(randomblob(8)))), value, coalesce(adopt_time(updated_at), ?1)
		FROM {old} ORDER BY rowid`},
	{"pairing_requests",
		`id IS NULL OR adopt_time(created_at) IS NULL OR (resolved_at IS NOT NULL AND adopt_time(resolved_at) IS NULL)
			OR status NOT IN ('pending', 'approved', 'denied') OR coalesce(platform_user_display, '') <> adopt_name(platform_user_display)
			OR 'blob' IN (typeof(id), typeof(platform), typeof(platform_user_id), typeof(platform_chat_id)) OR {twice}`,
		`INSERT INTO pairing_requests (id, platform, platform_user_id, platform_user_display, platform_chat_id, status, approved_trust_level,
			created_at, resolved_at, resolved_by, bot, scope, place, expires_at)
		SELECT coalesce(CAST(id AS TEXT), 'adopted-' || rowid || '-' || lower(hex(randomblob(8)))), CAST(platform AS TEXT),
			CAST(platform_user_id AS TEXT), adopt_name(platform_user_display), CAST(platform_chat_id AS TEXT),
			CASE WHEN {twice} OR status NOT IN ('pending', 'approved', 'denied') THEN 'expired' ELSE status END, approved_trust_level,
			coalesce(adopt_time(created_at), adopt_time(resolved_at), ?1), adopt_time(resolved_at), resolved_by, CAST(platform AS TEXT), 'dm', '',
			CASE WHEN status = 'pending' THEN adopt_time(strftime('%Y-%m-%dT%H:%M:%fZ', ?1, '` + adoptedWait + `')) ELSE '' END
		FROM {old} ORDER BY rowid`},
}

// twice is true for a request that waits although a later one of the same
// person does: the original's unique rule forbids it, where it is in force.
const twice = `(status = 'pending' AND EXISTS (SELECT 1 FROM {old} AS later WHERE later.platform = {old}.platform
	AND later.platform_user_id = {old}.platform_user_id AND later.status = 'pending' AND later.rowid > {old}.rowid))`

// people makes users, identities and access of those whose latest decision is an
// approval, so that no approved user becomes a stranger. Of two decisions at one
// time the denial counts. Users begin at 2: the operator is 1. None gets full
// trust in chat. A direct chat is known if its id is the user's.
var people = []string{
	`CREATE TABLE original_people AS
		SELECT 1 + row_number() OVER (ORDER BY at, platform, platform_user_id) AS user_id, * FROM (
			SELECT platform, platform_user_id, platform_user_display AS display, platform_chat_id AS chat, resolved_by, status,
				approved_trust_level AS level, coalesce(resolved_at, created_at) AS at,
				row_number() OVER (PARTITION BY platform, platform_user_id ORDER BY coalesce(resolved_at, created_at) DESC, status DESC, id DESC) AS n
			FROM pairing_requests WHERE status IN ('approved', 'denied')) WHERE n = 1 AND status = 'approved'`,
	`INSERT INTO users (id, display, role, created_at) SELECT user_id, display, 'guest', at FROM original_people`,
	`INSERT INTO identities (platform, platform_user_id, user_id, display, created_at)
		SELECT platform, platform_user_id, user_id, display, at FROM original_people`,
	`INSERT INTO access (bot, user_id, scope, place, trust_level, chat, "by", at)
		SELECT platform, user_id, 'dm', '', CASE WHEN level IN ('vault', 'full') THEN 'vault' ELSE 'sandboxed' END,
			CASE WHEN chat = platform_user_id THEN chat ELSE '' END, coalesce(nullif(resolved_by, ''), 'the original system'), at
		FROM original_people ORDER BY user_id`,
}

// chats give a session of a direct chat to the person who was approved there,
// and bind the chat to the latest of its sessions that is not archived, as the
// original system does. A chat that could be several users' is no one's.
var chats = []string{
	`CREATE TABLE original_chats AS
		SELECT CAST(s.id AS TEXT) AS id, p.platform, CAST(s.linked_bot_chat_id AS TEXT) AS chat, min(p.user_id) AS user_id
		FROM {old} s JOIN original_people p ON p.platform = CAST(s.linked_bot_platform AS TEXT)
			AND CAST(s.linked_bot_chat_id AS TEXT) IN (p.platform_user_id, p.chat)
		WHERE s.linked_bot_chat_type = 'dm' AND s.id IS NOT NULL GROUP BY s.id HAVING count(DISTINCT p.user_id) = 1`,
	`UPDATE sessions SET user_id = (SELECT c.user_id FROM original_chats c WHERE c.id = sessions.id) WHERE id IN (SELECT id FROM original_chats)`,
	`INSERT INTO chats (bot, chat, session_id, kind, updated_at)
		SELECT platform, chat, id, 'dm', last_accessed FROM (
			SELECT c.platform, c.chat, c.id, s.last_accessed, row_number() OVER (PARTITION BY c.platform, c.chat ORDER BY s.last_accessed DESC, c.id DESC) AS n
			FROM original_chats c JOIN sessions s ON s.id = c.id WHERE s.archived = 0) WHERE n = 1`,
	`UPDATE access SET chat = (SELECT c.chat FROM original_chats c WHERE c.platform = access.bot AND c.user_id = access.user_id ORDER BY c.chat LIMIT 1)
		WHERE chat = '' AND EXISTS (SELECT 1 FROM original_chats c WHERE c.platform = access.bot AND c.user_id = access.user_id)`,
	`DROP TABLE original_chats`,
}

const dropPeople = `DROP TABLE original_people`

// fill returns one of the statements above with the names of a table.
func fill(l layout, table, query string) string {
	for _, c := range []string{"agent_type", "trust_level", "linked_bot_platform"} {
		value := "NULL"
		if l.hasColumn(table, c) {
			value = c
		}
		query = strings.ReplaceAll(query, "{"+c+"}", value)
	}
	query = strings.ReplaceAll(query, "{twice}", twice)
	return strings.ReplaceAll(query, "{old}", aside(table))
}

// keep returns the statement that copies the rows of table that match where,
// unchanged, with their old row number.
func keep(l layout, table, where string) string {
	columns := make([]string, len(l.tables[table]))
	for i, c := range l.tables[table] {
		columns[i] = quoted(c)
	}
	return fmt.Sprintf(`CREATE TABLE %s AS SELECT rowid AS adopted_row, %s FROM %s WHERE %s`,
		kept(table), strings.Join(columns, ", "), aside(table), where)
}
