-- +goose Up
-- ----------------------------------------------------------- core/voice/quota
-- How much speech was transcribed for a user on a day.
CREATE TABLE voice_used (
    user_id INTEGER NOT NULL,
    day     TEXT NOT NULL,                  -- UTC
    millis  INTEGER NOT NULL,
    PRIMARY KEY (user_id, day)
);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
