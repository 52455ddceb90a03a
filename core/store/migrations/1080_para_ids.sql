-- +goose Up
-- ---------------------------------------------------------------- core/paraid
-- The ids of journal entries, conversations and other entries in the vault's files,
-- unique over all of them. The file .parachute/ids.jsonl has the same rows.
CREATE TABLE para_ids (
    id         TEXT PRIMARY KEY,            -- 12 of a-z0-9; 6 or 8 from older files
    type       TEXT NOT NULL,               -- journal, chat, chat-log …
    path       TEXT NOT NULL,               -- the file in the vault; of a chat the session's id
    created_at TEXT NOT NULL,
    user_id    INTEGER NOT NULL DEFAULT 0   -- whose it is
);
CREATE INDEX para_ids_path ON para_ids(path, type);
CREATE INDEX para_ids_user ON para_ids(user_id);

-- --------------------------------------------------------------- core/session
ALTER TABLE sessions ADD COLUMN para_id TEXT NOT NULL DEFAULT '';
CREATE INDEX sessions_no_para_id ON sessions(id) WHERE para_id = '';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
