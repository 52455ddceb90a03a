-- +goose Up
-- ------------------------------------------------------------------ core/usage
-- Sums of a time, for charts: "5m|" or "1h|" and the stamp of its beginning.
CREATE TABLE rollups (
    bucket TEXT NOT NULL,
    series TEXT NOT NULL,                   -- name, a stroke, and what of it: "tokens|openai/gpt-5"
    value  INTEGER NOT NULL,
    PRIMARY KEY (bucket, series)
) WITHOUT ROWID;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
