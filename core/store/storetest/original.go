package storetest

import (
	"database/sql"
	"testing"
)

// The original system's tables, as its description gives them.
const (
	originalSessions = `CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY,
    title TEXT,
    module TEXT NOT NULL DEFAULT 'chat',
    source TEXT NOT NULL DEFAULT 'parachute',
    working_directory TEXT,
    vault_root TEXT,
    model TEXT,
    message_count INTEGER DEFAULT 0,
    archived INTEGER DEFAULT 0,
    created_at TEXT NOT NULL,
    last_accessed TEXT NOT NULL,
    continued_from TEXT,
    metadata TEXT
);
CREATE INDEX IF NOT EXISTS idx_sessions_module ON sessions(module);
CREATE INDEX IF NOT EXISTS idx_sessions_archived ON sessions(archived);
CREATE INDEX IF NOT EXISTS idx_sessions_source ON sessions(source);
CREATE INDEX IF NOT EXISTS idx_sessions_last_accessed ON sessions(last_accessed DESC);
CREATE TABLE IF NOT EXISTS session_tags (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (session_id, tag)
);
CREATE INDEX IF NOT EXISTS idx_session_tags_tag ON session_tags(tag);
CREATE TABLE IF NOT EXISTS session_contexts (
    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    folder_path TEXT NOT NULL,
    added_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (session_id, folder_path)
);
CREATE INDEX IF NOT EXISTS idx_session_contexts_session ON session_contexts(session_id);
CREATE INDEX IF NOT EXISTS idx_session_contexts_folder ON session_contexts(folder_path);
CREATE TABLE IF NOT EXISTS chunks (
    id TEXT PRIMARY KEY,
    content_id TEXT NOT NULL,
    content_type TEXT NOT NULL,
    field TEXT NOT NULL DEFAULT 'content',
    chunk_index INTEGER NOT NULL,
    chunk_text TEXT NOT NULL,
    embedding BLOB,
    created_at TEXT NOT NULL,
    UNIQUE(content_id, field, chunk_index)
);
CREATE INDEX IF NOT EXISTS idx_chunks_content_id ON chunks(content_id);
CREATE INDEX IF NOT EXISTS idx_chunks_content_type ON chunks(content_type);
CREATE TABLE IF NOT EXISTS index_manifest (
    content_id TEXT PRIMARY KEY,
    content_type TEXT NOT NULL,
    content_hash TEXT,
    title TEXT,
    indexed_at TEXT NOT NULL,
    chunk_count INTEGER NOT NULL,
    source_path TEXT,
    metadata TEXT
);
CREATE TABLE IF NOT EXISTS metadata (
    key TEXT PRIMARY KEY,
    value TEXT,
    updated_at TEXT NOT NULL
);`
	originalAgentType = `ALTER TABLE sessions ADD COLUMN agent_type TEXT;
CREATE INDEX IF NOT EXISTS idx_sessions_agent_type ON sessions(agent_type);`
	originalLedger = `CREATE TABLE IF NOT EXISTS schema_version (
    version INTEGER PRIMARY KEY,
    applied_at TEXT NOT NULL
);
INSERT OR IGNORE INTO schema_version (version, applied_at) VALUES (10, datetime('now'));`
	// The curator's columns are nowhere described: any must do.
	originalCurator = `CREATE TABLE curator_sessions (id TEXT PRIMARY KEY, parent_session_id TEXT REFERENCES sessions(id) ON DELETE CASCADE, "odd ""name" TEXT);
CREATE INDEX idx_curator_parent ON curator_sessions(parent_session_id);
CREATE TABLE curator_queue (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, status TEXT NOT NULL);`
	originalPairing = `CREATE TABLE IF NOT EXISTS pairing_requests (
    id TEXT PRIMARY KEY,
    platform TEXT NOT NULL,
    platform_user_id TEXT NOT NULL,
    platform_user_display TEXT,
    platform_chat_id TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending',
    approved_trust_level TEXT,
    created_at TEXT NOT NULL,
    resolved_at TEXT,
    resolved_by TEXT,
    UNIQUE(platform, platform_user_id, status)
);
CREATE INDEX IF NOT EXISTS idx_pairing_requests_status ON pairing_requests(status);
CREATE INDEX IF NOT EXISTS idx_pairing_requests_platform ON pairing_requests(platform, platform_user_id);`
)

// What the original system's program adds at its start, beyond its description:
// columns for versions 11 and 12, and indexes. Its ledger has row 10 only.
const (
	productIndexes = `CREATE INDEX IF NOT EXISTS idx_sessions_created_at ON sessions(created_at DESC);
CREATE INDEX IF NOT EXISTS idx_manifest_type ON index_manifest(content_type);
CREATE INDEX IF NOT EXISTS idx_manifest_indexed ON index_manifest(indexed_at DESC);`
	productTrust = `ALTER TABLE sessions ADD COLUMN trust_level TEXT DEFAULT 'full';
ALTER TABLE sessions ADD COLUMN linked_bot_platform TEXT;
ALTER TABLE sessions ADD COLUMN linked_bot_chat_id TEXT;
ALTER TABLE sessions ADD COLUMN linked_bot_chat_type TEXT;
CREATE INDEX IF NOT EXISTS idx_sessions_trust_level ON sessions(trust_level);
CREATE INDEX IF NOT EXISTS idx_sessions_linked_bot ON sessions(linked_bot_platform, linked_bot_chat_id);`
)

// Product makes an empty database as the original system's program does at
// version 11 or 12, at path, and leaves it open.
func Product(t testing.TB, path string, version int) *sql.DB {
	t.Helper()
	db := Original(t, path, version)
	if _, err := db.Exec(productIndexes + productTrust + `DELETE FROM schema_version WHERE version > 10`); err != nil {
		t.Fatal(err)
	}
	return db
}

// Original makes an empty database of the original system's version (9 to 12)
// at path and leaves it open, without foreign keys, as that system does.
func Original(t testing.TB, path string, version int) *sql.DB {
	t.Helper()
	SQLiteOnly(t, "the original system's databases are files")
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	ddl := originalSessions
	if version >= 10 {
		ddl += originalAgentType + originalLedger
	}
	if version <= 10 {
		ddl += originalCurator
	}
	if version >= 11 {
		ddl += `INSERT INTO schema_version VALUES (11, datetime('now'));`
	}
	if version >= 12 {
		ddl += originalPairing + `INSERT INTO schema_version VALUES (12, datetime('now'));`
	}
	if _, err := db.Exec(ddl); err != nil {
		t.Fatal(err)
	}
	return db
}
