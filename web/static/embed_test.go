package static

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func TestFilesAreServedWithTheirTypeAndKeptByBrowsers(t *testing.T) {
	h, err := Handler("/static/")
	if err != nil {
		t.Fatal(err)
	}
	get := func(path, match string) *http.Response {
		r := httptest.NewRequest("GET", path, nil)
		if match != "" {
			r.Header.Set("If-None-Match", match)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	for path, kind := range map[string]string{"/static/docs.css": "text/css; charset=utf-8", "/static/docs.js": "text/javascript; charset=utf-8", "/static/icon.svg": "image/svg+xml"} {
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
	for _, name := range []string{"admin.css", "admin.js", "icon.svg"} {
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
	for _, path := range []string{"/static/", "/static/embed.go", "/static/../docs.css", "/static/none.css", "/docs.css"} {
		if res := get(path, ""); res.StatusCode != 404 {
			t.Errorf("%s: %d, want 404", path, res.StatusCode)
		}
	}
}

// Comments stay at home; what else a script has is sent as it was written.
func TestScriptsAreServedWithoutTheirComments(t *testing.T) {
	h, err := Handler("/static/")
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/static/admin.js", nil))
	written, err := files.ReadFile("admin.js")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	comment := regexp.MustCompile(`^\s*//`)
	for line := range strings.Lines(string(written)) {
		if !comment.MatchString(line) {
			want.WriteString(line)
		}
	}
	if got := w.Body.String(); got != want.String() || len(got) == len(written) {
		t.Errorf("%d bytes of %d, want %d", len(got), len(written), want.Len())
	}
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
