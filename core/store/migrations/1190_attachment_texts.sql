-- +goose Up
-- ---------------------------------------------------------------- core/attach
-- What was read of a file for the turn that it came to; NULL: its text was not read.
ALTER TABLE attachments ADD COLUMN page_count INTEGER;  -- of a PDF
ALTER TABLE attachments ADD COLUMN word_count INTEGER;  -- of the text
ALTER TABLE attachments ADD COLUMN truncated INTEGER;   -- 1: the model was given less than the whole text
ALTER TABLE attachments ADD COLUMN preview TEXT;        -- the first 200 characters, encrypted
CREATE INDEX idx_attach_conv ON attachments(session_id);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
