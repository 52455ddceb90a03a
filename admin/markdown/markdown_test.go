package markdown_test

import (
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"gatehouse/admin/markdown"
)

func TestHTMLRendersWhatAnswersContain(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"styles":           {"a **b** *c* ~~d~~ `e<f>`", "<p>a <strong>b</strong> <em>c</em> <del>d</del> <code>e&lt;f&gt;</code></p>\n"},
		"line ends":        {"one\ntwo\n\nthree", "<p>one<br>\ntwo</p>\n<p>three</p>\n"},
		"headings":         {"# a\n### b\n###### c\n## d", "<h3>a</h3>\n<h4>b</h4>\n<h5>c</h5>\n<h4>d</h4>\n"},
		"lists":            {"- a\n- b\n  1. c\n", "<ul>\n<li>a</li>\n<li>b<br>\n<ol>\n<li>c</li>\n</ol>\n</li>\n</ul>\n"},
		"a list from five": {"5. a\n6. b", "<ol start=\"5\">\n<li>a</li>\n<li>b</li>\n</ol>\n"},
		"tasks":            {"- [x] a\n- [ ] b", `<span class="task" role="img" aria-label="Done">☑</span> a`},
		"quotation":        {"> a\n\n---", "<blockquote>\n<p>a</p>\n</blockquote>\n<hr>\n"},
		"code":             {"```go\nif a < b {\n}\n```", `<p class="kind">go<button type="button" class="copy" data-copy>Copy<span class="unseen"> the code</span></button></p><pre tabindex="0" role="group" aria-label="Code"><code>if a &lt; b {` + "\n}</code></pre>"},
		"indented code":    {"    a\n    b", "<code>a\nb</code></pre>"},
		"table":            {"a | b | c\n:--|--:|:-:\n1 | **2** | 3", `<thead><tr><th>a</th><th class="right">b</th><th class="mid">c</th></tr></thead>` + "\n" + `<tr><td>1</td><td class="right"><strong>2</strong></td><td class="mid">3</td></tr>`},
		"link":             {"[a](https://x.example/?q=1&r=2 \"t\")", `<a href="https://x.example/?q=1&amp;r=2" title="https://x.example/?q=1&amp;r=2 t" target="_blank" rel="noopener noreferrer nofollow">a</a>`},
		"bare address":     {"see https://x.example/a.", `<p>see <a href="https://x.example/a" target="_blank" rel="noopener noreferrer nofollow">https://x.example/a</a>.</p>`},
		"mail":             {"<a@x.example>", `<a href="mailto:a@x.example" target`},
		"image":            {"![shed](https://x.example/shed.png)", `<a href="https://x.example/shed.png" title="https://x.example/shed.png" target="_blank" rel="noopener noreferrer nofollow">shed</a>`},
		"image in a link":  {"[![shed](https://x.example/a.png)](https://y.example/)", `<a href="https://y.example/" title="https://y.example/" target="_blank" rel="noopener noreferrer nofollow">shed</a>`},
		"without a label":  {"[](https://x.example/)", `nofollow">https://x.example/</a>`},
		"a path":           {"[plan](Notes/plan.md)", "<p>plan (Notes/plan.md)</p>"},
		"a script":         {"[x](javascript:alert(1))", "<p>x (javascript:alert(1))</p>"},
		"data":             {"![x](data:text/html;base64,QQ==)", "<p>x (data:text/html;base64,QQ==)</p>"},
		"raw HTML":         {"a <b onclick=x>b</b>\n\n<script>alert(1)</script>", "<p>a &lt;b onclick=x&gt;b&lt;/b&gt;</p>\n<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n"},
		"a comment":        {"a <!-- hidden --> b", "<p>a &lt;!-- hidden --&gt; b</p>"},
		"a definition":     {"[a]: https://x.example/ 'hidden'", "hidden"},
		"escapes":          {`\*a\* &amp; &lt;b&gt; "c"`, "<p>*a* &amp; &lt;b&gt; &#34;c&#34;</p>"},
		"control":          {"a\x00b\x1b[1m\r\nc\u0085", "<p>ab[1m<br>\nc</p>"},
		"too long":         {"**a**\n" + strings.Repeat("x", markdown.MaxSource), `<p class="pre">**a**` + "\nxxx"},
		"nothing":          {"", ""},
	} {
		if got := string(markdown.HTML(c.source)); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s:\n got %q\nwant %q", name, shown(got), c.want)
		}
	}
}

