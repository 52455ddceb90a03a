package merge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gatehouse/core/journal/dayfile"
	"gatehouse/core/vaultsync/merge"
)

func known(text string) merge.Base { return merge.Base{Known: true, Text: []byte(text)} }

func TestDay(t *testing.T) {
	a, b, c := "# para:aaaaaaaaaaaa 8:00 AM\n\none\n\n", "# para:bbbbbbbbbbbb 9:00 AM\n\ntwo\n\n", "# para:cccccccccccc 9:30 AM\n\nthree\n"
	edited := strings.Replace(a, "one", "one, edited", 1)
	for _, c := range []struct {
		name               string
		base               merge.Base
		ours, theirs, want string
		conflicts          int
	}{
		{"entries of both sides are kept", known(a), a + b, a + c, a + b + c, 0},
		{"an entry without a line end gets one", known(a), a + strings.TrimSpace(b), a + c, a + strings.TrimSpace(b) + "\n\n" + c, 0},
		{"a deleted entry is gone", known(a + b), a, a + b + c, a + c, 0},
		{"an edit is kept against a deletion", known(a + b), b, edited + b, edited + b, 0},
		{"a deletion of what the other side edited loses", known(a + b), edited + b, b, edited + b, 0},
		{"different lines of one entry", known(a + b), strings.Replace(a, "8:00 AM", "8:05 AM", 1) + b, edited + b + c, strings.Replace(edited, "8:00 AM", "8:05 AM", 1) + b + c, 0},
		{"without a base nothing is deleted", merge.Base{}, a + c, a + b, a + c + "\n" + b, 0},
		{"entries without an id", known(a), a + "# 10:30 AM\nx\n", a + "# 10:30 AM\ny\n", a + "# 10:30 AM\nx\n\n# 10:30 AM\ny\n", 0},
		{"text before the entries", known("h\n\n" + a), "h\n\n" + a + b, "h2\n\n" + a, "h2\n\n" + a + b, 0},
		{"the same line edited on both sides", known(a), edited, strings.Replace(a, "one", "eins", 1),
			"# para:aaaaaaaaaaaa 8:00 AM\n\n## conflict phone 2026-01-28 10:30\n\none, edited\n\n---\n\neins\n\n", 1},
		{"the same heading edited on both sides", known(a), strings.Replace(a, "AM", "AM Tea", 1), strings.Replace(a, "AM", "AM Coffee", 1),
			"# para:aaaaaaaaaaaa 8:00 AM Tea\n\n## conflict phone 2026-01-28 10:30\n\npara:aaaaaaaaaaaa 8:00 AM Tea\n\n---\n\npara:aaaaaaaaaaaa 8:00 AM Coffee\n\n\none\n\n", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, conflicts, ok := merge.Day(c.base, []byte(c.ours), []byte(c.theirs), "phone 2026-01-28 10:30")
			if string(got) != c.want || conflicts != c.conflicts || !ok {
				t.Errorf("%d conflicts, %v:\n%q\nwant\n%q", conflicts, ok, got, c.want)
			}
		})
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		name                     string
		base                     merge.Base
		ours, theirs, want, fail string
	}{
		{"different lines", known("a\nb\nc\n"), "A\nb\nc\n", "a\nb\nC", "A\nb\nC", ""},
		{"the same change on both sides", known("a\nb\n"), "a\nx\n", "a\nx\n", "a\nx\n", ""},
		{"the same line", known("a\nb\n"), "a\nx\n", "a\ny\n", "", "collides"},
		{"a line edited on one side and deleted on the other", known("a\nb\nc\n"), "a\nx\nc\n", "a\nc\n", "", "collides"},
		{"no base", merge.Base{}, "a\n", "a\nb\n", "", "collides"},
		{"everything deleted", known("a\nb\n"), "", "a\nb\n", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := merge.Lines(c.base, []byte(c.ours), []byte(c.theirs))
			if string(got) != c.want || ok != (c.fail == "") {
				t.Errorf("%q, %v; want %q, %s", got, ok, c.want, c.fail)
			}
		})
	}
}

