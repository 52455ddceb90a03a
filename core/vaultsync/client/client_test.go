package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/vaultsync/wire"
	"gatehouse/web/auth"
)

// pair returns a server and two devices of its owner.
func pair(t *testing.T) (s *server, a, b *device) {
	t.Helper()
	s = serve(t, t.TempDir())
	key := s.key(t, core.Operator, core.Vault, auth.ScopeSync)
	return s, s.device(t, "laptop", key), s.device(t, "phone", key)
}

func TestOnce_FilesAndTheirChangesArriveOnTheOtherDevice(t *testing.T) {
	s, a, b := pair(t)
	write(t, a.dir, "Notes/tea.md", "green")
	write(t, b.dir, "photo.png", "\x89PNG\x00")
	write(t, s.dir, "Daily/2026-01-28.md", "# para:abc123def456 10:30 AM\n\ntext\n")
	a.sync(t)
	b.sync(t)
	a.sync(t)
	same(t, s.dir, a.dir, b.dir)
	if len(tree(t, a.dir)) != 3 {
		t.Fatalf("%s", listed(tree(t, a.dir)))
	}
	write(t, b.dir, "Notes/tea.md", "black")
	remove(t, b.dir, "photo.png")
	b.sync(t)
	if r := a.sync(t); r.Fetched != 1 || r.DeletedHere != 1 {
		t.Errorf("%+v", r)
	}
	same(t, s.dir, a.dir, b.dir)
	if got := tree(t, a.dir); got["Notes/tea.md"] != "black" || len(got) != 2 {
		t.Errorf("%s", listed(got))
	}
	if r := a.sync(t); r.Sent+r.Fetched+r.DeletedHere+r.DeletedOut != 0 {
		t.Errorf("nothing has changed: %+v", r)
	}
}

func TestOnce_EntriesOfOneDayThatWereAddedOnBothDevicesAreKept(t *testing.T) {
	s, a, b := pair(t)
	day := "Daily/2026-01-28.md"
	one := "# para:aaaaaaaaaaaa 8:00 AM\n\none\n"
	write(t, a.dir, day, one)
	a.sync(t)
	b.sync(t)
	write(t, a.dir, day, one+"\n# para:bbbbbbbbbbbb 9:00 AM\n\ntwo\n")
	write(t, b.dir, day, strings.Replace(one, "one", "one, edited", 1)+"\n# para:cccccccccccc 9:30 AM\n\nthree\n")
	a.sync(t)
	if r := b.sync(t); len(r.Merged) != 1 || r.Merged[0].Path != day || r.Merged[0].Conflicts != 0 {
		t.Errorf("%+v", r)
	}
	a.sync(t)
	same(t, s.dir, a.dir, b.dir)
	if got := read(t, a.dir, day); strings.Count(got, "# para:") != 3 || !strings.Contains(got, "one, edited") {
		t.Errorf("%q", got)
	}
}

func TestOnce_ALineOfAnEntryThatBothEditedIsUnderAHeading(t *testing.T) {
	s, a, b := pair(t)
	day := "Daily/2026-01-28.md"
	write(t, a.dir, day, "# para:aaaaaaaaaaaa 8:00 AM\n\none\n")
	a.sync(t)
	b.sync(t)
	write(t, a.dir, day, "# para:aaaaaaaaaaaa 8:00 AM\n\nONE\n")
	write(t, b.dir, day, "# para:aaaaaaaaaaaa 8:00 AM\n\neins\n")
	a.sync(t)
	if r := b.sync(t); len(r.Merged) != 1 || r.Merged[0].Conflicts != 1 {
		t.Errorf("%+v", r)
	}
	a.sync(t)
	same(t, s.dir, a.dir, b.dir)
	if got, want := read(t, a.dir, day), "# para:aaaaaaaaaaaa 8:00 AM\n\n## conflict phone 2026-01-28 10:30\n\nONE\n\n---\n\neins\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOnce_WhatCannotBeMergedIsKeptTwice(t *testing.T) {
	s, a, b := pair(t)
	write(t, a.dir, "a.bin", "\x00one")
	write(t, a.dir, "n.md", "one\n")
	a.sync(t)
	b.sync(t)
	write(t, a.dir, "a.bin", "\x00a")
	write(t, b.dir, "a.bin", "\x00b")
	write(t, a.dir, "n.md", "a\n")
	write(t, b.dir, "n.md", "b\n")
	a.sync(t)
	if r := b.sync(t); len(r.Copies) != 2 {
		t.Errorf("%+v", r)
	}
	a.sync(t)
	same(t, s.dir, a.dir, b.dir)
	got := tree(t, a.dir)
	if got["a.bin"] != "\x00a" || got["a (conflict phone 2026-01-28).bin"] != "\x00b" || got["n.md"] != "a\n" || got["n (conflict phone 2026-01-28).md"] != "b\n" || len(got) != 4 {
		t.Errorf("%s", listed(got))
	}
}