func shown(s string) string {
	if len(s) > 600 {
		return s[:600] + "…"
	}
	return s
}

// allowed are the elements of a result with their attributes, and what these may be.
var (
	number  = regexp.MustCompile(`^[0-9]{1,9}$`)
	anyText = regexp.MustCompile(`(?s)^.*$`)
	allowed = map[string]map[string]*regexp.Regexp{
		"p": {"class": exactly("pre", "kind")}, "br": {}, "hr": {}, "strong": {}, "em": {}, "del": {}, "code": {}, "blockquote": {}, "ul": {}, "li": {},
		"h3": {}, "h4": {}, "h5": {}, "h6": {}, "table": {}, "thead": {}, "tr": {}, "ol": {"start": number},
		"th": {"class": exactly("right", "mid")}, "td": {"class": exactly("right", "mid")},
		"pre":    {"tabindex": exactly("0"), "role": exactly("group"), "aria-label": exactly("Code")},
		"div":    {"class": exactly("code", "grid"), "tabindex": exactly("0"), "role": exactly("group"), "aria-label": exactly("Table")},
		"button": {"type": exactly("button"), "class": exactly("copy"), "data-copy": exactly("")},
		"span":   {"class": exactly("unseen", "task"), "role": exactly("img"), "aria-label": exactly("Open", "Done")},
		"a":      {"href": anyText, "title": anyText, "target": exactly("_blank"), "rel": exactly("noopener noreferrer nofollow")},
	}
	void = []string{"br", "hr"}
)

func exactly(values ...string) *regexp.Regexp {
	return regexp.MustCompile("^(" + strings.Join(values, "|") + ")$")
}

// check reads a result as a browser does, and reports what is not allowed in it.
func check(t *testing.T, source, got string) {
	t.Helper()
	var open []string
	for z := html.NewTokenizer(strings.NewReader(got)); ; {
		kind := z.Next()
		tok := z.Token()
		switch kind {
		case html.ErrorToken:
			if z.Err() != io.EOF || len(open) > 0 {
				t.Fatalf("%q gives %q: %v, still open: %q", source, shown(got), z.Err(), open)
			}
			return
		case html.TextToken:
			continue
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != tok.Data {
				t.Fatalf("%q gives %q: ends <%s> in %q", source, shown(got), tok.Data, open)
			}
			open = open[:len(open)-1]
			continue
		case html.StartTagToken:
		default:
			t.Fatalf("%q gives %q: %s", source, shown(got), kind)
		}
		attributes, ok := allowed[tok.Data]
		if !ok {
			t.Fatalf("%q gives %q: <%s>", source, shown(got), tok.Data)
		}
		if !slices.Contains(void, tok.Data) {
			if tok.Data == "a" && slices.Contains(open, "a") {
				t.Fatalf("%q gives %q: a link in a link", source, shown(got))
			}
			open = append(open, tok.Data)
		}
		rel := false
		for _, a := range tok.Attr {
			if may := attributes[a.Key]; may == nil || !may.MatchString(a.Val) {
				t.Fatalf("%q gives %q: <%s %s=%q>", source, shown(got), tok.Data, a.Key, a.Val)
			}
			rel = rel || a.Key == "rel"
			if a.Key == "href" {
				u, err := url.Parse(a.Val)
				if err != nil || !slices.Contains([]string{"http", "https", "mailto"}, u.Scheme) || strings.ContainsFunc(a.Val, func(r rune) bool { return r <= ' ' }) {
					t.Fatalf("%q gives %q: it leads to %q", source, shown(got), a.Val)
				}
			}
		}
		if tok.Data == "a" && !rel {
			t.Fatalf("%q gives %q: a link without rel", source, shown(got))
		}
	}
}

