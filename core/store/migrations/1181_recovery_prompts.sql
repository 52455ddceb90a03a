-- +goose Up
-- ---------------------------------------------------------------- core/memory
-- What a person's memory has for a model that knows nothing of it. The text is encrypted.
CREATE TABLE recovery_prompts (
    prompt_id        TEXT PRIMARY KEY,
    model_id         TEXT NOT NULL,
    user_id          INTEGER NOT NULL,
    prompt_text      TEXT NOT NULL,
    generated_at     TEXT NOT NULL,
    corrections_hash TEXT NOT NULL,           -- of the corrections that it is made of
    UNIQUE (user_id, model_id)
);
CREATE INDEX idx_recovery_generated ON recovery_prompts(generated_at);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
