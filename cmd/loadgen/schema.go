package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// schema creates an empty schema on the server of --database and returns its address. It is
// dropped by dropSchemas.
func (b *bench) schema(ctx context.Context) (address string, err error) {
	u, err := url.Parse(b.c.Database)
	if err != nil {
		return "", errors.New("--database is not a URL")
	}
	name := "load_" + strings.ToLower(rand.Text())
	if err := b.onServer(ctx, "CREATE SCHEMA "+name); err != nil {
		return "", err
	}
	b.schemas = append(b.schemas, name)
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// dropSchemas removes what schema created.
func (b *bench) dropSchemas() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, name := range b.schemas {
		err = errors.Join(err, b.onServer(ctx, "DROP SCHEMA "+name+" CASCADE"))
	}
	return err
}

func (b *bench) onServer(ctx context.Context, query string) error {
	db, err := sql.Open("pgx", b.c.Database)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, query); err != nil {
		return fmt.Errorf("the server of --database: %w", err)
	}
	return nil
}