func TestOnce_OtherTextIsMergedByLines(t *testing.T) {
	s, a, b := pair(t)
	write(t, a.dir, "n.md", "one\ntwo\nthree\n")
	a.sync(t)
	b.sync(t)
	write(t, a.dir, "n.md", "ONE\ntwo\nthree\n")
	write(t, b.dir, "n.md", "one\ntwo\nTHREE\n")
	a.sync(t)
	b.sync(t)
	a.sync(t)
	same(t, s.dir, a.dir, b.dir)
	if got := read(t, a.dir, "n.md"); got != "ONE\ntwo\nTHREE\n" {
		t.Errorf("%q", got)
	}
}

func TestOnce_ADeletionAgainstAnEditLoses(t *testing.T) {
	s, a, b := pair(t)
	write(t, a.dir, "n.md", "one\n")
	write(t, a.dir, "m.md", "one\n")
	a.sync(t)
	b.sync(t)
	write(t, a.dir, "n.md", "two\n")
	remove(t, b.dir, "n.md")
	remove(t, a.dir, "m.md")
	write(t, b.dir, "m.md", "two\n")
	a.sync(t)
	b.sync(t)
	a.sync(t)
	same(t, s.dir, a.dir, b.dir)
	if got := tree(t, a.dir); got["n.md"] != "two\n" || got["m.md"] != "two\n" {
		t.Errorf("%s", listed(got))
	}
}

func TestOnce_AFileWithTheNameOfAFolder(t *testing.T) {
	s, a, b := pair(t)
	write(t, a.dir, "x", "a file")
	write(t, b.dir, "x/y.md", "in a folder")
	a.sync(t)
	b.sync(t)
	a.sync(t)
	b.sync(t)
	same(t, s.dir, a.dir, b.dir)
	if got := tree(t, a.dir); len(got) != 2 || got["x"] != "a file" || got["x (conflict phone 2026-01-28)/y.md"] != "in a folder" {
		t.Errorf("%s", listed(got))
	}
}

// What is too large to sync is reported and keeps nothing else, on either side: where it was
// smaller before, it is not deleted.
func TestOnce_AFileThatIsTooLargeIsReportedAndStays(t *testing.T) {
	s, a, b := pair(t)
	write(t, a.dir, "film.mp4", "short")
	a.sync(t)
	b.sync(t)
	for _, dir := range []string{a.dir, s.dir} {
		if err := os.Truncate(filepath.Join(dir, "film.mp4"), wire.MaxFile+1); err != nil {
			t.Fatal(err)
		}
	}
	write(t, a.dir, "other.md", "text")
	if r := a.sync(t); r.Sent != 1 || r.DeletedOut != 0 || len(r.Errors) != 1 || r.Errors[0] != "film.mp4: larger than 512 MB" {
		t.Errorf("%+v", r)
	}
	if r := b.sync(t); r.Fetched != 1 || r.DeletedHere != 0 || read(t, b.dir, "film.mp4") != "short" {
		t.Errorf("%+v", r)
	}
}

