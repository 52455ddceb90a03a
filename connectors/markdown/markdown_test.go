package markdown

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"gatehouse/core"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden renders every testdata/*.md and compares with the .golden file
// beside it: the parts as JSON, one per line.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden sources: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			limit := 4096
			if strings.Contains(file, "split") {
				limit = 120
			}
			var got bytes.Buffer
			enc := json.NewEncoder(&got)
			enc.SetEscapeHTML(false)
			for _, p := range New(limit).Render(string(source)) {
				if err := enc.Encode(p); err != nil {
					t.Fatal(err)
				}
			}
			golden := strings.TrimSuffix(file, ".md") + ".golden"
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("rendered\n%s\nwant\n%s", got.Bytes(), want)
			}
		})
	}
}

// check fails unless parts obey every rule that platforms enforce.
func check(t interface {
	Helper()
	Fatalf(string, ...any)
}, parts []core.Part, limit int) {
	t.Helper()
	for i, p := range parts {
		if !utf8.ValidString(p.Text) {
			t.Fatalf("part %d is not UTF-8: %q", i, p.Text)
		}
		n := len(utf16.Encode([]rune(p.Text)))
		if n != UTF16Len(p.Text) {
			t.Fatalf("UTF16Len is %d, want %d", UTF16Len(p.Text), n)
		}
		if n > limit || strings.TrimSpace(p.Text) == "" {
			t.Fatalf("part %d has %d units (limit %d): %q", i, n, limit, p.Text)
		}
		for k, s := range p.Spans {
			if s.Offset < 0 || s.Length <= 0 || s.Offset+s.Length > n {
				t.Fatalf("part %d span %+v is outside of %d units", i, s, n)
			}
			if s.Style == core.StyleLink && !linkable(s.URL, []string{"http", "https", "tg", "mailto"}) {
				t.Fatalf("part %d has a link to %q", i, s.URL)
			}
			if splitsPair(p.Text, s.Offset) || splitsPair(p.Text, s.Offset+s.Length) {
				t.Fatalf("part %d span %+v tears a surrogate pair", i, s)
			}
			for _, o := range p.Spans[:k] {
				checkPair(t, o, s)
			}
		}
	}
}

// checkPair holds two spans, outer first, against the rules of Telegram's
// "Message entities": contained or apart, code holds nothing, no nested quotes.
func checkPair(t interface {
	Helper()
	Fatalf(string, ...any)
}, o, s core.Span) {
	t.Helper()
	end := o.Offset + o.Length
	if s.Offset >= end {
		return
	}
	if s.Offset < o.Offset || s.Offset+s.Length > end {
		t.Fatalf("spans overlap in part: %+v %+v", o, s)
	}
	switch o.Style {
	case core.StylePre, core.StyleCode:
		t.Fatalf("code holds a span: %+v %+v", o, s)
	case s.Style:
		t.Fatalf("style within itself: %+v %+v", o, s)
	}
	if s.Style == core.StyleCode && o.Style != core.StyleQuote || s.Style == core.StylePre && o.Style != core.StyleQuote || s.Style == core.StyleQuote {
		t.Fatalf("%s within %s", s.Style, o.Style)
	}
}

func splitsPair(s string, unit int) bool {
	u := utf16.Encode([]rune(s))
	return unit > 0 && unit < len(u) && utf16.IsSurrogate(rune(u[unit])) && u[unit] >= 0xDC00 && u[unit] < 0xE000 && u[unit-1] >= 0xD800 && u[unit-1] < 0xDC00
}

// letters is s without white space: what a cut must keep.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

func joined(parts []core.Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// markdownish draws text dense in markup, emoji, marks and line breaks.
func markdownish() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"a", "word ", "zwei\n", "\n\n", "**", "*", "_", "~~", "||", "`", "```", "```go\n", "\n```\n", "> ", "- ", "1. ", "  ", "    ",
		"[x](http://e.org)", "[", "](", ")", "![i](https://e.org/i.png)", "# ", "|", "\n|-|-|\n", "| a | b |\n", "<b>", "</b>", "<!-- c -->", "&amp;", "&#0;", "\\*",
		"😀", "👩‍👩‍👧", "🇩🇪", "e\u0301", "ש", "\u202e", "漢字", "\t", "\r\n", "\x00", "\xff", "http://e.org/x ", "<https://e.org>", "- [x] ", "---\n", "[r]: /u\n", "[r]",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 120).Draw(t, "pieces"), "")
	})
}

func TestRenderObeysThePlatformsRulesWhateverIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(16, 200).Draw(t, "limit")
		source := markdownish().Draw(t, "source")
		small := New(limit).Render(source)
		check(t, small, limit)
		whole := New(1 << 20).Render(source)
		check(t, whole, 1<<20)
		if letters(joined(small)) != letters(joined(whole)) {
			t.Fatalf("splitting changed the text:\n%q\n%q", joined(small), joined(whole))
		}
	})
}

func TestSplitKeepsEveryStyleOfEveryLetter(t *testing.T) {
	r := New(1 << 20)
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(8, 60).Draw(t, "limit")
		whole := r.Render(markdownish().Draw(t, "source"))
		if len(whole) == 0 {
			return
		}
		want := styledLetters(whole)
		got := styledLetters(Split(whole[0], limit))
		if got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}

// styledLetters writes every visible unit with the styles on it.
func styledLetters(parts []core.Part) string {
	var b strings.Builder
	for _, p := range parts {
		for i, u := range utf16.Encode([]rune(p.Text)) {
			if u < 0x3000 && unicode.IsSpace(rune(u)) {
				continue
			}
			b.WriteString(string(rune(u)))
			for _, s := range p.Spans {
				if i >= s.Offset && i < s.Offset+s.Length {
					b.WriteString("{" + string(s.Style) + s.URL + s.Language + "}")
				}
			}
		}
	}
	return b.String()
}

func TestPlainTextKeepsAllItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("ab \n😀éё漢"))).Draw(t, "s")
		parts := Plain(s, 20)
		check(t, parts, 20)
		if letters(joined(parts)) != letters(s) {
			t.Fatalf("%q became %q", s, joined(parts))
		}
	})
}

func TestSplitKeepsGraphemesWhole(t *testing.T) {
	for _, unit := range []string{"😀", "👩‍👩‍👧", "🇩🇪", "e\u0301", "👍🏽", "❤\ufe0f"} {
		text := strings.Repeat(unit, 50)
		for limit := 16; limit < 30; limit++ {
			for _, p := range Plain(text, limit) {
				if strings.Trim(strings.ReplaceAll(p.Text, unit, ""), " ") != "" {
					t.Fatalf("limit %d tears %q: %q", limit, unit, p.Text)
				}
			}
		}
	}
}

func TestAFenceContinuesInTheNextPartWithItsLanguage(t *testing.T) {
	source := "before\n\n```go\n" + strings.Repeat("line of code\n", 40) + "```\n\nafter"
	parts := New(100).Render(source)
	check(t, parts, 100)
	for i, p := range parts[1 : len(parts)-1] {
		if len(p.Spans) != 1 || p.Spans[0].Style != core.StylePre || p.Spans[0].Language != "go" || p.Spans[0].Offset != 0 {
			t.Fatalf("part %d: %+v", i+1, p)
		}
		for line := range strings.Lines(strings.TrimSuffix(p.Text, "\n\nafter")) {
			if strings.TrimSpace(line) != "line of code" {
				t.Errorf("part %d holds a torn line %q", i+1, line)
			}
		}
	}
}

func TestAHugeOrHostileSourceIsShownInGoodTime(t *testing.T) {
	big := strings.Repeat("wort ", 1<<18)
	cases := map[string]string{
		"1 MB of text":    big,
		"nested quotes":   strings.Repeat(">", 100_000),
		"nested lists":    strings.Repeat("- ", 50_000) + "x",
		"numbered lists":  strings.Repeat("1. ", 50_000) + "x",
		"brackets":        strings.Repeat("[", 60_000),
		"link brackets":   strings.Repeat("[a](", 15_000),
		"images":          strings.Repeat("![", 30_000),
		"emphasis":        strings.Repeat("*a_ ", 15_000),
		"less emphasis":   strings.Repeat("*a_ ", 4_900),
		"less links":      strings.Repeat("[a](", 990) + strings.Repeat("x", 40_000),
		"bars":            strings.Repeat("||a", 20_000),
		"ticks":           strings.Repeat("`a``b```", 8_000),
		"angles":          strings.Repeat("<a ", 20_000),
		"comments":        strings.Repeat("<!--", 15_000),
		"wide table":      strings.Repeat("|a", 10_000) + "|\n" + strings.Repeat("|-", 10_000) + "|\n" + strings.Repeat("|\n", 10_000),
		"many tables":     strings.Repeat(strings.Repeat("|a", 100)+"|\n"+strings.Repeat("|-", 100)+"|\n"+strings.Repeat("|\n", 100)+"\n", 300),
		"deepening lists": deepening(400),
		"deepening quotes": func() string {
			var b strings.Builder
			for i := range 300 {
				b.WriteString(strings.Repeat("> ", i) + "x\n")
			}
			return b.String()
		}(),
		"references": strings.Repeat("[a]: /b\n", 8_000) + strings.Repeat("[a]", 8_000),
	}
	r := New(4096)
	for name, source := range cases {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			parts := r.Render(source)
			took := time.Since(began)
			n := 0
			for _, p := range parts {
				n += len(p.Text)
			}
			if took > time.Minute { // a tenth of a second on a machine that does nothing else; without the bounds, hours
				t.Errorf("took %v", took)
			}
			if n > 8*len(source)+1000 {
				t.Errorf("%d bytes became %d", len(source), n)
			}
			check2(t, parts)
		})
	}
}

// check2 is check without its quadratic comparison of spans.
func check2(t *testing.T, parts []core.Part) {
	t.Helper()
	for i, p := range parts {
		if n := UTF16Len(p.Text); n > 4096 || strings.TrimSpace(p.Text) == "" {
			t.Fatalf("part %d has %d units", i, n)
		}
	}
}

func deepening(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat("  ", i) + "- x\n")
	}
	return b.String()
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{"", "**b** _i_ `c` ~~s~~ ||x||", "> q\n> ```go\n> x\n> ```", "|a|b|\n|-|-|\n|1|2|", "[a `c`](http://x) **b `c` d**", "1. a\n   - b\n\n     c", "&#0;&lt;\\*", "```\n\n\n"} {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, source string, limit int) {
		if limit < 16 || limit > 5000 || len(source) > 4000 {
			return
		}
		small := New(limit).Render(source)
		check(t, small, limit)
		if letters(joined(small)) != letters(joined(New(1<<20).Render(source))) {
			t.Fatal("splitting changed the text")
		}
	})
}

// answer is a typical model's answer of about n bytes.
func answer(n int) string {
	const block = "## Heading with `code`\n\nSome **bold** and _italic_ words with a [link](https://example.org/page), and so on, until the line is full.\n\n- first item\n- second item with `code`\n  - nested\n\n```go\nfunc main() {\n\tfmt.Println(\"hello\")\n}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> a quotation, which ends here\n\n"
	return strings.Repeat(block, n/len(block)+1)[:n]
}

func BenchmarkRender10kB(b *testing.B) {
	source, r := answer(10_000), New(4096)
	b.ReportAllocs()
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		r.Render(source)
	}
}

func BenchmarkRenderShort(b *testing.B) {
	r := New(4096)
	b.ReportAllocs()
	for b.Loop() {
		r.Render("A short **answer** of one line, as most are.")
	}
}
