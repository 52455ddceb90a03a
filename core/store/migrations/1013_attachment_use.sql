-- +goose Up
-- ----------------------------------------------------------- core/orchestrator
-- How much room attachments take, kept as they come and go, so that nobody
-- walks the disk for it. A size that is not known yet is looked up by upkeep.
ALTER TABLE attachments ADD COLUMN size INTEGER;
CREATE TABLE attachment_use (
    user_id INTEGER NOT NULL PRIMARY KEY,
    bytes   INTEGER NOT NULL
);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
