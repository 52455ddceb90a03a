package client_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/permission"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
	"gatehouse/core/vaultsync"
	"gatehouse/core/vaultsync/client"
	"gatehouse/web"
	"gatehouse/web/api/sync"
	"gatehouse/web/auth"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A failer is a testing.TB or a *rapid.T.
type failer interface {
	Fatalf(format string, args ...any)
	Helper()
}

// hurried is a clock by which each request comes a second after the one before.
type hurried struct {
	core.System
	n atomic.Int64
}

func (h *hurried) Now() time.Time { return time.Unix(h.n.Add(1), 0) }

// A server is a vault that is synced over HTTP on loopback.
type server struct {
	dir     string
	url     string
	clock   *coretest.Clock
	db      *store.DB
	keys    *auth.Keys
	store   *vaultsync.Store
	log     *coretest.Log
	handler http.Handler
	// hidden: no key sees hidden.md.
	hidden atomic.Bool
	// reading is called with each file that is sent to a device, and with what opens it; may be nil.
	reading func(path string, open func())
}

// files are the files of a server.
type files struct {
	*vaultsync.Store
	s *server
}

// Open calls the server's reading.
func (f files) Open(ctx context.Context, a vaultsync.Area, root, path string) (out vaultsync.Served, err error) {
	open := func() { out, err = f.Store.Open(ctx, a, root, path) }
	if f.s.reading != nil {
		f.s.reading(path, open)
	} else {
		open()
	}
	return out, err
}

func serve(t testing.TB, dir string) *server {
	t.Helper()
	s := &server{clock: coretest.NewClock(time.Date(2026, 1, 28, 10, 30, 0, 0, time.UTC)), log: &coretest.Log{}}
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	s.dir = v.Path()
	s.db = storetest.Open(t, s.clock)
	s.keys = auth.NewKeys(s.db, s.clock, nil)
	s.store = vaultsync.New(vaultsync.Options{DB: s.db, Vault: v, Clock: s.clock, Log: slog.New(slog.NewTextHandler(s.log, nil))})
	may := func(trust core.Trust, user int64, name string, write bool) bool {
		if name == "hidden.md" && s.hidden.Load() {
			return false
		}
		mayRead, mayWrite := permission.Profile{User: user, Trust: trust}.Bounds(nil)
		if write {
			return mayWrite(name)
		}
		return mayRead(name)
	}
	api := sync.New(sync.Options{Files: files{s.store, s}, Clock: &hurried{}, May: may, Did: s.store.Audit, Watch: func(*http.Request, func()) func() { return func() {} }})
	door := auth.NewAuthenticator(s.keys, nil, auth.AuthenticatorOptions{Clock: s.clock, Address: func(r *http.Request) string { return r.RemoteAddr }})
	mux := http.NewServeMux()
	for pattern, h := range api.Routes() {
		mux.Handle(pattern, web.Serve(slog.New(slog.DiscardHandler), web.WriteProblem, func(w http.ResponseWriter, r *http.Request) error {
			r, err := door.Identify(r)
			if err != nil {
				return err
			}
			return h(w, r)
		}))
	}
	s.handler = mux
	listening := httptest.NewServer(mux)
	t.Cleanup(listening.Close)
	s.url = listening.URL
	return s
}

// key returns a key of a user.
func (s *server) key(t testing.TB, user int64, trust core.Trust, scopes ...string) string {
	t.Helper()
	secret, _, err := s.keys.Create(t.Context(), auth.NewKey{Label: "device", User: user, Trust: trust, Scopes: scopes}, core.Actor{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// A device is a directory that is synced.
type device struct {
	name, dir string
	o         client.Options
}

func (s *server) device(t testing.TB, name, key string) *device {
	t.Helper()
	d := &device{name: name, dir: t.TempDir()}
	d.o = client.Options{Dir: d.dir, Server: s.url, Key: key, Device: name, Clock: coretest.NewClock(time.Now()), Log: slog.New(slog.DiscardHandler), HTTP: http.DefaultClient}
	return d
}

func (d *device) sync(t failer) client.Report {
	t.Helper()
	r, err := d.try()
	if err != nil {
		t.Fatalf("%s: %v", d.name, err)
	}
	return r
}

func (d *device) try() (r client.Report, err error) {
	c, err := client.Open(d.o)
	if err != nil {
		return r, err
	}
	defer c.Close()
	return c.Once(context.Background())
}

// errKilled is the panic of a killed client.
var errKilled = errors.New("killed")

// killed syncs and stops dead before the n-th step.
func (d *device) killed(t failer, n int) {
	t.Helper()
	o := d.o
	o.Step = func(string) {
		if n--; n < 0 {
			panic(errKilled)
		}
	}
	c, err := client.Open(o)
	if err != nil {
		t.Fatalf("%s: %v", d.name, err)
	}
	defer c.Close()
	defer func() {
		if r := recover(); r != nil && r != errKilled { //nolint:errorlint // it is itself
			panic(r)
		}
	}()
	_, _ = c.Once(context.Background())
}

func write(t failer, dir, name, text string) {
	t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(p), 0o700)
	if err == nil {
		err = os.WriteFile(p, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
}

func read(t failer, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(data)
}

func remove(t failer, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
		t.Fatalf("%v", err)
	}
}

// tree returns the files of a directory, without what is not synced.
func tree(t failer, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		rel = filepath.ToSlash(rel)
		switch {
		case errors.Is(err, fs.ErrNotExist) && rel == ".": // it went with its last file
			return nil
		case err != nil:
			return err
		case rel == ".gatehouse-sync", rel == ".parachute":
			return fs.SkipDir
		case e.Type().IsRegular():
			files[rel] = read(t, dir, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return files
}

// same fails unless directories have the same files, none of them temporary.
func same(t failer, dirs ...string) {
	t.Helper()
	first := tree(t, dirs[0])
	for name := range first {
		if strings.HasSuffix(name, ".gatehouse-tmp") {
			t.Fatalf("%s remains", name)
		}
	}
	for _, dir := range dirs[1:] {
		if other := tree(t, dir); !maps.Equal(first, other) {
			t.Fatalf("the trees differ:\n%s\nand\n%s", listed(first), listed(other))
		}
	}
}

func listed(files map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b.WriteString(name + ": " + strings.ReplaceAll(files[name], "\n", "⏎") + "\n")
	}
	return b.String()
}
