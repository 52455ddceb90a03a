-- +goose Up
-- ------------------------------------------------------------------ core/usage
-- What a person and a bot have used today is asked before each call where a budget stands.
CREATE INDEX usage_user ON usage(user_id, at);
CREATE INDEX usage_bot ON usage(bot, at);
