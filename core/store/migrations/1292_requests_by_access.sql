-- +goose Up
-- ---------------------------------------------------------------------- pairing
-- Earlier versions left the request of a user as revoked whose access was given again in
-- another way: it is approved, as it is now, and keeps when the access was lost.
CREATE TABLE requests_given_again AS SELECT r.id, a.trust_level, a.at, a."by" FROM pairing_requests r
    JOIN identities i ON i.platform = r.platform AND i.platform_user_id = r.platform_user_id
    JOIN access a ON a.user_id = i.user_id AND a.bot = r.bot AND a.scope = r.scope AND a.place = r.place
    WHERE r.status = 'denied' AND r.blocked = 0 AND (coalesce(r.approved_trust_level, '') <> '' OR r.expires_at <> '' AND r.expires_at <= r.resolved_at);

-- They turned only the newest request of a user into a revoked one, or added a row for one
-- place. The others stayed approved, without access: they were revoked with it.
CREATE TABLE requests_revoked AS SELECT r.id, max(d.resolved_at) AS at, max(d.resolved_by) AS "by", max(coalesce(d.approved_trust_level, '')) AS everywhere FROM pairing_requests r
    JOIN pairing_requests d ON d.platform = r.platform AND d.platform_user_id = r.platform_user_id AND d.bot = r.bot
        AND d.status = 'denied' AND d.blocked = 0 AND d.resolved_at >= r.resolved_at
        AND (coalesce(d.approved_trust_level, '') <> '' OR d.expires_at <> '' AND d.expires_at <= d.resolved_at AND d.scope = r.scope AND d.place = r.place)
    WHERE r.status = 'approved' AND NOT EXISTS (SELECT 1 FROM identities i JOIN access a ON a.user_id = i.user_id
        WHERE i.platform = r.platform AND i.platform_user_id = r.platform_user_id AND a.bot = r.bot AND a.scope = r.scope AND a.place = r.place)
    GROUP BY r.id;

UPDATE pairing_requests SET status = 'approved',
        expires_at = (SELECT CASE WHEN pairing_requests.resolved_at < g.at THEN pairing_requests.resolved_at ELSE g.at END FROM requests_given_again g WHERE g.id = pairing_requests.id),
        approved_trust_level = (SELECT g.trust_level FROM requests_given_again g WHERE g.id = pairing_requests.id),
        resolved_at = (SELECT g.at FROM requests_given_again g WHERE g.id = pairing_requests.id),
        resolved_by = (SELECT g."by" FROM requests_given_again g WHERE g.id = pairing_requests.id)
    WHERE id IN (SELECT g.id FROM requests_given_again g);

-- The request itself is revoked, not the row beside it.
DELETE FROM pairing_requests WHERE status = 'denied' AND blocked = 0 AND created_at = resolved_at AND expires_at = resolved_at
    AND EXISTS (SELECT 1 FROM requests_revoked v JOIN pairing_requests r ON r.id = v.id WHERE v.at = pairing_requests.resolved_at
        AND r.platform = pairing_requests.platform AND r.platform_user_id = pairing_requests.platform_user_id
        AND r.bot = pairing_requests.bot AND r.scope = pairing_requests.scope AND r.place = pairing_requests.place);
UPDATE pairing_requests SET status = 'denied',
        approved_trust_level = (SELECT CASE WHEN v.everywhere <> '' THEN coalesce(nullif(pairing_requests.approved_trust_level, ''), 'sandboxed') END FROM requests_revoked v WHERE v.id = pairing_requests.id),
        resolved_at = (SELECT v.at FROM requests_revoked v WHERE v.id = pairing_requests.id),
        expires_at = (SELECT v.at FROM requests_revoked v WHERE v.id = pairing_requests.id),
        resolved_by = (SELECT v."by" FROM requests_revoked v WHERE v.id = pairing_requests.id)
    WHERE id IN (SELECT v.id FROM requests_revoked v);
DROP TABLE requests_given_again;
DROP TABLE requests_revoked;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
