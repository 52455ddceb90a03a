-- +goose Up
-- ---------------------------------------------------------------- core/session
-- Imported conversations whose sessions were deleted: another import leaves them out.
CREATE TABLE deleted_imports (
    user_id     INTEGER NOT NULL,
    source      TEXT NOT NULL,               -- of the session
    original_id TEXT NOT NULL,               -- that it had where it came from
    at          TEXT NOT NULL,               -- when it was deleted
    PRIMARY KEY (user_id, source, original_id)
);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
