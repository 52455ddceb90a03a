-- +goose Up
-- ------------------------------------------------------- core/memory/allowance
-- Tokens that the memory used on a day (UTC). user_id is 0 for what is of no user, guest is 1
-- for messages of guests.
CREATE TABLE memory_tokens (
    day     TEXT    NOT NULL,
    user_id INTEGER NOT NULL,
    guest   INTEGER NOT NULL,
    tokens  INTEGER NOT NULL,
    PRIMARY KEY (day, user_id, guest)
);
CREATE INDEX memory_tokens_user ON memory_tokens (user_id);
DELETE FROM metadata WHERE key = 'memory_budget';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
