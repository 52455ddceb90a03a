-- +goose Up
-- --------------------------------------------------------- core/voice/pending
-- Voice messages of chats wait for their text as well: bot is '' for those of journals, and entry
-- is '' for those of chats.
ALTER TABLE voice_pending ADD COLUMN bot      TEXT NOT NULL DEFAULT '';
ALTER TABLE voice_pending ADD COLUMN chat     TEXT NOT NULL DEFAULT '';
ALTER TABLE voice_pending ADD COLUMN thread   TEXT NOT NULL DEFAULT '';
ALTER TABLE voice_pending ADD COLUMN place    TEXT NOT NULL DEFAULT '';
ALTER TABLE voice_pending ADD COLUMN message  TEXT NOT NULL DEFAULT '';  -- the platform's id of the message
ALTER TABLE voice_pending ADD COLUMN platform TEXT NOT NULL DEFAULT '';  -- of the sender
ALTER TABLE voice_pending ADD COLUMN sender   TEXT NOT NULL DEFAULT '';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
