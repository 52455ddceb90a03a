package document_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/index/chunk"
	"gatehouse/core/index/document"
	"gatehouse/core/index/search"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

var morning = time.Date(2026, 11, 24, 8, 0, 0, 123456789, time.UTC)

// An index is a store of documents in a real database.
type index struct {
	*document.Store
	t  *testing.T
	db *store.DB
}

func open(t *testing.T) *index { return openAt(t, coretest.NewClock(morning)) }

func openAt(t *testing.T, clock core.Clock) *index {
	db := storetest.Open(t, clock)
	return &index{document.New(db, everyone), t, db}
}

// A counting clock calls then when it has been asked left times: each transaction asks once.
type counting struct {
	*coretest.Clock
	left atomic.Int64
	then func()
}

func (c *counting) Now() time.Time {
	if c.left.Add(-1) == 0 {
		c.then()
	}
	return c.Clock.Now()
}

// put indexes a document with one chunk for each text.
func (x *index) put(path string, texts ...string) document.Document {
	x.t.Helper()
	d := document.Document{File: document.File{Path: path, Size: 100, Modified: morning, Hash: "h"}, Title: strings.TrimSuffix(path[strings.LastIndex(path, "/")+1:], ".md")}
	for i, text := range texts {
		d.Chunks = append(d.Chunks, chunk.Chunk{Text: text, Line: 10*i + 1})
	}
	x.keep(d)
	return d
}

func (x *index) keep(d document.Document) {
	x.t.Helper()
	if err := x.Put(x.t.Context(), d); err != nil {
		x.t.Fatal(err)
	}
}

func everyone(context.Context, store.Queryer, int64) (bool, error) { return true, nil }

func everything(string) bool { return true }

var owner = search.Reader{User: 1, Trust: core.Full, MayRead: everything}

// find returns "path:line" of the hits.
func (x *index) find(r search.Reader, text string) []string {
	x.t.Helper()
	q, _ := search.Parse(text)
	var out []string
	for cursor, pages := "", 0; ; pages++ {
		hits, next, err := x.Find(x.t.Context(), q, r, 10, cursor)
		if err != nil {
			x.t.Fatal(err)
		}
		for _, h := range hits {
			out = append(out, fmt.Sprintf("%s:%d", h.Path, h.Line))
		}
		if cursor = next; cursor == "" || pages > 1000 {
			return out
		}
	}
}

func (x *index) wantFound(r search.Reader, text string, want ...string) {
	x.t.Helper()
	if got := x.find(r, text); !slices.Equal(got, want) {
		x.t.Errorf("%s finds %v, want %v", text, got, want)
	}
}

// rows returns how many rows the tables have.
func (x *index) rows() (n [4]int) {
	for i, table := range []string{"index_manifest", "chunks", "document_words", "guest_words"} {
		if err := x.db.Get(x.t.Context(), &n[i], `SELECT count(*) FROM `+table); err != nil {
			x.t.Fatal(err)
		}
	}
	return n
}

func TestFind_EveryWordMustOccurInThePassageItsTitleOrItsPath(t *testing.T) {
	x := open(t)
	x.put("House/Roof.md", "We decided to take slate.", "The gutter was repaired in spring.")
	x.put("Garden.md", "Spring: sow the beans.", "A new roof for the shed.")
	x.wantFound(owner, "slate", "House/Roof.md:1")
	x.wantFound(owner, "roof spring", "House/Roof.md:11") // of the title and the passage; Garden has them apart
	x.wantFound(owner, "house gutter", "House/Roof.md:11")
	x.wantFound(owner, "slate beans")
	x.wantFound(owner, `"the gutter"`, "House/Roof.md:11")
	x.wantFound(owner, `"gutter the"`)
	x.wantFound(owner, "spring -beans", "House/Roof.md:11")
	x.wantFound(owner, "SLÄTE", "House/Roof.md:1")         // case and accents do not matter
	x.wantFound(owner, "gut", "House/Roof.md:11")          // the last word as a prefix, where nothing has it whole
	x.wantFound(owner, "roof in:House", "House/Roof.md:1") // one hit for each document
	x.wantFound(owner, "roof in:Hous")
}

