package journal

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
)

// fillJournal writes 10,000 entries over 1,000 days, as other programs leave them.
func fillJournal(f *fixture) (dates []string) {
	f.t.Helper()
	for d := range 1000 {
		date := morning.AddDate(0, 0, -d).Format(time.DateOnly)
		var b strings.Builder
		for e := range 10 {
			fmt.Fprintf(&b, "# para:%s 10:%02d AM\n\n%s\n\n", fmt.Sprintf("a%04d%03dzzzz", d, e), e, strings.Repeat("Some text of an entry. ", 20))
		}
		f.put("Daily/"+date+".md", b.String())
		dates = append(dates, date)
	}
	return dates
}

// BenchmarkJournal measures a journal of 10,000 entries over 1,000 days: go test -run '^$'
// -bench Journal ./core/journal. docs/journal.md has the figures.
func BenchmarkJournal(b *testing.B) {
	f := open(b)
	dates := fillJournal(f)
	if _, err := f.Pass(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Run("OpenDay", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if d, err := f.Day(b.Context(), core.Operator, dates[i%len(dates)]); err != nil || len(d.Entries) < 10 {
				b.Fatal(len(d.Entries), err)
			}
		}
	})
	b.Run("Append", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := f.Append(b.Context(), core.Operator, Draft{Date: dates[i%len(dates)], At: morning, Text: "Some text of an entry."}, panel); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("PassWithoutChanges", func(b *testing.B) {
		for b.Loop() {
			if _, err := f.Pass(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A pass over files that did not change opens none of them.
func TestAPassReadsNoFileThatDidNotChange(t *testing.T) {
	t.Parallel()
	f := open(t)
	for i := range 50 {
		f.put(fmt.Sprintf("Daily/2025-01-%02d.md", i%28+1), fmt.Sprintf("# para:aaaaaaaa%04d 10:00\ntext\n", i%28))
	}
	f.runPass()
	reads, commits := f.db.Reads(), f.db.Commits()
	f.runPass()
	if r, c := f.db.Reads()-reads, f.db.Commits()-commits; r != 0 || c != 0 {
		t.Errorf("%d reads and %d commits", r, c)
	}
}
