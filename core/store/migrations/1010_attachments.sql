-- +goose Up
-- ----------------------------------------------------------- core/orchestrator
-- Whose a file in the vault is that came with a message.
CREATE TABLE attachments (
    path       TEXT PRIMARY KEY,            -- in the vault
    user_id    INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    run        TEXT NOT NULL,
    at         TEXT NOT NULL
);
CREATE INDEX attachments_user ON attachments(user_id);
CREATE INDEX runs_user ON runs(user_id);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
