-- +goose Up
-- ---------------------------------------------------------------------- pairing
-- A denied request whose user may ask at once: the time of the decision stays as it is.
ALTER TABLE pairing_requests ADD COLUMN cooled INTEGER NOT NULL DEFAULT 0;

CREATE TABLE blocks_made AS SELECT platform || ':' || platform_user_id AS account, bot, at, "by" FROM blocks WHERE took = ''
    UNION SELECT subject, CASE WHEN detail LIKE '{"bot":"%"}' THEN substr(detail, 9, length(detail) - 10) ELSE '' END, at,
        CASE user_id WHEN 0 THEN 'the gateway' WHEN 1 THEN 'operator' ELSE 'user ' || user_id END || CASE WHEN via <> '' THEN ' via ' || via ELSE '' END
    FROM audit_events WHERE action = 'access.block';

-- Earlier versions ended a cool-off by an earlier time of the decision.
UPDATE pairing_requests SET cooled = 1, expires_at = CASE WHEN expires_at <> '' AND expires_at <= resolved_at THEN created_at ELSE expires_at END, resolved_at = created_at
    WHERE status = 'denied' AND resolved_at < created_at;

-- They left a request approved whose access a block had taken: it was revoked by that block.
CREATE TABLE lost_by_blocks AS SELECT r.id, max(b.at) AS at FROM pairing_requests r
    JOIN blocks_made b ON b.account = r.platform || ':' || r.platform_user_id AND b.bot IN (r.bot, '*') AND b.at >= r.resolved_at
    WHERE r.status = 'approved'
        AND NOT EXISTS (SELECT 1 FROM blocks s WHERE s.platform = r.platform AND s.platform_user_id = r.platform_user_id AND s.took <> '')
        AND NOT EXISTS (SELECT 1 FROM identities i JOIN access a ON a.user_id = i.user_id
            WHERE i.platform = r.platform AND i.platform_user_id = r.platform_user_id AND a.bot = r.bot AND a.scope = r.scope AND a.place = r.place)
    GROUP BY r.id;
UPDATE pairing_requests SET status = 'denied', cooled = 1, approved_trust_level = coalesce(nullif(approved_trust_level, ''), 'sandboxed'),
        resolved_at = (SELECT l.at FROM lost_by_blocks l WHERE l.id = pairing_requests.id),
        expires_at = (SELECT l.at FROM lost_by_blocks l WHERE l.id = pairing_requests.id),
        resolved_by = (SELECT max(b."by") FROM lost_by_blocks l JOIN blocks_made b ON b.at = l.at
            WHERE l.id = pairing_requests.id AND b.account = pairing_requests.platform || ':' || pairing_requests.platform_user_id AND b.bot IN (pairing_requests.bot, '*'))
    WHERE id IN (SELECT l.id FROM lost_by_blocks l);
DROP TABLE lost_by_blocks;
DROP TABLE blocks_made;

-- 1292 could name someone else as who revoked.
CREATE TABLE revoked_by AS SELECT r.id, max(CASE e.user_id WHEN 0 THEN 'the gateway' WHEN 1 THEN 'operator' ELSE 'user ' || e.user_id END || CASE WHEN e.via <> '' THEN ' via ' || e.via ELSE '' END) AS "by"
    FROM pairing_requests r JOIN identities i ON i.platform = r.platform AND i.platform_user_id = r.platform_user_id
    JOIN audit_events e ON e.at = r.resolved_at AND e.action IN ('access.revoke', 'access.remove') AND e.subject = '' || i.user_id
    WHERE r.status = 'denied' AND r.expires_at = r.resolved_at GROUP BY r.id;
UPDATE pairing_requests SET resolved_by = (SELECT v."by" FROM revoked_by v WHERE v.id = pairing_requests.id) WHERE id IN (SELECT v.id FROM revoked_by v);
DROP TABLE revoked_by;

-- It also forgot that some had been told of the revocation.
CREATE TABLE told AS SELECT r.id, max(o.created_at) AS at FROM pairing_requests r
    JOIN outbox o ON o.bot = r.bot AND o.chat = r.platform_chat_id AND o.key LIKE 'pair:%:revoked-%' AND o.created_at > r.resolved_at
    WHERE r.status = 'denied' AND r.expires_at = r.resolved_at AND r.replied_at <= r.resolved_at AND r.scope = 'dm' GROUP BY r.id;
UPDATE pairing_requests SET replied_at = (SELECT t.at FROM told t WHERE t.id = pairing_requests.id) WHERE id IN (SELECT t.id FROM told t);
DROP TABLE told;

-- ---------------------------------------------------------------------- content keys
-- Earlier versions encrypted these without rewriting the file: the next start rewrites it.
INSERT INTO metadata (key, value, updated_at) SELECT 'content_keys.compact', '1', max(at) FROM admin_totp
    WHERE NOT EXISTS (SELECT 1 FROM metadata m WHERE m.key = 'content_keys.compact') HAVING count(*) > 0;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
