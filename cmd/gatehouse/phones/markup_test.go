package phones

import (
	"strings"
	"testing"
	"unicode/utf16"
)

// plain writes what was read with the styles around it, as <kind>…</kind>.
func plain(text string, styles []Style) string {
	units := utf16.Encode([]rune(text))
	var b strings.Builder
	for at := 0; at <= len(units); at++ {
		for i := len(styles) - 1; i >= 0; i-- {
			if s := styles[i]; s.Offset+s.Length == at {
				b.WriteString("</" + s.Kind + ">")
			}
		}
		for _, s := range styles {
			if s.Offset == at {
				b.WriteString("<" + strings.TrimSpace(s.Kind+" "+s.URL+s.Language) + ">")
			}
		}
		if at < len(units) {
			n := 1
			if utf16.IsSurrogate(rune(units[at])) {
				n = 2
			}
			b.WriteString(string(utf16.Decode(units[at : at+n])))
			at += n - 1
		}
	}
	return b.String()
}

func TestMarkupIsReadAsDiscordShowsIt(t *testing.T) {
	called := func(sign byte, id string) string { return string(sign) + "n" + id }
	for source, want := range map[string]string{
		"plain <b>words</b>":                         "plain <b>words</b>",
		"**bold** and *it* or _it_":                  "<bold>bold</bold> and <italic>it</italic> or <italic>it</italic>",
		"***both***":                                 "<bold><italic>both</italic></bold>",
		"**bold _and_ more**":                        "<bold>bold <italic>and</italic> more</bold>",
		"__under__ ~~gone~~ ||secret||":              "<underline>under</underline> <strikethrough>gone</strikethrough> <spoiler>secret</spoiler>",
		"snake_case_name, 2 * 3 * 4, **":             "snake_case_name, 2 * 3 * 4, **",
		`\*not\* \_this\_ \\ \` + "`":                "*not* _this_ \\ `",
		"`a*b*` and ``a ` b``":                       "<code>a*b*</code> and <code>a ` b</code>",
		"`open":                                      "`open",
		"see\n```go\nx := 1\n\ny\n```\nend":          "see\n<pre go>x := 1\n\ny</pre>\nend",
		"```**no**```":                               "<pre>**no**</pre>",
		"> one\n> two\nthree":                        "<blockquote>one\ntwo</blockquote>\nthree",
		">>> all\nof it":                             "<blockquote>all\nof it</blockquote>",
		"a > b":                                      "a > b",
		"# Big\n-# small\n#no":                       "<heading>Big</heading>\n<subtext>small</subtext>\n#no",
		"- one\n* two\n  - three":                    "• one\n• two\n  • three",
		"[tea](https://a.example/x)":                 "<text_link https://a.example/x>tea</text_link>",
		"[bad](javascript:alert)":                    "[bad](javascript:alert)",
		"<https://a.example/_x_> https://b.example.": "<url https://a.example/_x_>https://a.example/_x_</url> <url https://b.example>https://b.example</url>.",
		"<@12> <@!13> <#14> <:tea:15>":               "<mention>@n12</mention> <mention>@n13</mention> <mention>#n14</mention> :tea:",
		"🐋 **whale** 🐋":                              "🐋 <bold>whale</bold> 🐋",
		"** not **bold":                              "<bold> not </bold>bold",
		"****":                                       "****",
	} {
		text, styles := readMarkup(source, called)
		if got := plain(text, styles); got != want {
			t.Errorf("%q\n got %q\nwant %q", source, got, want)
		}
	}
}

// Whatever people write, reading it ends, in good time, with styles that lie
// within the text and one within the other.
func FuzzReadMarkup(f *testing.F) {
	for _, s := range []string{"**a*b_c~~d||e`f```g", strings.Repeat("*_", 900), strings.Repeat("> ", 900), strings.Repeat("[", 900) + "](https://x)", "\\", "<@1>\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		text, styles := readMarkup(source[:min(len(source), 4000)], func(byte, string) string { return "@x" })
		units := len(utf16.Encode([]rune(text)))
		for i, s := range styles {
			if s.Offset < 0 || s.Length < 0 || s.Offset+s.Length > units {
				t.Fatalf("%+v lies outside of %d units", s, units)
			}
			for _, o := range styles[:i] {
				if end := o.Offset + o.Length; s.Offset < end && s.Offset+s.Length > end {
					t.Fatalf("%+v crosses %+v", s, o)
				}
			}
		}
	})
}
