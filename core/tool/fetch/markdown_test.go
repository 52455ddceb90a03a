package fetch

import (
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestPagesBecomeMarkdown(t *testing.T) {
	base, _ := url.Parse("https://example.com/dir/page")
	for page, want := range map[string]string{
		"<h2>A</h2><p>b  \n c</p><p>d":                                        "## A\n\nb c\n\nd\n",
		"<ul><li>one<li>two<ol><li>in<li>ner</ol></ul>":                       "- one\n- two\n  1. in\n  2. ner\n",
		"<p>a <b>bold</b>, <em>it</em> and <code>x&lt;y</code>.":              "a **bold**, _it_ and `x<y`.\n",
		"<pre>a\n  b &amp;&amp; c</pre>after":                                 "```\na\n  b && c\n```\n\nafter\n",
		"a<br>b<hr>c":                                                         "a\nb\n\n---\n\nc\n",
		"<blockquote>q</blockquote>p":                                         "q\n\np\n",
		"x<blockquote>q</blockquote>p":                                        "x\n\n> q\n\np\n",
		"<table><tr><th>a<th>b<tr><td>1</td><td>2</td></table>":               "| a| b\n| 1 | 2\n",
		"<a href='x'>rel</a> <a href='//o.org/'>abs</a>":                      "[rel](https://example.com/dir/x) [abs](https://o.org/)\n",
		"<a href='javascript:x()'>js</a> <a href='#a'>here</a> <a>no</a>":     "js here no\n",
		"a <a href='x'><img src=y></a>b <img alt='pic'>":                      "a b [image: pic]\n",
		"<style>s</style><script>a<b</script><svg><svg>x</svg>y</svg>text":    "text\n",
		"<noscript>on</noscript><template><p>t</p></template>text<!-- no -->": "text\n",
		"&amp;lt; &eacute; &#x1F600;":                                         "&lt; é 😀\n",
		"<script>never ends":                                                  "\n",
	} {
		if got := markdown(page, base); got != want {
			t.Errorf("%s\n got %q\nwant %q", page, got, want)
		}
	}
}

func TestNoPageIsTooDeep(t *testing.T) {
	base, _ := url.Parse("https://example.com/")
	for _, tag := range []string{"<div>", "<ul><li>", "<blockquote>", "<a href=x>", "<pre>", "<b>", "<svg>", "<table><tr><td>"} {
		began := time.Now()
		got := markdown(strings.Repeat(tag, (2<<20)/len(tag))+"end", base)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s took %v", tag, took)
		}
		if len(got) > 100<<20 {
			t.Errorf("%s makes %d MiB", tag, len(got)>>20)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("<h1>a</h1><a href='x'>b</a><pre>c</pre>")
	f.Add("<ul><li><a href=x><blockquote></a></ul></pre>")
	f.Add("<a href=x></pre></a><svg></script></svg>")
	base, _ := url.Parse("https://example.com/")
	f.Fuzz(func(t *testing.T, page string) {
		if got := markdown(page, base); utf8.ValidString(page) && !utf8.ValidString(got) {
			t.Errorf("%q", got)
		}
	})
}
