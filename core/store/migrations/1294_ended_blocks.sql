-- +goose Up
-- ---------------------------------------------------------------------- pairing
-- When the block ended that revoked this: it is listed as long as from a revocation.
ALTER TABLE pairing_requests ADD COLUMN noted_at TEXT NOT NULL DEFAULT '';

-- Blocks that ended, also those made of a request, and blocks of earlier versions that last.
-- One that was undone took nothing.
CREATE TABLE blocks_known AS SELECT subject AS account, CASE WHEN detail LIKE '{"bot":"%"}' THEN substr(detail, 9, length(detail) - 10) ELSE '' END AS bot, at,
        CASE user_id WHEN 0 THEN 'the gateway' WHEN 1 THEN 'operator' ELSE 'user ' || user_id END || CASE WHEN via <> '' THEN ' via ' || via ELSE '' END AS "by", action
    FROM audit_events WHERE action IN ('access.block', 'access.unblock')
    UNION SELECT r.platform || ':' || r.platform_user_id, r.bot, e.at,
        CASE e.user_id WHEN 0 THEN 'the gateway' WHEN 1 THEN 'operator' ELSE 'user ' || e.user_id END || CASE WHEN e.via <> '' THEN ' via ' || e.via ELSE '' END, e.action
    FROM audit_events e JOIN pairing_requests r ON r.id = e.subject WHERE e.action = 'pairing.block';
CREATE TABLE blocks_over AS SELECT b.account, b.bot, b.at, b."by", b.action, min(u.at) AS until FROM blocks_known b
    JOIN blocks_known u ON u.account = b.account AND u.bot = b.bot AND u.at > b.at
    WHERE b.action <> 'access.unblock' AND u.action = 'access.unblock' GROUP BY b.account, b.bot, b.at, b."by", b.action
    UNION SELECT platform || ':' || platform_user_id, bot, at, "by", 'lasts', '' FROM blocks WHERE took = '';
DROP TABLE blocks_known;
CREATE INDEX blocks_over_account ON blocks_over(account, at);

-- A block of a request took the access to the whole bot too: 1293 read only the others.
CREATE TABLE requests_lost AS SELECT r.id, max(b.at) AS at FROM pairing_requests r
    JOIN blocks_over b ON b.account = r.platform || ':' || r.platform_user_id AND b.bot = r.bot AND b.at >= r.resolved_at
    WHERE r.status = 'approved' AND b.action = 'pairing.block'
        AND NOT EXISTS (SELECT 1 FROM blocks s WHERE s.platform = r.platform AND s.platform_user_id = r.platform_user_id AND s.took <> '')
        AND NOT EXISTS (SELECT 1 FROM identities i JOIN access a ON a.user_id = i.user_id
            WHERE i.platform = r.platform AND i.platform_user_id = r.platform_user_id AND a.bot = r.bot AND a.scope = r.scope AND a.place = r.place)
    GROUP BY r.id;
CREATE INDEX requests_lost_id ON requests_lost(id);
UPDATE pairing_requests SET status = 'denied', cooled = 1, approved_trust_level = coalesce(nullif(approved_trust_level, ''), 'sandboxed'),
        resolved_at = (SELECT l.at FROM requests_lost l WHERE l.id = pairing_requests.id),
        expires_at = (SELECT l.at FROM requests_lost l WHERE l.id = pairing_requests.id),
        resolved_by = (SELECT max(b."by") FROM requests_lost l JOIN blocks_over b ON b.at = l.at
            WHERE l.id = pairing_requests.id AND b.account = pairing_requests.platform || ':' || pairing_requests.platform_user_id AND b.bot = pairing_requests.bot)
    WHERE id IN (SELECT l.id FROM requests_lost l);
DROP TABLE requests_lost;

