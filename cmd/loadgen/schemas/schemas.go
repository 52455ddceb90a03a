// Package schemas makes schemas in a PostgreSQL database, one for each gateway under test, and
// drops them.
package schemas

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// dropTime bounds Drop.
const dropTime = time.Minute

// Schemas are those that were created in the database at Address. It is not for concurrent use.
type Schemas struct {
	Address string // a URL, without search_path
	made    []string
}

// Create makes an empty schema and returns the address of the database with it.
func (s *Schemas) Create(ctx context.Context) (address string, err error) {
	u, err := url.Parse(s.Address)
	if err != nil {
		return "", errors.New("the address of the database is not a URL")
	}
	name := "load_" + strings.ToLower(rand.Text())
	if err := s.run(ctx, "CREATE SCHEMA "+name); err != nil {
		return "", err
	}
	s.made = append(s.made, name)
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Drop removes all that Create made, with their tables.
func (s *Schemas) Drop() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), dropTime)
	defer cancel()
	for _, name := range s.made {
		err = errors.Join(err, s.run(ctx, "DROP SCHEMA "+name+" CASCADE"))
	}
	return err
}

func (s *Schemas) run(ctx context.Context, query string) error {
	db, err := sql.Open("pgx", s.Address)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, query); err != nil {
		return fmt.Errorf("the server of the database: %w", err)
	}
	return nil
}
