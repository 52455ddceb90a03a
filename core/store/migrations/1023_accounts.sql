-- +goose Up
-- ----------------------------------------------------------- web/account, web/auth
-- role is admin or viewer. signed_in_at is the last sign-in; '' is never, or
-- before this was stored, as it is for created_at.
ALTER TABLE admin_accounts ADD COLUMN role TEXT NOT NULL DEFAULT 'admin';
ALTER TABLE admin_accounts ADD COLUMN created_at TEXT NOT NULL DEFAULT '';
ALTER TABLE admin_accounts ADD COLUMN signed_in_at TEXT NOT NULL DEFAULT '';

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
