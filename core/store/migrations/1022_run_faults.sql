-- +goose Up
-- ------------------------------------------------------------------------ runs
-- Why a run failed, besides its code in error: JSON of runs.Fault, '' where
-- nothing else is known.
ALTER TABLE runs ADD COLUMN fault TEXT NOT NULL DEFAULT '';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
