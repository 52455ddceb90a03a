-- +goose Up
-- Archived conversations, newest first, as lists read them: where few or none are archived, and
-- where the archived ones are the oldest, the newest are not walked.
CREATE INDEX sessions_archived ON sessions(last_accessed DESC, id DESC) WHERE coalesce(archived, 0) = 1;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
