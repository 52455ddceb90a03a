package migrating_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/commands/migrating"
	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/carry"
	"gatehouse/core/store/postgres"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }

const secret = "top-secret-4711"

// A gateway is a vault with a database in a file.
type gateway struct {
	t    *testing.T
	dir  string
	file string
	ctx  context.Context
}

func newGateway(t *testing.T) *gateway {
	g := &gateway{t: t, dir: filepath.Join(t.TempDir(), "vault"), ctx: t.Context()}
	g.file = filepath.Join(g.dir, "Chat", "sessions.db")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GATEHOUSE_VAULT_PATH", g.dir)
	g.write(g.file, "of the file")
	return g
}

// write stores a value in the database.
func (g *gateway) write(at, value string) {
	g.t.Helper()
	db := storetest.OpenAt(g.t, at, nil)
	if err := errors.Join(db.Save(g.t.Context(), "test", value), db.Close()); err != nil {
		g.t.Fatal(err)
	}
}

// read returns the value and whether the database is an unfinished copy.
func (g *gateway) read(at string) (string, bool) {
	g.t.Helper()
	db := storetest.OpenAt(g.t, at, nil)
	value, err := db.Load(g.t.Context(), "test")
	unfinished, failed := carry.Unfinished(g.t.Context(), db)
	if err := errors.Join(err, failed, db.Close()); err != nil {
		g.t.Fatal(err)
	}
	return value, unfinished
}

// run runs the command as the command line does and returns all that it prints.
func (g *gateway) run(args ...string) (string, error) {
	g.t.Helper()
	var c struct {
		Migrate migrating.Migrate `cmd:""`
	}
	var out bytes.Buffer
	p, err := kong.New(&c, kong.Writers(&out, &out), kong.Exit(func(int) {}), kong.UsageOnError())
	if err != nil {
		g.t.Fatal(err)
	}
	k, err := p.Parse(append([]string{"migrate"}, args...))
	if err == nil {
		err = k.Run(&console.Process{Context: g.ctx, Stdout: &out, Stderr: &out, Terminal: true})
	}
	if err != nil {
		out.WriteString(err.Error())
	}
	if strings.Contains(out.String(), secret) {
		g.t.Errorf("%q prints the password: %s", args, out.String())
	}
	return out.String(), err
}

// sum returns the hash of the database's file.
func (g *gateway) sum() [32]byte {
	g.t.Helper()
	b, err := os.ReadFile(g.file)
	if err != nil {
		g.t.Fatal(err)
	}
	return sha256.Sum256(b)
}

// withPassword returns the address with a password, which the server for tests ignores.
func withPassword(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("password", secret)
	u.RawQuery = q.Encode()
	return u.String()
}

