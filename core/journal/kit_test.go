package journal

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/paraid"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	morning = time.Date(2026, 1, 28, 10, 30, 0, 0, time.UTC)
	panel   = core.Actor{User: core.Operator, Via: "panel"}
)

var quietLog = slog.New(slog.DiscardHandler)

const day, dayFile = "2026-01-28", "Daily/2026-01-28.md"

// A fixture is a store of journals with real files and a real database.
type fixture struct {
	*Store
	t     testing.TB
	db    *store.DB
	ids   *paraid.Registry
	clock *coretest.Clock
	dir   string
	log   bytes.Buffer
}

func open(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: t.TempDir(), clock: coretest.NewClock(time.Now().Add(time.Hour))}
	v, err := vault.Open(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	f.db = storetest.Open(t, f.clock)
	log := slog.New(slog.NewTextHandler(&f.log, nil))
	f.ids = paraid.New(f.db, v, log)
	f.Store = New(Options{DB: f.db, Vault: v, IDs: f.ids, Rows: f.ids, Clock: f.clock, Log: log})
	return f
}

// put writes a file as another program does, by renaming.
func (f *fixture) put(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path+".saving", []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(path+".saving", path); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) file(name string) string {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, filepath.FromSlash(name)))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b)
}

func (f *fixture) append(user int64, text string) Entry {
	f.t.Helper()
	e, err := f.Append(f.t.Context(), user, Draft{Date: day, At: morning, Text: text}, panel)
	if err != nil {
		f.t.Fatal(err)
	}
	return e
}

func (f *fixture) day(user int64) Day {
	f.t.Helper()
	d, err := f.Day(f.t.Context(), user, day)
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

func (f *fixture) runPass() int {
	f.t.Helper()
	n, err := f.Pass(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// events returns the actions of the audit log, with their subjects.
func (f *fixture) events() (all []string) {
	f.t.Helper()
	page, _, err := store.AuditLog(context.Background(), f.db, store.AuditFilter{})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range page {
		all = append(all, fmt.Sprintf("%s %s by %s", e.Action, e.Subject, core.Actor{User: e.User, Via: e.Via}))
	}
	return all
}

func text(s string) Edit { return Edit{Text: &s} }
