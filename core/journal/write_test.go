package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gatehouse/core"
	"gatehouse/core/paraid"
	"gatehouse/core/store"
)

func TestAppendWritesTheDescribedFormat(t *testing.T) {
	t.Parallel()
	f := open(t)
	e, err := f.Append(t.Context(), core.Operator, Draft{
		Date: day, At: morning, Text: "Walked.\r\n\n", Images: []Image{{"Morning sky", "assets/2026-01-28/photo-10-30-am.jpg"}},
		Audio: []Audio{{"2:30", "assets/2026-01-28/audio-10-30-am.ogg"}},
	}, panel)
	if err != nil {
		t.Fatal(err)
	}
	want := "# para:" + e.ID + " 10:30 AM\n\nWalked.\n\n## Images\n![Morning sky](assets/2026-01-28/photo-10-30-am.jpg)\n\n## Audio\n- Duration: 2:30\n- Path: assets/2026-01-28/audio-10-30-am.ogg\n"
	if got := f.file(dayFile); got != want {
		t.Errorf("the file has\n%s, want\n%s", got, want)
	}
	second := f.append(core.Operator, "Second.")
	if got := f.file(dayFile); got != want+"\n# para:"+second.ID+" 10:30 AM\n\nSecond.\n" {
		t.Errorf("then\n%s", got)
	}
	if st, err := os.Stat(filepath.Join(f.dir, dayFile)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if r, err := f.ids.Find(t.Context(), f.db, e.ID); err != nil || r.Path != dayFile || r.Type != paraid.Journal || r.User != core.Operator {
		t.Errorf("registered as %+v, %v", r, err)
	}
	if got, want := f.events(), "journal.write "+e.ID+" by operator via panel"; !slices.Contains(got, want) {
		t.Errorf("the audit log has %q, not %q", got, want)
	}
	if d := f.day(core.Operator); len(d.Entries) != 2 || d.Entries[0].Version != e.Version || d.Entries[0].Text != "Walked." {
		t.Errorf("%+v", d)
	}
}

func TestEachUserHasAJournalOfTheirOwn(t *testing.T) {
	t.Parallel()
	f := open(t)
	own, guest := f.append(core.Operator, "mine"), f.append(7, "theirs")
	if got := f.file("Guests/7/Daily/2026-01-28.md"); !strings.Contains(got, "theirs") || strings.Contains(got, "mine") {
		t.Errorf("%s", got)
	}
	for _, c := range []struct {
		user int64
		id   string
	}{{7, own.ID}, {core.Operator, guest.ID}, {8, guest.ID}, {0, own.ID}} {
		if _, err := f.Entry(t.Context(), c.user, c.id); core.KindOf(err) != core.NotFound {
			t.Errorf("user %d reads %s: %v", c.user, c.id, err)
		}
		if _, err := f.Edit(t.Context(), c.user, c.id, own.Version, text("x"), panel); core.KindOf(err) != core.NotFound {
			t.Errorf("user %d edits %s: %v", c.user, c.id, err)
		}
		if err := f.Delete(t.Context(), c.user, c.id, guest.Version, panel); core.KindOf(err) != core.NotFound {
			t.Errorf("user %d deletes %s: %v", c.user, c.id, err)
		}
	}
	if _, err := f.Append(t.Context(), 0, Draft{Date: day, At: morning, Text: "x"}, panel); core.KindOf(err) != core.Denied {
		t.Errorf("no user writes: %v", err)
	}
}

func TestAnEditKeepsTheHeadingTheAttachmentsAndAllElse(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put(dayFile, "---\ntitle: x\n---\r\nfree\n\n# para:abc123 9:05 Tea\r\nold\r\n\r\n## Images\r\n![a](assets/a.jpg)\r\n\r\n# para:abc12345 10:00\nother  \n\n\n")
	f.runPass()
	was := f.day(core.Operator).Entries[0]
	e, err := f.Edit(t.Context(), core.Operator, "abc123", was.Version, text("new\nlines"), panel)
	if err != nil {
		t.Fatal(err)
	}
	if e.Text != "new\nlines" || e.Title != "Tea" || e.Version == was.Version || len(e.Images) != 1 {
		t.Errorf("%+v", e)
	}
	want := "---\ntitle: x\n---\r\nfree\n\n# para:abc123 9:05 Tea\r\n\r\nnew\r\nlines\r\n\r\n## Images\r\n![a](assets/a.jpg)\r\n\r\n# para:abc12345 10:00\nother  \n\n\n"
	if got := f.file(dayFile); got != want {
		t.Errorf("%q, want\n%q", got, want)
	}
	if err := f.Delete(t.Context(), core.Operator, "abc123", e.Version, panel); err != nil {
		t.Fatal(err)
	}
	if got := f.file(dayFile); got != "---\ntitle: x\n---\r\nfree\n\n# para:abc12345 10:00\nother  \n\n\n" {
		t.Errorf("%q", got)
	}
}

func TestAnEditOfAnOlderVersionIsAConflictThatLosesNothing(t *testing.T) {
	t.Parallel()
	f := open(t)
	e := f.append(core.Operator, "first")
	f.put(dayFile, strings.Replace(f.file(dayFile), "first", "by another program", 1))
	_, err := f.Edit(t.Context(), core.Operator, e.ID, e.Version, text("by the panel"), panel)
	var c *Conflict
	if !errors.As(err, &c) || core.KindOf(err) != core.Conflict || c.Current.Text != "by another program" {
		t.Fatalf("%v", err)
	}
	if err := f.Delete(t.Context(), core.Operator, e.ID, e.Version, panel); core.KindOf(err) != core.Conflict {
		t.Errorf("deleted: %v", err)
	}
	if _, err := f.Edit(t.Context(), core.Operator, e.ID, c.Current.Version, text("both"), panel); err != nil || f.day(core.Operator).Entries[0].Text != "both" {
		t.Errorf("%v", err)
	}
}

func TestAnEntryThatIsNotUTF8IsShownAndNotEdited(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.put(dayFile, "# para:abc123 9:05\nb\xffd\n")
	f.runPass()
	e := f.day(core.Operator).Entries[0]
	if !e.Damaged || e.Text != "b\uFFFDd" {
		t.Errorf("%+v", e)
	}
	if _, err := f.Edit(t.Context(), core.Operator, "abc123", e.Version, text("x"), panel); core.KindOf(err) != core.Conflict {
		t.Errorf("%v", err)
	}
	f.append(core.Operator, "more")
	if !strings.HasPrefix(f.file(dayFile), "# para:abc123 9:05\nb\xffd\n") {
		t.Errorf("%q", f.file(dayFile))
	}
}

func TestBadInputIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	f := open(t)
	for name, c := range map[string]struct {
		draft Draft
		kind  core.Kind
		says  string
	}{
		"1 MB":           {Draft{Date: day, Text: strings.Repeat("a", 1<<20)}, core.TooLarge, "at most 256 KB"},
		"invalid UTF-8":  {Draft{Date: day, Text: "b\xffd"}, core.Invalid, "UTF-8"},
		"null":           {Draft{Date: day, Text: "a\x00b"}, core.Invalid, "null"},
		"nothing":        {Draft{Date: day, Text: " \r\n\t"}, core.Invalid, "empty"},
		"no such day":    {Draft{Date: "2026-02-30", Text: "x"}, core.Invalid, "not a date"},
		"a path":         {Draft{Date: "../../x", Text: "x"}, core.Invalid, "not a date"},
		"a short date":   {Draft{Date: "2026-1-2", Text: "x"}, core.Invalid, "not a date"},
		"no date":        {Draft{Text: "x"}, core.Invalid, "not a date"},
		"a line in path": {Draft{Date: day, Audio: []Audio{{Path: "a\n# para:abc123def456 1:00"}}}, core.Invalid, "recording"},
		"many":           {Draft{Date: day, Images: make([]Image, 21)}, core.Invalid, "at most 20"},
	} {
		c.draft.At = morning
		if _, err := f.Append(t.Context(), core.Operator, c.draft, panel); core.KindOf(err) != c.kind || !strings.Contains(core.TextOf(err), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(f.dir, "Daily")); err == nil {
		t.Error("something was written")
	}
}

func TestAFolderALinkOrAPipeInPlaceOfTheFileIsRefusedAndKept(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"folder":    func(path string) error { return os.MkdirAll(path, 0o700) },
		"link":      func(path string) error { return os.Symlink("../secret.md", path) },
		"dead link": func(path string) error { return os.Symlink("nowhere.md", path) },
		"pipe":      func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t)
			f.put("secret.md", "secret")
			f.put("Daily/x.md", "")
			if err := put(filepath.Join(f.dir, dayFile)); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Append(t.Context(), core.Operator, Draft{Date: day, At: morning, Text: "x"}, panel); core.KindOf(err) != core.Invalid || !strings.Contains(core.TextOf(err), dayFile) {
				t.Errorf("%v", err)
			}
			if _, err := f.Day(t.Context(), core.Operator, day); core.KindOf(err) != core.Invalid {
				t.Errorf("read: %v", err)
			}
			f.runPass()
			if got := f.file("secret.md"); got != "secret" {
				t.Errorf("%q", got)
			}
			left, err := os.ReadDir(filepath.Join(f.dir, "Daily"))
			if err != nil || len(left) != 2 {
				t.Errorf("%v, %v", left, err)
			}
		})
	}
}

