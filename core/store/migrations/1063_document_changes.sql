-- +goose Up
-- --------------------------------------------------------- core/index/document
-- When the file's content or description changed (ctime); "": it was not noted yet.
ALTER TABLE index_manifest ADD COLUMN changed TEXT NOT NULL DEFAULT '';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
