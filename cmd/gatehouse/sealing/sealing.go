// Package sealing joins the encrypted columns of all owners of tables with the key file
// of the settings.
package sealing

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/council/ledger"
	"gatehouse/core/memory"
	"gatehouse/core/memory/handoff"
	"gatehouse/core/sealed"
	"gatehouse/core/sealed/columns"
	"gatehouse/core/store"
	"gatehouse/core/store/carry"
	"gatehouse/core/vault"
	"gatehouse/web/account"
)

// Columns returns all encrypted columns.
func Columns() []columns.Column {
	var files, notes, apps columns.Column
	files.Table, files.Name, files.Row = attach.Sealed()
	notes.Table, notes.Name, notes.Row = handoff.Sealed()
	apps.Table, apps.Name, apps.Row = account.Sealed()
	apps.Was = true
	return append(slices.Concat(ledger.Columns(), memory.Columns()), notes, files, apps)
}

func options(cfg *configs.Config, db *store.DB, log *slog.Logger) columns.Options {
	return columns.Options{DB: db, Log: log, File: cfg.ContentKeyPath(), Setting: configs.Prefix + "_CONTENT_KEY_FILE", Columns: Columns()}
}

// Open opens the key file for the database, and makes it where none is needed yet.
func Open(ctx context.Context, cfg *configs.Config, db *store.DB, log *slog.Logger) (*sealed.Box, error) {
	box, _, err := columns.Start(ctx, options(cfg, db, log))
	return box, err
}

// Discard deletes the texts whose key is missing. No gateway may serve the vault.
func Discard(ctx context.Context, cfg *configs.Config, log *slog.Logger) (err error) {
	v, err := vault.Open(cfg.VaultPath)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if err := v.Lock(true); err != nil {
		return err
	}
	db, err := store.Open(ctx, cfg.DatabasePath(), store.Options{Log: log, Password: cfg.DatabasePassword.Reveal(), Alone: store.LockWait})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := carry.Finished(ctx, db); err != nil {
		return err
	}
	o := options(cfg, db, log)
	o.Lost = true
	box, deleted, err := columns.Start(ctx, o)
	if err != nil {
		return err
	}
	if deleted > 0 {
		log.Warn("deleted the texts whose key is missing", "texts", deleted, "key", box.ID())
		return db.Tx(ctx, func(tx *store.Tx) error {
			return store.Audit(ctx, tx, core.Actor{User: core.Operator, Via: "cli"}, "content_key.lost", box.ID(), map[string]any{"texts": deleted})
		})
	}
	return nil
}

// Rotate encrypts all values again with a new key.
func Rotate(ctx context.Context, db *store.DB, box *sealed.Box, progress func(string)) (columns.Rotated, error) {
	r, err := columns.Rotate(ctx, db, box, Columns(), progress)
	if err != nil {
		return r, err
	}
	return r, db.Tx(ctx, func(tx *store.Tx) error {
		return store.Audit(ctx, tx, core.Actor{User: core.Operator, Via: "cli"}, "content_key.rotate", r.Key, map[string]any{"rows": r.Rows})
	})
}

// Missing returns the ids of the keys with which rows of a restored database are encrypted,
// and those of them that the key file of the settings lacks.
func Missing(ctx context.Context, cfg *configs.Config, q store.Queryer) (used, missing []string, err error) {
	if used, err = columns.Used(ctx, q, Columns()); err != nil {
		return used, nil, err
	}
	missing, err = Lacking(cfg, used)
	return used, missing, err
}

// Lacking returns those of the keys that the key file of the settings lacks.
func Lacking(cfg *configs.Config, keys []string) (missing []string, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	box, err := sealed.Open(cfg.ContentKeyPath())
	if err != nil && !errors.Is(err, sealed.ErrMissing) {
		return nil, err
	}
	for _, id := range keys {
		if box == nil || !box.Has(id) {
			missing = append(missing, id)
		}
	}
	return missing, nil
}
