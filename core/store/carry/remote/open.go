package remote

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jmoiron/sqlx"

	"gatehouse/core/store"
	"gatehouse/core/store/postgres"
)

// patience is how long a gateway that uses the database may take to end.
const patience = 5 * time.Second

func (d Database) open(readOnly bool) (*sqlx.DB, error) {
	return postgres.Open(d.Address, d.Password, readOnly, 2)
}

// create creates the tables if there are none. It returns core.Busy while a gateway uses
// the database.
func (d Database) create(ctx context.Context) error {
	db, err := store.Open(ctx, d.Address, store.Options{Log: slog.New(slog.DiscardHandler), Password: d.Password, Alone: patience})
	if err != nil {
		return err
	}
	return db.Close()
}

// Alone keeps gateways from the database until release, and returns core.Busy while one
// uses it.
func (d Database) Alone(ctx context.Context) (release func() error, err error) {
	db, err := d.open(true)
	if err != nil {
		return nil, err
	}
	conn, err := db.Connx(ctx)
	if err == nil {
		err = postgres.Lock(ctx, conn, patience, new(string))
	}
	if err != nil {
		return nil, errors.Join(unusable(err), db.Close())
	}
	return func() error { return errors.Join(conn.Close(), db.Close()) }, nil
}
