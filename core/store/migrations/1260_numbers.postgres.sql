-- +goose Up
-- ------------------------------------------------------------------ core/queue
-- Nothing to do: an identity gives no number twice, whatever was deleted.
SELECT 1;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
