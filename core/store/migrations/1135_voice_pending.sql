-- +goose Up
-- --------------------------------------------------------- core/voice/pending
-- Recordings in journals that have no text yet: the transcription failed, or none was set up.
CREATE TABLE voice_pending (
    id      INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL,
    entry   TEXT NOT NULL,                  -- of the journal
    path    TEXT NOT NULL,                  -- of the recording, as the entry has it
    tries   INTEGER NOT NULL DEFAULT 0,
    due     TEXT NOT NULL,
    created TEXT NOT NULL,
    UNIQUE (entry, path)
);
CREATE INDEX voice_pending_due ON voice_pending(due);
CREATE INDEX voice_pending_user ON voice_pending(user_id);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
