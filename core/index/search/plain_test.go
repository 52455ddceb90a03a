package search

import (
	"slices"
	"strings"
	"testing"
)

func TestPlainHasTheTextWithoutMarkdown(t *testing.T) {
	for in, want := range map[string]string{
		"**Green** tea, *never* boiled":                "Green tea, never boiled",
		"***both*** and __strong__ and _emphasis_":     "both and strong and emphasis",
		"# Tea ## Green":                               "Tea Green",
		"> as they say":                                "as they say",
		"- [ ] buy tea":                                "buy tea",
		"- [x] buy tea - [ ] and milk":                 "buy tea - and milk",
		"see [the plan](Notes/plan.md) and [[Tea|it]]": "see the plan and it",
		"![A shed](shed.png) [[Garden]]":               "A shed Garden",
		"a link that is cut [the plan](https://exa…":   "a link that is cut the plan",
		"run `go test ./*_test.go` ~~now~~":            "run go test ./*_test.go now",
		"cut in **the middle of…":                      "cut in the middle of…",
		"…the middle** of":                             "…the middle of",
		"…a `span` of `code*s…":                        "…a span of code*s…",
		"(**Green** tea), **“best”**, __so__.":         "(Green tea), “best”, so.",
		"…the **end** is":                              "…the end is",
		// what is none
		"2 * 3 is 6, 2*3 too":       "2 * 3 is 6, 2*3 too",
		"snake_case_name, a [note]": "snake_case_name, a [note]",
		"#1 of 5 > 4? C# and a~b":   "#1 of 5 > 4? C# and a~b",
		`escaped \*stars\*`:         "escaped *stars*",
		"tea – green - 3 g":         "tea – green - 3 g",
		"":                          "",
		// what is code
		"2**10 = 1024, 3**4 = 81":                 "2**10 = 1024, 3**4 = 81",
		"in __init__.py and __main__.py":          "in __init__.py and __main__.py",
		"a__b and __init__(self)":                 "a__b and __init__(self)",
		"f(**kwargs) calls g(*args, **kwargs)":    "f(**kwargs) calls g(*args, **kwargs)",
		"…call f(**kwargs) and so on…":            "…call f(**kwargs) and so on…",
		"arr[i](x) and m[[1]]":                    "arr[i](x) and m[[1]]",
		"```py f(**a) ** b``` and **so**":         "py f(**a) ** b and so",
		"**so** ```py x[*a*] = [b](c) **d** # e…": "so py x[*a*] = [b](c) **d** # e…",
		"…[b](c) *d*` is **code**":                "…[b](c) *d* is code",
		"…*a* ``` **b**":                          "…*a*  **b**",
		"rm **/*.o, ls **/*.c":                    "rm **/*.o, ls **/*.c",
		"/* a */ b /* c */":                       "/* a */ b /* c */",
	} {
		if got, _ := Plain(in, nil); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

func TestOnlyMarkdownIsShownWithoutItsSyntax(t *testing.T) {
	for _, c := range []struct {
		hit  Hit
		want string
	}{
		{Hit{Type: Document, Path: "Notes/tea.md"}, "green tea"},
		{Hit{Type: Document, Path: "Notes/TEA.MARKDOWN"}, "green tea"},
		{Hit{Type: Document, Path: "tea.py"}, "**green** tea"},
		{Hit{Type: Document, Path: "tea.txt"}, "**green** tea"},
		{Hit{Type: Journal, Path: "Journal/2030.md"}, "green tea"},
		{Hit{Type: Session}, "green tea"},
	} {
		c.hit.Excerpt, c.hit.Marks = "**green** tea", [][2]int{{10, 13}}
		text, marks := c.hit.Shown()
		if text != c.want || len(marks) != 1 || string([]rune(text)[marks[0][0]:marks[0][1]]) != "tea" {
			t.Errorf("%s %s: %q %v", c.hit.Type, c.hit.Path, text, marks)
		}
	}
}

func TestPlainMovesTheMarks(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // marked words, in braces
	}{
		{"the **{tea}** of [{Äpfel}](a.md)", "the {tea} of {Äpfel}"},
		{"**{green} tea**", "{green} tea"},
		{"{**}tea…", "tea…"},
		{"{tea}", "{tea}"},
	} {
		text, marks := braces(c.text)
		got, moved := Plain(text, marks)
		want, wanted := braces(c.want)
		if got != want || !slices.Equal(moved, wanted) {
			t.Errorf("%q: %q %v, want %q %v", c.text, got, moved, want, wanted)
		}
	}
	for _, marks := range [][][2]int{{{-1, 2}}, {{0, 99}}, {{9, 3}}} { // no panic, whatever the marks
		Plain("tea", marks)
	}
}

// braces returns text without its braces, and what is in them as marks.
func braces(text string) (string, [][2]int) {
	var out strings.Builder
	var marks [][2]int
	n := 0
	for _, r := range text {
		switch r {
		case '{':
			marks = append(marks, [2]int{n, n})
		case '}':
			marks[len(marks)-1][1] = n
		default:
			out.WriteRune(r)
			n++
		}
	}
	return out.String(), marks
}

func FuzzPlain(f *testing.F) {
	f.Add("**a** [b](c) `d` \\* # e")
	f.Add("\xff[[\xc3|x]]")
	f.Fuzz(func(t *testing.T, text string) {
		got, marks := Plain(text, [][2]int{{0, len(text)}})
		if len(got) > len(text) || len(marks) > 1 {
			t.Errorf("%q became %q %v", text, got, marks)
		}
	})
}
