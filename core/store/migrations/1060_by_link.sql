-- +goose Up
-- ----------------------------------------------------------------- web/auth
-- Whether someone signed in to the account by a link (the demo's) since its
-- password was last reset: its turns run although no password was chosen.
ALTER TABLE admin_accounts ADD COLUMN by_link INTEGER NOT NULL DEFAULT 0;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
