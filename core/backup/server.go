package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store/snapshot"
)

// A Server is a database on a server. An archive has it as a SQLite file, like any other,
// and can be restored to either.
type Server interface {
	// Export writes the database, as it is at one moment, to a SQLite file, which must not
	// exist, and returns its version.
	Export(ctx context.Context, file string) (version int64, err error)
	// Ready returns an error if Import could not begin: the server cannot be reached, or the
	// database has rows and is not what an interrupted Import has left.
	Ready(ctx context.Context) error
	// Import copies the content of a SQLite file into the database. After an interruption it is
	// called again, and completes it. Until then the database is marked as incomplete.
	Import(ctx context.Context, file string) error
}

// onFile returns an error for the address of a server without a way to it.
func onFile(database string, server Server) error {
	if server != nil || !strings.Contains(database, "://") {
		return nil
	}
	return core.Errorf(core.Invalid, "the database is on a PostgreSQL server, which this does not back up or restore: "+
		"use pg_dump and pg_restore for the database, and copy the vault's files while the gateway is stopped")
}

// replaceable returns an error if the panel cannot restore over the database.
func (to Target) replaceable() error {
	if to.Server == nil {
		return onFile(to.Database, to.Server)
	}
	return core.Errorf(core.Invalid, "the database is on a PostgreSQL server, where the panel restores no backup: stop the gateway, "+
		"set GATEHOUSE_VAULT_PATH to a new directory and GATEHOUSE_DATABASE_URL to an empty database or schema, and run 'gatehouse restore FILE'")
}

// copyDatabase writes a copy of the database to the file, which must not exist.
func (src Source) copyDatabase(ctx context.Context, file string) (version int64, err error) {
	if src.Server == nil {
		return snapshot.Copy(ctx, src.Database, file)
	}
	return src.Server.Export(ctx, file)
}

// removeCopy deletes the copy of the database, and what SQLite keeps next to it.
func removeCopy(file string) (err error) {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if failed := os.Remove(file + suffix); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = failed
		}
	}
	return err
}

// serverReady returns an error if the database cannot be put on the server.
func (r *restoring) serverReady(ctx context.Context) error {
	if state, ok := r.readState(); r.to.Server == nil || ok && state.Moving {
		return nil // what was begun is completed
	}
	return r.to.Server.Ready(ctx)
}

// importDatabase copies the prepared database to the server. It may be called again.
func (r *restoring) importDatabase() error {
	if !present(r.stagedDB()) {
		return nil // it is there
	}
	if err := r.to.Server.Import(context.Background(), r.stagedDB()); err != nil {
		return err
	}
	return removeCopy(r.stagedDB())
}
