package postgres

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"gatehouse/core"
)

// said is what of a configuration decides where and how it connects.
func said(c *pgx.ConnConfig) string {
	s := fmt.Sprint(c.Host, c.Port, c.Database, c.User, c.Password, c.ConnectTimeout, c.RuntimeParams, c.TLSConfig != nil, len(c.Fallbacks),
		c.ValidateConnect != nil, c.MinProtocolVersion, c.MaxProtocolVersion, c.ChannelBinding, c.RequireAuth, c.SSLNegotiation, c.SSLCertMode)
	if c.TLSConfig != nil {
		s += fmt.Sprint(c.TLSConfig.ServerName, c.TLSConfig.InsecureSkipVerify, len(c.TLSConfig.Certificates))
	}
	return s
}

// Of several servers the first may be gone: every connection tries it first.
func TestAServerThatIsGoneIsWaitedForShortlyWhereThereAreOthers(t *testing.T) {
	for dsn, want := range map[string]time.Duration{
		"postgres://u@one/x": 10 * time.Second, "postgres://u@one,two/x": 2 * time.Second, "postgres://u@/x?host=one,two": 2 * time.Second,
		"postgres://u@one,two/x?connect_timeout=7": 7 * time.Second,
	} {
		if c, err := config(dsn, false); err != nil || c.ConnectTimeout != want {
			t.Errorf("%s: %v, %v", dsn, c.ConnectTimeout, err)
		}
	}
}

func TestNothingOfTheEnvironmentIsRead(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".pgpass"), []byte("*:*:*:*:ambient\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dsns := []string{"postgres://u@db.test/x", "postgres://u:p@db.test:6000/x?sslmode=disable&application_name=a", "postgres:///?user=u", "postgresql://u@/?host=/run/pg"}
	var before []string
	t.Setenv("HOME", t.TempDir())
	for _, dsn := range dsns {
		c, err := config(dsn, false)
		if err != nil {
			t.Fatal(err)
		}
		before = append(before, said(c))
	}
	t.Setenv("HOME", home)
	for k, v := range map[string]string{
		"PGHOST": "ambient", "PGPORT": "1", "PGDATABASE": "ambient", "PGUSER": "ambient", "PGPASSWORD": "ambient", "PGPASSFILE": filepath.Join(home, ".pgpass"),
		"PGAPPNAME": "ambient", "PGCONNECT_TIMEOUT": "1", "PGSSLMODE": "verify-full", "PGSSLKEY": "/ambient", "PGSSLCERT": "/ambient", "PGSSLCERTMODE": "disable",
		"PGSSLSNI": "0", "PGSSLROOTCERT": "/ambient", "PGSSLPASSWORD": "ambient", "PGSSLNEGOTIATION": "direct", "PGTARGETSESSIONATTRS": "read-only",
		"PGSERVICEFILE": "/ambient", "PGTZ": "Asia/Tokyo", "PGOPTIONS": "-c search_path=ambient", "PGMINPROTOCOLVERSION": "3.2", "PGMAXPROTOCOLVERSION": "latest",
		"PGCHANNELBINDING": "require", "PGREQUIREAUTH": "none",
	} {
		t.Setenv(k, v)
	}
	for i, dsn := range dsns {
		c, err := config(dsn, false)
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
		} else if got := said(c); got != before[i] {
			t.Errorf("%s\n\tbecame %s\n\tand was %s", dsn, got, before[i])
		}
	}
	t.Setenv("PGSERVICE", "ambient")
	if _, err := config(dsns[0], false); err == nil {
		t.Error("a service of the environment was looked up and not refused")
	}
}

func TestABadAddressIsRefusedWithoutQuotingIt(t *testing.T) {
	for _, dsn := range []string{"postgres://h/x", "postgres://u:topsecret@h:port/x", "postgres://u:topsecret@h/x?sslmode=topsecret", "postgres://u:topsecret@h/%zz", "postgres://u:topsecret@h/x?search_path=a;sslmode=verify-full"} {
		_, err := Open(dsn, "", false, 1)
		if core.KindOf(err) != core.Invalid || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

func TestErrorsAreDistinguished(t *testing.T) {
	for _, c := range []struct {
		err         error
		again, lost bool
	}{
		{nil, false, false},
		{&pgconn.PgError{Code: "40P01"}, true, false},
		{fmt.Errorf("put: %w", &pgconn.PgError{Code: "40001"}), true, false},
		{&pgconn.PgError{Code: "23505"}, false, false},
		{&pgconn.PgError{Code: "57P01"}, false, true},
		{io.ErrUnexpectedEOF, false, true},
		{errors.New("conn closed"), false, true},
	} {
		if Again(c.err) != c.again || Lost(c.err) != c.lost {
			t.Errorf("%v: again %v, lost %v", c.err, Again(c.err), Lost(c.err))
		}
	}
}
