-- +goose Up
-- --------------------------------------------------------------------- web/auth
-- Earlier versions let an admin rotate the key of another user, whose secret they had from
-- then on. 1280 read only who made a key: who rotated it last counts as who made it. It also
-- took whoever had a key of any scope for an admin.
UPDATE api_keys SET made_by = (SELECT a.user_id FROM audit_events a
        WHERE a.id = (SELECT max(b.id) FROM audit_events b WHERE b.action IN ('key.create', 'key.rotate') AND b.subject = api_keys.id))
    WHERE id IN (SELECT a.subject FROM audit_events a WHERE a.action = 'key.rotate' AND a.user_id > 0);

-- The secret before a rotation goes on for a time: not that of a former admin.
UPDATE api_keys SET old_sha256 = '', old_expires_at = '' WHERE old_sha256 <> '' AND EXISTS (SELECT 1 FROM audit_events a
    WHERE a.action IN ('key.create', 'key.rotate') AND a.subject = api_keys.id AND a.user_id > 1 AND a.user_id <> api_keys.user_id
        AND a.user_id NOT IN (SELECT user_id FROM admin_accounts WHERE role = 'admin')
        AND a.user_id NOT IN (SELECT k.user_id FROM api_keys k WHERE ' ' || k.scopes || ' ' LIKE '% admin %'));
DELETE FROM api_keys WHERE made_by > 1 AND made_by <> user_id
    AND made_by NOT IN (SELECT user_id FROM admin_accounts WHERE role = 'admin')
    AND made_by NOT IN (SELECT k.user_id FROM api_keys k WHERE ' ' || k.scopes || ' ' LIKE '% admin %');

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
