-- +goose Up
-- ---------------------------------------------------------------- core/session
-- How far a session is in the full-text index. A row that goes takes what is
-- found of it along.
CREATE TABLE search_sessions (
    n          INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE REFERENCES sessions(id) ON DELETE CASCADE,
    file       TEXT NOT NULL DEFAULT '',    -- the transcript, in the vault
    bytes      INTEGER NOT NULL DEFAULT 0,  -- of it, from its beginning
    behind     INTEGER NOT NULL DEFAULT 0   -- upkeep has something to do
);
CREATE INDEX search_behind ON search_sessions(n) WHERE behind = 1;

CREATE TABLE search_docs (
    id      INTEGER PRIMARY KEY,            -- rowid in search; newer is higher
    n       INTEGER NOT NULL REFERENCES search_sessions(n) ON DELETE CASCADE,
    at_byte INTEGER NOT NULL,               -- where its line begins; -1: title and tags
    length  INTEGER NOT NULL
);
CREATE INDEX search_docs_session ON search_docs(n, at_byte);

-- The words alone, each as the program folds it; no text is kept.
CREATE VIRTUAL TABLE search USING fts5(words, starts, keys, content='', contentless_delete=1, tokenize='ascii');

-- +goose StatementBegin
CREATE TRIGGER search_docs_gone AFTER DELETE ON search_docs BEGIN
    DELETE FROM search WHERE rowid = old.id;
END;
-- +goose StatementEnd

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
