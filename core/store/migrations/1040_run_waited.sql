-- +goose Up
-- ------------------------------------------------------------------------ runs
-- Milliseconds that a run waited for people: approvals of its tool calls and
-- answers to its questions.
ALTER TABLE runs ADD COLUMN waited_ms INTEGER NOT NULL DEFAULT 0;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
