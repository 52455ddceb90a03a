package static

import (
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestFilesAreServedWithTypeAndCacheHeaders(t *testing.T) {
	h := Handler("/static/")
	get := func(path, match string) *http.Response {
		r := httptest.NewRequest("GET", path, nil)
		if match != "" {
			r.Header.Set("If-None-Match", match)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	for path, kind := range map[string]string{"/static/admin.css": "text/css; charset=utf-8", "/static/admin.js": "text/javascript; charset=utf-8", "/static/icon.svg": "image/svg+xml"} {
		res := get(path, "")
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != kind || res.Header.Get("ETag") == "" {
			t.Errorf("%s: %d %v", path, res.StatusCode, res.Header)
		}
		if again := get(path, res.Header.Get("ETag")); again.StatusCode != 304 {
			t.Errorf("%s again: %d, want 304", path, again.StatusCode)
		}
	}
	// What a page asks for by its address is kept without asking again, until the
	// program has another such file.
	for _, name := range []string{"admin.css", "admin.js", "icon.svg", "chat.css", "chat.js", "markdown.css", "markdown.js", "charts.css", "charts.js"} {
		kept, old, plain := get(Address("/static/", name), ""), get("/static/"+name+"?v=0123456789abcdef", ""), get("/static/"+name, "")
		if got := kept.Header.Get("Cache-Control"); kept.StatusCode != 200 || got != "max-age=31536000, immutable" {
			t.Errorf("%s: %d %q", name, kept.StatusCode, got)
		}
		for _, res := range []*http.Response{old, plain} {
			if got := res.Header.Get("Cache-Control"); res.StatusCode != 200 || got != "no-cache" {
				t.Errorf("%s by another address: %d %q", name, res.StatusCode, got)
			}
		}
	}
	if got := Address("/static/", "none.css"); got != "/static/none.css" {
		t.Errorf("a file that is not there: %q", got)
	}
	for _, path := range []string{"/static/", "/static/embed.go", "/static/../admin.css", "/static/none.css", "/admin.css"} {
		if res := get(path, ""); res.StatusCode != 404 {
			t.Errorf("%s: %d, want 404", path, res.StatusCode)
		}
	}
}

// Comments and blanks stay at home; what else a script has is sent as it was
// written.
func TestScriptsAreServedWithoutTheirComments(t *testing.T) {
	for _, name := range []string{"admin.js", "chat.js", "keys.js", "markdown.js", "charts.js", "speech.js", "tap.js"} {
		t.Run(name, func(t *testing.T) { uncommentedOnly(t, name) })
	}
}

func uncommentedOnly(t *testing.T, name string) {
	written, got := served(t, name)
	var want strings.Builder
	comment := regexp.MustCompile(`^\s*(//.*)?$`)
	for line := range strings.Lines(written) {
		if strings.Count(line, "`")%2 == 1 {
			t.Errorf("over several lines in backquotes, where blanks count: %s", line)
		}
		if !comment.MatchString(strings.TrimRight(line, "\n")) {
			want.WriteString(strings.TrimLeft(line, " \t"))
		}
	}
	if got != want.String() || len(got) == len(written) {
		t.Errorf("%d bytes of %d, want %d", len(got), len(written), want.Len())
	}
}

// A style sheet in fewer bytes says what it said: all that is not blank stands
// there in its order, and blanks stand where they mean something.
func TestStyleSheetsAreMinifiedWithoutChange(t *testing.T) {
	for _, name := range []string{"admin.css", "chat.css", "markdown.css", "charts.css"} {
		written, got := served(t, name)
		bare := func(text string) string {
			text = regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(text, "")
			return strings.ReplaceAll(strings.Join(strings.Fields(text), ""), ";}", "}")
		}
		if bare(got) != bare(written) || len(got) > len(written)*9/10 || strings.Contains(got, "/*") {
			t.Errorf("%s: %d bytes of %d", name, len(got), len(written))
		}
	}
	// By example, each where a blank is needed or is not.
	for from, want := range map[string]string{
		"a > b :hover, .x {\n  width: calc(100% + .4rem);\n}\n":      "a > b :hover,.x{width:calc(100% + .4rem)}",
		"p { font: 1rem/1.5 \"Segoe UI\", serif; } /* \"so\" */\n":   `p{font:1rem/1.5 "Segoe UI",serif}`,
		"@media (max-width: 40rem) { .a { b: c; d: e; } }":           "@media (max-width:40rem){.a{b:c;d:e}}",
		"[x=\"a: b; }\"] c::before { content: \" { \"; color: red }": `[x="a: b; }"] c::before{content:" { ";color:red}`,
	} {
		if got := strings.TrimSpace(string(squeezed([]byte(from)))); got != want {
			t.Errorf("%q becomes %q, want %q", from, got, want)
		}
	}
}

// served is a file as it was written and as it is sent.
func served(t *testing.T, name string) (written, got string) {
	t.Helper()
	h := Handler("/static/")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/static/"+name, nil))
	b, err := files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), w.Body.String()
}

func TestNothingIsLoadedFromElsewhere(t *testing.T) {
	entries, err := files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	foreign := regexp.MustCompile(`(?i)(@import|url\(|from\s+["']|import\(|\beval\(|new Function)`)
	for _, e := range entries {
		body, err := files.ReadFile(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(body)) {
			if m := foreign.FindString(line); m != "" && strings.Contains(line, "//") && !strings.HasPrefix(strings.TrimSpace(line), "//") {
				t.Errorf("%s: %s", e.Name(), strings.TrimSpace(line))
			}
		}
	}
}

// Colours of charts are told apart from what they are drawn on, in both themes.
func TestChartColoursHaveThreeToOneAgainstTheSheet(t *testing.T) {
	rule := regexp.MustCompile(`--(\w[\w-]*): light-dark\((#\w{6}), (#\w{6})\)`)
	own, _ := files.ReadFile("charts.css")
	frame, _ := files.ReadFile("admin.css")
	named := map[string][2]string{}
	for _, m := range rule.FindAllStringSubmatch(string(frame), -1) {
		named[m[1]] = [2]string{m[2], m[3]}
	}
	colours := 0
	for _, m := range regexp.MustCompile(`\.c-(\w+) \{ --c: (?:light-dark\((#\w{6}), (#\w{6})\)|var\(--(\w+)\)); \}`).FindAllStringSubmatch(string(own), -1) {
		colours++
		pair := [2]string{m[2], m[3]}
		if m[4] != "" {
			pair = named[m[4]]
		}
		for i, theme := range []string{"light", "dark"} {
			if ratio := contrast(t, pair[i], named["sheet"][i]); ratio < 3 {
				t.Errorf("colour %s, %s: %.2f to 1, want 3", m[1], theme, ratio)
			}
		}
	}
	if colours != 12 {
		t.Errorf("%d colours, want 12", colours)
	}
}

// contrast is that of WCAG 2.2.
func contrast(t *testing.T, a, b string) float64 {
	light := func(hex string) (sum float64) {
		for i, weight := range []float64{.2126, .7152, .0722} {
			v, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			c := float64(v) / 255
			if c <= .04045 {
				c /= 12.92
			} else {
				c = math.Pow((c+.055)/1.055, 2.4)
			}
			sum += weight * c
		}
		return sum + .05
	}
	x, y := light(a), light(b)
	return max(x, y) / min(x, y)
}
