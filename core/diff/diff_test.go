package diff

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// shown returns a diff with its marks in braces.
func shown(d Diff) string {
	var b strings.Builder
	for _, h := range d.Hunks {
		fmt.Fprintf(&b, "@%d,%d\n", h.Old, h.New)
		for _, l := range h.Lines {
			b.WriteString(l.Op)
			for _, p := range l.Parts {
				if p.Mark {
					p.Text = "{" + p.Text + "}"
				}
				b.WriteString(p.Text)
			}
			if l.Skipped > 0 {
				fmt.Fprintf(&b, "…%d", l.Skipped)
			}
			if l.NoEnd {
				b.WriteString("$")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestOf(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"nothing changes", "a\n", "a\n", ""},
		{"words are marked", "tea at four\n", "tea at five o'clock\n", "@1,1\n-tea at {four}\n+tea at {five o'clock}\n"},
		{"lines with little in common are whole", "tea at four\n", "the ships left\n", "@1,1\n-tea at four\n+the ships left\n"},
		{"context", numbered(1, 9), strings.Replace(numbered(1, 9), "line 5\n", "line 5\nmore\n", 1), "@3,3\n line 3\n line 4\n line 5\n+more\n line 6\n line 7\n line 8\n"},
		{"two hunks", numbered(1, 20), strings.NewReplacer("line 2\n", "", "line 19\n", "").Replace(numbered(1, 20)),
			"@1,1\n line 1\n-line 2\n line 3\n line 4\n line 5\n@16,15\n line 16\n line 17\n line 18\n-line 19\n line 20\n"},
		{"near changes share a hunk", numbered(1, 9), strings.NewReplacer("line 2\n", "", "line 8\n", "").Replace(numbered(1, 9)),
			"@1,1\n line 1\n-line 2\n line 3\n line 4\n line 5\n line 6\n line 7\n-line 8\n line 9\n"},
		{"the last newline", "a\nb\n", "a\nb", "@1,1\n a\n-b\n+b$\n"},
		{"an empty file grows", "", "a\n", "@1,1\n+a\n"},
		{"a file is emptied", "a\nb\n", "", "@1,1\n-a\n-b\n"},
		{"CRLF is not shown where all lines have it", "a\r\nb\r\n", "a\r\nc\r\n", "@1,1\n a\n-b\n+c\n"},
		{"a change of line ends is", "a\r\n", "a\n", "@1,1\n-a{\r}\n+a\n"},
		{"repeated lines", "x\nx\nx\n", "x\nx\n", "@1,1\n x\n x\n-x\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := shown(Of(c.before, c.after)); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// The lines of a diff that is not cut are those of both texts, in order.
func TestHunksHoldEveryChangedLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			s := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "a b", "c", ""}), 0, 40).Draw(t, "lines"), "\n")
			if rapid.Bool().Draw(t, "end") {
				s += "\n"
			}
			return s
		})
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		d := Of(before, after)
		if got := apply(t, before, d); got != after {
			t.Fatalf("applied: %q, want %q\n%s", got, after, d.Unified())
		}
		added, removed := 0, 0
		for _, h := range d.Hunks {
			a, r := count(h.Lines)
			added, removed = added+a, removed+r
		}
		if d.More != 0 || added != d.Added || removed != d.Removed || (added+removed == 0) != (before == after) {
			t.Fatalf("%+v", d)
		}
	})
}

// apply makes the new text of the old one, and checks the lines that it meets.
func apply(t *rapid.T, before string, d Diff) string {
	var out strings.Builder
	old := dropEmpty(strings.SplitAfter(before, "\n"))
	at := 0
	for _, h := range d.Hunks {
		for ; at < h.Old-1; at++ {
			out.WriteString(old[at])
		}
		if n := lines(out.String()) + 1; n != h.New {
			t.Fatalf("a hunk begins at line %d of the new text, want %d", h.New, n)
		}
		for _, l := range h.Lines {
			text := l.Text() + "\n"
			if l.NoEnd {
				text = l.Text()
			}
			if l.Op != Add {
				if old[at] != text {
					t.Fatalf("line %d is %q, want %q", at+1, text, old[at])
				}
				at++
			}
			if l.Op != Remove {
				out.WriteString(text)
			}
		}
	}
	for ; at < len(old); at++ {
		out.WriteString(old[at])
	}
	return out.String()
}

