package journal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// headings returns n entries with ids that begin with the letters of kind.
func headings(kind string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "# para:%s%08d 9:00\n", kind, i)
	}
	return b.String()
}

func (f *fixture) rows() (n int) {
	f.t.Helper()
	if err := f.db.Get(f.t.Context(), &n, `SELECT count(*) FROM para_ids`); err != nil {
		f.t.Fatal(err)
	}
	return n
}

const guestDay = "Guests/7/Daily/2026-01-28.md"

// A copy of a day costs one more read of that day, not one for each of its entries.
func TestAPassReadsAnotherDayOnceForAllEntriesThatItMayHave(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put("Guests/7/Daily/2026-01-01.md", headings("aaaa", 300))
	f.runPass()
	reads := map[string]int{}
	f.reading = func(name string) { reads[name]++ }
	f.put(guestDay, headings("aaaa", 300))
	f.runPass()
	if n := reads["Guests/7/Daily/2026-01-01.md"]; n != 1 {
		t.Errorf("the other day was read %d times", n)
	}
	if n := f.rows(); n != 600 {
		t.Errorf("%d ids, want 600", n)
	}
}

func TestOnlySoManyEntriesOfAFileGetIDs(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put(guestDay, strings.Repeat("# 9:00\n", maxNumbered+100))
	for range 3 {
		f.runPass()
	}
	if n := f.rows(); n != maxNumbered {
		t.Errorf("%d ids, want %d", n, maxNumbered)
	}
	if d := f.day(7); len(d.Entries) != maxNumbered+100 || d.Entries[maxNumbered-1].ID == "" || d.Entries[maxNumbered].ID != "" {
		t.Errorf("%d entries", len(d.Entries))
	}
	if n := strings.Count(f.log.String(), "those after them get no ids"); n != 1 {
		t.Errorf("it is logged %d times: %s", n, f.log.String())
	}
}

// A pass over a large file keeps no other writer from the database until its end.
func TestAPassRegistersIDsInBatches(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put(guestDay, headings("aaaa", 3*batch))
	commits := f.db.Commits()
	f.runPass()
	if n := f.db.Commits() - commits; n != 3 || f.rows() != 3*batch {
		t.Errorf("%d commits for %d ids, want 3", n, f.rows())
	}
}

func TestAGuestHasOnlySoManyIDs(t *testing.T) {
	t.Parallel()
	f := open(t)
	err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO para_ids (id, type, path, created_at, user_id)
			WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < $1) SELECT 'x' || i, 'journal', 'Guests/7/Daily/2020-01-01.md', $2, 7 FROM c`, maxGuestIDs-5, core.Stamp(morning))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"aaaa", "bbbb"} {
		f.put(guestDay, headings(kind, 10))
		f.runPass()
		f.put(guestDay, strings.Repeat("# 9:00\n", 10))
		f.runPass()
	}
	f.put("Guests/8/Daily/2026-01-28.md", headings("cccc", 10))
	f.put(dayFile, headings("dddd", 10))
	f.runPass()
	if n := f.rows(); n != maxGuestIDs-5+20 {
		t.Errorf("%d ids, want those of others and %d", n, maxGuestIDs-5)
	}
}

// After its time a pass leaves the other guests to the next, which begins with them.
func TestAPassGivesEachGuestATurn(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.o.Room = func(context.Context, int64, string, bool, int64) error {
		f.clock.Advance(guestsTime + time.Second)
		return nil
	}
	other := "Guests/8/Daily/2026-01-28.md"
	f.put(guestDay, "# 9:00\na\n")
	f.put("Guests/7/Daily/2026-01-29.md", "# 9:00\na\n")
	f.put(other, "# 9:00\nb\n")
	f.runPass()
	if strings.Contains(f.file(other), "para:") || !strings.Contains(f.file(guestDay), "para:") || strings.Contains(f.file("Guests/7/Daily/2026-01-29.md"), "para:") {
		t.Error("the first pass did not end with the first file of the first guest")
	}
	f.put(guestDay, "# 9:00\nagain\n")
	f.runPass()
	if !strings.Contains(f.file(other), "para:") {
		t.Error("the other guest has no turn")
	}
}

func TestAPassingErrorIsTriedAgainAndLoggedOnce(t *testing.T) {
	t.Parallel()
	f := open(t)
	fault := core.Errorf(core.Busy, "the disk is full for a moment")
	f.o.Room = func(context.Context, int64, string, bool, int64) error { return fault }
	f.put(dayFile, "# 10:30 AM\n\nHello\n")
	f.runPass()
	f.runPass()
	if n := strings.Count(f.log.String(), "full for a moment"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	f.o.Room = nil
	if n := f.runPass(); n != 1 || f.day(core.Operator).Entries[0].ID == "" {
		t.Errorf("with room again %d files were changed: %q", n, f.file(dayFile))
	}
}

func TestIDsThatNoFileHasAreForgottenAfter60Days(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put(dayFile, headings("aaaa", 3))
	f.put("Daily/2026-01-29.md", headings("bbbb", 3))
	f.runPass()
	f.put(dayFile, headings("aaaa", 1))
	prune := func() (n int) {
		n, err := f.Prune(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := os.Remove(filepath.Join(f.dir, "Daily", "2026-01-29.md")); err != nil {
		t.Fatal(err)
	}
	if n := prune(); n != 0 {
		t.Errorf("%d are forgotten at once", n)
	}
	f.clock.Advance(forgottenFor + time.Minute)
	if n := prune(); n != 5 || f.rows() != 1 {
		t.Errorf("%d are forgotten, %d left", n, f.rows())
	}
	if _, err := f.Entry(t.Context(), core.Operator, "aaaa00000000"); err != nil {
		t.Error(err)
	}
}

func TestARefusedEntryLeavesNoKey(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.o.Room = func(context.Context, int64, string, bool, int64) error { return core.Errorf(core.TooLarge, "full") }
	keys := func() (n int) {
		if err := f.db.Get(t.Context(), &n, `SELECT count(*) FROM metadata WHERE key LIKE 'journal:%'`); err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := Draft{Date: day, At: morning, Text: "x", Key: "chat:1"}
	if _, err := f.Append(t.Context(), 7, n, panel); core.KindOf(err) != core.TooLarge || keys() != 0 {
		t.Errorf("%v, %d keys", err, keys())
	}
	f.o.Room = nil
	if _, err := f.Append(t.Context(), 7, n, panel); err != nil || keys() != 1 {
		t.Errorf("%v, %d keys", err, keys())
	}
	f.clock.Advance(keysKept + time.Minute) // no one settles it
	if n, err := f.Prune(t.Context()); n != 1 || err != nil || keys() != 0 {
		t.Errorf("%d, %v, %d keys", n, err, keys())
	}
}
