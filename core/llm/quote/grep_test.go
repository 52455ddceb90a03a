package quote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"gatehouse/core/coretest"
	"gatehouse/core/llm"
)

// vault makes a folder of files and a search over it that counts opened files.
func vault(t *testing.T, mayRead func(llm.Sender, string) bool, files map[string]string) (dir string, g *grep, opened *[]string, clock *coretest.Clock) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		write(t, dir, name, text)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	if mayRead == nil {
		mayRead = func(llm.Sender, string) bool { return true }
	}
	clock = coretest.NewClock(time.Time{})
	opened = new([]string)
	g = &grep{root: root, mayRead: mayRead, clock: clock, lock: make(chan struct{}, 1),
		open: func(root *os.Root, name string) (*os.File, error) {
			*opened = append(*opened, name)
			return openPlain(root, name)
		}}
	return dir, g, opened, clock
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func search(t *testing.T, g *grep, words ...string) []Passage {
	t.Helper()
	found, err := g.search(t.Context(), llm.Sender{User: 7}, words, 10)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// places are the passages as path:line.
func places(found []Passage) string {
	var out []string
	for _, p := range found {
		out = append(out, fmt.Sprintf("%s:%d", p.Path, p.Line))
	}
	return strings.Join(out, " ")
}

func TestMoreDifferentWordsComeFirstThenTheDenser(t *testing.T) {
	_, g, _, _ := vault(t, nil, map[string]string{
		"a.md":     "tea tea tea tea\n\nsome long words about tea and nothing else at all, really\n",
		"b/c.txt":  "green tea is brewed\n",
		"d.md":     "no word of it\n",
		"e.md":     "# Notes\n\n## Brewing green\n\nTwo minutes.\n\n## Other\n\nTea.\n",
		"f.go":     "green tea brewing\n",
		".h/x.md":  "green tea brewing\n",
		".hide.md": "green tea brewing\n",
	})
	if got := places(search(t, g, "green", "TEA", "brewing")); got != "b/c.txt:1 e.md:1 a.md:1 e.md:7 a.md:3" {
		t.Error(got)
	}
	if got := search(t, g, "tea"); len(got) != 4 || got[0].Text != "tea tea tea tea" {
		t.Errorf("%+v", got)
	}
	if got := search(t, g, "teach", "e"); len(got) != 0 {
		t.Errorf("parts of words are no words: %+v", got)
	}
}

func TestPassagesAreShortValidAndNearTheHit(t *testing.T) {
	long := strings.Repeat("Füllwörter und noch mehr davon. ", 40)
	_, g, _, _ := vault(t, nil, map[string]string{
		"long.md":  "---\ntitle: nadel\n---\n\n# Titel\n\n" + long + "\nHier ist die Nadel im Heu. " + long,
		"bytes.md": "nadel \xff\xfe\n",
		"dash.md":  "---\nnadel without an end of front matter\n",
	})
	found := search(t, g, "nadel")
	if places(found) != "bytes.md:1 dash.md:1 long.md:7" {
		t.Fatal(places(found))
	}
	for _, p := range found {
		if len(p.Text) > maxQuote || !utf8.ValidString(p.Text) || !strings.Contains(strings.ToLower(p.Text), "nadel") {
			t.Errorf("%d bytes: %q", len(p.Text), p.Text)
		}
	}
}

func TestNothingIsReadWhereNothingMayBeRead(t *testing.T) {
	asked := 0
	_, g, opened, _ := vault(t, func(s llm.Sender, p string) bool {
		if s.User != 7 {
			t.Errorf("asked for %+v", s)
		}
		asked++
		return false
	}, map[string]string{"a.md": "tea", "b/c.md": "tea"})
	if got := search(t, g, "tea"); len(got) != 0 || len(*opened) != 0 || asked != 2 {
		t.Errorf("found %v, opened %v, asked %d times", got, *opened, asked)
	}
}

func TestPermissionIsAskedEachTimeAlsoForCachedFiles(t *testing.T) {
	allowed := true
	_, g, opened, _ := vault(t, func(llm.Sender, string) bool { return allowed }, map[string]string{"a.md": "tea"})
	if got := search(t, g, "tea"); len(got) != 1 {
		t.Fatal(got)
	}
	allowed = false
	if got := search(t, g, "tea"); len(got) != 0 {
		t.Errorf("revoked, and yet: %v", got)
	}
	if len(*opened) != 1 {
		t.Errorf("opened %v", *opened)
	}
}

func TestChangesAreSeenAfterThreeSeconds(t *testing.T) {
	dir, g, opened, clock := vault(t, nil, map[string]string{"a.md": "tea"})
	for range 3 {
		search(t, g, "tea")
	}
	if len(*opened) != 1 {
		t.Errorf("opened %d times in one moment", len(*opened))
	}
	write(t, dir, "a.md", "coffee")
	write(t, dir, "b.md", "tea")
	clock.Advance(cacheFor)
	if got := places(search(t, g, "tea")); got != "b.md:1" {
		t.Error(got)
	}
	write(t, dir, "c.md", "tea")
	clock.Advance(-time.Hour)
	if got := places(search(t, g, "tea")); got != "b.md:1 c.md:1" {
		t.Errorf("after the clock was set back: %s", got)
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, "out.md", "tea outside")
	dir, g, _, _ := vault(t, nil, map[string]string{"Private/key.md": "tea secret", "Public/ok.md": "tea"})
	for link, to := range map[string]string{
		"Public/in.md": "../Private/key.md", "Public/folder": "../Private", "Public/out.md": filepath.Join(outside, "out.md"), "Public/outdir": outside,
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if got := places(search(t, g, "tea")); got != "Private/key.md:1 Public/ok.md:1" && got != "Public/ok.md:1 Private/key.md:1" {
		t.Error(got)
	}
}

// TestALinkPutInBetweenIsNotFollowed: a guest may write its own folder, so it
// can swap a file or a folder for a link after the list was made.
func TestALinkPutInBetweenIsNotFollowed(t *testing.T) {
	dir, g, _, _ := vault(t, func(_ llm.Sender, p string) bool { return strings.HasPrefix(p, "Guests/7/") }, map[string]string{
		"Private/a.md": "tea secret", "Guests/7/a.md": "nothing", "Guests/7/sub/a.md": "nothing", "Guests/7/pipe.md": "nothing",
	})
	if _, err := g.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "Guests/7")
	for _, p := range []string{"a.md", "sub", "pipe.md"} {
		if err := os.RemoveAll(filepath.Join(own, p)); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"a.md": "../../Private/a.md", "sub": "../../Private"} {
		if err := os.Symlink(to, filepath.Join(own, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(own, "pipe.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := search(t, g, "tea"); len(got) != 0 {
		t.Errorf("a guest reads %+v", got)
	}
}

func TestSearchIsBounded(t *testing.T) {
	files := map[string]string{"big.md": "tea " + strings.Repeat("x", maxFile)}
	for i := range maxFiles + 5 {
		files[fmt.Sprintf("n/%05d.md", i)] = "coffee"
	}
	files["z.md"] = "tea"
	_, g, opened, _ := vault(t, nil, files)
	if got := search(t, g, "tea"); len(got) != 0 || len(*opened) != maxFiles {
		t.Errorf("found %s, opened %d", places(got), len(*opened))
	}
}

func TestSearchStopsReadingAtSixteenMegabytesAndCachesFour(t *testing.T) {
	files := map[string]string{"z.md": "tea"}
	for i := range maxRead/(maxFile-10) + 2 {
		files[fmt.Sprintf("n/%02d.md", i)] = strings.Repeat("coffee\n\n", (maxFile-10)/8)
	}
	_, g, opened, _ := vault(t, nil, files)
	if got := search(t, g, "tea"); len(got) != 0 || len(*opened) > maxRead/(maxFile-20)+1 {
		t.Errorf("found %s, opened %d", places(got), len(*opened))
	}
	if g.bytes > maxCached || g.bytes == 0 {
		t.Errorf("%d bytes cached", g.bytes)
	}
}

func TestSearchEndsWithTheContext(t *testing.T) {
	_, g, opened, _ := vault(t, nil, map[string]string{"a.md": "tea"})
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := g.search(ctx, llm.Sender{}, []string{"tea"}, 3); !errors.Is(err, gone) || len(*opened) != 0 {
		t.Errorf("%v, opened %v", err, *opened)
	}
	g.lock <- struct{}{} // another search walks for ever
	ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if _, err := g.search(ctx, llm.Sender{}, []string{"tea"}, 3); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	<-g.lock
}

func TestManySearchesAtOnce(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		write(t, dir, fmt.Sprintf("%d.md", i), "tea")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	clock := coretest.NewClock(time.Time{})
	s := Grep(root, nil, func(llm.Sender, string) bool { return true }, clock)
	done := make(chan error)
	for range 16 {
		go func() {
			for range 20 {
				found, err := s(context.Background(), llm.Sender{}, []string{"tea"}, 3)
				if err != nil || len(found) != 3 {
					done <- fmt.Errorf("%d passages, %v", len(found), err)
					return
				}
				clock.Advance(time.Second)
			}
			done <- nil
		}()
	}
	for range 16 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// FuzzPassages: no file, however odd, breaks the search or its bounds.
// A heading can be longer than a quote, and hold the only hit.
func TestALongHeadingWithTheOnlyHitIsQuotedFromItsBegin(t *testing.T) {
	text := "## Tea" + strings.Repeat(" and more", 60) + "\n\nNothing of it here.\n"
	d := &document{text: text, folded: strings.ToLower(text)}
	found := d.passages("x.md", stemsOf(Words("tea")))
	if len(found) != 1 || !strings.HasPrefix(found[0].Text, "## Tea and more") || found[0].Line != 1 {
		t.Errorf("%+v", found)
	}
}

func FuzzPassages(f *testing.F) {
	f.Add("# Tea\n\ntea tea\r\n\r\n## x\n", "tea")
	f.Add("---\na\n---\nİİİ tea’s", "i̇i̇i̇")
	f.Add("\x00\xff# ", "a b c")
	f.Fuzz(func(t *testing.T, text, question string) {
		text = strings.ToValidUTF8(text, "\ufffd")
		d := &document{text: text, folded: strings.ToLower(text)}
		for _, p := range d.passages("x.md", stemsOf(Words(question))) {
			if len(p.Text) > maxQuote || p.Line < 1 || !utf8.ValidString(p.Text) || p.Score <= 0 {
				t.Errorf("%+v", p)
			}
			blockquote(p.Text)
		}
	})
}
