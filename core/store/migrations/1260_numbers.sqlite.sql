-- +goose Up
-- ------------------------------------------------------------------ core/queue
-- Numbers of messages and replies are part of keys that outlive the rows (a notice, a
-- correction, a button in a chat), so none is given twice, whatever was deleted. SQLite gives
-- the number after the highest one there is, unless it is told to keep count. A database that
-- was in use may have given any number below the one that it goes on with.
CREATE TABLE numbered (seq INTEGER NOT NULL);
INSERT INTO numbered SELECT 1000000000 WHERE EXISTS (SELECT 1 FROM cursors) OR EXISTS (SELECT 1 FROM inbox) OR EXISTS (SELECT 1 FROM outbox)
    OR EXISTS (SELECT 1 FROM corrections WHERE source LIKE 'chat:%');

CREATE TABLE inbox_numbered (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    bot         TEXT NOT NULL,
    update_id   TEXT NOT NULL,
    chat        TEXT NOT NULL,
    lane        TEXT NOT NULL,
    kind        TEXT NOT NULL,
    message_id  TEXT NOT NULL DEFAULT '',
    edit        TEXT NOT NULL DEFAULT '',
    sender      TEXT NOT NULL DEFAULT '',   -- the platform's id of the person
    trust       TEXT NOT NULL DEFAULT '',   -- stamped when admitted
    payload     TEXT,                       -- core.Inbound as JSON; NULL once finished
    state       TEXT NOT NULL,              -- ready, held, limited, done, refused, dead
    request     TEXT NOT NULL DEFAULT '',   -- the pairing request that holds the row
    run         TEXT NOT NULL DEFAULT '',
    attempts    INTEGER NOT NULL DEFAULT 0,
    error       TEXT NOT NULL DEFAULT '',
    sent_at     TEXT NOT NULL DEFAULT '',   -- the platform's time
    due         TEXT NOT NULL DEFAULT '',   -- limited: may run from then on
    counts      INTEGER NOT NULL DEFAULT 1, -- 0: further part of an album, free of rate limits
    received_at TEXT NOT NULL,
    burst       TEXT NOT NULL DEFAULT '',   -- the messages that one paste was split into
    UNIQUE (bot, update_id)
);
INSERT INTO inbox_numbered (seq, bot, update_id, chat, lane, kind, message_id, edit, sender, trust, payload, state, request, run, attempts, error, sent_at, due, counts, received_at, burst)
    SELECT seq, bot, update_id, chat, lane, kind, message_id, edit, sender, trust, payload, state, request, run, attempts, error, sent_at, due, counts, received_at, burst FROM inbox;
DROP TABLE inbox;
ALTER TABLE inbox_numbered RENAME TO inbox;
CREATE UNIQUE INDEX inbox_message ON inbox(bot, chat, message_id, edit) WHERE kind = 'message' AND message_id <> '';
CREATE INDEX inbox_lane ON inbox(lane, seq) WHERE state IN ('ready', 'limited');
CREATE INDEX inbox_request ON inbox(request, seq) WHERE state = 'held';
CREATE INDEX inbox_dead ON inbox(seq) WHERE state = 'dead';
CREATE INDEX inbox_sender ON inbox(bot, sender, sent_at) WHERE kind = 'message' AND counts = 1;
CREATE INDEX inbox_run ON inbox(run) WHERE run <> '';
CREATE INDEX inbox_received ON inbox(received_at) WHERE state IN ('done', 'refused');
CREATE INDEX inbox_commands ON inbox(bot, sender, sent_at) WHERE kind = 'command' AND counts = 1;

CREATE TABLE outbox_numbered (
    seq                 INTEGER PRIMARY KEY AUTOINCREMENT,
    bot                 TEXT NOT NULL,
    chat                TEXT NOT NULL,
    thread              TEXT NOT NULL DEFAULT '',
    place               TEXT NOT NULL DEFAULT '',
    key                 TEXT NOT NULL,
    ordinal             INTEGER NOT NULL,
    body                TEXT NOT NULL,      -- one core.Part as JSON
    replaces            TEXT NOT NULL DEFAULT '',
    state               TEXT NOT NULL,      -- ready, sending, sent, unknown, failed
    attempts            INTEGER NOT NULL DEFAULT 0,
    not_before          TEXT NOT NULL DEFAULT '',
    platform_message_id TEXT NOT NULL DEFAULT '',
    error               TEXT NOT NULL DEFAULT '',
    created_at          TEXT NOT NULL,
    sent_at             TEXT NOT NULL DEFAULT '',
    UNIQUE (key, ordinal)
);
INSERT INTO outbox_numbered (seq, bot, chat, thread, place, key, ordinal, body, replaces, state, attempts, not_before, platform_message_id, error, created_at, sent_at)
    SELECT seq, bot, chat, thread, place, key, ordinal, body, replaces, state, attempts, not_before, platform_message_id, error, created_at, sent_at FROM outbox;
DROP TABLE outbox;
ALTER TABLE outbox_numbered RENAME TO outbox;
CREATE INDEX outbox_open ON outbox(bot, chat, seq) WHERE state IN ('ready', 'sending');
CREATE INDEX outbox_unknown ON outbox(seq) WHERE state IN ('unknown', 'failed');
CREATE INDEX outbox_sent ON outbox(sent_at) WHERE state = 'sent';

DELETE FROM sqlite_sequence WHERE name IN ('inbox', 'outbox') AND seq < (SELECT seq FROM numbered);
INSERT INTO sqlite_sequence (name, seq) SELECT t.name, n.seq FROM numbered n, (SELECT 'inbox' AS name UNION ALL SELECT 'outbox') t
    WHERE t.name NOT IN (SELECT name FROM sqlite_sequence);
DROP TABLE numbered;

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
