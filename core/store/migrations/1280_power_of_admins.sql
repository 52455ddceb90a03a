-- +goose Up
-- ------------------------------------------------------------- web/auth, pairing
-- Who made a key: it ends when they are no admin any more.
ALTER TABLE api_keys ADD COLUMN made_by INTEGER NOT NULL DEFAULT 0;   -- 0 = the program
UPDATE api_keys SET made_by = user_id;
UPDATE api_keys SET made_by = (SELECT max(a.user_id) FROM audit_events a WHERE a.action = 'key.create' AND a.subject = api_keys.id)
    WHERE id IN (SELECT a.subject FROM audit_events a WHERE a.action = 'key.create' AND a.user_id > 1);

-- What admins left who are none any more: keys in the name of others, and invitations.
DELETE FROM api_keys WHERE made_by > 1 AND made_by <> user_id
    AND made_by NOT IN (SELECT user_id FROM admin_accounts WHERE role = 'admin')
    AND made_by NOT IN (SELECT k.user_id FROM api_keys k);
DELETE FROM invites WHERE "by" > 1 AND "by" NOT IN (SELECT user_id FROM admin_accounts WHERE role = 'admin');

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