// bold are sources that try to get something else into a page.
var bold = []string{
	"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[a](javascript:alert(1))", "[a](JaVaScRiPt:alert(1))", "[a](java&#x0A;script:alert(1))",
	"[a](&#106;avascript:alert(1))", "[a]( javascript:alert(1) )", "<javascript:alert(1)>", "[a](//evil.example)", "[a](vbscript:x)", "[a](data:text/html,x)",
	"[a](https://x.example/\"onmouseover=alert(1))", "[a](https://x.example \"\\\" onclick=x\")", "![\"onerror=x](https://x.example)", "```\"><script>\nx\n```",
	"```js onload=x style=y\nx\n```", "<style>*{}</style>", "<a href=x style=y>", "a | <b>\n--|--\n</td><script> | x", "- [x] <input>", "# <h1 id=x>", "[a](file:///etc/passwd)",
	"http://x.example/<script>", "www.x.example/\"a", "mailto:a@x.example?subject=\"><script>", "[a][b]\n\n[b]: javascript:x", "<https://x.example/\">", "&lt;script&gt;", "\\<script>",
	"# a {onclick=x}", "{.style}", "[a](https://user:pw@x.example)", "[[a](https://x.example)](https://y.example)", "![[a](https://x.example)](https://y.example)", "*a [b* c](https://x.example)*",
	"http://\xff", "[a](http://%zz)", "[a](https:x)", "[a](mailto:)", "> - 1. > ```\n> x", "\t\tx\n- \ty",
}

func TestHTMLContainsOnlyWhatIsAllowed(t *testing.T) {
	for _, source := range bold {
		check(t, source, string(markdown.HTML(source)))
		for _, other := range bold {
			check(t, source+other, string(markdown.HTML(source+other)))
			check(t, source+"\n"+other, string(markdown.HTML(source+"\n"+other)))
		}
	}
}

func FuzzHTML(f *testing.F) {
	for _, source := range bold {
		f.Add(source)
	}
	f.Add("# a\n\n- b\n  - [ ] c\n\n```go\nx\n```\n\na | b\n--|--\n1 | 2\n\n> *x* **y** ~~z~~ `w` ![i](https://x.example/i.png) https://y.example")
	f.Fuzz(func(t *testing.T, source string) {
		began := time.Now()
		got := string(markdown.HTML(source))
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("%d bytes took %s", len(source), took)
		}
		check(t, source, got)
	})
}

// Each of these makes a parser of Markdown slow, deep or wordy where it has no bounds.
func TestHTMLOfAHostileTextIsQuickAndSmall(t *testing.T) {
	fill := func(s string) string { return strings.Repeat(s, markdown.MaxSource/len(s)) }
	lines := func(f func(n int) string) string {
		var b strings.Builder
		for n := 0; b.Len() < markdown.MaxSource-2000; n++ {
			b.WriteString(f(n) + "\n")
		}
		return b.String()
	}
	for name, source := range map[string]string{
		"brackets": fill("["), "images": fill("!["), "links": fill("[a](b"), "ends": fill("]"), "pairs": fill("[]"), "parentheses": "[a](" + fill("("),
		"stars": fill("*a"), "mixed": fill("*_"), "both": fill("a**b_c "), "tildes": fill("~a~~"), "backticks": fill("`"), "unlike": lines(func(n int) string { return strings.Repeat("`", n%200+1) + "a" }),
		"angles": fill("<"), "tags": fill("<a "), "addresses": fill("<a:"), "mails": fill("a@"), "dots": fill("www.a."), "urls": fill("http://a "), "open urls": fill("(http://"),
		"quotes": fill(">"), "spaced quotes": fill("> "), "lists": fill("- "), "numbers": fill("1. "), "nested": lines(func(n int) string { return strings.Repeat(" ", 2*n%400) + "- a" }),
		"tabs": lines(func(n int) string { return strings.Repeat("\t", n%100) + "- a" }), "lazy": ">" + fill("\na"), "fences": fill("```\n"), "entities": fill("&#"), "escapes": fill(`\`),
		"wide table": strings.Repeat("a|", 2000) + "\n" + strings.Repeat("-|", 2000) + "\n" + strings.Repeat("a\n", 10_000), "bars": fill("|"), "rows": "a|b\n-|-\n" + fill("x\n"),
		"headings": fill("#"), "lines": fill("\n"), "blanks": fill(" "), "setext": fill("a\n-\n"), "bullets in quotes": fill("> - "), "words": fill("word "), "code": fill("    a\n\n"),
		"closing": strings.Repeat("*", 1900) + fill("a") + strings.Repeat("*", 1900), "tasks": fill("- [ ] a\n"), "emphasis at ends": fill("a*"), "strike": fill("~~"), "rulers": fill("***\n"),
	} {
		if len(source) > markdown.MaxSource {
			source = source[:markdown.MaxSource]
		}
		began := time.Now()
		got := string(markdown.HTML(source))
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
		if len(got) > 4096+12*len(source) {
			t.Errorf("%s: %d bytes become %d", name, len(source), len(got))
		}
		check(t, name, got)
	}
}
