package journal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/paraid"
	"gatehouse/core/store"
)

func TestAPassGivesEntriesOfOtherProgramsAnID(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put(dayFile, "free text\n# 9:00 AM\nfirst\n\n# para:abc123 10:00 AM\nhas one\n")
	f.put("Guests/7/Daily/2026-01-28.md", "# 9:00\ntheirs\n")
	if n := f.runPass(); n != 2 {
		t.Errorf("%d files changed, want 2", n)
	}
	d := f.day(core.Operator)
	if len(d.Entries) != 2 || len(d.Entries[0].ID) != 12 || d.Entries[1].ID != "abc123" || d.Head != "free text" {
		t.Fatalf("%+v", d)
	}
	if want := "free text\n# para:" + d.Entries[0].ID + " 9:00 AM\nfirst\n\n# para:abc123 10:00 AM\nhas one\n"; f.file(dayFile) != want {
		t.Errorf("%q", f.file(dayFile))
	}
	for _, e := range append(d.Entries, f.day(7).Entries...) {
		if r, err := f.ids.Find(t.Context(), f.db, e.ID); err != nil || !strings.HasSuffix(r.Path, dayFile) {
			t.Errorf("%s: %+v, %v", e.ID, r, err)
		}
	}
	if n := f.runPass(); n != 0 {
		t.Errorf("the next pass changed %d files", n)
	}
}

func TestAPassWaitsUntilAFileRests(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put(dayFile, "# 9:00 AM\nfirst\n")
	f.clock.Advance(-time.Hour) // to the present
	if n := f.runPass(); n != 0 {
		t.Errorf("%d files changed at once", n)
	}
	f.clock.Advance(time.Minute)
	if n := f.runPass(); n != 1 {
		t.Errorf("%d files changed, want 1", n)
	}
}

func TestOfTwoEntriesWithOneIDTheOlderKeepsIt(t *testing.T) {
	t.Parallel()
	f := open(t)
	old := f.append(core.Operator, "the original")
	section := strings.TrimSpace(f.file(dayFile))
	f.put("Daily/2026-01-27.md", section+"\n\nand a copy\n") // of an earlier day, and copied later
	f.put(dayFile, strings.Replace(section, "10:30 AM", "11:00 AM", 1)+"\na copy in the same file\n\n"+section+"\n")
	f.runPass()
	d := f.day(core.Operator)
	if len(d.Entries) != 2 || d.Entries[1].ID != old.ID || d.Entries[0].ID == old.ID || d.Entries[1].Text != "the original" {
		t.Errorf("%+v", d.Entries)
	}
	y, err := f.Day(t.Context(), core.Operator, "2026-01-27")
	if err != nil || len(y.Entries) != 1 || y.Entries[0].ID == old.ID || y.Entries[0].ID == d.Entries[0].ID || y.Entries[0].Text != "the original\n\nand a copy" {
		t.Errorf("%+v, %v", y.Entries, err)
	}
	for _, e := range []Entry{d.Entries[0], y.Entries[0]} {
		if want := "journal.renumber " + e.ID + " by the gateway via upkeep"; !slices.Contains(f.events(), want) {
			t.Errorf("the audit log has no %q", want)
		}
		if !strings.Contains(f.log.String(), "was="+old.ID) {
			t.Errorf("the log: %s", f.log.String())
		}
	}
}

func TestAnEntryThatWasMovedToAnotherDayKeepsItsID(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.append(core.Operator, "moved")
	f.put("Daily/2026-01-27.md", f.file(dayFile))
	f.put(dayFile, "")
	f.runPass()
	if got, err := f.Entry(t.Context(), core.Operator, e.ID); err != nil || got.Date != "2026-01-27" || got.Text != "moved" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNoUserTakesTheIDOfAnothersEntryOrOfAConversation(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.append(core.Operator, "mine")
	if err := f.Delete(t.Context(), core.Operator, e.ID, e.Version, panel); err != nil {
		t.Fatal(err)
	}
	chat := ""
	err := f.db.Tx(t.Context(), func(tx *store.Tx) (err error) {
		chat, err = f.ids.ForChat(t.Context(), tx, "session", 7)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.put("Guests/7/Daily/2026-01-28.md", "# para:"+e.ID+" 9:00\na\n# para:"+chat+" 10:00\nb\n")
	f.runPass()
	for _, got := range f.day(7).Entries {
		if got.ID == e.ID || got.ID == chat || !paraid.Valid(got.ID) {
			t.Errorf("%+v", got)
		}
	}
	if r, err := f.ids.Find(t.Context(), f.db, e.ID); err != nil || r.User != core.Operator {
		t.Errorf("%+v, %v", r, err)
	}
}

// age makes a file old enough for a pass.
func (f *fixture) leave(name, text string) string {
	f.put(name, text)
	return filepath.Join(f.dir, filepath.FromSlash(name))
}

func TestAPassRecoversWhatACrashLeft(t *testing.T) {
	t.Parallel()
	const was = "# para:abc123 9:00\nold\n"
	for name, c := range map[string]struct {
		now, temp string
		want      []string // texts of entries
	}{
		"what was replaced":               {"# para:abc123 9:00\nnew\n", was, []string{"new"}},
		"an entry that was to be added":   {was, was + "\n# para:abc124 10:00\nadded\n", []string{"old", "added"}},
		"what another program had added":  {was + "\n# para:abc124 10:00\nours\n", was + "\n# 11:00\ntheirs\n", []string{"old", "ours", "theirs"}},
		"what another program had edited": {was + "\n# para:abc124 10:00\nours\n", "# para:abc123 9:00\nedited\n", []string{"old", "ours", "edited"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t)
			f.put(dayFile, c.now)
			temp := f.leave("Daily/"+tempOf(dayFile, []byte(was)), c.temp)
			for range 3 {
				f.runPass()
			}
			if _, err := os.Stat(temp); err == nil {
				t.Error("the temporary file is left")
			}
			var texts, ids []string
			for _, e := range f.day(core.Operator).Entries {
				texts, ids = append(texts, e.Text), append(ids, e.ID)
			}
			if !slices.Equal(texts, c.want) {
				t.Errorf("%q, want %q", texts, c.want)
			}
			slices.Sort(ids)
			if n := len(slices.Compact(ids)); n != len(texts) || ids[0] == "" {
				t.Errorf("ids %q", ids)
			}
		})
	}
}

func TestAFaultyFileStopsNoOther(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put("Daily/2026-01-01.md", strings.Repeat("a", MaxDay+1))
	f.put(dayFile, "# 9:00 AM\nfirst\n")
	if n := f.runPass(); n != 1 {
		t.Errorf("%d files changed, want 1", n)
	}
	if !strings.Contains(f.log.String(), "2026-01-01.md") {
		t.Errorf("the log: %s", f.log.String())
	}
	f.log.Reset()
	f.runPass()
	if strings.Contains(f.log.String(), "2026-01-01.md") {
		t.Error("it is logged again")
	}
}
