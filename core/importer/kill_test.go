package importer_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/importer"
	"gatehouse/core/importer/importertest"
	"gatehouse/core/importer/report"
	"gatehouse/core/session"
	"gatehouse/core/session/bring"
	"gatehouse/core/store"
	"gatehouse/core/vault"
)

// killed is the directory of the vault of a process that is to be killed.
const killed = "GATEHOUSE_TEST_IMPORT_KILLED"

// onDisk opens the gateway's files in dir as a process does.
func onDisk(t *testing.T, dir string) *house {
	t.Helper()
	v, err := vault.Open(filepath.Join(dir, "vault"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	db, err := store.Open(context.Background(), filepath.Join(dir, "x.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	log := slog.New(slog.DiscardHandler)
	h := &house{t: t, vault: v, db: db, dir: dir, sessions: session.New(session.Options{DB: db, Vault: v})}
	t.Cleanup(func() { _ = h.sessions.Close() })
	h.Importer = importer.New(importer.Options{Bringer: bring.New(bring.Options{DB: db, Vault: v, Sessions: h.sessions, Clock: core.System{}, Log: log}),
		Files: attach.New(v, core.System{}, nil), Own: v.Path(), Clock: core.System{}, Log: log})
	return h
}

// TestImportToBeKilled is the process that TestAKilledImportIsCompletedByTheNext kills.
func TestImportToBeKilled(t *testing.T) {
	dir := os.Getenv(killed)
	if dir == "" {
		return
	}
	h := onDisk(t, dir)
	_, err := h.Run(context.Background(), filepath.Join(dir, "x.json"), operator, nil, func(r *report.Report) { fmt.Println("seen", r.Seen()) })
	if err != nil {
		t.Fatal(err)
	}
}

func TestAKilledImportIsCompletedByTheNext(t *testing.T) {
	const n = 60
	dir := t.TempDir()
	(&house{t: t, dir: dir}).file("x.json", func(w io.Writer) error { return importertest.New(6).ChatGPT(w, n) })
	for _, after := range []int{1, 7, 8, 31, 50} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestImportToBeKilled$")
		cmd.Env = append(os.Environ(), killed+"="+dir)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		for in := bufio.NewScanner(out); in.Scan() && in.Text() != fmt.Sprint("seen ", after); {
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		whole(t, dir)
	}
	h := onDisk(t, dir)
	r, err := h.Run(context.Background(), filepath.Join(dir, "x.json"), operator, nil, func(*report.Report) {})
	if err != nil || r.Unchanged < 50 || r.Unchanged+r.Added != n || r.Failed != 0 {
		t.Errorf("the rest: %+v, %v", r, err)
	}
	if count, err := h.sessions.Count(context.Background(), session.Filter{All: true}); err != nil || count != n {
		t.Errorf("%d sessions, %v", count, err)
	}
	if _, err := h.sessions.Repair(context.Background()); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "vault/.claude/projects/*/.*tmp")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "vault/.claude/projects/*/*.jsonl")); len(names) != n {
		t.Errorf("%d transcripts", len(names))
	}
}

// whole checks that every session in dir has a whole transcript, and every transcript is whole.
func whole(t *testing.T, dir string) {
	t.Helper()
	h := onDisk(t, dir)
	list, _, err := h.sessions.List(context.Background(), session.Filter{All: true, Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if _, got := h.messages(s.ID); got == "" || s.MessageCount == 0 {
			t.Errorf("the session %s has no messages", s.ID)
		}
	}
	names, _ := filepath.Glob(filepath.Join(dir, "vault/.claude/projects/*/*.jsonl"))
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil || !bytes.HasSuffix(raw, []byte("\n")) {
			t.Errorf("%s is torn, %v", name, err)
		}
		for line := range bytes.Lines(raw) {
			if !json.Valid(line) {
				t.Errorf("%s has a torn line", name)
			}
		}
	}
}
