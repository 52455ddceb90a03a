package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/importertest"
	"gatehouse/core/importer/report"
)

// What an import would add once its user is forgotten would stay for ever.
func TestForgettingAUserEndsTheirImport(t *testing.T) {
	w := newWorld(t, nil)
	w.boss()
	ada, bob := w.user(w.guest("Ada")), w.user(w.guest("Bob"))
	var export bytes.Buffer
	if err := importertest.New(4).Claude(&export, 3000); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "export.json")
	if err := os.WriteFile(name, export.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	id, err := w.app.imports.Start(t.Context(), report.Order{Path: name}, foreign.Terms{User: ada, Trust: core.Sandboxed}, cli)
	if err != nil {
		t.Fatal(err)
	}
	w.until("the import has begun", func() bool {
		return w.count(`SELECT count(*) FROM sessions WHERE source = 'claude' AND user_id = $1`, ada) > 0
	})
	for _, user := range []int64{bob, ada} {
		if _, err := w.app.eraser.Forget(t.Context(), fmt.Sprint(user), cli, nil); err != nil {
			t.Fatal(err)
		}
		if s, err := w.app.imports.State(id); err != nil || (s.State == report.Running) != (user == bob) {
			t.Errorf("when %d is forgotten the import is %+v, %v", user, s, err)
		}
	}
	if s, err := w.app.imports.Next(t.Context(), id, time.Minute); err != nil || !s.Report.Stopped {
		t.Errorf("%+v, %v", s, err)
	}
	if n := w.count(`SELECT count(*) FROM sessions WHERE user_id = $1`, ada); n != 0 {
		t.Errorf("%d sessions of a forgotten user", n)
	}
}
