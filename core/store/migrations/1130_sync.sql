-- +goose Up
-- ------------------------------------------------------------- core/vaultsync
-- The files of the vault as the last scan found them, and those deleted since.
CREATE TABLE sync_files (
    path     TEXT PRIMARY KEY,              -- relative to the vault
    hash     TEXT NOT NULL,                 -- sha256:…; of a deleted file what it was last
    size     INTEGER NOT NULL,
    modified INTEGER NOT NULL,              -- Unix time in nanoseconds
    mark     TEXT NOT NULL,                 -- of size, times and inode; '': to be read again
    entries  TEXT NOT NULL DEFAULT '',      -- of a day file: ids and hashes, as JSON
    seq      INTEGER NOT NULL,              -- of the change, for cursors
    deleted  TEXT NOT NULL DEFAULT ''       -- when
);
CREATE INDEX sync_files_seq ON sync_files(seq);
CREATE INDEX sync_files_deleted ON sync_files(deleted) WHERE deleted <> '';

-- Contents that devices or the server had of a file, the newest last. The texts are in
-- .parachute/versions.
CREATE TABLE sync_versions (
    path TEXT NOT NULL,
    hash TEXT NOT NULL,                     -- '': there was no file
    base TEXT NOT NULL DEFAULT '-',         -- what a device edited it from, '' for a new file; '-': the file itself had it
    seq  INTEGER NOT NULL,
    PRIMARY KEY (path, hash, base)
);

-- +goose Down
SELECT 'this is not taken back: restore the copy kept beside the database';
