package attach_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/attach/content"
	"gatehouse/core/sealed"
	"gatehouse/core/sealed/columns"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// box returns a new key.
func (h *house) box() *sealed.Box {
	h.t.Helper()
	b, err := sealed.Create(filepath.Join(h.t.TempDir(), "content.key"))
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

// reads records what was read of a file for the run r of the session s.
func (h *house) reads(l *attach.Ledger, user int64, f core.File, c content.Content) {
	h.t.Helper()
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		return l.Record(ctx, tx, attach.Turn{User: user, Session: "s", Run: "r"}, []core.File{f}, map[string]content.Content{f.Path: c})
	})
}

func TestRecord_KeepsWhatWasReadOfAFile(t *testing.T) {
	h := open(t)
	l := attach.NewLedger(h.db, h.box(), 0, 0)
	kept, picture := h.noted(l, 7, "0123456789ab-plan.pdf", "x"), h.noted(l, 7, "0123456789ab-cat.png", "y")
	plan := content.Content{Pages: 3, Words: 1200, Truncated: true, Preview: "Tea at four"}
	h.reads(l, 7, kept, plan)
	h.reads(l, 7, core.File{Path: "Chat/assets/unnoted.txt", Size: 2}, content.Content{Words: 1, Preview: "a"})
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		return l.Record(ctx, tx, attach.Turn{User: 7, Session: "s", Run: "r"}, []core.File{picture, {Name: "refused"}}, nil)
	})
	want := []attach.Read{{Content: plan, Name: "plan.pdf", Run: "r"}, {Content: content.Content{Words: 1, Preview: "a"}, Name: "unnoted.txt", Run: "r"}}
	got, err := l.ReadFor(t.Context(), "s", "r", "other")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, other := range [][]string{{"t", "r"}, {"s", "q"}, {"s"}} {
		if got, err := l.ReadFor(t.Context(), other[0], other[1:]...); len(got) != 0 || err != nil {
			t.Errorf("%v: %v, %v", other, got, err)
		}
	}
	// What was read takes no statement of its own.
	cost := func(read map[string]content.Content) int64 {
		f := h.noted(l, 7, fmt.Sprint(len(read), ".txt"), "x")
		before := h.db.Statements()
		h.tx(func(ctx context.Context, tx *store.Tx) error {
			return l.Record(ctx, tx, attach.Turn{User: 7, Session: "s2", Run: "r"}, []core.File{f}, read)
		})
		return h.db.Statements() - before
	}
	without := cost(nil)
	if with := cost(map[string]content.Content{"Chat/assets/1.txt": {Words: 1, Preview: "x"}}); with != without {
		t.Errorf("%d statements with what was read, %d without", with, without)
	}
	var empty int
	err = h.db.Get(t.Context(), &empty, `SELECT count(*) FROM attachments WHERE page_count IS NULL AND word_count IS NULL AND truncated IS NULL AND preview IS NULL`)
	if err != nil || empty != 2 {
		t.Errorf("%d files without a text have none of it, %v", empty, err)
	}
}

func TestWhatWasReadOfAFileGoesWithItsConversation(t *testing.T) {
	h := open(t)
	l := attach.NewLedger(h.db, h.box(), 0, 0)
	h.reads(l, 7, h.noted(l, 7, "a.txt", "x"), content.Of("Tea at four"))
	h.tx(func(ctx context.Context, tx *store.Tx) error { return l.ForgetSession(ctx, tx, "other") })
	if got, err := l.ReadFor(t.Context(), "s", "r"); len(got) != 1 || err != nil {
		t.Fatalf("%v, %v", got, err)
	}
	h.tx(func(ctx context.Context, tx *store.Tx) error { return l.ForgetSession(ctx, tx, "s") })
	var left int
	err := h.db.Get(t.Context(), &left, `SELECT count(*) FROM attachments WHERE preview IS NOT NULL OR word_count IS NOT NULL OR page_count IS NOT NULL OR truncated IS NOT NULL`)
	if err != nil || left != 0 {
		t.Errorf("%d files keep what was read of them, %v", left, err)
	}
	if whole, _, err := l.Use(t.Context()); whole != 1 || err != nil {
		t.Errorf("the file is not counted any more: %d bytes, %v", whole, err)
	}
}