func TestFind_TheBestPassageIsFirstWithItsExcerptAndMarks(t *testing.T) {
	storetest.SQLiteOnly(t, "its ranking")
	x := open(t)
	x.put("a.md", "The roof is one of many things: walls, doors, windows and what else a house has; long words about something else.")
	x.put("b.md", "Roof, roof and roof.")
	x.wantFound(owner, "roof", "b.md:1", "a.md:1")
	q, _ := search.Parse("many things")
	hits, _, err := x.Find(t.Context(), q, owner, 10, "")
	if err != nil || len(hits) != 1 {
		t.Fatal(hits, err)
	}
	h := hits[0]
	if h.Type != search.Document || h.ID != document.ID("a.md") || h.Title != "a" || !h.At.Equal(morning) {
		t.Errorf("%+v", h)
	}
	var marked []string
	for _, m := range h.Marks {
		marked = append(marked, string([]rune(h.Excerpt)[m[0]:m[1]]))
	}
	if got := strings.Join(marked, " "); got != "many things" {
		t.Errorf("marked %q in %q", got, h.Excerpt)
	}
}

func TestFind_AGuestFindsTheirOwnDirectoryAndWhatIsOpenAlone(t *testing.T) {
	x := open(t)
	x.put("Private.md", "secret tea")
	x.put("Guests/7/mine.md", "my tea")
	x.put("Guests/71/other.md", "other tea")
	x.put("Guests/x/odd.md", "odd tea")
	public := x.put("Public/open.md", "open tea")
	asked := map[string]bool{}
	guest := search.Reader{User: 7, Trust: core.Sandboxed, MayRead: func(name string) bool { asked[name] = true; return true }}
	x.wantFound(guest, "tea", "Guests/7/mine.md:1")
	public.Open = true
	if err := x.Mark(t.Context(), public.File); err != nil {
		t.Fatal(err)
	}
	x.wantFound(guest, "tea in:Guests", "Guests/7/mine.md:1")
	x.wantFound(guest, "tea in:Public", "Public/open.md:1")
	x.wantFound(guest, "tea tag:none")
	x.wantFound(guest, "-my", "Public/open.md:1")
	for name := range asked {
		if name == "Private.md" || strings.HasPrefix(name, "Guests/71") {
			t.Errorf("%s was ranked for a guest", name)
		}
	}
	guest.MayRead = func(name string) bool { return name != "Public/open.md" } // closed since
	x.wantFound(guest, "tea", "Guests/7/mine.md:1")
	guest.Trust = core.Stranger
	x.wantFound(guest, "tea")
	x.wantFound(search.Reader{User: 9, Trust: core.Vault, MayRead: everything}, "secret tea", "Private.md:1")
}

func TestFind_TagsFoldersAndTimesChoose(t *testing.T) {
	x := open(t)
	for i, name := range []string{"Notes/old.md", "Notes/Sub/new.md", "Notes2/other.md"} {
		x.keep(document.Document{File: document.File{Path: name, Modified: morning.AddDate(0, 0, i), Hash: "h"}, Tags: []string{"tea", fmt.Sprintf("t%d", i)},
			Title: "n", Chunks: []chunk.Chunk{{Text: "green leaves", Line: 1}, {Text: "black leaves", Line: 2}}})
	}
	x.wantFound(owner, "green in:Notes", "Notes/old.md:1", "Notes/Sub/new.md:1")
	x.wantFound(owner, "green tag:t2", "Notes2/other.md:1")
	x.wantFound(owner, "tag:tea tag:t1", "Notes/Sub/new.md:1")
	x.wantFound(owner, "in:Notes", "Notes/Sub/new.md:1", "Notes/old.md:1") // without words: the newest first
	q, _ := search.Parse("green")
	q.After, q.Before = morning.AddDate(0, 0, 1), morning.AddDate(0, 0, 2)
	hits, _, err := x.Find(t.Context(), q, owner, 10, "")
	if err != nil || len(hits) != 1 || hits[0].Path != "Notes/Sub/new.md" {
		t.Errorf("%v, %v", hits, err)
	}
}

func TestFind_WhatIsExcludedIsNotListedWithoutWords(t *testing.T) {
	x := open(t)
	x.put("a.md", "potato", "tomato")
	x.put("b.md", "potato")
	x.wantFound(owner, "-tomato", "b.md:1")
	x.wantFound(owner, "-tomato -potato")
	x.wantFound(owner, "potato -tomato", "a.md:1", "b.md:1") // in one passage
}

