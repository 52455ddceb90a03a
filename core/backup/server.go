package backup

import (
	"strings"

	"gatehouse/core"
)

// onFile returns an error for a database that is not a file: archives have no other.
func onFile(database string) error {
	if !strings.Contains(database, "://") {
		return nil
	}
	return core.Errorf(core.Invalid, "the database is on a PostgreSQL server, which this does not back up or restore: "+
		"use pg_dump and pg_restore for the database, and copy the vault's files while the gateway is stopped")
}
