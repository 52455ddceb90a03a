// Package remote copies databases to a PostgreSQL server and from it.
package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/carry"
)

// A Database is on a server. No error of its methods quotes the password.
type Database struct {
	Address  string // postgres://…
	Password string // in place of the address's, unless it is ""
}

// Source connects for reading.
func (d Database) Source(ctx context.Context) (*carry.Side, error) { return d.connect(ctx, true) }

// Target creates the tables if there are none, and connects for writing.
func (d Database) Target(ctx context.Context) (*carry.Side, error) {
	if err := d.create(ctx); err != nil {
		return nil, unusable(err)
	}
	return d.connect(ctx, false)
}

// Export writes the database, as it is now, to a SQLite file, which must not exist, and
// returns its version. Others may use the database.
func (d Database) Export(ctx context.Context, file string) (version int64, err error) {
	from, err := d.Source(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if err := Create(ctx, file); err != nil {
		return 0, err
	}
	to, err := carry.Target(file)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	_, err = carry.Copy(ctx, from, to, nil)
	return store.Newest(), err
}

// Ready returns an error if Import could not begin.
func (d Database) Ready(ctx context.Context) (err error) {
	to, err := d.Target(ctx)
	if err != nil {
		return err
	}
	return errors.Join(to.Vacant(ctx), to.Close())
}

// Import copies a SQLite file into the database. It may be called again.
func (d Database) Import(ctx context.Context, file string) (err error) {
	from, err := carry.Source(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := d.Target(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	_, err = carry.Copy(ctx, from, to, nil)
	return err
}

func (d Database) connect(ctx context.Context, readOnly bool) (*carry.Side, error) {
	db, err := d.open(readOnly)
	if err != nil {
		return nil, err
	}
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, unusable(err)
	}
	return carry.Server(db.DB), nil
}

// Create creates the tables of a database in a file.
func Create(ctx context.Context, file string) error {
	db, err := store.Open(ctx, file, store.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return db.Close()
}

// unusable wraps a fault of the server's or of the way to it.
func unusable(err error) error {
	if core.KindOf(err) != core.Other {
		return err
	}
	return fmt.Errorf("the PostgreSQL database cannot be used; check its address, user, password and search_path: %w", err)
}