// TestDay_NothingThatWasWrittenIsLost edits random day files on both sides. Every line
// that a side wrote is in the result, whatever the other did, and so is every line of the
// base that no side removed.
func TestDay_NothingThatWasWrittenIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &writer{t: t}
		base := w.file(rapid.IntRange(0, 4).Draw(t, "entries"))
		ours, theirs := w.edit(base), w.edit(base)
		b := known(text(base))
		if rapid.IntRange(0, 4).Draw(t, "base is lost") == 0 {
			b = merge.Base{}
		}
		got, _, ok := merge.Day(b, []byte(text(ours)), []byte(text(theirs)), "phone 2026-01-28")
		if !ok {
			t.Fatal("not merged")
		}
		for _, word := range slices.Concat(words(ours), words(theirs)) {
			removed := b.Known && slices.Contains(words(base), word) && (!slices.Contains(words(ours), word) || !slices.Contains(words(theirs), word))
			if !removed && !strings.Contains(string(got), word) {
				t.Fatalf("%q is lost of\n%q and\n%q, edited from\n%q:\n%q", word, text(ours), text(theirs), text(base), got)
			}
		}
		_, sections := dayfile.Split(got)
		ids := map[string]bool{}
		for _, s := range sections {
			if ids[s.ID] {
				t.Fatalf("the entry %s is there twice:\n%q", s.ID, got)
			}
			ids[s.ID] = true
		}
	})
}

// A writer makes entries, each word of which is unique.
type writer struct {
	t *rapid.T
	n int
}

func (w *writer) word() string { w.n++; return fmt.Sprintf("word%04d.", w.n) }

func (w *writer) entry() []string {
	e := []string{fmt.Sprintf("# para:entry%07d 10:30 AM", w.n)}
	for range rapid.IntRange(0, 3).Draw(w.t, "lines") {
		e = append(e, w.word())
	}
	w.n++
	return e
}

func (w *writer) file(n int) (f [][]string) {
	for range n {
		f = append(f, w.entry())
	}
	return f
}

func (w *writer) edit(base [][]string) (f [][]string) {
	for _, e := range base {
		switch rapid.IntRange(0, 6).Draw(w.t, "change") {
		case 0:
			continue
		case 1:
			f = append(f, w.entry())
		case 2, 3:
			at := rapid.IntRange(1, len(e)).Draw(w.t, "line")
			to := rapid.IntRange(at, len(e)).Draw(w.t, "until")
			e = slices.Concat(e[:at:at], []string{w.word()}, e[to:])
		}
		f = append(f, e)
	}
	for range rapid.IntRange(0, 2).Draw(w.t, "more") {
		f = append(f, w.entry())
	}
	return f
}

func text(f [][]string) string {
	var b strings.Builder
	for _, e := range f {
		b.WriteString(strings.Join(e, "\n") + "\n\n")
	}
	return b.String()
}

func words(f [][]string) (out []string) {
	for _, e := range f {
		out = append(out, e[1:]...)
	}
	return out
}

func TestDay_TooManyEntriesAreNotMerged(t *testing.T) {
	many := strings.Repeat("# 10:30\n", merge.MaxEntries+1)
	if _, _, ok := merge.Day(known(""), []byte(many), []byte("# 10:31\n"), "phone"); ok {
		t.Error("it was merged")
	}
}

// FuzzDay merges any three texts: every line of both sides is in the result unless the
// base has it, and a side that did not change gives the other.
func FuzzDay(f *testing.F) {
	f.Add("# 10:30\na\n", "# 10:30\nb\n", "# para:abcdef 10:30\n\nc", true)
	f.Add("\ufeff# 1:00", "x\r\n# 1:00\r\n", "", false)
	f.Fuzz(func(t *testing.T, base, ours, theirs string, isKnown bool) {
		b := merge.Base{Known: isKnown}
		if isKnown {
			b.Text = []byte(base)
		}
		got, _, ok := merge.Day(b, []byte(ours), []byte(theirs), "phone")
		if !ok {
			return
		}
		for _, side := range []string{ours, theirs} {
			for line := range strings.SplitSeq(side, "\n") {
				line = strings.Trim(strings.TrimPrefix(line, "\ufeff"), "# \t\r")
				if !strings.Contains(string(got), line) && !(isKnown && strings.Contains(base, line)) {
					t.Fatalf("%q is lost: %q", line, got)
				}
			}
		}
		if again, _, _ := merge.Day(b, got, got, "phone"); string(again) != string(got) {
			t.Fatalf("%q", again)
		}
	})
}