-- Earlier versions dated a decision seven days before the end of a block, to the same part of
-- a second; 1293 made that the time of the request, where it was earlier. It counts from the block,
-- and from the end of one that was undone.
CREATE TABLE requests_dated AS SELECT d.id, max(d.at) AS at FROM (
    SELECT r.id, b.at FROM pairing_requests r
        JOIN blocks_over b ON b.account = r.platform || ':' || r.platform_user_id AND b.bot IN (r.bot, '*') AND b.at > r.resolved_at AND b.at >= r.created_at
        WHERE r.status = 'denied' AND b.action <> 'lasts'
            AND (substr(r.resolved_at, 11) = substr(b.until, 11) OR r.cooled = 1 AND r.resolved_at = r.created_at)
    UNION ALL SELECT r.id, e.at FROM pairing_requests r
        JOIN audit_events e ON e.subject = r.platform || ':' || r.platform_user_id AND e.at > r.resolved_at AND e.at >= r.created_at
        WHERE r.status = 'denied' AND e.action = 'access.undo' AND e.detail IN ('{"bot":"' || r.bot || '","was":"blocked"}', '{"bot":"*","was":"blocked"}')
            AND (substr(r.resolved_at, 11) = substr(e.at, 11) OR r.cooled = 1 AND r.resolved_at = r.created_at)) d
    GROUP BY d.id;
CREATE INDEX requests_dated_id ON requests_dated(id);
UPDATE pairing_requests SET cooled = 1,
        expires_at = CASE WHEN expires_at = resolved_at THEN (SELECT d.at FROM requests_dated d WHERE d.id = pairing_requests.id) ELSE expires_at END,
        resolved_at = (SELECT d.at FROM requests_dated d WHERE d.id = pairing_requests.id)
    WHERE id IN (SELECT d.id FROM requests_dated d);
DROP TABLE requests_dated;

-- What a block took that ended is listed from its end.
UPDATE pairing_requests SET noted_at = (SELECT max(b.until) FROM blocks_over b
        WHERE b.account = pairing_requests.platform || ':' || pairing_requests.platform_user_id AND b.bot IN (pairing_requests.bot, '*') AND b.at = pairing_requests.resolved_at)
    WHERE status = 'denied' AND blocked = 0 AND cooled = 1 AND expires_at = resolved_at AND EXISTS (SELECT 1 FROM blocks_over b
        WHERE b.account = pairing_requests.platform || ':' || pairing_requests.platform_user_id AND b.bot IN (pairing_requests.bot, '*') AND b.at = pairing_requests.resolved_at);

-- Whoever was let in without a request and blocked had no row that keeps them from coming
-- back by an invitation from before the block. The lengths make ids of them that differ.
CREATE TABLE bots_inviting AS SELECT v.bot, min(v.at) AS at, (SELECT max(r.platform) FROM pairing_requests r WHERE r.bot = v.bot) AS platform
    FROM invites v WHERE v.uses_left > 0 GROUP BY v.bot;
CREATE TABLE blocked_without AS SELECT i.platform, i.platform_user_id, i.display, v.bot, max(b.at) AS at FROM identities i
    JOIN blocks_over b ON b.account = i.platform || ':' || i.platform_user_id
    JOIN bots_inviting v ON b.bot IN (v.bot, '*') AND v.at < b.at AND coalesce(v.platform, i.platform) = i.platform
    WHERE NOT EXISTS (SELECT 1 FROM access a WHERE a.user_id = i.user_id AND a.bot = v.bot)
        AND NOT EXISTS (SELECT 1 FROM blocks s WHERE s.platform = i.platform AND s.platform_user_id = i.platform_user_id AND s.took <> '')
        AND NOT EXISTS (SELECT 1 FROM pairing_requests r WHERE r.platform = i.platform AND r.platform_user_id = i.platform_user_id AND r.bot = v.bot
            AND r.status = 'denied' AND r.resolved_at >= b.at)
    GROUP BY i.platform, i.platform_user_id, i.display, v.bot;
INSERT INTO pairing_requests (id, bot, platform, platform_user_id, platform_user_display, platform_chat_id, status, created_at, resolved_at, resolved_by, blocked, cooled)
    SELECT 'blocked-' || length(w.platform) || '-' || length(w.platform_user_id) || '-' || w.platform || '-' || w.platform_user_id || '-' || w.bot, w.bot, w.platform, w.platform_user_id, w.display, '', 'denied', w.at, w.at,
        (SELECT max(b."by") FROM blocks_over b WHERE b.account = w.platform || ':' || w.platform_user_id AND b.at = w.at), 1, 1
    FROM blocked_without w;
DROP TABLE blocked_without;
DROP TABLE bots_inviting;
DROP TABLE blocks_over;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
