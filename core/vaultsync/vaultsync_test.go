package vaultsync_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
	"gatehouse/core/vaultsync"
	"gatehouse/core/vaultsync/wire"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// maxDeletions is how many deletions the tests' stores remember.
const maxDeletions = 5

// A world is a vault and its store.
type world struct {
	*vaultsync.Store
	t     *testing.T
	dir   string
	db    *store.DB
	clock *coretest.Clock
	step  func(string)
	full  bool // Room refuses
	reg   *prometheus.Registry
}

func open(t *testing.T) *world {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "vault"))
}

func openAt(t *testing.T, dir string) *world {
	t.Helper()
	w := &world{t: t, clock: coretest.NewClock(time.Now()), reg: prometheus.NewRegistry()}
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	w.dir, w.db = v.Path(), storetest.Open(t, w.clock)
	w.Store = vaultsync.New(vaultsync.Options{DB: w.db, Vault: v, Clock: w.clock, Log: slog.New(slog.DiscardHandler), Deletions: maxDeletions, Registry: w.reg,
		Room: func(context.Context, int64, string, bool, int64) error {
			if w.full {
				return core.Errorf(core.Denied, "your own folder would hold more than 1 MB")
			}
			return nil
		},
		Step: func(what string) {
			if w.step != nil {
				w.step(what)
			}
		}})
	return w
}

func owner() vaultsync.Area { return area(core.Operator, core.Vault) }

func area(user int64, trust core.Trust) vaultsync.Area {
	return vaultsync.Area{User: user, Trust: trust, May: func(core.Trust, int64, string, bool) bool { return true }}
}

func (w *world) push(a vaultsync.Area, path, base, text string) wire.Done {
	w.t.Helper()
	done, err := w.Push(w.t.Context(), a, vaultsync.Sent{Meta: wire.Meta{Path: path, BaseHash: base}, Device: "phone"}, strings.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}
	return done
}

func (w *world) list(a vaultsync.Area, since string) wire.Listing {
	w.t.Helper()
	return w.listOf(a, since, "")
}

func (w *world) listOf(a vaultsync.Area, since, epoch string) wire.Listing {
	w.t.Helper()
	out, err := w.List(w.t.Context(), a, vaultsync.Query{Since: since, Epoch: epoch, Binary: true})
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Close()
	var l wire.Listing
	if err := json.NewDecoder(out).Decode(&l); err != nil {
		w.t.Fatal(err)
	}
	return l
}

