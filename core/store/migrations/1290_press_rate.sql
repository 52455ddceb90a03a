-- +goose Up
-- ------------------------------------------------------------------ core/queue
-- How often a person has pressed buttons and edited messages lately is asked at each of them.
CREATE INDEX inbox_presses ON inbox(bot, sender, sent_at) WHERE kind IN ('callback', 'edit') AND counts = 1;
