package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lost is a home whose gateway stored a conversation and whose database is gone.
func lost(t *testing.T) (h *home, db string) {
	t.Helper()
	h = newHome(t, nil)
	dir := filepath.Join(h.vault(), ".parachute", "sessions")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "0192fa3c-41aa-7000-8000-000000000001.json"), []byte(`{"title":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(h.vault(), "Chat"), 0o700); err != nil {
		t.Fatal(err)
	}
	return h, filepath.Join(h.vault(), "Chat", "sessions.db")
}

func TestServeDoesNotBeginEmptyWhereConversationsAre(t *testing.T) {
	t.Parallel()
	h, db := lost(t)
	for name, state := range map[string]func(){"missing": func() {}, "empty": func() {
		if err := os.WriteFile(db, nil, 0o600); err != nil {
			t.Error(err)
		}
	}} {
		state()
		code, _, errs := h.run("serve")
		for _, want := range []string{"is " + name, db, "gatehouse reindex", "gatehouse restore", "serve --new"} {
			if code != exitUsage || !strings.Contains(errs, want) {
				t.Errorf("%s: exit code %d, without %q: %s", name, code, want, errs)
			}
		}
		if err := os.Remove(db); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	p := h.start(nil, "serve", "--new")
	p.says("msg=serving")
}

// With other settings than the gateway's, a command would make an empty database, answer
// from it, and let the next start begin with it.
func TestCommandsDoNotMakeADatabaseWhereConversationsAre(t *testing.T) {
	t.Parallel()
	h, db := lost(t)
	for _, args := range [][]string{{"admins", "list"}, {"claim"}, {"keys", "create", "x", "--scope", "send"}} {
		if code, out, errs := h.run(args...); code != exitUsage || !strings.Contains(errs, db+" is missing") {
			t.Errorf("%s: %d %s%s", args, code, out, errs)
		}
	}
	if _, err := os.Stat(db); err == nil {
		t.Error("there is a database now")
	}
	if code, _, errs := h.run("reindex"); code != 0 {
		t.Errorf("reindex: %d %s", code, errs)
	}
	if code, _, errs := h.run("admins", "list"); code != 0 {
		t.Errorf("after reindex: %d %s", code, errs)
	}
}

// What Claude Code's command line wrote needs no database.
func TestServeBeginsWhereOnlyTranscriptsOfTheCommandLineAre(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	dir := filepath.Join(h.vault(), ".claude", "projects", "-srv-notes")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "0192fa3c-41aa-7000-8000-000000000001.jsonl"), []byte(`{"type":"user"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.serve(nil)
}

func TestServeDoesNotOpenADamagedDatabase(t *testing.T) {
	t.Parallel()
	h, db := lost(t)
	if err := os.WriteFile(db, []byte(strings.Repeat("no database at all\n", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := h.run("serve")
	if code != exitUsage || !strings.Contains(errs, db+" is damaged") || !strings.Contains(errs, "gatehouse restore") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, out, _ := h.run("doctor"); !strings.Contains(out, db) {
		t.Errorf("doctor: %s", out)
	}
}

func TestReadinessTurnsWhenTheDatabaseIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if status, body := w.call("GET", "/readyz", nil); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if err := os.Rename(w.cfg.DatabasePath(), w.cfg.DatabasePath()+".away"); err != nil {
		t.Fatal(err)
	}
	w.until("not ready", func() bool { status, _ := w.call("GET", "/readyz", nil); return status == 503 })
	if _, body := w.call("GET", "/readyz", nil); !strings.Contains(body, "was deleted or moved") {
		t.Errorf("readyz says %s", body)
	}
	w.app.upkeep.Once(t.Context(), 1)
	if !strings.Contains(w.log.String(), "gatehouse restore") {
		t.Error("the log does not say what to do")
	}
	if err := os.Rename(w.cfg.DatabasePath()+".away", w.cfg.DatabasePath()); err != nil {
		t.Fatal(err)
	}
	w.until("ready again", func() bool { status, _ := w.call("GET", "/readyz", nil); return status == 200 })
}