func (w *world) write(name, text string) {
	w.t.Helper()
	p := filepath.Join(w.dir, name)
	err := os.MkdirAll(filepath.Dir(p), 0o700)
	if err == nil {
		err = os.WriteFile(p, []byte(text), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func hash(text string) string { return wire.Hash([]byte(text)) }

// After a restore from a backup numbers of changes are given a second time.
func TestList_ACursorOfAnotherEpochGetsAllFiles(t *testing.T) {
	w := open(t)
	w.write("a.md", "one")
	was := w.list(owner(), "")
	w.write("b.md", "two")
	for _, epoch := range []string{was.Epoch, ""} { // one that tells none is an older device's
		if l := w.listOf(owner(), was.Cursor, epoch); l.Complete || len(l.Files) != 1 || l.Epoch != was.Epoch || l.Epoch == "" {
			t.Errorf("before, of %q: %+v", epoch, l)
		}
	}
	if err := w.db.Tx(t.Context(), func(tx *store.Tx) error { return vaultsync.AfterRestore(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
	l := w.listOf(owner(), was.Cursor, was.Epoch)
	if !l.Complete || len(l.Files) != 2 || l.Epoch == was.Epoch || l.Epoch == "" {
		t.Errorf("after it: %+v", l)
	}
	if again := w.listOf(owner(), l.Cursor, l.Epoch); again.Complete || again.Epoch != l.Epoch {
		t.Errorf("then: %+v", again)
	}
}

func TestList_ACursorGetsWhatChangedSinceWithDeletions(t *testing.T) {
	w := open(t)
	w.write("a.md", "a")
	w.write("b.md", "b")
	w.write("Daily/2026-01-28.md", "# para:abc123def456 10:30 AM\n\ntext\n")
	first := w.list(owner(), "")
	if !first.Complete || len(first.Files) != 3 || len(first.Files[0].Entries) != 1 || first.Files[0].Entries[0].ID != "abc123def456" {
		t.Fatalf("%+v", first)
	}
	w.write("b.md", "changed")
	if err := os.Remove(filepath.Join(w.dir, "a.md")); err != nil {
		t.Fatal(err)
	}
	l := w.list(owner(), first.Cursor)
	if l.Complete || len(l.Files) != 1 || l.Files[0].Path != "b.md" || len(l.Deleted) != 1 || l.Deleted[0].Path != "a.md" || l.Deleted[0].Hash != hash("a") {
		t.Errorf("%+v", l)
	}
	if again := w.list(owner(), l.Cursor); len(again.Files)+len(again.Deleted) != 0 || again.Digest != l.Digest || again.Digest == first.Digest {
		t.Errorf("%+v", again)
	}
	for _, cursor := range []string{"99999", "x", "-1"} {
		if l := w.list(owner(), cursor); cursor != "-1" && !l.Complete || len(l.Files) != 2 {
			t.Errorf("cursor %q: %+v", cursor, l)
		}
	}
}

// hashed returns how many files were read for their hash.
func (w *world) hashed() (n int) {
	w.t.Helper()
	families, err := w.reg.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "gatehouse_sync_hashed_files_total" {
			n = int(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	return n
}

// A file that is changed within the same moment, or back in time, has another content; one that
// nothing has touched is not read again.
func TestList_AFileIsReadAgainOnlyWhenItWasTouched(t *testing.T) {
	w := open(t)
	for i := range 20 {
		w.write(fmt.Sprintf("%02d.md", i), "text")
	}
	at := filepath.Join(w.dir, "07.md")
	st, err := os.Stat(at)
	if err != nil {
		t.Fatal(err)
	}
	settled := func() {
		t.Helper()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			before := w.hashed()
			w.list(owner(), "")
			if w.hashed() == before {
				return
			}
		}
		t.Fatal("files that nothing touches are read again and again")
	}
	settled()
	before := w.hashed()
	w.write("07.md", "TEXT") // of the same size, and in the same file
	if err := os.Chtimes(at, st.ModTime(), st.ModTime()); err != nil {
		t.Fatal(err)
	}
	if l := w.list(owner(), ""); l.Files[7].Hash != hash("TEXT") || w.hashed() != before+1 {
		t.Errorf("%+v, %d files were read", l.Files[7], w.hashed()-before)
	}
	settled()
}

// The walk and the table have the files in one order, whatever their names are.
func TestList_FilesThatNothingTouchesAreNoChanges(t *testing.T) {
	w := open(t)
	for _, name := range []string{"a.md", "a/b.md", "a-b/c.md", "a b.md", "a!/x.md", "A.md", "ä.md", "a/é/z.md", "aa.md", "日本/語.md", "a+b.md", "a/b-c/d.md", "a/b.x/e.md", "Z/z.md"} {
		w.write(name, name)
	}
	first := w.list(owner(), "")
	if len(first.Files) != 14 || !slices.IsSortedFunc(first.Files, func(a, b wire.File) int { return strings.Compare(a.Path, b.Path) }) {
		t.Fatalf("%d files: %+v", len(first.Files), first.Files)
	}
	if again := w.list(owner(), first.Cursor); len(again.Files)+len(again.Deleted) != 0 || again.Digest != first.Digest {
		t.Errorf("%+v", again)
	}
	// A link in place of a directory: what was below is not known to be gone.
	for _, err := range []error{os.Rename(filepath.Join(w.dir, "a"), filepath.Join(w.dir, "moved")), os.Symlink("moved", filepath.Join(w.dir, "a"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if l := w.list(owner(), first.Cursor); len(l.Deleted) != 0 || len(l.Files) != 4 || l.Files[0].Path != "moved/b-c/d.md" {
		t.Errorf("%+v", l)
	}
}

// More files vanish than are written at a time. Where one is left that comes after them, they
// were deleted; where none is, as on a disk that is not mounted, none was.
func TestList_ManyFilesThatVanishAreDeletedWhereOneIsLeft(t *testing.T) {
	w := open(t)
	const files = 1203
	for i := range files {
		w.write(fmt.Sprintf("a/%04d.md", i), "a")
	}
	w.write("z.md", "z")
	first := w.list(owner(), "")
	remove := func(name string) {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(w.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	remove("a")
	remove("z.md")
	w.write("b.md", "new") // what is written to an empty disk does not bring the files back
	if _, err := w.List(t.Context(), owner(), vaultsync.Query{}); core.KindOf(err) != core.Busy || !strings.Contains(core.TextOf(err), "all 1204 synced files") {
		t.Errorf("%v, want that all have vanished", err)
	}
	if _, err := w.List(t.Context(), owner(), vaultsync.Query{}); core.KindOf(err) != core.Busy {
		t.Errorf("again: %v, want that all have vanished", err)
	}
	w.write("z.md", "z")
	l := w.list(owner(), first.Cursor)
	if len(l.Deleted) != files || len(l.Files) != 1 || l.Files[0].Path != "b.md" {
		t.Errorf("%d deleted, want %d; %+v", len(l.Deleted), files, l.Files)
	}
}

// Another disk in place of the vault's has files of its own, perhaps more than are written at a
// time, and before all others: they do not make the vault's files deleted ones.
func TestList_FilesOfAnotherDiskDeleteNone(t *testing.T) {
	w := open(t)
	for i := range 12 {
		w.write(fmt.Sprintf("notes/%02d.md", i), fmt.Sprint("note ", i))
	}
	w.list(owner(), "")
	if err := os.Rename(filepath.Join(w.dir, "notes"), filepath.Join(w.dir, "..", "away")); err != nil {
		t.Fatal(err)
	}
	for i := range 1100 {
		w.write(fmt.Sprintf("a/%04d.md", i), fmt.Sprint("another ", i))
	}
	for range 2 {
		if _, err := w.List(t.Context(), owner(), vaultsync.Query{}); core.KindOf(err) != core.Busy || !strings.Contains(core.TextOf(err), "all 12 synced files") {
			t.Errorf("%v, want that all have vanished", err)
		}
	}
	if err := os.Rename(filepath.Join(w.dir, "..", "away"), filepath.Join(w.dir, "notes")); err != nil {
		t.Fatal(err)
	}
	if l := w.list(owner(), ""); len(l.Deleted) != 0 || len(l.Files) != 1112 {
		t.Errorf("%d files, %d deleted", len(l.Files), len(l.Deleted))
	}
}

// All files that there are get another name: they have not vanished.
func TestList_AllFilesMayMove(t *testing.T) {
	for to, files := range map[string]int{"archive": 12, "zoo": 1203} { // before and behind where they were; more than are written at a time
		w := open(t)
		for i := range files {
			w.write(fmt.Sprintf("notes/%02d.md", i), fmt.Sprint("note ", i))
		}
		first := w.list(owner(), "")
		if err := os.Rename(filepath.Join(w.dir, "notes"), filepath.Join(w.dir, to)); err != nil {
			t.Fatal(err)
		}
		if l := w.list(owner(), first.Cursor); len(l.Deleted) != files || len(l.Files) != files {
			t.Errorf("%s: %d files, %d deleted", to, len(l.Files), len(l.Deleted))
		}
	}
}

func TestList_ADeletionIsRememberedForSevenDays(t *testing.T) {
	w := open(t)
	w.write("b.md", "b")
	w.push(owner(), "a.md", "", "a")
	old := w.list(owner(), "")
	if done, err := w.Delete(t.Context(), owner(), "", "a.md", hash("a")); err != nil || done.Outcome != wire.Deleted {
		t.Fatal(done, err)
	}
	w.clock.Advance(6 * 24 * time.Hour)
	if _, err := w.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := w.list(owner(), old.Cursor); l.Complete || len(l.Deleted) != 1 {
		t.Errorf("%+v", l)
	}
	w.clock.Advance(2 * 24 * time.Hour)
	if _, err := w.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := w.list(owner(), old.Cursor); !l.Complete || len(l.Deleted) != 0 {
		t.Errorf("an older cursor does not get all files: %+v", l)
	}
}

func TestPush_AnotherProgramThatWritesInBetweenLosesNothing(t *testing.T) {
	for _, at := range []string{"part", "filled", "whole", "exchanged"} {
		t.Run(at, func(t *testing.T) {
			w := open(t)
			day := "Daily/2026-01-28.md"
			entry := func(n int) string { return fmt.Sprintf("# para:entry000000%d 10:30 AM\n\ntext %d\n\n", n, n) }
			w.push(owner(), day, "", entry(1))
			w.step = func(what string) {
				if what == at {
					w.step = nil
					w.write("new", w.read(day)+entry(2))
					if err := os.Rename(filepath.Join(w.dir, "new"), filepath.Join(w.dir, day)); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.push(owner(), day, hash(entry(1)), entry(1)+entry(3))
			got := w.read(day)
			for n := 1; n <= 3; n++ {
				if strings.Count(got, entry(n)) != 1 {
					t.Errorf("entry %d: %q", n, got)
				}
			}
		})
	}
}

// zeros is a content without an end, which counts what is read of it.
type zeros struct{ n int64 }

func (z *zeros) Read(p []byte) (int, error) {
	clear(p)
	z.n += int64(len(p))
	return len(p), nil
}

func TestPush_AFileThatIsTooLargeIsRefusedBeforeItIsRead(t *testing.T) {
	w := open(t)
	body := &zeros{}
	_, err := w.Push(t.Context(), owner(), vaultsync.Sent{Meta: wire.Meta{Path: "film.mp4", Size: wire.MaxFile + 1}}, body)
	if core.KindOf(err) != core.TooLarge || !strings.Contains(core.TextOf(err), `"film.mp4" is larger than 512 MB`) || body.n != 0 {
		t.Errorf("%v, %d bytes were read", err, body.n)
	}
}

func TestPush_AGuestsFolderHasItsLimits(t *testing.T) {
	w := open(t)
	w.full = true
	_, err := w.Push(t.Context(), area(7, core.Sandboxed), vaultsync.Sent{Meta: wire.Meta{Path: "a.md"}}, strings.NewReader("a"))
	if core.KindOf(err) != core.Denied {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "Guests/7/a.md")); err == nil {
		t.Error("the file was written")
	}
}

func TestPrune_TheLastContentsOfAFileAreKeptAndOthersRemoved(t *testing.T) {
	w := open(t)
	base := ""
	for i := range 8 {
		text := fmt.Sprintf("text %d", i)
		w.push(owner(), "a.md", base, text)
		base = hash(text)
	}
	old := time.Now().Add(-48 * time.Hour)
	contents := func() (n int) {
		_ = filepath.WalkDir(filepath.Join(w.dir, ".parachute/versions"), func(p string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				n++
				_ = os.Chtimes(p, old, old)
			}
			return nil
		})
		return n
	}
	if n := contents(); n != 8 {
		t.Fatal(n)
	}
	if n, err := w.Prune(t.Context()); n != 4 || err != nil || contents() != 4 {
		t.Errorf("%d removed, %d left, %v", n, contents(), err)
	}
}

func TestForget_NothingOfAGuestsFilesIsLeft(t *testing.T) {
	w := open(t)
	w.push(area(7, core.Sandboxed), "a.md", "", "a")
	w.push(area(8, core.Sandboxed), "b.md", "", "b")
	w.push(owner(), "c.md", "", "c")
	tables := vaultsync.Tables{Store: w.Store}
	err := w.db.Tx(t.Context(), func(tx *store.Tx) error {
		return tables.Forget(t.Context(), tx, &core.Removal{Person: core.Person{User: 7}, Last: true})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables.Tables() {
		var of7, all int
		if err := w.db.Get(t.Context(), &of7, `SELECT count(*) FROM `+table+` WHERE path LIKE 'Guests/7/%'`); err != nil || of7 != 0 {
			t.Errorf("%s has %d rows, %v", table, of7, err)
		}
		if err := w.db.Get(t.Context(), &all, `SELECT count(DISTINCT path) FROM `+table); err != nil || all != 2 {
			t.Errorf("%s has %d files of others, %v", table, all, err)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, ".parachute/versions/7")); !os.IsNotExist(err) {
		t.Errorf("contents are left: %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, ".parachute/versions/8")); err != nil {
		t.Error(err)
	}
}

func TestPush_ContentsOfGuestsDoNotFillTheDisk(t *testing.T) {
	w := open(t)
	kept := func() (n int) {
		_ = filepath.WalkDir(filepath.Join(w.dir, ".parachute/versions"), func(_ string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				n++
			}
			return nil
		})
		return n
	}
	base := ""
	for i := range 40 { // of 4 MB
		text := strings.Repeat(fmt.Sprintf("%03d\n", i), 1<<20)
		w.push(area(7, core.Sandboxed), "a.md", base, text)
		base = hash(text)
	}
	if n := kept(); n != 32 {
		t.Errorf("%d contents are kept, want 128 MB of them", n)
	}
}

func TestMeant_OnlyWhatAKeyAtFullSentSinceIs(t *testing.T) {
	w := open(t)
	full := area(core.Operator, core.Full)
	full.May = func(trust core.Trust, _ int64, name string, write bool) bool {
		return trust == core.Full || !write || name != "CLAUDE.md" && !strings.HasPrefix(name, "agents/")
	}
	meant := func(name, content string, since time.Time) bool {
		return w.Meant(name, since, strings.NewReader(content))
	}
	before := w.clock.Now()
	w.push(full, "CLAUDE.md", "", "one\n")
	w.push(full, "agents/a.md", "", "a\n")
	w.push(full, "n.md", "", "n\n")
	w.clock.Advance(time.Second)
	after := w.clock.Now()
	if !meant("CLAUDE.md", "one\n", before) || !meant("agents/a.md", "a\n", before) || !w.Meant("agents", before, nil) {
		t.Error("what was sent is not known")
	}
	for _, c := range []struct {
		name, content string
		since         time.Time
	}{{"CLAUDE.md", "one\n", after}, {"CLAUDE.md", "two\n", before}, {"CLAUDE.md", "a\n", before}, {"agents/b.md", "a\n", before}, {"n.md", "n\n", before}} {
		if meant(c.name, c.content, c.since) {
			t.Errorf("%+v", c)
		}
	}
	if w.Meant("agent", before, nil) {
		t.Error("a directory without such files")
	}
	if _, err := w.Delete(t.Context(), full, "", "CLAUDE.md", hash("one\n")); err != nil || meant("CLAUDE.md", "one\n", before) {
		t.Error("a deleted file", err)
	}
	w.push(full, "CLAUDE.md", "", "first\n\nlast\n")
	w.push(full, "CLAUDE.md", hash("first\n\nlast\n"), "FIRST\n\nlast\n")
	w.push(full, "CLAUDE.md", hash("first\n\nlast\n"), "first\n\nLAST\n")
	if !meant("CLAUDE.md", "FIRST\n\nLAST\n", after) {
		t.Error("a merge is not known")
	}
}

func TestDelete_ANameThatNeverWasLeavesNothing(t *testing.T) {
	w := open(t)
	if done, err := w.Delete(t.Context(), owner(), "", "never.md", hash("x")); err != nil || done.Outcome != wire.Deleted {
		t.Fatal(done, err)
	}
	for _, table := range (vaultsync.Tables{}).Tables() {
		var n int
		if err := w.db.Get(t.Context(), &n, `SELECT count(*) FROM `+table); err != nil || n != 0 {
			t.Errorf("%s has %d rows, %v", table, n, err)
		}
	}
}

func TestList_ANumberIsNotGivenTwice(t *testing.T) {
	w := open(t)
	w.push(owner(), "a.md", "", "a")
	w.push(owner(), "b.md", "", "b")
	if _, err := w.Delete(t.Context(), owner(), "", "b.md", hash("b")); err != nil {
		t.Fatal(err)
	}
	w.push(area(7, core.Sandboxed), "c.md", "", "c")
	before := w.list(owner(), "")
	w.clock.Advance(8 * 24 * time.Hour)
	if _, err := w.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := w.db.Tx(t.Context(), func(tx *store.Tx) error {
		return (vaultsync.Tables{Store: w.Store}).Forget(t.Context(), tx, &core.Removal{Person: core.Person{User: 7}, Last: true})
	})
	if err != nil || os.RemoveAll(filepath.Join(w.dir, "Guests")) != nil {
		t.Fatal(err)
	}
	w.write("d.md", "d")
	if l := w.list(owner(), before.Cursor); l.Complete || len(l.Files) != 1 || l.Files[0].Path != "d.md" {
		t.Errorf("after %s: %+v", before.Cursor, l)
	}
}

func TestPush_FilesOfAForgottenGuestDoNotComeBack(t *testing.T) {
	w := open(t)
	w.write("Guests/8/b.md", "b")
	_, err := w.Push(t.Context(), owner(), vaultsync.Sent{Meta: wire.Meta{Path: "Guests/7/a.md"}}, strings.NewReader("a"))
	if core.KindOf(err) != core.Denied {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "Guests/7")); err == nil {
		t.Error("the directory is there again")
	}
	w.push(owner(), "Guests/8/a.md", "", "a")
	w.push(area(7, core.Sandboxed), "a.md", "", "a") // their own device may
}

func TestList_AFolderThatBecomesALinkIsNotDeleted(t *testing.T) {
	w := open(t)
	w.write("Photos/a.md", "a")
	w.write("b.md", "b")
	before := w.list(owner(), "")
	at := filepath.Join(w.dir, "Photos")
	if err := os.Rename(at, at+" moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(at+" moved", filepath.Join(t.TempDir(), "Photos")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", at); err != nil {
		t.Fatal(err)
	}
	if l := w.list(owner(), before.Cursor); len(l.Deleted) != 0 || l.Digest != before.Digest {
		t.Errorf("%+v", l)
	}
}

// A limited context is canceled when it was asked n times.
type limited struct {
	context.Context
	n int
}

func (l *limited) Err() error {
	if l.n--; l.n < 0 {
		return context.Canceled
	}
	return nil
}

func TestList_AClientThatDoesNotWaitForTheFirstListGetsItLater(t *testing.T) {
	w := open(t)
	for n := range 40 {
		w.write(fmt.Sprintf("%02d.md", n), "text")
	}
	var known int
	_, err := w.List(&limited{context.WithoutCancel(t.Context()), 20}, owner(), vaultsync.Query{})
	if got := w.db.Get(t.Context(), &known, `SELECT count(*) FROM sync_files`); err == nil || got != nil || known == 0 || known == 40 {
		t.Fatalf("%d files are known: %v, %v", known, err, got)
	}
	if l := w.list(owner(), ""); len(l.Files) != 40 || len(l.Deleted) != 0 {
		t.Errorf("%d files, %d deleted", len(l.Files), len(l.Deleted))
	}
}

func TestPrune_DeletionsAreLimited(t *testing.T) {
	w := open(t)
	w.push(owner(), "z.md", "", "z")
	for n := range maxDeletions + 3 {
		name := fmt.Sprintf("%02d.md", n)
		w.push(owner(), name, "", "text")
		if _, err := w.Delete(t.Context(), owner(), "", name, hash("text")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, table := range (vaultsync.Tables{}).Tables() {
		var n int
		if err := w.db.Get(t.Context(), &n, `SELECT count(DISTINCT path) FROM `+table); err != nil || n != maxDeletions+1 {
			t.Errorf("%s knows %d files, %v", table, n, err)
		}
	}
	if l := w.list(owner(), "1"); !l.Complete || len(l.Files) != 1 {
		t.Errorf("a device from before gets %d files, complete: %v", len(l.Files), l.Complete)
	}
}

// Prune reads the versions in pages: what a file at the end of one has is not forgotten.
func TestPrune_KeepsTheContentsOfMoreFilesThanItReadsAtATime(t *testing.T) {
	w := open(t)
	const files, versions = 1300, 4 // over one page of rows
	err := w.db.Tx(t.Context(), func(tx *store.Tx) error {
		for i := range files {
			for v := range versions {
				if _, err := tx.Exec(t.Context(), `INSERT INTO sync_versions (path, hash, base, seq) VALUES ($1, $2, '-', $3)`, fmt.Sprintf("N/%04d.md", i), hash(fmt.Sprint(i, v)), v+1); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	place := func(i, v int) string {
		digits := wire.Hex(hash(fmt.Sprint(i, v)))
		return filepath.Join(".parachute/versions/vault", digits[:2], digits)
	}
	for i := range files {
		w.write(place(i, 0), fmt.Sprint(i, 0))
	}
	w.write(".parachute/versions/vault/ff/ff00", "not of any file")
	w.clock.Advance(2 * time.Hour)
	if n, err := w.Prune(t.Context()); n != 1 || err != nil {
		t.Errorf("%d are removed, want 1: %v", n, err)
	}
	if got := w.read(place(files-1, 0)); got != fmt.Sprint(files-1, 0) {
		t.Errorf("%q", got)
	}
}

// What a gateway was writing when it was killed is removed by the next one; what this
// one is writing stays.
func TestWhatAKilledGatewayWasWritingIsRemovedAtTheNextStart(t *testing.T) {
	before := filepath.Join(t.TempDir(), "vault")
	if err := os.MkdirAll(before, 0o700); err != nil {
		t.Fatal(err)
	}
	left, being := filepath.Join(before, ".sync-part-0011223344556677.gatehouse-tmp"), filepath.Join(before, ".sync-part-8899aabbccddeeff.gatehouse-tmp")
	write := func(name string) {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(left)
	time.Sleep(50 * time.Millisecond) // times of files are coarse
	w := openAt(t, before)
	write(being)
	w.list(owner(), "")
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what the gateway before was writing is still there: %v", err)
	}
	if _, err := os.Stat(being); err != nil {
		t.Errorf("what this gateway is writing is gone: %v", err)
	}
}

// Each file that a device sends or deletes counts once, by what became of it.
func TestFilesOfDevicesAreCountedByWhatBecameOfThem(t *testing.T) {
	w := open(t)
	w.push(owner(), "a.md", "", "one\ntwo\nthree\n")
	w.push(owner(), "a.md", hash("one\ntwo\nthree\n"), "one\ntwo\nthree\n")
	w.push(owner(), "a.md", hash("one\ntwo\nthree\n"), "ONE\ntwo\nthree\n")
	w.push(owner(), "a.md", hash("one\ntwo\nthree\n"), "one\ntwo\nTHREE\n") // merged with the change above
	w.push(owner(), "b.png", "", "\x89PNG\x00")
	w.push(owner(), "b.png", "", "\x89PNG\x00\x01")
	for _, base := range []string{hash("something older"), hash("\x89PNG\x00")} {
		if _, err := w.Delete(t.Context(), owner(), "", "b.png", base); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Push(t.Context(), owner(), vaultsync.Sent{Meta: wire.Meta{Path: "../c.md"}, Device: "phone"}, strings.NewReader("x")); err == nil {
		t.Error("a path out of the vault is taken")
	}
	text := "# HELP gatehouse_sync_files_total Files that devices sent or deleted, by what became of them.\n# TYPE gatehouse_sync_files_total counter\n"
	for outcome, n := range map[string]int{wire.Stored: 3, wire.Unchanged: 1, wire.Merged: 1, wire.Copied: 1, wire.Deleted: 1, wire.Kept: 1, "error": 1} {
		text += fmt.Sprintf("gatehouse_sync_files_total{outcome=%q} %d\n", outcome, n)
	}
	if err := testutil.GatherAndCompare(w.reg, strings.NewReader(text), "gatehouse_sync_files_total"); err != nil {
		t.Error(err)
	}
}
