-- +goose Up
-- ---------------------------------------------------------------- core/session
-- A session that goes takes its aliases along, which without this index reads
-- all of them for each session.
CREATE INDEX session_aliases_session ON session_aliases(session_id);

-- ------------------------------------------------------------------ core/usage
-- Reservations that nobody has settled are looked for every hour, among all rows.
CREATE INDEX usage_reserved ON usage(at) WHERE state = 'reserved';

-- --------------------------------------------------------------------- pairing
-- The newest requests, whatever became of them.
CREATE INDEX pairing_requests_created ON pairing_requests(created_at DESC, id);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
