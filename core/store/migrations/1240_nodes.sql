-- +goose Up
-- ----------------------------------------------------------------- core/nodes
-- The gateways that share a database on a server. Times are milliseconds since 1970 by the
-- server's clock. On SQLite the table stays empty.
CREATE TABLE nodes (
    id      TEXT PRIMARY KEY,     -- its host's name and the port it listens on
    process TEXT NOT NULL,        -- drawn at each start
    version TEXT NOT NULL,        -- of its program
    newest  INTEGER NOT NULL,     -- the newest migration that its program has
    address TEXT NOT NULL,        -- what it listens on
    state   TEXT NOT NULL,        -- serving, standby
    started INTEGER NOT NULL,
    seen    INTEGER NOT NULL      -- it was alive
);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
