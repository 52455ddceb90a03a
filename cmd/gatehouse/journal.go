package main

import (
	"context"

	"gatehouse/core/tool/files"
)

// journalRoom holds the journals of guests to the limits of their directories.
func (a *app) journalRoom(ctx context.Context, user int64, name string, isNew bool, grows int64) error {
	return files.Room(ctx, a.vault, user, name, isNew, grows)
}
