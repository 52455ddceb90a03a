-- +goose Up
-- Conversations by what the panel filters them by: those that failed last, and those of a group.
CREATE INDEX runs_failed ON runs(ended DESC) WHERE state = 'error';
CREATE INDEX chats_place ON chats(bot, place) WHERE place <> '';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
