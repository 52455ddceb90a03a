package migrating

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store/carry"
	"gatehouse/core/store/postgres"
)

// maxPassword is the largest file of a password, in bytes.
const maxPassword = 4096

// A server is a PostgreSQL database. No error and no output quotes its password.
type server struct {
	url *url.URL // with the password
}

// newServer returns the database at the address, with the password in passwordFile unless
// that is "".
func newServer(address, passwordFile string) (*server, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, core.Errorf(core.Invalid, "the address of the PostgreSQL database must be a URL: postgres://user@host:5432/name, with %%20 and the like for special characters")
	}
	s := &server{u}
	if passwordFile == "" {
		return s, nil
	}
	password, err := readPassword(passwordFile)
	if err != nil {
		return nil, err
	}
	if name := u.User.Username(); name != "" {
		u.User = url.UserPassword(name, password)
		return s, nil
	}
	q := u.Query() // the user is a parameter
	q.Set("password", password)
	u.RawQuery = q.Encode()
	return s, nil
}

func readPassword(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPassword))
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" || strings.ContainsAny(password, "\r\n\x00") {
		return "", core.Errorf(core.Invalid, "%s must have the password in one line", file)
	}
	return password, nil
}

// shown returns the address without passwords.
func (s *server) shown() string {
	u := *s.url
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	if q := u.Query(); q.Has("password") || q.Has("sslpassword") {
		q.Del("password")
		q.Del("sslpassword")
		u.RawQuery = q.Encode()
	}
	return u.String()
}

// source connects for reading.
func (s *server) source(ctx context.Context) (*carry.Side, error) { return s.connect(ctx, true) }

// target creates the tables if there are none, and connects for writing.
func (s *server) target(ctx context.Context) (*carry.Side, error) {
	if err := create(ctx, s.url.String()); err != nil {
		return nil, unreachable(err)
	}
	return s.connect(ctx, false)
}

func (s *server) connect(ctx context.Context, readOnly bool) (*carry.Side, error) {
	db, err := postgres.Open(s.url.String(), "", readOnly, 2)
	if err != nil {
		return nil, err
	}
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, unreachable(err)
	}
	return carry.Server(db.DB), nil
}

// unreachable wraps a fault that is not the program's own.
func unreachable(err error) error {
	if core.KindOf(err) != core.Other {
		return err
	}
	return fmt.Errorf("the PostgreSQL database cannot be used; check its address, user, password (--password-file) and search_path: %w", err)
}
