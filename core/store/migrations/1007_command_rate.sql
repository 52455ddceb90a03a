-- +goose Up
-- ------------------------------------------------------------------ core/queue
-- How many commands a person has sent lately is asked at each of them.
CREATE INDEX inbox_commands ON inbox(bot, sender, sent_at) WHERE kind = 'command' AND counts = 1;