func TestFind_PagesShowEachDocumentOnce(t *testing.T) {
	x := open(t)
	for i := range 57 {
		x.put(fmt.Sprintf("n%02d.md", i), "tea", "more tea", strings.Repeat("tea ", i+1))
	}
	got := x.find(owner, "tea")
	slices.Sort(got)
	if len(got) != 57 || len(slices.CompactFunc(got, func(a, b string) bool { return a[:6] == b[:6] })) != 57 {
		t.Errorf("%d hits: %v", len(got), got)
	}
	q, _ := search.Parse("tea")
	for _, cursor := range []string{"x", "ZCAwIHRydWU", "ZCA5OTk5OTk5IGZhbHNl"} {
		if _, _, err := x.Find(t.Context(), q, owner, 10, cursor); core.KindOf(err) != core.Invalid {
			t.Errorf("cursor %s: %v", cursor, err)
		}
	}
}

func TestPut_ReplacesAllOfADocumentAlsoALargeOne(t *testing.T) {
	x := open(t)
	large := make([]string, 200)
	for i := range large {
		large[i] = fmt.Sprintf("passage number%d", i)
	}
	x.put("a.md", large...)
	x.wantFound(owner, "number199", "a.md:1991")
	x.put("a.md", large[:130]...)
	x.wantFound(owner, "number199")
	x.wantFound(owner, "number129", "a.md:1291")
	x.put("a.md", "short")
	x.wantFound(owner, "number12")
	x.wantFound(owner, "short", "a.md:1")
	if n := x.rows(); n != [4]int{1, 1, 1} {
		t.Errorf("rows %v", n)
	}
}

func TestPut_CancelledLeavesADocumentThatIsPutAgain(t *testing.T) {
	for after := range int64(7) {
		ctx, cancel := context.WithCancel(t.Context())
		clock := &counting{Clock: coretest.NewClock(morning), then: cancel}
		x := openAt(t, clock)
		d := x.put("a.md", "old")
		for i := range 500 {
			d.Chunks = append(d.Chunks, chunk.Chunk{Text: fmt.Sprintf("new%d", i), Line: 1})
		}
		d.Hash = "new"
		clock.left.Store(after + 1)
		if err := x.Put(ctx, d); err == nil {
			t.Errorf("it was put after %d transactions", after)
		}
		files, err := x.Files(t.Context(), "", 10)
		if err != nil || len(files) != 1 || files[0].Hash == "new" {
			t.Errorf("after %d transactions %+v, %v: the crawler would take it for indexed", after, files, err)
		}
		x.keep(d)
		x.wantFound(owner, "new499", "a.md:1")
		x.wantFound(owner, "old", "a.md:1")
		if n := x.rows(); n != [4]int{1, 501, 501} {
			t.Errorf("rows %v", n)
		}
	}
}

func TestPut_IndexesNothingOfAUserWhoIsForgotten(t *testing.T) {
	x := open(t)
	gone := false
	x.Store = document.New(x.db, func(_ context.Context, _ store.Queryer, user int64) (bool, error) { return user != 7 || !gone, nil })
	d := x.put("Guests/7/a.md", "tea")
	x.put("Guests/71/a.md", "tea")
	x.put("a.md", "tea")
	gone = true
	x.keep(d) // it was read before
	if n := x.rows(); n != [4]int{2, 2, 2, 1} {
		t.Errorf("rows %v", n)
	}
	for i := range 200 {
		d.Chunks = append(d.Chunks, chunk.Chunk{Text: fmt.Sprintf("new%d", i), Line: 1})
	}
	x.keep(d)
	if n := x.rows(); n != [4]int{2, 2, 2, 1} {
		t.Errorf("rows %v", n)
	}
}

