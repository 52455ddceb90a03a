package journal

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
)

// fillJournal writes ten entries a day, as other programs leave them.
func fillJournal(f *fixture, days int) (dates []string) {
	f.t.Helper()
	for d := range days {
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
	dates := fillJournal(f, 1000)
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

// What a day and an entry cost does not grow with the journal: each reads the file of its day
// alone, and runs as many statements beside 300 days as beside three.
func TestOpeningADayAndAppendingCostTheSameHoweverLongTheJournalIs(t *testing.T) {
	t.Parallel()
	type cost struct {
		Files                      string
		Reads, Statements, Commits int64
	}
	measure := func(days int) (opened, appended, edited cost) {
		f := open(t)
		dates := fillJournal(f, days)
		f.runPass()
		at := dates[days/2]
		of := func(do func() error) cost {
			t.Helper()
			var files []string
			f.reading = func(name string) { files = append(files, name) }
			defer func() { f.reading = func(string) {} }()
			reads, ran, commits := f.db.Reads(), f.db.Statements(), f.db.Commits()
			if err := do(); err != nil {
				t.Fatal(err)
			}
			for i, name := range files {
				if name != "Daily/"+at+".md" {
					t.Errorf("of %d days it reads %s", days, name)
				}
				files[i] = "its own"
			}
			return cost{strings.Join(files, ", "), f.db.Reads() - reads, f.db.Statements() - ran, f.db.Commits() - commits}
		}
		opened = of(func() error {
			d, err := f.Day(t.Context(), core.Operator, at)
			if len(d.Entries) != 10 {
				t.Errorf("%d entries", len(d.Entries))
			}
			return err
		})
		var e Entry
		appended = of(func() (err error) {
			e, err = f.Append(t.Context(), core.Operator, Draft{Date: at, At: morning, Text: "One more."}, panel)
			return err
		})
		edited = of(func() error {
			_, err := f.Edit(t.Context(), core.Operator, e.ID, e.Version, text("Another text."), panel)
			return err
		})
		return opened, appended, edited
	}
	opened, appended, edited := measure(3)
	if want := (cost{Files: "its own"}); opened != want {
		t.Errorf("opening a day costs %+v, want %+v", opened, want)
	}
	if appended.Commits > 1 {
		t.Errorf("appending costs %+v, want one commit", appended)
	}
	if o, a, e := measure(300); o != opened || a != appended || e != edited {
		t.Errorf("of 300 days: open %+v, append %+v, edit %+v\nof three:     open %+v, append %+v, edit %+v", o, a, e, opened, appended, edited)
	}
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