func TestALinkInPlaceOfAGuestsJournalLeadsNowhere(t *testing.T) {
	t.Parallel()
	f := open(t)
	mine := f.append(core.Operator, "mine")
	if err := os.MkdirAll(filepath.Join(f.dir, "Guests", "7"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../Daily", filepath.Join(f.dir, "Guests", "7", "Daily")); err != nil {
		t.Fatal(err)
	}
	before := f.file(dayFile)
	if _, err := f.Append(t.Context(), 7, Draft{Date: day, At: morning, Text: "x"}, panel); core.KindOf(err) != core.Invalid {
		t.Errorf("%v", err)
	}
	if d, err := f.Day(t.Context(), 7, day); err == nil {
		t.Errorf("%+v", d)
	}
	if days, err := f.Days(t.Context(), 7, ""); len(days) != 0 {
		t.Errorf("%v, %v", days, err)
	}
	if _, err := f.Attach(t.Context(), 7, Recording, ".ogg", morning, strings.NewReader("x"), 1); err == nil {
		t.Error("a file was attached")
	}
	f.runPass()
	if got := f.file(dayFile); got != before {
		t.Errorf("%s became %s", mine.ID, got)
	}
}

func TestWhatAnotherProgramWritesDuringAWriteStays(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(f *fixture, name string){
		"renamed over it": func(f *fixture, name string) { f.put(name, f.file(name)+"\n# 11:00 AM\nby another\n") },
		"written in place": func(f *fixture, name string) {
			if err := os.WriteFile(filepath.Join(f.dir, name), []byte(f.file(name)+"\n# 11:00 AM\nby another\n"), 0o600); err != nil {
				f.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t)
			f.append(core.Operator, "first")
			once := sync.OnceFunc(func() { other(f, dayFile) })
			f.between = func(string) { once() }
			f.append(core.Operator, "second")
			d := f.day(core.Operator)
			var texts []string
			for _, e := range d.Entries {
				texts = append(texts, e.Text)
			}
			if !slices.Equal(texts, []string{"first", "by another", "second"}) {
				t.Errorf("%q", texts)
			}
		})
	}
}

