package library

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/index/search"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"
)

// A shelf is a vault with its library.
type shelf struct {
	*Library
	t   *testing.T
	dir string
	db  *store.DB
}

// newShelf returns a library of an empty vault, in which guests may read Public.
func newShelf(t *testing.T, change ...func(*Options)) *shelf {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".parachute"), 0o700); err != nil {
		t.Fatal(err)
	}
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	clock := coretest.NewClock(time.Now().Add(time.Hour))
	db := storetest.Open(t, clock)
	sessions := session.New(session.Options{DB: db, Vault: v})
	t.Cleanup(func() { _ = sessions.Close(); _ = v.Close() })
	o := Options{
		On: true, DB: db, Files: v.FS(), Path: v.Path(), Sessions: sessions, Clock: clock, Log: slog.New(slog.DiscardHandler), Forget: func() {},
		Known: func(_ context.Context, _ store.Queryer, user int64) (bool, error) { return user == 7 || user == 8, nil },
		MayRead: func(trust core.Trust, user int64, name string) bool {
			return trust >= core.Vault || strings.HasPrefix(name, core.GuestDir(user)+"/")
		},
	}
	for _, f := range change {
		f(&o)
	}
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &shelf{l, t, dir, db}
}

// put writes a file, and has the vault compared; "" as text deletes it.
func (s *shelf) put(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	err := os.Remove(path)
	if text != "" {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
	}
	if err == nil {
		err = s.Crawler.Pass(s.t.Context())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

var reader = search.Reader{User: core.Operator, Trust: core.Vault}

// want compares what a search finds, as "type id path:line".
func (s *shelf) want(r search.Reader, text string, want ...string) {
	s.t.Helper()
	page, err := s.Finder.Search(s.t.Context(), search.Query{Text: text}, r)
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, h := range page.Hits {
		id := h.ID
		if strings.HasPrefix(id, "doc:") {
			id = "file"
		}
		got = append(got, fmt.Sprintf("%s %s %s:%d", h.Type, id, h.Path, h.Line))
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("%q finds %q, want %q", text, got, want)
	}
}

const day = `Weather: sunny kestrel.

# para:aaaaaaaaaaaa 10:30 AM

The kestrel nests on the balcony. #birds

## Images
![A heron](assets/2026-01-28/photo.jpg)

# para:bbbbbbbbbbbb 22:15 Supper

Soup with leeks.

# 11:59 PM Late

No id yet: moth.
`

func TestAnEntryOfAJournalIsFoundByItself(t *testing.T) {
	s := newShelf(t)
	s.put("Daily/2026-01-28.md", day)
	s.put("Notes/soup.md", "Soup with barley.")
	s.put("Daily/about.md", "No day of a journal: leeks.")
	const file = " Daily/2026-01-28.md:"
	s.want(reader, "kestrel balcony", "journal aaaaaaaaaaaa"+file+"5")
	s.want(reader, "heron", "journal aaaaaaaaaaaa"+file+"5")
	s.want(reader, "supper leeks", "journal bbbbbbbbbbbb"+file+"12")
	s.want(reader, "tag:birds kestrel", "journal aaaaaaaaaaaa"+file+"5")
	s.want(reader, "sunny", "journal file"+file+"1") // text before the first entry
	s.want(reader, "late moth", "journal file"+file+"14")
	s.want(reader, "kestrel leeks") // of two entries
	s.want(reader, "soup type:journal", "journal bbbbbbbbbbbb"+file+"12")
	s.want(reader, "soup type:document", "document file Notes/soup.md:1")
	s.want(reader, "leeks type:document", "document file Daily/about.md:1")
	s.want(reader, "soup type:conversation")

	page, err := s.Finder.Search(t.Context(), search.Query{Text: "supper", After: time.Date(2026, 1, 28, 22, 0, 0, 0, time.UTC), Before: time.Date(2026, 1, 29, 0, 0, 0, 0, time.UTC)}, reader)
	if err != nil || len(page.Hits) != 1 || !page.Hits[0].At.Equal(time.Date(2026, 1, 28, 22, 15, 0, 0, time.UTC)) || page.Hits[0].Title != "2026-01-28 22:15 Supper" {
		t.Errorf("%+v, %v: want the entry, at its own time", page.Hits, err)
	}
}

func TestADayWhoseEntriesHaveIdsIsNotAlsoADocument(t *testing.T) {
	s := newShelf(t)
	s.put("Daily/2026-01-28.md", "# para:aaaaaaaaaaaa 10:30 AM\n\nThe kestrel.\n")
	s.want(reader, "2026-01-28", "journal aaaaaaaaaaaa Daily/2026-01-28.md:3")
	s.want(reader, "kestrel", "journal aaaaaaaaaaaa Daily/2026-01-28.md:3")
	c, err := s.Documents.Count(t.Context())
	if err != nil || c.Documents != 1 || c.Entries != 1 || c.Chunks != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestWhenADayChangesOnlyTheChangedEntriesAreIndexedAgain(t *testing.T) {
	s := newShelf(t)
	s.put("Daily/2026-01-28.md", day)
	numbers := func() (n []int64) {
		t.Helper()
		if err := s.db.Select(t.Context(), &n, `SELECT n FROM chunks WHERE content_id = 'aaaaaaaaaaaa' ORDER BY n`); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := numbers()
	changed := strings.Replace(day, "leeks", "parsnips", 1)
	s.put("Daily/2026-01-28.md", changed)
	s.want(reader, "leeks")
	s.want(reader, "parsnips", "journal bbbbbbbbbbbb Daily/2026-01-28.md:12")
	if now := numbers(); len(before) != 1 || !slices.Equal(now, before) {
		t.Errorf("the other entry has the rows %v, had %v", now, before)
	}
	s.put("Daily/2026-01-28.md", strings.Replace(changed, "# para:bbbbbbbbbbbb 22:15 Supper\n\nSoup with parsnips.\n", "", 1))
	s.want(reader, "parsnips")
	s.put("Daily/2026-01-28.md", "")
	s.want(reader, "kestrel")
	c, err := s.Documents.Count(t.Context())
	if err != nil || c.Entries+c.Documents+c.Chunks != 0 {
		t.Errorf("a deleted day leaves %+v, %v", c, err)
	}
}

func TestAnEntryThatWasMovedIsFoundInItsNewDay(t *testing.T) {
	for _, to := range []string{"Daily/2026-01-27.md", "Daily/2026-01-29.md"} {
		t.Run(to, func(t *testing.T) {
			s := newShelf(t)
			const entry = "# para:aaaaaaaaaaaa 10:30 AM\n\nThe kestrel.\n"
			s.put("Daily/2026-01-28.md", entry+"\n# para:bbbbbbbbbbbb 11:30 AM\n\nSoup.\n")
			s.put(to, entry)
			s.put("Daily/2026-01-28.md", "# para:bbbbbbbbbbbb 11:30 AM\n\nSoup.\n")
			s.want(reader, "kestrel", "journal aaaaaaaaaaaa "+to+":3")
			s.want(reader, "soup", "journal bbbbbbbbbbbb Daily/2026-01-28.md:3")
		})
	}
}

// A guest who writes the id of another user's entry takes nothing of it.
func TestAnIdOfAnotherUsersEntryHidesAndShowsNothing(t *testing.T) {
	s := newShelf(t)
	s.put("Daily/2026-01-28.md", "# para:aaaaaaaaaaaa 10:30 AM\n\nThe kestrel.\n")
	s.put("Guests/7/Daily/2026-01-28.md", "# para:aaaaaaaaaaaa 10:30 AM\n\nA forged kestrel.\n")
	guest := search.Reader{User: 7, Trust: core.Sandboxed}
	s.want(guest, "kestrel", "journal file Guests/7/Daily/2026-01-28.md:3")
	s.want(search.Reader{User: 8, Trust: core.Sandboxed}, "kestrel")
	s.want(reader, "kestrel -forged", "journal aaaaaaaaaaaa Daily/2026-01-28.md:3")
}

func TestAForgottenGuestsJournalLeavesNothingInTheIndex(t *testing.T) {
	s := newShelf(t)
	s.put("Guests/7/Daily/2026-01-28.md", day)
	s.want(search.Reader{User: 7, Trust: core.Sandboxed}, "soup", "journal bbbbbbbbbbbb Guests/7/Daily/2026-01-28.md:12")
	err := s.db.Tx(t.Context(), func(tx *store.Tx) error {
		return s.Tables().Forget(t.Context(), tx, &core.Removal{Person: core.Person{User: 7}})
	})
	var rows int
	if err == nil {
		err = s.db.Get(t.Context(), &rows, `SELECT (SELECT count(*) FROM chunks) + (SELECT count(*) FROM index_manifest) + (SELECT count(*) FROM document_words)`)
	}
	if err != nil || rows != 0 {
		t.Errorf("%d rows remain, %v", rows, err)
	}
}

func TestAClearedEntryIsIndexedAgainByTheNextPass(t *testing.T) {
	s := newShelf(t)
	s.put("Daily/2026-01-28.md", day)
	if err := s.Documents.Purge(t.Context(), "aaaaaaaaaaaa"); err != nil {
		t.Fatal(err)
	}
	s.want(reader, "balcony")
	s.put("Notes/other.md", "Something else.") // a pass
	s.want(reader, "balcony", "journal aaaaaaaaaaaa Daily/2026-01-28.md:5")
}