func TestFiles_AreListedInTheOrderOfTheirPathsWithWhatTheCrawlerCompares(t *testing.T) {
	x := open(t)
	for _, name := range []string{"b/x.md", "b.md", "a/z.md", "Z.md", "ä.md"} {
		x.put(name, "text")
	}
	x.keep(document.Document{File: document.File{Path: "c.bin", Size: 9, Modified: morning, Hash: "f", Fault: "not text"}, Title: "c.bin"})
	var names []string
	for after := ""; ; {
		files, err := x.Files(t.Context(), after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			break
		}
		for _, f := range files {
			names, after = append(names, f.Path), f.Path
			if !f.Modified.Equal(morning) {
				t.Errorf("%s was changed at %v", f.Path, f.Modified)
			}
		}
	}
	if want := []string{"Z.md", "a/z.md", "b.md", "b/x.md", "c.bin", "ä.md"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	faults, err := x.Faults(t.Context(), "", 10)
	if err != nil || len(faults) != 1 || faults[0].Fault != "not text" {
		t.Errorf("%v, %v", faults, err)
	}
	c, err := x.Count(t.Context())
	if err != nil || c != (document.Counts{Documents: 5, Faults: 1, Chunks: 5, Bytes: 500}) {
		t.Errorf("%+v, %v", c, err)
	}
	x.wantFound(owner, "bin", "c.bin:1") // by its name
}

func TestFind_FindsADocumentWithoutTextByItsName(t *testing.T) {
	x := open(t)
	x.put("Notes/Shopping list.md") // an empty file
	x.wantFound(owner, "shopping", "Notes/Shopping list.md:1")
	if c, err := x.Count(t.Context()); err != nil || c.Chunks != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	x.put("Notes/Shopping list.md", "bread")
	x.wantFound(owner, "shopping", "Notes/Shopping list.md:1")
	if n := x.rows(); n != [4]int{1, 1, 1} {
		t.Errorf("rows %v", n)
	}
}

func TestFind_AnExcerptSeparatesAHeadingFromTheText(t *testing.T) {
	x := open(t)
	x.put("tea.md", "Tea > How long\n\nGreen tea wants two minutes.\n\nIt is hot.")
	q, _ := search.Parse("green")
	hits, _, err := x.Find(t.Context(), q, owner, 10, "")
	if err != nil || len(hits) != 1 || hits[0].Excerpt != "Tea > How long · Green tea wants two minutes. It is hot." {
		t.Errorf("%+v, %v", hits, err)
	}
	m := hits[0].Marks
	if len(m) != 1 || string([]rune(hits[0].Excerpt)[m[0][0]:m[0][1]]) != "Green" {
		t.Errorf("marks %v in %q", m, hits[0].Excerpt)
	}
}

func TestMark_ChangesWhatIsKnownAndIsNotFoundForOthers(t *testing.T) {
	x := open(t)
	d := x.put("a.md", "tea")
	d.Size, d.Modified, d.Changed = 7, morning.Add(time.Hour), morning.Add(2*time.Hour)
	if err := x.Mark(t.Context(), d.File); err != nil {
		t.Fatal(err)
	}
	files, err := x.Files(t.Context(), "", 1)
	if err != nil || files[0] != (document.File{Path: "a.md", Size: 7, Modified: d.Modified, Changed: d.Changed, Indexed: morning.Truncate(time.Microsecond), Hash: "h"}) {
		t.Errorf("%+v, %v", files, err)
	}
	if err := x.Mark(t.Context(), document.File{Path: "b.md"}); core.KindOf(err) != core.NotFound {
		t.Errorf("%v", err)
	}
}

func TestRemoveClearAndForgetLeaveNothing(t *testing.T) {
	x := open(t)
	texts := make([]string, 150)
	for i := range texts {
		texts[i] = "words of it"
	}
	for _, name := range []string{"a.md", "b.md", "Guests/7/a.md", "Guests/71/a.md"} {
		x.put(name, texts...)
	}
	if err := x.Remove(t.Context(), []string{"a.md", "gone.md"}); err != nil {
		t.Fatal(err)
	}
	if n := x.rows(); n != [4]int{3, 450, 450, 300} {
		t.Errorf("rows %v", n)
	}
	tables := document.Tables{Store: x.Store}
	if _, err := tables.Sweep(t.Context(), core.Person{User: 7}, nil); err != nil {
		t.Fatal(err)
	}
	err := x.db.Tx(t.Context(), func(tx *store.Tx) error {
		return tables.Forget(t.Context(), tx, &core.Removal{Person: core.Person{User: 7}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := x.rows(); n != [4]int{2, 300, 300, 150} {
		t.Errorf("rows %v", n)
	}
	x.wantFound(owner, "words of it in:Guests", "Guests/71/a.md:1")
	if err := x.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := x.rows(); n != [4]int{} {
		t.Errorf("rows %v", n)
	}
}

// Programs name passages by it, and it outlives the program: 16 hex digits of SHA-256.
func TestID_OfAPathStaysTheSame(t *testing.T) {
	if got := document.ID("Notes/a.md"); got != "doc:4764013adda2ade4" {
		t.Error(got)
	}
}