func TestOnce_ReportsItsProgress(t *testing.T) {
	_, a, b := pair(t)
	write(t, a.dir, "a.md", "a")
	write(t, a.dir, "b.md", "b")
	for _, c := range []struct {
		d    *device
		want string
	}{{a, "reading the folder, asking the server, sending 2 of 2 files"}, {b, "reading the folder, asking the server, fetching 2 of 2 files"}} {
		var all []string
		c.d.o.Progress = func(text string) { all = append(all, text) }
		c.d.sync(t)
		if got := strings.Join(all, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", c.d.name, got, c.want)
		}
	}
}

// What a device knows is written when it ends and read when it begins, also what an earlier
// version wrote.
func TestOnce_ADeviceKnowsInItsNextRunWhatItKnew(t *testing.T) {
	_, a, b := pair(t)
	for _, name := range []string{`a "quoted" \u0026 <name>.md`, "Grüße/ä b.md", "Daily/2026-01-28.md", "plain.md"} {
		write(t, a.dir, strings.ReplaceAll(name, `\u0026`, "&"), "text")
	}
	a.sync(t)
	b.sync(t)
	state := filepath.Join(a.dir, ".gatehouse-sync", "state.json")
	for _, edit := range []func(text string) string{
		func(text string) string { return text },
		func(text string) string {
			return regexp.MustCompile(`"m":"[0-9a-f]+"`).ReplaceAllString(text, `"m":"4-188f0a5b2f3c4d5e-188f0a5b2f3c4d5e-1a2b3c"`)
		},
	} {
		was := read(t, filepath.Dir(state), "state.json")
		if err := os.WriteFile(state, []byte(edit(was)), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := a.sync(t); r.Sent+r.Fetched+r.DeletedHere+r.DeletedOut != 0 {
			t.Errorf("%+v", r)
		}
	}
	remove(t, a.dir, "plain.md")
	write(t, a.dir, "Grüße/ä b.md", "changed")
	if r := a.sync(t); r.Sent != 1 || r.DeletedOut != 1 {
		t.Errorf("%+v", r)
	}
	if r := b.sync(t); r.Fetched != 1 || r.DeletedHere != 1 {
		t.Errorf("%+v", r)
	}
	same(t, a.dir, b.dir)
}

func TestOnce_AFileThatIsSavedWhileItIsSentIsSentAgain(t *testing.T) {
	s, a, _ := pair(t)
	write(t, a.dir, "a.md", "first")
	saves := 0
	a.o.Step = func(what string) {
		if what == "send" && saves < 2 {
			saves++
			write(t, a.dir, "a.md", fmt.Sprintf("save %d", saves))
		}
	}
	if r := a.sync(t); r.Sent != 1 || len(r.Errors) != 0 || read(t, s.dir, "a.md") != "save 2" {
		t.Errorf("%+v", r)
	}
}

func TestOnce_DryRunChangesNothing(t *testing.T) {
	s, a, b := pair(t)
	write(t, a.dir, "a.md", "a")
	a.sync(t)
	write(t, b.dir, "b.md", "b")
	b.o.DryRun = true
	if r := b.sync(t); !slices.Equal(r.Plan, []string{"fetch a.md", "send b.md"}) {
		t.Errorf("%q", r.Plan)
	}
	if got := tree(t, b.dir); len(got) != 1 {
		t.Errorf("%s", listed(got))
	}
	if _, err := os.Stat(filepath.Join(b.dir, wire.StateDir)); err == nil {
		t.Error("it wrote its state")
	}
	if got := tree(t, s.dir); len(got) != 1 {
		t.Errorf("%s", listed(got))
	}
}

func TestOnce_ADryRunNeedsNoDirectory(t *testing.T) {
	_, a, b := pair(t)
	write(t, a.dir, "a.md", "a")
	a.sync(t)
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	b.o.DryRun = true
	if r := b.sync(t); !slices.Equal(r.Plan, []string{"fetch a.md"}) {
		t.Errorf("%q", r.Plan)
	}
	if _, err := os.Stat(b.dir); !os.IsNotExist(err) {
		t.Error("it was made")
	}
}

func TestOnce_AnEmptyFolderDeletesNothing(t *testing.T) {
	s, a, _ := pair(t)
	for _, n := range strings.Split("abcdefghijkl", "") {
		write(t, a.dir, n+".md", n)
	}
	a.sync(t)
	for _, n := range strings.Split("abcdefghijkl", "") {
		remove(t, a.dir, n+".md")
	}
	if _, err := a.try(); core.KindOf(err) != core.Conflict {
		t.Errorf("%v", err)
	}
	if got := tree(t, s.dir); len(got) != 12 {
		t.Errorf("%s", listed(got))
	}
	for _, n := range strings.Split("abcdefghijkl", "") {
		remove(t, s.dir, n+".md")
	}
	write(t, a.dir, "new.md", "n")
	if _, err := a.try(); err == nil || !strings.Contains(err.Error(), "vanished") {
		t.Errorf("%v", err)
	}
}

func TestOnce_ASecondClientOfTheFolderIsRefused(t *testing.T) {
	_, a, _ := pair(t)
	a.o.Step = func(string) {
		a.o.Step = nil
		if _, err := a.try(); core.KindOf(err) != core.Conflict {
			t.Errorf("%v", err)
		}
	}
	a.sync(t)
}

func TestOnce_AServerThatWasRestoredDoesNotTakeBackWhatWasEditedSince(t *testing.T) {
	_, a, _ := pair(t)
	write(t, a.dir, "n.md", "old\n")
	a.sync(t)
	write(t, a.dir, "n.md", "new\n")
	write(t, a.dir, "m.md", "later\n")
	a.sync(t)
	a.sync(t)
	backup := serve(t, t.TempDir()) // its database knows fewer changes
	write(t, backup.dir, "n.md", "old\n")
	listening, err := url.Parse(backup.url)
	if err != nil {
		t.Fatal(err)
	}
	a.o.Key = backup.key(t, core.Operator, core.Vault, auth.ScopeSync)
	a.o.HTTP = &http.Client{Transport: elsewhere(listening.Host)}
	a.sync(t)
	same(t, backup.dir, a.dir)
	got := tree(t, a.dir)
	if got["n.md"] != "old\n" || got["n (conflict laptop 2026-01-28).md"] != "new\n" || got["m.md"] != "later\n" {
		t.Errorf("%s", listed(got))
	}
}

// elsewhere sends requests to another server.
type elsewhere string

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = string(e)
	return http.DefaultTransport.RoundTrip(r)
}

