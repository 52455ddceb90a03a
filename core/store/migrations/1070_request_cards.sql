-- +goose Up
-- -------------------------------------------------------------------- pairing
-- How often the sender edited messages that are held, and when the messages that show
-- the request to the owner were last edited; whether they show an older text.
ALTER TABLE pairing_requests ADD COLUMN edits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pairing_requests ADD COLUMN card_at TEXT NOT NULL DEFAULT '';
ALTER TABLE pairing_requests ADD COLUMN card_stale INTEGER NOT NULL DEFAULT 0;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
