-- +goose Up
-- --------------------------------------------------------------------- pairing
-- Whether a denied request was decided by a block.
ALTER TABLE pairing_requests ADD COLUMN blocked INTEGER NOT NULL DEFAULT 0;
UPDATE pairing_requests SET blocked = 1 WHERE status = 'denied' AND EXISTS (SELECT 1 FROM blocks b
    WHERE b.platform = pairing_requests.platform AND b.platform_user_id = pairing_requests.platform_user_id AND b.at = pairing_requests.resolved_at);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
