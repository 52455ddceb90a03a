package chunk_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"gatehouse/core/coretest"
	"gatehouse/core/index/chunk"
)

// shown returns passages as "line: text", with "¶" for an empty line.
func shown(t chunk.Text) string {
	var out []string
	for _, c := range t.Chunks {
		out = append(out, fmt.Sprintf("%d: %s", c.Line, strings.ReplaceAll(strings.ReplaceAll(c.Text, "\n\n", "¶"), "\n", "|")))
	}
	return strings.Join(out, "\n")
}

func TestSplit_MarkdownGoesByItsStructure(t *testing.T) {
	long := strings.Repeat("A sentence of some words. ", 70) // 1,820 bytes
	for name, c := range map[string]struct{ source, want string }{
		"headings above a passage are in front": {"# House\n\n## Roof\n\nSlate.\n\n## Garden\n\nBeans.\n",
			"1: House\n3: House¶Roof\n5: House > Roof¶Slate.\n7: House¶Garden\n9: House > Garden¶Beans."},
		"short neighbours are joined":       {"One.\n\nTwo.\n\n- a\n- b\n\n> said\n", "1: One.¶Two.¶- a|- b¶> said"},
		"a block of code stays whole":       {"Text.\n\n```go\nfunc main() {\n\n\n}\n```\n\nMore.", "1: Text.¶```go|func main() {¶|}|```¶More."},
		"a heading in code is none":         {"```\n# no heading\n```\n", "1: ```|# no heading|```"},
		"an underlined heading":             {"Title\n=====\n\nText.\n", "1: Title\n4: Title¶Text."},
		"front matter is no text":           {"---\ntitle: T\n---\n\nText.\n", "5: Text."},
		"what looks like it but is not":     {"---\ntitle: [\n---\n\nText.\n", "1: ---¶title: [\n5: title: [¶Text."},
		"line numbers behind empty lines":   {"\n\n\nText.\n", "4: Text."},
		"Windows's line ends":               {"# A\r\n\r\nText.\r\n", "1: A\n3: A¶Text."},
		"an empty list and an empty quote":  {"-\n\n>\n\nText.\n", "1: -¶>¶Text."},
		"nothing":                           {"\n \n", ""},
		"a table":                           {"| a | b |\n|---|---|\n| 1 | 2 |\n", "1: | a | b |||---|---||| 1 | 2 |"},
		"a reference definition stays text": {"See [x].\n\n[x]: http://a.b\n", "1: See [x].¶[x]: http://a.b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shown(chunk.Split("a.md", c.source)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	chunks := chunk.Split("a.md", "# H\n\n"+long+"\n").Chunks
	if len(chunks) != 3 || !strings.HasPrefix(chunks[2].Text, "H\n\nA sentence") || !strings.HasSuffix(chunks[1].Text, "words.") {
		t.Errorf("a long paragraph: %v", chunks)
	}
}

func TestSplit_TitleAndTags(t *testing.T) {
	for _, c := range []struct{ name, source, title, tags string }{
		{"Notes/a.md", "---\ntitle: From the  head\ntags: [Tea, '#green']\n---\n# Heading\n", "From the head", "tea green"},
		{"Notes/a.md", "---\ntags: tea, green\n---\n## Second level\n#Garden and #2026 and a#b `x` #tea/black\n", "Second level", "tea green garden tea/black"},
		{"Notes/a b.md", "Just text.\n\n```\n#include\n```\n", "a b", ""},
		{"data.csv", "a,b\n", "data.csv", ""},
		{"n.md", "---\ntitle: \"a\\0b\\e\"\ntags: [\"x\\0y\"]\n---\n", "ab", "xy"},
		{"p.html", "<title>A\n page</title><p>x", "A page", ""},
		{"p.html", "<p>x", "p", ""},
	} {
		got := chunk.Split(c.name, c.source)
		if got.Title != c.title || strings.Join(got.Tags, " ") != c.tags {
			t.Errorf("%s %q: title %q, tags %q", c.name, c.source, got.Title, got.Tags)
		}
	}
}

func TestSplit_HTMLIsWhatABrowserShows(t *testing.T) {
	got := shown(chunk.Split("a.html", "<html><head><title>T</title><style>p{}</style></head>\n<body><h1>Head</h1>\n<script>if (a < b) evil()</script><p>One <b>bo</b>ld &amp; two\n<p>Three</body>"))
	if want := "2: Head¶One bold & two¶Three"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSplit_HTMLBehindALargeTagIsNotLost(t *testing.T) {
	picture := `<img src="data:image/png;base64,` + strings.Repeat("A", 2<<20) + `">`
	if got := shown(chunk.Split("a.html", "<p>before</p>"+picture+"<p>after</p>")); got != "1: before¶after" {
		t.Errorf("got %.200s", got)
	}
}

func TestSplit_NoPassageIsLongerThan4000Bytes(t *testing.T) {
	path := "# " + strings.Repeat("h", 300) + "\n"
	for _, c := range chunk.Split("a.md", path+"```\n"+strings.Repeat("code of a program\n", 2000)+"```\n").Chunks {
		if len(c.Text) > 4000 {
			t.Errorf("%d bytes at line %d", len(c.Text), c.Line)
		}
	}
}

func TestSplit_PlainTextGoesByEmptyLinesAndLineEnds(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, "row %d,value\n", i)
	}
	chunks := chunk.Split("a.csv", b.String()).Chunks
	for i, c := range chunks {
		if len(c.Text) > 1600 || !strings.HasPrefix(c.Text, fmt.Sprintf("row %d,", c.Line-1)) {
			t.Errorf("passage %d at line %d: %q", i, c.Line, c.Text)
		}
	}
	if len(chunks) < 4 || len(chunks) > 9 {
		t.Errorf("%d passages", len(chunks))
	}
}

// A token is taken for four bytes. Paragraphs of up to 200 tokens under one heading are joined to
// passages of 200 to 400 tokens; the last one has what is left.
func TestSplit_PassagesHave200To400Tokens(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, before := range map[string]string{"notes.txt": "", "notes.md": "# House\n\n## Roof\n\n"} {
		prefix := 0
		if before != "" {
			prefix = len("House > Roof\n\n")
		}
		for range 50 {
			var b strings.Builder
			b.WriteString(before)
			for range 100 {
				b.WriteString(strings.Repeat("word ", 1+r.IntN(159)) + "\n\n")
			}
			chunks := chunk.Split(name, b.String()).Chunks
			if before != "" {
				chunks = chunks[2:] // of the headings
			}
			for i, c := range chunks {
				tokens := (len(c.Text) - prefix + 3) / 4
				if tokens > 400 || tokens < 200 && i < len(chunks)-1 {
					t.Fatalf("%s: passage %d of %d has %d tokens", name, i, len(chunks), tokens)
				}
			}
		}
	}
}

// hostile are texts that parsers take long for.
func hostile() map[string]string {
	return map[string]string{
		"a million quotes":        strings.Repeat(">", 1_000_000) + "x",
		"quotes in each line":     strings.Repeat(strings.Repeat("> ", 500)+"x\n", 1000),
		"lists in lists":          strings.Repeat("- ", 500_000) + "x",
		"lists of several marks":  strings.Repeat("- + * ", 150_000),
		"empty lists in lists":    strings.Repeat("+ ", 500_000),
		"no line end":             strings.Repeat("word ", 400_000),
		"no space":                strings.Repeat("x", 2_000_000),
		"brackets":                strings.Repeat("[", 1_000_000),
		"tags":                    strings.Repeat("#a ", 500_000),
		"headings":                strings.Repeat("# a\n", 300_000),
		"deep indents":            strings.Repeat(strings.Repeat(" ", 400)+"x\n", 3000),
		"fences":                  strings.Repeat("```\n", 300_000),
		"not UTF-8":               strings.Repeat("\xff\xfe", 500_000),
		"NULs":                    strings.Repeat("\x00", 1_000_000),
		"front matter of aliases": "---\na: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c,*c]\n---\nText.",
		"aliases that multiply":   "---\na0: &a0 [x]\n" + multiplied(20) + "tags: *a20\n---\nText.",
		"open tags":               strings.Repeat("<div>", 300_000),
		"an open comment":         "<!--" + strings.Repeat("-", 1_000_000),
		"one long break":          strings.Repeat("-", 2_000_000),
		"one long break of stars": strings.Repeat("* ", 1_000_000),
		"thematic breaks":         strings.Repeat("- - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -\n", 10_000),
	}
}

// multiplied returns n aliases, each of which is nine of the one before.
func multiplied(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return b.String()
}

func TestSplit_HostileTextsTakeBoundedTimeAndMemory(t *testing.T) {
	if coretest.Race {
		t.Skip("make counts runs it: it computes much, and nothing side by side")
	}
	for name, text := range hostile() {
		for _, ext := range []string{".md", ".html", ".txt"} {
			t.Run(name+ext, func(t *testing.T) {
				began := time.Now()
				got := chunk.Split("a"+ext, text)
				if took := time.Since(began); took > 20*time.Second { // a second alone; never minutes
					t.Errorf("it took %v", took)
				}
				check(t, got)
			})
		}
	}
}

// check holds what callers rely on.
func check(t *testing.T, got chunk.Text) {
	t.Helper()
	last := 0
	for _, c := range got.Chunks {
		if len(c.Text) > 4000 || strings.TrimSpace(c.Text) == "" || !utf8.ValidString(c.Text) || c.Line < 1 || c.Line < last {
			t.Fatalf("a passage of %d bytes at line %d behind %d: %.60q", len(c.Text), c.Line, last, c.Text)
		}
		last = c.Line
	}
	if len(got.Tags) > 50 || len(got.Title) > 200 || !utf8.ValidString(got.Title) {
		t.Fatalf("%d tags, title %q", len(got.Tags), got.Title)
	}
}

// Every letter of a text is in its passages.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"# a\n\nb\n", "---\ntitle: x\n---\n", "```\na\n", "> - a\n>   b\n", "a\n===\nb\n---\n", "- \n\n  a", "1. a\n   # b\n", "\t\ta\n> \n>b", "[a]: b\n", "#\ta\n2.\n b", "\x14---\na: x\n---\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) > 100_000 {
			return
		}
		for _, name := range []string{"a.md", "a.txt"} {
			got := chunk.Split(name, source)
			check(t, got)
			if strings.HasPrefix(strings.TrimPrefix(source, "\ufeff"), "---") {
				continue // front matter may be left out
			}
			count := map[rune]int{}
			for _, c := range got.Chunks {
				for _, r := range c.Text {
					count[r]++
				}
			}
			for _, r := range strings.ToValidUTF8(source, "") {
				if unicode.IsLetter(r) || unicode.IsNumber(r) {
					if count[r]--; count[r] < 0 {
						t.Fatalf("%s: %q is lost of %q: %v", name, r, source, got.Chunks)
					}
				}
			}
		}
	})
}

func TestEntriesOfADayAreFoundByItAndWithoutTheirIDs(t *testing.T) {
	got := chunk.Split("Daily/2026-01-28.md", "# para:abc123def456 10:30 AM\n\nPlanted tomatoes.\n\n# para:zzz999 11:00\n\n# para:zzz998\n\nTea.\n")
	if got.Title != "2026-01-28" {
		t.Errorf("the title is %q", got.Title)
	}
	for _, c := range got.Chunks {
		if strings.Contains(c.Text, "para:") || !strings.Contains(got.Chunks[0].Text, "10:30 AM") {
			t.Errorf("a passage is %q", c.Text)
		}
	}
}