// A server on macOS takes both names for one file: it must not delete what it got last.
func TestOnce_AnotherSpellingOfANameIsSentBehindTheDeletion(t *testing.T) {
	s, a, _ := pair(t)
	write(t, a.dir, "Notes/Tea.md", "green")
	a.sync(t)
	if err := os.Rename(filepath.Join(a.dir, "Notes"), filepath.Join(a.dir, "notes")); err != nil {
		t.Fatal(err)
	}
	var order []string
	a.o.Step = func(what string) { order = append(order, what) }
	a.sync(t)
	if at := slices.Index(order, "deleted out"); at < 0 || at > slices.Index(order, "send") {
		t.Errorf("%q", order)
	}
	same(t, s.dir, a.dir)
	if got := tree(t, s.dir); got["notes/Tea.md"] != "green" || len(got) != 1 {
		t.Errorf("%s", listed(got))
	}
}

// busy answers the first request as a server that is asked too often.
type busy struct{ n int }

func (b *busy) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.n++; b.n == 1 {
		rec := httptest.NewRecorder()
		rec.Header().Set("Retry-After", "7")
		rec.WriteHeader(http.StatusTooManyRequests)
		return rec.Result(), nil
	}
	return http.DefaultTransport.RoundTrip(r)
}

func TestOnce_WaitsWhereTheServerAsksForIt(t *testing.T) {
	s, a, _ := pair(t)
	write(t, a.dir, "a.md", "one\n")
	clock := a.o.Clock.(*coretest.Clock)
	a.o.HTTP = &http.Client{Transport: &busy{}}
	began := clock.Now()
	go func() {
		clock.AwaitWaiters(1)
		clock.Advance(7 * time.Second)
	}()
	if r := a.sync(t); r.Sent != 1 || clock.Now().Sub(began) != 7*time.Second {
		t.Errorf("%+v after %v", r, clock.Now().Sub(began))
	}
	same(t, s.dir, a.dir)
}
