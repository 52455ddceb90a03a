package crawl_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/index/crawl"
	"gatehouse/core/index/document"
	"gatehouse/core/index/search"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == childArg {
		if err := child(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// A world is a vault and the index of it.
type world struct {
	t       *testing.T
	dir     string
	clock   *coretest.Clock
	files   *counted
	library *counting
	o       crawl.Options
	*crawl.Crawler
}

// counted is the vault's file system, which counts what is opened and fails where told.
type counted struct {
	fs.FS
	opened []string
	fails  map[string]error
	during func(name string) // called while a file is open
}

func (c *counted) Open(name string) (fs.File, error) {
	if err := c.fails[name]; err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f, err := c.FS.Open(name)
	if st, serr := fs.Stat(c.FS, name); err == nil && serr == nil && st.Mode().IsRegular() {
		c.opened = append(c.opened, name)
		if c.during != nil {
			c.during(name)
		}
	}
	return f, err
}

// counting is the index, which counts what is written and fails after that, if told.
type counting struct {
	*document.Store
	puts, marks, removed []string
	left                 int    // puts until failure; negative: none
	refuses              string // a path that cannot be put

	changed chan string // what was put or removed; nil: no one waits
}

func (c *counting) tell(what string) {
	if c.changed != nil {
		c.changed <- what
	}
}

var errStopped = errors.New("stopped")

func (c *counting) Put(ctx context.Context, d document.Document) error {
	if c.left == 0 || d.Path == c.refuses {
		return errStopped
	}
	c.left--
	c.puts = append(c.puts, d.Path)
	err := c.Store.Put(ctx, d)
	c.tell("put " + d.Path)
	return err
}

func (c *counting) Mark(ctx context.Context, f document.File) error {
	c.marks = append(c.marks, f.Path)
	return c.Store.Mark(ctx, f)
}

func (c *counting) Remove(ctx context.Context, paths []string) error {
	c.removed = append(c.removed, paths...)
	err := c.Store.Remove(ctx, paths)
	c.tell("removed " + strings.Join(paths, " "))
	return err
}

func open(t *testing.T) *world {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".parachute"), 0o700); err != nil {
		t.Fatal(err)
	}
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	clock := coretest.NewClock(time.Now().Add(time.Hour)) // nothing was changed lately
	w := &world{t: t, dir: v.Path(), clock: clock, files: &counted{FS: v.FS(), fails: map[string]error{}},
		library: &counting{Store: document.New(storetest.Open(t, clock), func(context.Context, store.Queryer, int64) (bool, error) { return true, nil }), left: -1}}
	w.o = crawl.Options{Files: w.files, Path: v.Path(), Library: w.library, Clock: clock, Log: slog.New(slog.DiscardHandler),
		MayRead: func(name string) bool { return !strings.Contains(name, "secret") }, Open: func(name string) bool { return strings.HasPrefix(name, "Public/") }}
	w.Crawler = crawl.New(w.o)
	return w
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

// pass returns what a pass has done, as "put a, marked b, removed c".
func (w *world) pass() string {
	w.t.Helper()
	w.library.puts, w.library.marks, w.library.removed, w.files.opened = nil, nil, nil, nil
	if err := w.Pass(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return w.done()
}

func (w *world) done() string {
	var out []string
	for _, part := range []struct {
		what  string
		names []string
	}{{"put", w.library.puts}, {"marked", w.library.marks}, {"removed", w.library.removed}} {
		if len(part.names) > 0 {
			out = append(out, part.what+" "+strings.Join(part.names, " "))
		}
	}
	return strings.Join(out, ", ")
}

func (w *world) wantPass(want string) {
	w.t.Helper()
	if got := w.pass(); got != want {
		w.t.Errorf("the pass %s, want %s", got, want)
	}
}

// finds returns the paths of the documents with the words.
func (w *world) finds(text string) (paths []string) {
	w.t.Helper()
	q, _ := search.Parse(text)
	hits, _, err := w.library.Find(w.t.Context(), q, search.Reader{User: 1, Trust: core.Full, MayRead: func(string) bool { return true }}, 100, "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, h := range hits {
		paths = append(paths, h.Path)
	}
	slices.Sort(paths)
	return paths
}

func (w *world) wantFound(text string, want ...string) {
	w.t.Helper()
	if got := w.finds(text); !slices.Equal(got, want) {
		w.t.Errorf("%s finds %v, want %v", text, got, want)
	}
}

func TestPass_IndexesWhatIsTextAndNothingThatIsHidden(t *testing.T) {
	w := open(t)
	w.write("a.md", "# Tea\n\ngreen")
	w.write("Notes/b.TXT", "green")
	w.write("Notes/deep/c.go", "package green")
	w.write("Public/d.html", "<p>green")
	w.write("Notes/secret.md", "green")
	w.write("Chat/sessions/x.md", "green")
	w.write("Daily/chat-log/2026-01-28.md", "green")
	w.write("Daily/.activity/2026-01-28.jsonl", "green")
	w.write(".obsidian/x.md", "green")
	w.write("Notes/.hidden.md", "green")
	w.write("Notes/a.md~", "green")
	w.write("photo.jpg", "green")
	if err := os.Symlink("/etc", filepath.Join(w.dir, "etc")); err != nil {
		t.Fatal(err)
	}
	_ = os.Symlink("a.md", filepath.Join(w.dir, "link.md"))
	_ = os.Symlink("..", filepath.Join(w.dir, "Notes", "loop"))
	w.wantPass("put Notes/b.TXT Notes/deep/c.go Public/d.html a.md")
	w.wantFound("green", "Notes/b.TXT", "Notes/deep/c.go", "Public/d.html", "a.md")
	q, _ := search.Parse("green")
	hits, _, err := w.library.Find(t.Context(), q, search.Reader{User: 7, Trust: core.Sandboxed, MayRead: func(string) bool { return true }}, 10, "")
	if err != nil || len(hits) != 1 || hits[0].Path != "Public/d.html" {
		t.Errorf("a guest finds %v, %v", hits, err)
	}
	if s := w.Status(); s.Running || s.Seen != 4 || s.Indexed != 4 || s.Faults != 0 || s.Ended.IsZero() || s.Err != "" {
		t.Errorf("%+v", s)
	}
}

func TestPass_ReadsWhatChangedAlone(t *testing.T) {
	w := open(t)
	for _, name := range []string{"a.md", "b.md", "b/c.md", "d.md"} {
		w.write(name, "old "+name)
	}
	w.wantPass("put a.md b.md b/c.md d.md")
	w.wantPass("")
	if len(w.files.opened) != 0 {
		t.Errorf("it opened %v", w.files.opened)
	}
	w.write("b.md", "new words")
	_ = os.Remove(filepath.Join(w.dir, "a.md"))
	_ = os.Rename(filepath.Join(w.dir, "b"), filepath.Join(w.dir, "z"))
	at := time.Now().Add(-time.Hour)
	_ = os.Chtimes(filepath.Join(w.dir, "d.md"), at, at)
	w.wantPass("put b.md z/c.md, marked d.md, removed a.md b/c.md")
	w.wantFound("old", "d.md", "z/c.md")
	w.wantPass("")
}

func TestPass_AFileChangedLatelyIsReadAgain(t *testing.T) {
	w := open(t)
	w.write("a.md", "one")
	now := w.clock.Now()
	_ = os.Chtimes(filepath.Join(w.dir, "a.md"), now, now)
	w.wantPass("put a.md")
	w.write("a.md", "two") // with the same size, and the same time where clocks are coarse
	_ = os.Chtimes(filepath.Join(w.dir, "a.md"), now, now)
	w.clock.Advance(time.Minute)
	w.wantPass("put a.md")
	w.wantFound("two", "a.md")
	w.wantPass("")
}

func TestPass_AFileOfTheFutureIsReadOnceAsAnyOther(t *testing.T) {
	w := open(t)
	w.write("a.md", "one")
	later := w.clock.Now().Add(240 * time.Hour)
	_ = os.Chtimes(filepath.Join(w.dir, "a.md"), later, later)
	w.wantPass("put a.md")
	w.wantPass("")
	if len(w.files.opened) > 0 {
		t.Errorf("it opened %v", w.files.opened)
	}
}

func TestPass_ATouchedPDFIsNotExtractedAgain(t *testing.T) {
	w := open(t)
	extracted := 0
	w.o.PDF = func(context.Context, []byte) (string, int, int, error) { extracted++; return "slate roof", 1, 1, nil }
	w.Crawler = crawl.New(w.o)
	w.write("a.pdf", "%PDF-1.7")
	w.pass()
	at := time.Now().Add(-time.Hour)
	_ = os.Chtimes(filepath.Join(w.dir, "a.pdf"), at, at)
	w.wantPass("marked a.pdf")
	if extracted != 1 {
		t.Errorf("extracted %d times", extracted)
	}
	w.wantFound("slate", "a.pdf")
}

func TestKick_MakesTheIndexOldUntilThePassThatFollows(t *testing.T) {
	w := open(t)
	if w.Current() {
		t.Error("an index that was never filled is current")
	}
	w.wantPass("")
	if !w.Current() {
		t.Error("after a pass it is old")
	}
	if w.Kick(); w.Current() {
		t.Error("after changed settings it is current")
	}
	if w.wantPass(""); !w.Current() {
		t.Error("after the pass that follows it is old")
	}
}

func TestPass_ReadsTheRulesAgain(t *testing.T) {
	w := open(t)
	forgotten := 0
	w.o.Forget = func() { forgotten++ }
	w.Crawler = crawl.New(w.o)
	w.pass()
	w.pass()
	if forgotten != 2 {
		t.Errorf("the rules were read %d times", forgotten)
	}
}

func TestPass_APathThatIsTooLongForAnIndexIsLeftOut(t *testing.T) {
	w := open(t)
	w.write(strings.Repeat(strings.Repeat("d", 200)+"/", 5)+"a.md", "text")
	w.write("b.md", "text")
	w.wantPass("put b.md")
}

func TestPass_AFileThatChangesWhileItIsReadWaitsForTheNext(t *testing.T) {
	w := open(t)
	w.write("a.md", "first")
	w.files.during = func(string) { w.write("a.md", "second and longer") }
	w.wantPass("")
	w.files.during = nil
	w.wantPass("put a.md")
	w.wantFound("second", "a.md")
}

func TestPass_WhatCannotBeIndexedIsListedWithTheReason(t *testing.T) {
	w := open(t)
	w.write("binary.txt", "a\x00b")
	w.write("scan.pdf", "%PDF")
	w.write("broken.md", "x")
	w.files.fails["broken.md"] = errors.New("input/output error")
	large, err := os.Create(filepath.Join(w.dir, "large.txt"))
	if err == nil {
		err = errors.Join(large.Truncate(1<<30), large.Close()) // a hole of 1 GB
	}
	if err != nil {
		t.Fatal(err)
	}
	w.pass()
	faults, err := w.library.Faults(t.Context(), "", 10)
	var got []string
	for _, f := range faults {
		got = append(got, f.Path+": "+f.Fault)
	}
	want := []string{"binary.txt: it is not text", "broken.md: it cannot be read: input/output error", "large.txt: larger than 20 MB", "scan.pdf: PDFs are not read here"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if slices.Contains(w.files.opened, "large.txt") {
		t.Error("a file of 1 GB was opened")
	}
	w.wantPass("")
	w.write("binary.txt", "text now")
	w.wantPass("put binary.txt")
	w.wantFound("text", "binary.txt")
}

func TestPass_PDFsAreReadByTheirExtractor(t *testing.T) {
	w := open(t)
	w.o.PDF = func(_ context.Context, data []byte) (string, int, int, error) {
		if string(data) == "%PDF-broken" {
			return "", 0, 0, errors.New("no pages")
		}
		return "slate roof", 1, 1, nil
	}
	w.Crawler = crawl.New(w.o)
	w.write("offer.pdf", "%PDF-1.7")
	w.write("broken.pdf", "%PDF-broken")
	w.pass()
	w.wantFound("slate", "offer.pdf")
	faults, _ := w.library.Faults(t.Context(), "", 10)
	if len(faults) != 1 || faults[0].Fault != "its text cannot be read: no pages" {
		t.Errorf("%v", faults)
	}
}

func TestPass_APDFThatCouldNotBeReadIsTriedAgainTheNextDay(t *testing.T) {
	w := open(t)
	tries := 0
	w.o.PDF = func(context.Context, []byte) (string, int, int, error) {
		if tries++; tries < 3 {
			return "", 0, 0, errors.New("no memory")
		}
		return "slate roof", 1, 1, nil
	}
	w.Crawler = crawl.New(w.o)
	w.write("offer.pdf", "%PDF-1.7")
	w.pass()
	w.clock.Advance(time.Hour)
	w.pass()
	if tries != 1 {
		t.Errorf("within a day it is read %d times", tries)
	}
	for range 2 { // the second attempt fails as the first
		w.clock.Advance(24 * time.Hour)
		w.pass()
		w.pass()
	}
	if tries != 3 {
		t.Errorf("in three days it is read %d times", tries)
	}
	w.wantFound("slate", "offer.pdf")
}

func TestPass_NoticesAChangeThatKeepsSizeAndTime(t *testing.T) {
	w := open(t)
	w.write("a.md", "green tea")
	long := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	set := func() {
		t.Helper()
		if err := os.Chtimes(filepath.Join(w.dir, "a.md"), long, long); err != nil {
			t.Fatal(err)
		}
	}
	set()
	w.wantPass("put a.md")
	w.wantPass("")
	w.write("a.md", "black tea")
	set()
	w.wantPass("put a.md")
	w.wantFound("black", "a.md")
}

func TestPass_StoppedAnywhereGoesOnWhereItWas(t *testing.T) {
	w := open(t)
	for i := range 20 {
		w.write(fmt.Sprintf("n%02d.md", i), "text")
	}
	w.library.left = 7
	if err := w.Pass(t.Context()); !errors.Is(err, errStopped) {
		t.Fatal(err)
	}
	if s := w.Status(); s.Err == "" || s.Running {
		t.Errorf("%+v", s)
	}
	w.library.left = -1
	w.pass()
	if len(w.library.puts) != 13 || len(w.files.opened) != 13 {
		t.Errorf("it put %d and opened %d again", len(w.library.puts), len(w.files.opened))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Pass(ctx); err == nil || len(w.finds("text")) != 20 {
		t.Errorf("%v, %d documents", err, len(w.finds("text")))
	}
}

func TestPass_OneDocumentThatCannotBeStoredHoldsUpNoOther(t *testing.T) {
	w := open(t)
	for _, name := range []string{"a.md", "b.md", "c.md"} {
		w.write(name, "text")
	}
	w.library.refuses = "b.md"
	w.wantPass("put a.md c.md")
	w.library.refuses = ""
	w.wantPass("put b.md")
}

func TestPass_ADirectoryThatCannotBeReadKeepsWhatIsIndexed(t *testing.T) {
	w := open(t)
	for _, name := range []string{"a/x.md", "b/x.md", "b/c/y.md", "b.md", "z.md"} {
		w.write(name, "text")
	}
	w.pass()
	w.files.fails["b"] = errors.New("input/output error")
	_ = os.Remove(filepath.Join(w.dir, "z.md"))
	w.wantPass("removed z.md")
	w.wantFound("text", "a/x.md", "b.md", "b/c/y.md", "b/x.md")
	delete(w.files.fails, "b")
	w.files.fails["."] = errors.New("input/output error")
	if err := w.Pass(t.Context()); err == nil || len(w.finds("text")) != 4 {
		t.Errorf("%v, %v", err, w.finds("text"))
	}
	delete(w.files.fails, ".")
	_ = os.Rename(filepath.Join(w.dir, ".parachute"), filepath.Join(w.dir, "..parachute")) // as an empty mount point
	if err := w.Pass(t.Context()); err == nil || len(w.finds("text")) != 4 {
		t.Errorf("%v, %v", err, w.finds("text"))
	}
}

func TestPass_TheIndexTakesSoManyBytesAndNoMore(t *testing.T) {
	w := open(t)
	w.o.MaxBytes = 1 << 20
	w.Crawler = crawl.New(w.o)
	for i := range 4 {
		w.write(fmt.Sprintf("n%d.txt", i), strings.Repeat("word text ", 40_000)) // 400 kB
	}
	w.pass()
	w.wantFound("word", "n0.txt", "n1.txt")
	faults, _ := w.library.Faults(t.Context(), "", 10)
	if len(faults) != 2 || faults[0].Fault != "the index is full: GATEHOUSE_INDEX_MAX_MB is 1" {
		t.Errorf("%v", faults)
	}
	w.wantPass("")
	_ = os.Remove(filepath.Join(w.dir, "n0.txt"))
	w.pass()
	w.wantFound("word", "n1.txt", "n2.txt")
}

func TestPass_WhatIsClosedOrOpenedToGuestsIsMarked(t *testing.T) {
	w := open(t)
	w.write("Public/a.md", "text")
	w.pass()
	w.o.Open = func(string) bool { return false }
	w.Crawler = crawl.New(w.o)
	w.wantPass("marked Public/a.md")
	w.wantPass("")
}

func TestPass_GivesWayToMessagesButNotForEver(t *testing.T) {
	w := open(t)
	asked := 0
	w.o.Busy = func() bool { asked++; return true }
	w.Crawler = crawl.New(w.o)
	w.write("a.md", "text")
	done := make(chan error)
	go func() { done <- w.Pass(t.Context()) }()
	for range 20 {
		w.clock.AwaitWaiters(1)
		w.clock.Advance(50 * time.Millisecond)
	}
	if err := <-done; err != nil || asked != 20 {
		t.Errorf("asked %d times, %v", asked, err)
	}
	w.wantFound("text", "a.md")
}

func TestPass_ManyFilesAreReadAndRemovedPageByPage(t *testing.T) {
	w := open(t)
	for i := range 3000 {
		w.write(fmt.Sprintf("d%d/n%d.md", i%7, i), fmt.Sprintf("text number%d", i))
	}
	w.pass()
	if s := w.Status(); s.Seen != 3000 || len(w.finds("number2999")) != 1 {
		t.Errorf("%+v", s)
	}
	for i := range 2000 {
		_ = os.Remove(filepath.Join(w.dir, fmt.Sprintf("d%d/n%d.md", i%7, i)))
	}
	w.pass()
	if len(w.library.removed) != 2000 || len(w.library.puts) != 0 {
		t.Errorf("removed %d, put %d", len(w.library.removed), len(w.library.puts))
	}
}

// run runs the crawler until the test ends; its first pass is over.
func (w *world) run() {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	w.t.Cleanup(func() { cancel(); <-done })
	w.clock.AwaitWaiters(1) // for ten minutes
	w.library.changed = make(chan string, 100)
}

func (w *world) wantNext(want string) {
	w.t.Helper()
	select {
	case got := <-w.library.changed:
		if got != want {
			w.t.Errorf("it %s, want %s", got, want)
		}
	case <-time.After(time.Minute):
		w.t.Fatalf("it did nothing, want %s", want)
	}
}

func TestRun_AChangeIsIndexedWhenItHasSettled(t *testing.T) {
	w := open(t)
	w.write("Notes/a.md", "old")
	w.write("Other/b.md", "old")
	w.run()
	w.write("Notes/a.md", "new text")
	w.clock.AwaitWaiters(3)
	w.clock.Advance(2 * time.Second)
	w.wantNext("put Notes/a.md")
	w.wantFound("new", "Notes/a.md")
}

// What changes while changes go on is read together: each file once, however often it was written.
func TestRun_ABurstOfChangesIsOnePass(t *testing.T) {
	w := open(t)
	for i := range 40 {
		w.write(fmt.Sprintf("Notes/n%02d.md", i), "old")
	}
	w.run()
	for n := range 5 {
		for i := range 40 {
			w.write(fmt.Sprintf("Notes/n%02d.md", i), fmt.Sprintf("text %d", n))
		}
	}
	w.wantSettled("put Notes/n00.md")
	for i := 1; i < 40; i++ {
		w.wantNext(fmt.Sprintf("put Notes/n%02d.md", i))
	}
	w.write("Notes/n00.md", "the end")
	w.wantSettled("put Notes/n00.md") // and nothing in between
	w.wantFound("end", "Notes/n00.md")
}

func TestRun_ANewDirectoryIsIndexedAndWatched(t *testing.T) {
	w := open(t)
	w.run()
	w.write("New/Deep/a.md", "one")
	w.clock.AwaitWaiters(3)
	w.clock.Advance(2 * time.Second)
	w.wantNext("put New/Deep/a.md")
	_ = os.RemoveAll(filepath.Join(w.dir, "New", "Deep"))
	w.clock.AwaitWaiters(3)
	w.clock.Advance(2 * time.Second)
	w.wantNext("removed New/Deep/a.md")
}

func TestRun_AChangeOfTheRulesHasTheWholeVaultRead(t *testing.T) {
	w := open(t)
	w.o.Rules = ".parachuteignore"
	w.o.MayRead = func(name string) bool {
		lines, _ := os.ReadFile(filepath.Join(w.dir, ".parachuteignore"))
		return !strings.Contains(string(lines), name)
	}
	w.Crawler = crawl.New(w.o)
	w.write("Deep/a.md", "text")
	w.run()
	w.write(".parachuteignore", "Deep/a.md")
	w.clock.AwaitWaiters(3)
	w.clock.Advance(2 * time.Second)
	w.wantNext("removed Deep/a.md")
}

func TestRun_ReadsTheWholeVaultWhenAskedAndEveryTenMinutes(t *testing.T) {
	w := open(t)
	closed := ""
	var mu sync.Mutex
	w.o.MayRead = func(name string) bool { mu.Lock(); defer mu.Unlock(); return name != closed }
	w.Crawler = crawl.New(w.o)
	w.write("a.md", "text")
	w.write("b.md", "text")
	w.run()
	set := func(name string) { mu.Lock(); defer mu.Unlock(); closed = name }
	set("a.md")
	w.Kick()
	w.wantNext("removed a.md")
	set("b.md")
	w.clock.AwaitWaiters(2) // the timer of before, and its own
	w.clock.Advance(crawl.Anyway)
	for got := ""; got != "removed b.md"; {
		select {
		case got = <-w.library.changed: // a.md comes back
		case <-time.After(time.Minute):
			t.Fatal("it did nothing")
		}
	}
}

func TestPass_AFileThatCouldNotBeReadIsReadWhenItCan(t *testing.T) {
	w := open(t)
	w.write("a.md", "tea")
	w.write("b.pdf", "a PDF")
	w.files.fails["a.md"] = fs.ErrPermission
	w.wantPass("put a.md b.pdf")
	w.wantPass("") // nothing is written again
	w.wantFound("tea")
	delete(w.files.fails, "a.md")
	w.wantPass("put a.md")
	w.wantFound("tea", "a.md")
	w.o.PDF = func(context.Context, []byte) (string, int, int, error) { return "pages", 1, 1, nil }
	w.Crawler = crawl.New(w.o)
	w.wantPass("put b.pdf")
	w.wantFound("pages", "b.pdf")
	w.wantPass("")
}

func TestPass_NamesThatAreNotUTF8AreLeftOut(t *testing.T) {
	w := open(t)
	for _, name := range []string{"a.md", "b\xff.md", "c\xfe/d.md", "z.md"} {
		w.write(name, "tea")
	}
	w.wantPass("put a.md z.md")
	w.wantPass("")
}

func TestPass_ADirectoryThatCannotBeReadIsLoggedOnce(t *testing.T) {
	w := open(t)
	var b strings.Builder
	w.o.Log = slog.New(slog.NewTextHandler(&b, nil))
	w.Crawler = crawl.New(w.o)
	w.write("b/x.md", "text")
	for range 2 {
		w.files.fails["b"] = errors.New("input/output error")
		w.pass()
		w.pass()
		delete(w.files.fails, "b")
		w.pass()
	}
	if n := strings.Count(b.String(), "a directory is not indexed"); n != 2 {
		t.Errorf("it is logged %d times, want once for each time it failed:\n%s", n, &b)
	}
}

// wantSettled lets the notices of a change settle as often as they come, for less than
// the ten minutes after which the whole vault is read.
func (w *world) wantSettled(want string) {
	w.t.Helper()
	for range 200 {
		select {
		case got := <-w.library.changed:
			if got != want {
				w.t.Errorf("it %s, want %s", got, want)
			}
			return
		case <-time.After(50 * time.Millisecond):
			w.clock.Advance(time.Second)
		}
	}
	w.t.Fatalf("it did nothing, want %s", want)
}

func TestRun_AChangeIsHeldToTheLimitToo(t *testing.T) {
	w := open(t)
	w.o.MaxBytes = 1 << 20
	w.Crawler = crawl.New(w.o)
	text := strings.Repeat("word text ", 40_000) // 400 kB
	w.write("a.txt", text)
	w.write("b.txt", text)
	w.write("Sub/c.txt", "short")
	w.run()
	change := func(name, text string) {
		w.write(name, text)
		w.wantSettled("put " + name)
	}
	change("Sub/c.txt", text)
	w.wantFound("word", "a.txt", "b.txt")
	change("Sub/c.txt", "word")
	w.wantFound("word", "Sub/c.txt", "a.txt", "b.txt")
}

func TestRun_ADirectoryWithTheNameOfARenamedOneIsWatched(t *testing.T) {
	w := open(t)
	w.write("A/Deep/a.md", "old")
	w.run()
	if err := os.Rename(filepath.Join(w.dir, "A"), filepath.Join(w.dir, "B")); err != nil {
		t.Fatal(err)
	}
	w.wantSettled("put B/Deep/a.md")
	w.wantNext("removed A/Deep/a.md")
	w.write("A/Deep/b.md", "one")
	w.wantSettled("put A/Deep/b.md")
	w.write("A/Deep/b.md", "another")
	w.wantSettled("put A/Deep/b.md")
}

// Beyond the first 512 directories a change is not noticed, and not lost either.
func TestRun_AChangeBeyondTheWatchedDirectoriesIsFoundByTheNextPass(t *testing.T) {
	w := open(t)
	for i := range 520 {
		w.write(fmt.Sprintf("d%03d/a.md", i), "old")
	}
	var log coretest.Log
	w.o.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.Crawler = crawl.New(w.o)
	w.run()
	if text := log.String(); !strings.Contains(text, "watched=512") || !strings.Contains(text, "read_every=10m") {
		t.Errorf("the log does not say what is not watched: %s", text)
	}
	w.write("d519/a.md", "new text")
	w.write("d000/a.md", "new text")
	w.wantSettled("put d000/a.md") // notices come in the order of the changes: of d519 there is none
	w.clock.Advance(crawl.Anyway)
	w.wantSettled("put d519/a.md")
	w.wantFound("new", "d000/a.md", "d519/a.md")
}

// What a dashboard shows is what the last finished pass over the vault has found, or where that
// is more, the one that runs.
func TestPass_MetricsCountDocumentsFaultsAndPasses(t *testing.T) {
	w := open(t)
	reg := prometheus.NewRegistry()
	w.o.Registry = reg
	w.Crawler = crawl.New(w.o)
	w.files.during = func(name string) {
		if name == "n0.md" {
			w.clock.Advance(3 * time.Second) // its pass takes so long
		}
	}
	want := func(when string, indexed, faults, passes int, took float64, ended time.Time) {
		t.Helper()
		got := metrics(t, reg)
		for name, value := range map[string]float64{
			"gatehouse_index_documents indexed": float64(indexed), "gatehouse_index_documents fault": float64(faults), "gatehouse_index_passes_total": float64(passes),
			"gatehouse_index_pass_seconds": took, "gatehouse_index_last_pass_timestamp_seconds": float64(ended.UnixNano()) / 1e9,
		} {
			if v, ok := got[name]; !ok || math.Abs(v-value) > 1e-3 {
				t.Errorf("%s: %s is %v, want %v", when, name, v, value)
			}
		}
	}
	want("at start", 0, 0, 0, 0, w.clock.Now().Truncate(time.Second))
	for i := range 40 {
		w.write(fmt.Sprintf("n%d.md", i), "text")
	}
	w.write("damaged.md", "a\x00b")
	w.write("scan.pdf", "%PDF")
	w.write("secret.md", "text")
	w.pass()
	first := w.clock.Now()
	want("after a pass", 40, 2, 1, 3, first)
	w.write("n0.md", "another text")
	w.write("n40.md", "text")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Pass(ctx); err == nil {
		t.Error("a pass that was stopped is finished")
	}
	want("after one that was stopped", 40, 2, 1, 3, first)
	w.clock.Advance(time.Hour)
	_ = os.Remove(filepath.Join(w.dir, "damaged.md"))
	w.pass()
	want("after the next", 41, 1, 2, 3, w.clock.Now())
}

// metrics returns the values of reg by their names, with the values of their labels.
func metrics(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}

// While the index is filled for the first time, and after a pass that did not reach its end, a
// dashboard shows how far it is; a later pass does not begin at 0.
func TestDocumentsOfARunningPassAreCounted(t *testing.T) {
	w := open(t)
	reg := prometheus.NewRegistry()
	w.o.Registry = reg
	w.Crawler = crawl.New(w.o)
	shown := func() (indexed, faults float64) {
		t.Helper()
		got := metrics(t, reg)
		return got["gatehouse_index_documents indexed"], got["gatehouse_index_documents fault"]
	}
	w.write("a.md", "a\x00b")
	for i := range 10 {
		w.write(fmt.Sprintf("n%d.md", i), "text")
	}
	w.files.during = func(name string) {
		if name == "n5.md" {
			if indexed, faults := shown(); indexed != 5 || faults != 1 {
				t.Errorf("in the middle of the first pass %v documents and %v faults are counted", indexed, faults)
			}
		}
	}
	w.library.left = 6 // then the database is broken
	for i := range 4 {
		w.write(fmt.Sprintf("z%d.md", i), "text")
	}
	if err := w.Pass(t.Context()); err == nil {
		t.Fatal("the pass has reached its end")
	}
	if indexed, _ := shown(); indexed < 5 {
		t.Errorf("after a pass that did not end %v documents are counted", indexed)
	}
	w.library.left = -1
	w.files.during = nil
	w.pass()
	if indexed, faults := shown(); indexed != 14 || faults != 1 {
		t.Errorf("%v documents and %v faults are counted", indexed, faults)
	}
	w.write("n0.md", "another text")
	w.files.during = func(name string) {
		if indexed, faults := shown(); indexed != 14 || faults != 1 {
			t.Errorf("when a later pass begins, %v documents and %v faults are counted", indexed, faults)
		}
	}
	w.pass()
	if len(w.files.opened) != 1 {
		t.Errorf("read are %q", w.files.opened)
	}
}
