-- +goose Up
-- --------------------------------------------------------------- core/session
-- Whether a session was ever held in a group: 'group', 'dm' if it never was, '' where
-- that is not known. Runs, which tell it too, are not kept as long.
ALTER TABLE sessions ADD COLUMN scope TEXT NOT NULL DEFAULT '';
UPDATE sessions SET scope = 'group' WHERE id IN (SELECT session_id FROM chats WHERE place <> '' AND session_id IS NOT NULL)
    OR id IN (SELECT r.session_id FROM runs r JOIN chats c ON c.bot = r.bot AND c.chat = r.chat WHERE c.place <> '');
UPDATE sessions SET scope = 'dm' WHERE scope = '' AND (original_id IS NOT NULL OR source IN ('gatehouse', 'api', 'schedule', 'parachute', 'claude-code', 'claude', 'chatgpt')
    OR id IN (SELECT session_id FROM chats WHERE place = '' AND session_id IS NOT NULL)
    OR id IN (SELECT r.session_id FROM runs r JOIN chats c ON c.bot = r.bot AND c.chat = r.chat WHERE c.place = ''));

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
