-- +goose Up
-- -------------------------------------------------------------------- sessions
-- The model that was chosen for the session; '' is none. model is the one that
-- answered last.
ALTER TABLE sessions ADD COLUMN chosen_model TEXT NOT NULL DEFAULT '';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
