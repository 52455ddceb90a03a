-- +goose Up
-- -------------------------------------------------------------------- web/auth
ALTER TABLE api_keys ADD COLUMN expires_at TEXT NOT NULL DEFAULT ''; -- '' = without end

-- ------------------------------------------------------------------ core/store
-- The log is asked by who did it, what was done, and what it was done to, newest first.
CREATE INDEX audit_user ON audit_events(user_id, at, id);
CREATE INDEX audit_action ON audit_events(action, at, id);
CREATE INDEX audit_subject ON audit_events(subject, at, id);