func TestTheDatabaseMovesToTheServerAndBack(t *testing.T) {
	storetest.PostgresOnly(t, "the server is one")
	g, at := newGateway(t), storetest.Fresh(t)
	before := g.sum()
	out, err := g.run("--to", withPassword(t, at))
	if err != nil || !strings.Contains(out, "Copied ") || !strings.Contains(out, "every table was compared") || !strings.Contains(out, "Next: set GATEHOUSE_DATABASE_URL=postgres:") {
		t.Fatal(out, err)
	}
	if g.sum() != before {
		t.Error("the file was changed")
	}
	if value, unfinished := g.read(at); value != "of the file" || unfinished {
		t.Errorf("on the server: %q, unfinished: %v", value, unfinished)
	}
	if out, err := g.run("--to", at); err != nil || !strings.Contains(out, "were there already") {
		t.Error("a second time: ", out)
	}
	g.write(at, "of the server")
	if out, err := g.run("--to", at); core.KindOf(err) != core.Conflict || !strings.Contains(out, "in use already") {
		t.Error("over what was used: ", out)
	}
	if out, err := g.run("--from", at); core.KindOf(err) != core.Conflict || !strings.Contains(out, "move the file away") {
		t.Error("over the file: ", out)
	}
	if g.sum() != before {
		t.Error("the file was changed by what was refused")
	}
	if err := os.Remove(g.file); err != nil {
		t.Fatal(err)
	}
	serving, err := store.Open(t.Context(), at, store.Options{Alone: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := g.run("--from", at); core.KindOf(err) != core.Busy || !strings.Contains(out, "another gateway uses this database") {
		t.Error("while a gateway of another machine serves: ", out)
	}
	if err := serving.Close(); err != nil {
		t.Fatal(err)
	}
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := g.run("--from", at, "--password-file", password); err != nil || !strings.Contains(out, "Next: start the gateway with GATEHOUSE_DATABASE_URL="+g.file) {
		t.Fatal(out, err)
	}
	if value, unfinished := g.read(g.file); value != "of the server" || unfinished {
		t.Errorf("in the file: %q, unfinished: %v", value, unfinished)
	}
}

func TestAnInterruptedMoveIsContinuedByTheSameCommand(t *testing.T) {
	storetest.PostgresOnly(t, "the server is one")
	g, at := newGateway(t), storetest.Fresh(t)
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	g.interrupt(ctx, kill, at)
	if _, unfinished := g.read(at); !unfinished {
		t.Error("the interrupted copy is not marked")
	}
	g.ctx = ctx // it has ended: as after Ctrl-C
	if out, err := g.run("--to", at); err == nil || !strings.Contains(out, "run the same command again") {
		t.Error(out)
	}
	g.ctx = t.Context()
	if out, err := g.run("--to", at); err != nil || !strings.Contains(out, "were there already") {
		t.Error(out)
	}
	if value, unfinished := g.read(at); value != "of the file" || unfinished {
		t.Errorf("on the server: %q, unfinished: %v", value, unfinished)
	}
}

// interrupt copies the file to the server and calls kill in the middle of it.
func (g *gateway) interrupt(ctx context.Context, kill func(), at string) {
	g.t.Helper()
	if err := storetest.OpenAt(g.t, at, nil).Close(); err != nil {
		g.t.Fatal(err)
	}
	from, err := carry.Source(g.file)
	if err != nil {
		g.t.Fatal(err)
	}
	defer from.Close()
	db, err := postgres.Open(at, "", false, 2)
	if err != nil {
		g.t.Fatal(err)
	}
	to := carry.Server(db.DB)
	defer to.Close()
	if _, err = carry.Copy(ctx, from, to, func(step string, rows int, _ int64) {
		if step == carry.Copying && rows > 0 {
			kill()
		}
	}); !errors.Is(err, context.Canceled) {
		g.t.Fatal(err)
	}
}

func TestNothingIsCopiedWhileAGatewayServesTheVault(t *testing.T) {
	g := newGateway(t)
	v, err := vault.Open(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if err := v.Lock(true); err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"--to", "--from"} {
		if out, err := g.run(way, "postgres://u@127.0.0.1:1/x"); core.KindOf(err) != core.Conflict || !strings.Contains(out, "is in use by process") {
			t.Errorf("%s: %s", way, out)
		}
	}
}

func TestWhatCannotBeCopiedIsRefusedAndNoPasswordIsPrinted(t *testing.T) {
	g := newGateway(t)
	before := g.sum()
	closed := "postgres://u:" + secret + "@127.0.0.1:1/x?connect_timeout=5"
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "--to"},
		{[]string{"--to", closed, "--from", closed}, "--to"},
		{[]string{closed}, "--to"},
		{[]string{"--to", closed, closed}, "--to or --from"},
		{[]string{"--too", closed}, "--too"},
		{[]string{"--to", "postgres://u:" + secret + "@h:port/x"}, "must be a URL"},
		{[]string{"--to", "mysql://u:" + secret + "@h/x"}, "must be a URL"},
		{[]string{"--to", "postgres://u:" + secret + "@h/x?sslmode=" + secret}, "settings that the driver does not understand"},
		{[]string{"--to", closed}, "cannot be used"},
		{[]string{"--to", closed, "--password-file", empty}, "password in one line"},
		{[]string{"--from", closed}, "cannot be used"},
	} {
		if out, err := g.run(c.args...); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%q: %s, want %q", c.args, out, c.want)
		}
	}
	if g.sum() != before {
		t.Error("the file was changed")
	}
	if err := os.Remove(g.file); err != nil {
		t.Fatal(err)
	}
	if out, err := g.run("--to", closed); core.KindOf(err) != core.NotFound || !strings.Contains(out, "there is no database at") {
		t.Errorf("without a file: %s", out)
	}
	t.Setenv("GATEHOUSE_DATABASE_URL", "postgres://u@127.0.0.1:1/x")
	if _, err := g.run("--from", closed); err == nil {
		t.Error("copied from a server to a server")
	}
}

// An older database is neither migrated nor adopted by a copy into its place.
func TestAFileOfAnOlderVersionIsNotTouched(t *testing.T) {
	g := newGateway(t)
	if err := os.Remove(g.file); err != nil {
		t.Fatal(err)
	}
	g.file = filepath.Join(t.TempDir(), "old.db")
	t.Setenv("GATEHOUSE_DATABASE_URL", g.file)
	storetest.SQLiteOnly(t, "the original system's databases are files")
	_ = storetest.Original(t, g.file, 10).Close()
	before := g.sum()
	if out, err := g.run("--from", "postgres://u@127.0.0.1:1/x"); core.KindOf(err) != core.Conflict || !strings.Contains(out, "there is a database at") {
		t.Error(out)
	}
	if out, err := g.run("--to", "postgres://u@127.0.0.1:1/x"); core.KindOf(err) != core.Invalid || !strings.Contains(out, "original system") {
		t.Error(out)
	}
	if g.sum() != before {
		t.Error("the file was changed")
	}
	if _, adopt, err := store.Examine(t.Context(), g.file); err != nil || !adopt {
		t.Error(adopt, err)
	}
}
