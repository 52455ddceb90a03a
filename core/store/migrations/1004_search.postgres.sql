-- +goose Up
-- ---------------------------------------------------------------- core/session
-- As for SQLite, but for the table search: a plain one, with the words between
-- spaces. It is read whole where nothing else narrows it; an index of words
-- comes with several nodes.
CREATE TABLE search_sessions (
    n          INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE REFERENCES sessions(id) ON DELETE CASCADE,
    file       TEXT NOT NULL DEFAULT '',
    bytes      INTEGER NOT NULL DEFAULT 0,
    behind     INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX search_behind ON search_sessions(n) WHERE behind = 1;

CREATE TABLE search_docs (
    id      INTEGER PRIMARY KEY,
    n       INTEGER NOT NULL REFERENCES search_sessions(n) ON DELETE CASCADE,
    at_byte INTEGER NOT NULL,
    length  INTEGER NOT NULL
);
CREATE INDEX search_docs_session ON search_docs(n, at_byte);

CREATE TABLE search (
    rowid  INTEGER NOT NULL REFERENCES search_docs(id) ON DELETE CASCADE,
    words  TEXT NOT NULL,
    starts TEXT NOT NULL,
    keys   TEXT NOT NULL,
    PRIMARY KEY (rowid)
);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
