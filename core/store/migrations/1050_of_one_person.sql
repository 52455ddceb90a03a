-- +goose Up
-- What of ten million rows is one person's is read from an index alone: 3,000 of them
-- lie in as many pages of the table.

-- ------------------------------------------------------------------ core/store
CREATE INDEX audit_user_action ON audit_events(user_id, action, at, id);

-- ------------------------------------------------------------------ core/usage
CREATE INDEX usage_person ON usage(user_id, at, state, model, input, output, cache_read, cache_write, micro_usd);
DROP INDEX usage_user;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