func TestADamagedPreviewHidesNothingElse(t *testing.T) {
	h := open(t)
	l := attach.NewLedger(h.db, h.box(), 0, 0)
	h.reads(l, 7, h.noted(l, 7, "a.txt", "x"), content.Content{Words: 2, Preview: "Tea at"})
	h.reads(l, 7, h.noted(l, 7, "b.txt", "x"), content.Content{Words: 3, Preview: "and cake"})
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE attachments SET preview = (SELECT max(preview) FROM attachments WHERE path LIKE '%b.txt') WHERE path LIKE '%a.txt'`)
		return err
	})
	got, err := l.ReadFor(t.Context(), "s", "r")
	if err != nil || len(got) != 2 || got[0].Words != 2 || got[0].Preview != "" || got[1].Preview != "and cake" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAPreviewIsInNoFileOfTheDatabase(t *testing.T) {
	storetest.SQLiteOnly(t, "it reads the files of the database")
	const marker = "zq7marker5kx"
	h := open(t)
	l := attach.NewLedger(h.db, h.box(), 0, 0)
	h.reads(l, 7, h.noted(l, 7, "a", "x"), content.Of("a "+marker))
	if got, err := l.ReadFor(t.Context(), "s", "r"); err != nil || len(got) != 1 || !strings.Contains(got[0].Preview, marker) {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(h.db.Path() + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), marker) {
			t.Errorf("it is in the file %q", suffix)
		}
	}
}

func TestAPreviewFollowsTheKey(t *testing.T) {
	h := open(t)
	var preview columns.Column
	preview.Table, preview.Name, preview.Row = attach.Sealed()
	o := columns.Options{DB: h.db, File: filepath.Join(t.TempDir(), "content.key"), Columns: []columns.Column{preview}}
	box, _, err := columns.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	l := attach.NewLedger(h.db, box, 0, 0)
	h.reads(l, 7, h.noted(l, 7, "a", "x"), content.Of("Tea at four"))
	if r, err := columns.Rotate(t.Context(), h.db, box, o.Columns, nil); err != nil || r.Rows != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	shown := func(l *attach.Ledger) string {
		got, err := l.ReadFor(t.Context(), "s", "r")
		if err != nil || len(got) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		return got[0].Preview
	}
	if got := shown(l); got != "Tea at four" {
		t.Errorf("with another key: %q", got)
	}
	o.File, o.Lost = filepath.Join(t.TempDir(), "other.key"), true
	box, deleted, err := columns.Start(t.Context(), o)
	if err != nil || deleted != 1 {
		t.Fatalf("%d, %v", deleted, err)
	}
	if got := shown(attach.NewLedger(h.db, box, 0, 0)); got != "" {
		t.Errorf("without its key: %q", got)
	}
}

func TestAnExportHasThePreviewDecrypted(t *testing.T) {
	h := open(t)
	l := attach.NewLedger(h.db, h.box(), 0, 0)
	h.reads(l, 7, h.noted(l, 7, "a.pdf", "x"), content.Content{Pages: 2, Words: 3, Preview: "Tea at four"})
	h.noted(l, 7, "b.png", "x")
	x := l.Exports()[0]
	rows, err := store.Rows(t.Context(), h.db, x.Query, int64(7), 10)
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v, %v", rows, err)
	}
	seen := map[any]any{}
	for _, row := range rows {
		if err := x.Open(row); err != nil {
			t.Error(err)
		}
		seen[row["path"]] = row["preview"]
	}
	if diff := cmp.Diff(map[any]any{"Chat/assets/a.pdf": "Tea at four", "Chat/assets/b.png": nil}, seen); diff != "" {
		t.Error(diff)
	}
}
