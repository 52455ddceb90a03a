package markup

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gatehouse/connectors/discord/markup/markuptest"
	"gatehouse/connectors/markdown"
	"gatehouse/core"
)

// reserve is what the connector keeps free in each part.
const reserve = 24

func TestMarkdownBecomesDiscordsOwn(t *testing.T) {
	b := NewRenderer(reserve)
	for _, c := range []struct{ name, in, want string }{
		{"styles", "**bold** *it* ~~gone~~ ||secret|| `code`", "**bold** _it_ ~~gone~~ ||secret|| `code`"},
		{"nested", "***both*** and **b *i* b**", "**_both_** and **b _i_ b**"},
		{"italics in a word", "un*believ*able", "un_believ_" + joiner + "able"},
		{"bold beside italics", "**a***b*", "**a**_b_"},
		{"heading", "# Title\n\ntext", "**Title**\n\ntext"},
		{"list", "- one\n- two\n  - deep", "• one\n• two\n  ◦ deep"},
		{"numbers stay as they are", "3. three\n4. four", "3\\. three\n4\\. four"},
		{"fence", "```go\nx := `a` * b_c\n```", "```go\nx := `a` * b_c\n```"},
		{"fence in a fence", "````\n```\nx\n```\n````", "```\n``" + joiner + "`\nx\n``" + joiner + "`\n```"},
		{"code with backticks", "`` a`b ``", "``a`b``"},
		{"snake case", "some_snake_case and 2 * 3", "some\\_snake\\_case and 2 \\* 3"},
		{"quote", "> one\n> **two**\n\nrest", "> one\n> **two**\n\nrest"},
		{"link", "see [the docs](https://example.com/a_(b))", "see [the docs](https://example.com/a%5F%28b%29)"},
		{"address", "see https://example.com/a_b_c.", "see <https://example.com/a_b_c>."},
		{"autolink", "<https://example.com/a_b>", "<https://example.com/a_b>"},
		{"a label that lies", "[https://good.example](https://bad.example)", "<https://good.example> (<https://bad.example>)"},
		{"bold address", "**see https://a.b/c_d ok**", "**see **<https://a.b/c_d>** ok**"},
		{"nobody is pinged", "@everyone @here <@123> <@&5> <#7> <:x:9> <t:1>", "\\@everyone \\@here \\<@123> \\<@&5> \\<#7> \\<\\:x:9> \\<t:1>"},
		{"no emoji by name", "a :smile: b 10:30:45", "a \\:smile: b 10\\:30:45"},
		{"no heading, list or quote by accident", "a\\\n\\# b\\\n\\> c\\\n\\- d\\\n\\-# e", "a\n\\# b\n\\> c\n\\- d\n\\-# e"},
		{"table", "|a|b|\n|-|-|\n|1|2|", "```\na │ b\n──┼──\n1 │ 2\n```"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, p := range b.Render(c.in) {
				got = append(got, Encode(p))
				if shown, want := plain(markuptest.Show(Encode(p)).Text.String()), plain(p.Text); shown != want && c.name != "a label that lies" {
					t.Errorf("shown as %q, want %q", shown, want)
				}
			}
			if diff := cmp.Diff([]string{c.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// plain leaves out what is not seen.
func plain(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(s, joiner, ""))
}

// check holds p against what Discord shows of it.
func check(t interface{ Fatalf(string, ...any) }, p core.Part) {
	content := Encode(p)
	shown := markuptest.Show(content)
	if got, want := plain(shown.Text.String()), plain(p.Text); got != want {
		t.Fatalf("part %#v\nis sent as %q\nand shown as %q", p, content, got)
	}
	for i, styles := range shown.Styles {
		if strings.ContainsAny(styles, "QHLMUE") {
			t.Fatalf("part %#v\nis sent as %q\nand its byte %d is shown as %q", p, content, i, styles)
		}
	}
}

// pieces are what the platform's markup is made of.
var pieces = []string{"a", "B", "word", "ü", "漢", "😀", " ", " ", "\n", "\n\n", "*", "**", "_", "__", "~", "~~", "|", "||", "`", "``", "```", "\\", "<", ">", "@",
	"@everyone", "<@123>", "<#1>", "#", "# ", "## ", "-# ", "- ", "+ ", "> ", ">>> ", "1. ", "12) ", "[", "]", "(", ")", "[x](https://e.com)", "https://e.com/a_b", "http://", ":", ":smile:", "!", ".", "10:30:45", "\t"}

var styleList = []core.Style{core.StyleBold, core.StyleItalic, core.StyleStrike, core.StyleSpoiler}

func TestAnyTextIsShownUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 30).Draw(t, "pieces"), "")
		check(t, core.Part{Text: text})
	})
}

func TestAnyStylesShowTheSameText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 20).Draw(t, "pieces")
		p := core.Part{Text: strings.Join(words, "")}
		offsets := []int{0}
		for _, w := range words {
			offsets = append(offsets, offsets[len(offsets)-1]+markdown.UTF16Len(w))
		}
		for range rapid.IntRange(0, 4).Draw(t, "spans") {
			from := rapid.IntRange(0, len(words)-1).Draw(t, "from")
			to := rapid.IntRange(from+1, len(words)).Draw(t, "to")
			p.Spans = append(p.Spans, core.Span{Style: rapid.SampledFrom(styleList).Draw(t, "style"), Offset: offsets[from], Length: offsets[to] - offsets[from]})
		}
		check(t, p)
	})
}