func TestAFileThatAnotherProgramCreatesInThatMomentStays(t *testing.T) {
	t.Parallel()
	f := open(t)
	once := sync.OnceFunc(func() { f.put(dayFile, "# 9:00 AM\nby another\n") })
	f.between = func(string) { once() }
	f.append(core.Operator, "mine")
	if d := f.day(core.Operator); len(d.Entries) != 2 || d.Entries[0].Text != "by another" {
		t.Errorf("%+v", d)
	}
}

func TestAFileThatNeverRestsIsReportedAndKept(t *testing.T) {
	t.Parallel()
	f := open(t)
	n := 0
	f.between = func(string) { n++; f.put(dayFile, fmt.Sprintf("# 9:00 AM\nnumber %d\n", n)) }
	if _, err := f.Append(t.Context(), core.Operator, Draft{Date: day, At: morning, Text: "x"}, panel); core.KindOf(err) != core.Busy {
		t.Errorf("%v", err)
	}
	if got := f.file(dayFile); got != fmt.Sprintf("# 9:00 AM\nnumber %d\n", n) {
		t.Errorf("%q", got)
	}
}

func TestManyWritersAtOnceLoseNoEntry(t *testing.T) {
	t.Parallel()
	f := open(t)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := f.Append(t.Context(), core.Operator, Draft{Date: day, At: morning, Text: fmt.Sprint("entry ", i)}, panel); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for _, e := range f.day(core.Operator).Entries {
		seen[e.Text] = true
	}
	if len(seen) != 20 {
		t.Errorf("%d entries, want 20", len(seen))
	}
}

func TestRoomIsAskedBeforeAFileGrows(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.append(7, "first")
	full := core.Errorf(core.Denied, "your own folder is full")
	f.o.Room = func(_ context.Context, user int64, name string, isNew bool, grows int64) error {
		if user != 7 || !strings.HasPrefix(name, "Guests/7/Daily/") || grows <= 0 {
			t.Errorf("user %d, file %s, %d bytes", user, name, grows)
		}
		return full
	}
	before := f.file("Guests/7/Daily/2026-01-28.md")
	if _, err := f.Append(t.Context(), 7, Draft{Date: day, At: morning, Text: "x"}, panel); !errors.Is(err, full) || f.file("Guests/7/Daily/2026-01-28.md") != before {
		t.Errorf("%v", err)
	}
	if _, err := f.Attach(t.Context(), 7, Recording, ".ogg", morning, strings.NewReader("x"), 1); !errors.Is(err, full) {
		t.Errorf("attached: %v", err)
	}
}