func TestLongTextsAreCutAndCounted(t *testing.T) {
	all := func(d Diff) (n, size int) {
		for _, h := range d.Hunks {
			for _, l := range h.Lines {
				n, size = n+1, size+len(l.Text())
			}
		}
		return n, size
	}
	t.Run("new file", func(t *testing.T) {
		d := Of("", numbered(1, 5000))
		if n, _ := all(d); d.Added != 5000 || n != maxKept || d.More != 5000-maxKept || !strings.HasSuffix(d.Unified(), "\n… 4600 more lines\n") {
			t.Errorf("%d added, %d kept, %d more: %.60q", d.Added, n, d.More, d.Unified()[len(d.Unified())-60:])
		}
	})
	t.Run("everything replaced shows both sides", func(t *testing.T) {
		d := Of(numbered(1, 3000), strings.ReplaceAll(numbered(1, 3000), "line", "row"))
		text := d.Unified()
		if n, _ := all(d); d.Added != 3000 || d.Removed != 3000 || n > maxKept || !strings.Contains(text, "-line 1\n") || !strings.Contains(text, "+row 1\n") || !strings.Contains(text, "… 2850 more lines\n") {
			t.Errorf("%d kept of %d and %d\n%.100s", n, d.Added, d.Removed, text)
		}
	})
	t.Run("one change in a large file", func(t *testing.T) {
		big := numbered(1, 400_000)
		d := Of(big, strings.Replace(big, "line 200000\n", "line two\n", 1))
		if got, want := shown(d), "@199997,199997\n line 199997\n line 199998\n line 199999\n-line {200000}\n+line {two}\n line 200001\n line 200002\n line 200003\n"; got != want {
			t.Errorf("got\n%s", got)
		}
	})
	t.Run("a large rewrite is counted only", func(t *testing.T) {
		d := Of(numbered(1, 200_000), strings.ReplaceAll(numbered(1, 200_000), "line", "row"))
		if len(d.Hunks) != 0 || d.Added != 200_000 || d.Removed != 200_000 || d.More != 400_000 || d.Unified() != "… 400000 more lines\n" {
			t.Errorf("%d hunks, %d, %d, %d", len(d.Hunks), d.Added, d.Removed, d.More)
		}
	})
	t.Run("long lines", func(t *testing.T) {
		d := Of("", strings.Repeat("é", 4000)+"\n")
		if l := d.Hunks[0].Lines[0]; l.Text() != strings.Repeat("é", 500) || l.Cut != 3500 || !strings.Contains(d.Unified(), "é… 3500 more characters\n") {
			t.Errorf("%d shown, %d cut", len(l.Text()), l.Cut)
		}
		if _, size := all(Of("", strings.Repeat(strings.Repeat("x", 2000)+"\n", 300))); size > maxKeptSize {
			t.Errorf("%d bytes are kept", size)
		}
	})
}

func TestFiles(t *testing.T) {
	text := "a\n"
	for _, c := range []struct {
		name         string
		before       *string
		after        string
		isNew, isBin bool
		kind         string
		added        int
	}{
		{"new", nil, "a\nb\n", true, false, "text/plain", 2},
		{"new and empty", nil, "", true, false, "text/plain", 0},
		{"changed", &text, "b\n", false, false, "text/plain", 1},
		{"binary", &text, "\x89PNG\r\n\x1a\n\x00", false, true, "image/png", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Files("a", c.before, c.after)
			if f.New != c.isNew || f.Binary != c.isBin || f.After.Type != c.kind || f.After.Bytes != len(c.after) || f.Added != c.added || f.Same() || (f.Before == nil) != c.isNew {
				t.Errorf("%+v %+v", f, f.After)
			}
		})
	}
	if f := Files("a", &text, text); !f.Same() {
		t.Errorf("%+v", f)
	}
}

func TestVisibleKeepsTabs(t *testing.T) {
	if got := Visible("\ta\u202eb\r"); got != "\ta\\u{202E}b\\u{D}" {
		t.Errorf("%q", got)
	}
}

func FuzzOf(f *testing.F) {
	f.Add("a\nb", "b\na\n")
	f.Add("\xff\r\n", "\x00\n\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		d := Of(before, after)
		if n := len(d.Unified()); n > 200<<10 || d.Added < 0 || d.Removed < 0 || d.More < 0 {
			t.Errorf("%d bytes, %+v", n, d)
		}
	})
}