func TestAnyMarkdownFitsAndKeepsItsText(t *testing.T) {
	b := NewRenderer(reserve)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 3, 10, 100, 400}).Draw(t, "n")
		of := pieces
		if rapid.Bool().Draw(t, "without links") {
			of = slices.DeleteFunc(slices.Clone(pieces), func(p string) bool { return strings.Contains(p, "(") || strings.ContainsAny(p, "<[") })
		}
		source := strings.Join(rapid.SliceOfN(rapid.SampledFrom(of), n, n).Draw(t, "pieces"), "")
		if rapid.Bool().Draw(t, "long") {
			source = strings.Repeat(source, 4)
		}
		for _, p := range b.Render(source) {
			content, ok := Fit(p, "\n\n"+strings.Repeat("r", reserve-2))
			if n := markdown.UTF16Len(content); !ok || n > MaxText {
				t.Fatalf("%d units, %v", n, ok)
			}
			if !strings.HasPrefix(content, Encode(p)) {
				t.Fatalf("sent without its styles: %q", content)
			}
			if !slices.ContainsFunc(p.Spans, func(s core.Span) bool { return s.Style == core.StyleLink }) { // some show their target too
				check(t, p)
			}
		}
	})
}

// A style's marker between two colons must not complete the name of an emoji.
func TestAMarkerCompletesNoEmoji(t *testing.T) {
	check(t, core.Part{Text: "ü:aa:", Spans: []core.Span{{Style: core.StyleItalic, Offset: 3, Length: 1}}})
	check(t, core.Part{Text: "ü:aa:", Spans: []core.Span{{Style: core.StyleItalic, Offset: 3, Length: 2}}})
	if got := Encode(core.Part{Text: "10:30", Spans: []core.Span{{Style: core.StyleBold, Offset: 0, Length: 5}}}); got != "**10:30**" {
		t.Errorf("a time is sent as %q", got)
	}
}

func TestStylesAreShownWhereTheyBelong(t *testing.T) {
	b := NewRenderer(reserve)
	p := b.Render("plain **bold *both* bold** ~~gone~~ ||hid|| `code` [link](https://e.com)\n\n> quoted\n\n```\nblock\n```")[0]
	s := markuptest.Show(Encode(p))
	for word, want := range map[string]string{"plain": "", "bold": "b", "both": "bi", "gone": "s", "hid": "x", "code": "c", "link": "l", "quoted": "q", "block": "p"} {
		at := strings.Index(s.Text.String(), word)
		if at < 0 || s.Styles[at] != want {
			t.Errorf("%q is shown as %q, want %q, in %q", word, s.Styles[max(at, 0)], want, Encode(p))
		}
	}
}

func TestALongAnswerIsCutWhereFencesAndLinksStayWhole(t *testing.T) {
	b := NewRenderer(reserve)
	code := "```go\n" + strings.Repeat("x := a * b // `tick` _under_\n", 200) + "```\n"
	parts := b.Render("Intro\n\n" + code + "\n" + strings.Repeat("[a label](https://example.com/path) and under_score_words, ", 200))
	if len(parts) < 5 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, p := range parts {
		content := Encode(p)
		if n := markdown.UTF16Len(content); n > MaxText {
			t.Errorf("part %d has %d units", i, n)
		}
		if strings.Count(content, "```")%2 != 0 {
			t.Errorf("part %d leaves a fence open", i)
		}
		check(t, p)
	}
	if n := markdown.UTF16Len(Encode(parts[0])); n < MaxText/2 {
		t.Errorf("the first part is only %d units long", n)
	}
}

func TestAMegabyteIsRenderedInTime(t *testing.T) {
	b := NewRenderer(reserve)
	began := time.Now()
	parts := b.Render(strings.Repeat("word_with*markup* ", 1<<16))
	if len(parts) < 500 {
		t.Errorf("%d parts", len(parts))
	}
	for _, p := range parts {
		if Size(p) > MaxText {
			t.Fatalf("a part of %d units", Size(p))
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestALongTargetIsShownAndCut(t *testing.T) {
	b := NewRenderer(reserve)
	target := "https://example.com/" + strings.Repeat("x", 5000)
	var all strings.Builder
	for _, p := range b.Render("[label](" + target + ")") {
		if Size(p) > MaxText {
			t.Errorf("a part of %d units", Size(p))
		}
		all.WriteString(p.Text)
	}
	if !strings.Contains(all.String(), target) {
		t.Error("the target is lost")
	}
}

func TestTextThatIsTooLongInMarkupIsSentPlain(t *testing.T) {
	text := strings.Repeat("_", MaxText)
	if content, ok := Fit(core.Part{Text: text}, ""); !ok || content != text {
		t.Errorf("%v, %d bytes", ok, len(content))
	}
	if _, ok := Fit(core.Part{Text: text + "_"}, ""); ok {
		t.Error("2001 characters were taken")
	}
}