func TestDaysListsTheDaysOfAMonth(t *testing.T) {
	t.Parallel()
	f := open(t)
	for _, name := range []string{"2026-01-28.md", "2026-01-02.md", "2026-02-01.md", "2026-02-30.md", "notes.md", "2026-01-03.txt"} {
		f.put("Daily/"+name, "x")
	}
	if days, err := f.Days(t.Context(), core.Operator, "2026-01"); err != nil || !slices.Equal(days, []string{"2026-01-02", "2026-01-28"}) {
		t.Errorf("%q, %v", days, err)
	}
	if days, err := f.Days(t.Context(), core.Operator, ""); err != nil || len(days) != 3 {
		t.Errorf("%q, %v", days, err)
	}
	if days, err := f.Days(t.Context(), 7, ""); err != nil || len(days) != 0 {
		t.Errorf("%q, %v", days, err)
	}
	if _, err := f.Days(t.Context(), core.Operator, "2026-13"); core.KindOf(err) != core.Invalid {
		t.Errorf("%v", err)
	}
}

func TestAttachmentsAreNamedByDayAndMinute(t *testing.T) {
	t.Parallel()
	f := open(t)
	for i, want := range []string{"audio-10-30-am.ogg", "audio-10-30-am-2.ogg", "audio-10-30-am-3.ogg"} {
		got, err := f.Attach(t.Context(), core.Operator, Recording, ".OGG", morning, strings.NewReader(fmt.Sprint("sound ", i)), 7)
		if err != nil || got != "assets/2026-01-28/"+want || f.file("Daily/"+got) != fmt.Sprint("sound ", i) {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got, err := f.Attach(t.Context(), 7, Picture, "../x", morning.Add(6*time.Hour), strings.NewReader("x"), 1); err != nil || got != "assets/2026-01-28/photo-4-30-pm.bin" {
		t.Errorf("%q, %v", got, err)
	}
	left, err := os.ReadDir(filepath.Join(f.dir, "Daily/assets/2026-01-28"))
	if err != nil || len(left) != 3 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestFileOfOpensOnlyTheJournalsOwnAttachments(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"assets/2026-01-28/a.ogg": "Guests/7/Daily/assets/2026-01-28/a.ogg", "../assets/a.ogg": "Guests/7/Daily/assets/a.ogg",
		"assets/../../x": "", "/etc/passwd": "", "../../assets/x": "", "assets/": "", "assets": "", "assets//x": "", "notes/x": "", "": "",
	} {
		got, err := FileOf(7, in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func TestARepeatWithTheSameKeyAddsNothing(t *testing.T) {
	t.Parallel()
	f := open(t)
	d := Draft{Date: day, At: morning, Text: "once", Key: "chat:17"}
	first, err := f.Append(t.Context(), core.Operator, d, panel)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := f.Append(t.Context(), core.Operator, d, panel); err != nil || e.ID != first.ID {
		t.Errorf("%+v, %v", e, err)
	}
	if e, done, err := f.Repeated(t.Context(), core.Operator, d.Key); err != nil || !done || e.ID != first.ID {
		t.Errorf("%+v, %v, %v", e, done, err)
	}
	if n := len(f.day(core.Operator).Entries); n != 1 {
		t.Errorf("%d entries", n)
	}
	if err := f.db.Tx(t.Context(), func(tx *store.Tx) error { return f.Settle(t.Context(), tx, d.Key) }); err != nil {
		t.Fatal(err)
	}
	if _, done, err := f.Repeated(t.Context(), core.Operator, d.Key); err != nil || done {
		t.Errorf("%v, %v", done, err)
	}
}

func TestARepeatAfterACrashBeforeTheFileWasWrittenAddsTheEntry(t *testing.T) {
	t.Parallel()
	f := open(t)
	if err := f.db.Save(t.Context(), keyPrefix+"chat:17", "abc123def456 "+day); err != nil {
		t.Fatal(err)
	}
	if e, err := f.Append(t.Context(), core.Operator, Draft{Date: day, At: morning, Text: "once", Key: "chat:17"}, panel); err != nil || e.Text != "once" {
		t.Errorf("%+v, %v", e, err)
	}
	if n := len(f.day(core.Operator).Entries); n != 1 {
		t.Errorf("%d entries", n)
	}
}
