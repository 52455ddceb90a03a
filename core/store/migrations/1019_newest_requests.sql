-- +goose Up
-- --------------------------------------------------------------------- pairing
-- Databases made by the first form of 1018 lack this index, which it contained later.
CREATE INDEX IF NOT EXISTS pairing_requests_created ON pairing_requests(created_at DESC, id);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
