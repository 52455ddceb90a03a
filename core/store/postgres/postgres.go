// Package postgres connects to PostgreSQL and reads its errors, for core/store,
// which knows it in programs that import it: the driver is 3 MiB of a program.
package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"gatehouse/core"
	"gatehouse/core/store"
)

func init() {
	store.Use(store.Server{Open: Open, Check: Check, Lock: Lock, Storable: Storable, Again: Again, Lost: Lost, Ended: Ended})
}

// Open returns a pool of at most conns connections to the database of dsn, in its
// schema search_path. It connects when it is used. Read-only connections refuse
// writes. A malformed dsn is core.Invalid; no error quotes it. A password that is
// not empty is in place of the dsn's.
func Open(dsn, password string, readOnly bool, conns int) (*sqlx.DB, error) {
	c, err := config(dsn, readOnly)
	if err != nil {
		return nil, err
	}
	if password != "" {
		c.Password = password
	}
	db := sqlx.NewDb(stdlib.OpenDB(*c, stdlib.OptionAfterConnect(takeBools)), "pgx")
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// takeBools lets a bool be an argument for an integer column, as SQLite's driver
// does: our booleans are 0 and 1.
func takeBools(_ context.Context, c *pgx.Conn) error {
	m := c.TypeMap()
	m.TryWrapEncodePlanFuncs = append(m.TryWrapEncodePlanFuncs, func(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
		b, ok := value.(bool)
		return &boolPlan{}, asInt(b), ok
	})
	return nil
}

func asInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// boolPlan encodes a bool as the integer that it is.
type boolPlan struct{ next pgtype.EncodePlan }

func (p *boolPlan) SetNext(next pgtype.EncodePlan) { p.next = next }

func (p *boolPlan) Encode(value any, buf []byte) ([]byte, error) {
	b, ok := value.(bool)
	if !ok {
		return nil, fmt.Errorf("encode %T as a boolean", value)
	}
	return p.next.Encode(asInt(b), buf)
}

// Storable replaces what PostgreSQL cannot store in a text, zero bytes and invalid UTF-8,
// with U+FFFD. The same argument finds it again.
func Storable(args []any) []any {
	var made []any
	for i, a := range args {
		if s, ok := a.(string); ok && (strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s)) {
			if made == nil {
				made = slices.Clone(args)
			}
			made[i] = strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
		}
	}
	if made != nil {
		return made
	}
	return args
}

// ambient are the settings that the driver would read from the environment or
// from files in the home directory, with the values that replace them. A service
// (PGSERVICE) cannot be overridden, only be unknown: it fails the connection.
var ambient = map[string]string{
	"host": "localhost", "port": "5432", "dbname": "postgres", "password": "", "passfile": "/dev/null",
	"application_name": "gatehouse", "connect_timeout": "10", "timezone": "UTC", "options": "",
	"sslmode": "prefer", "sslkey": "", "sslcert": "", "sslrootcert": "", "sslpassword": "",
	"sslcertmode": "allow", "sslsni": "1", "sslnegotiation": "", "target_session_attrs": "any",
	"min_protocol_version": "", "max_protocol_version": "", "channel_binding": "prefer", "require_auth": "",
	"servicefile": "/dev/null",
	// A server that does not hear from a gateway whose machine is gone ends its session, and
	// with it the lock, within half a minute, not after two hours.
	"tcp_keepalives_idle": "15", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3", "tcp_user_timeout": "30000",
}

// config returns the settings of dsn, with nothing from the environment.
func config(dsn string, readOnly bool) (*pgx.ConnConfig, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "the address of the PostgreSQL database is not a URL")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil { // net/url would leave parts out
		return nil, core.Errorf(core.Invalid, "the address of the PostgreSQL database has parameters that are not valid: write %%25 for %%, %%3B for ;")
	}
	if u.User.Username() == "" && q.Get("user") == "" {
		return nil, core.Errorf(core.Invalid, "the address of the PostgreSQL database names no user")
	}
	_, password := u.User.Password()
	said := map[string]bool{
		"host": u.Hostname() != "", "port": u.Port() != "", "password": password,
		"dbname": strings.Trim(u.Path, "/") != "" || q.Has("database"),
	}
	several := strings.Contains(u.Host+q.Get("host"), ",")
	if several && !q.Has("connect_timeout") {
		q.Set("connect_timeout", "2") // each connection tries first those that are gone
	}
	for k, v := range ambient {
		if !said[k] && !q.Has(k) {
			q.Set(k, v)
		}
	}
	if several && q.Get("target_session_attrs") == "any" {
		q.Set("target_session_attrs", "primary") // of several servers, the one that writes
	}
	if readOnly {
		q.Set("default_transaction_read_only", "on")
		if q.Get("target_session_attrs") == "read-write" { // which such a session is not
			q.Set("target_session_attrs", "primary")
		}
	}
	u.RawQuery = q.Encode()
	c, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, core.Errorf(core.Invalid, "the address of the PostgreSQL database has settings that the driver does not understand")
	}
	c.DialFunc = (&net.Dialer{Timeout: c.ConnectTimeout, Control: limitSilence,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}).DialContext
	return c, nil
}

// Check returns an error for a schema that is not this program's: with a newer
// version than newest, or with tables and no version of this program. An empty one is fine.
func Check(ctx context.Context, db *sqlx.DB, version, baseline, newest int64) error {
	if version > newest {
		return core.Errorf(core.Invalid, "the database is newer (version %d) than this program (version %d): use the newer program, or restore a backup", version, newest)
	}
	if version >= baseline {
		return nil
	}
	var tables int
	if err := db.GetContext(ctx, &tables, `SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema()`); err != nil {
		return err
	}
	if tables > 0 {
		return core.Errorf(core.Invalid, "the PostgreSQL schema holds tables of something else: give the gateway a schema of its own (search_path)")
	}
	return nil
}

// Again reports whether a statement failed because of concurrent transactions (a
// deadlock, a serialization failure): a retry of the transaction may succeed.
// https://www.postgresql.org/docs/current/mvcc-serialization-failure-handling.html
func Again(err error) bool {
	var p *pgconn.PgError
	return errors.As(err, &p) && (p.Code == "40P01" || p.Code == "40001")
}

// Lost reports whether err means that the connection is lost. The outcome of a
// COMMIT that was running is then unknown.
func Lost(err error) bool {
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return false
	}
	var p *pgconn.PgError
	if !errors.As(err, &p) {
		return true
	}
	return strings.HasPrefix(p.Code, "08") || strings.HasPrefix(p.Code, "57P") // connection exception; shutdown, crash
}

// Ended reports whether err means that a connection that was there is lost: nothing is wrong
// with the statement, and a new connection may do.
func Ended(err error) bool {
	var server *pgconn.PgError
	var made *pgconn.ConnectError
	var network net.Error
	switch {
	case err == nil || errors.As(err, &made) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &server):
		return Lost(err)
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, driver.ErrBadConn) || errors.As(err, &network) || pgconn.SafeToRetry(err)
}
