package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/llm/llmtest"
)

// A tongue is a language that docs/api.md has examples in.
type tongue struct {
	fence   string   // what stands behind the fence
	program string   // that runs it
	file    string   // what the example is written to
	command []string // before the file
}

var tongues = []tongue{
	{"sh", "curl", "example.sh", []string{"bash", "-eu"}},
	{"python", "python3", "example.py", []string{"python3"}},
	{"javascript", "node", "example.mjs", []string{"node"}},
	{"go", "go", "main.go", []string{"go", "run"}},
}

// examples are the fenced programs of docs/api.md by language, in the order of
// the page; what only sets the two variables is none.
func examples(t *testing.T) map[string][]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(repository, "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for i, block := range strings.Split("\n"+string(b), "\n```") {
		fence, code, _ := strings.Cut(block, "\n")
		if i%2 == 1 && fence != "" && !strings.HasPrefix(code, "export ") {
			all[fence] = append(all[fence], code)
		}
	}
	return all
}

// A cutter is a proxy before a gateway that breaks event streams off.
type cutter struct {
	url string

	mu   sync.Mutex
	cuts []int    // whole events that the next streams get before they break, within the one after
	last []string // the Last-Event-ID that each stream was asked for with
}

// newCutter breaks the first streams of conversations at cuts, and no others.
func newCutter(t testing.TB, gateway string, cuts ...int) *cutter {
	t.Helper()
	c := &cutter{cuts: cuts}
	target := &url.URL{Scheme: "http", Host: gateway}
	s := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host },
		ModifyResponse: c.modify,
		ErrorLog:       log.New(io.Discard, "", 0),
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	c.url = s.URL
	return c
}

func (c *cutter) modify(r *http.Response) error {
	if !strings.HasPrefix(r.Request.URL.Path, "/api/chat") || r.Header.Get("Content-Type") != "text/event-stream" && r.StatusCode != http.StatusNoContent {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = append(c.last, r.Request.Header.Get("Last-Event-ID"))
	if len(c.cuts) > 0 && r.StatusCode == http.StatusOK {
		r.Body = &cutBody{ReadCloser: r.Body, left: c.cuts[0]}
		c.cuts = c.cuts[1:]
	}
	return nil
}

// seen is the Last-Event-ID of each stream so far.
func (c *cutter) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.last)
}

// A cutBody breaks off in the middle of the event after so many.
type cutBody struct {
	io.ReadCloser
	left int
	line strings.Builder // what was read of the line so far
}

var errStreamCut = errors.New("cut by the test")

func (b *cutBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errStreamCut
	}
	n, err := b.ReadCloser.Read(p[:1])
	if n == 0 {
		return n, err
	}
	b.line.WriteByte(p[0])
	switch line := b.line.String(); {
	case b.left == 0 && strings.HasPrefix(line, "data: {"):
		b.left = -1 // half of it is out
	case p[0] == '\n':
		if strings.HasPrefix(line, "data: ") {
			b.left--
			b.left = max(b.left, 0)
		}
		b.line.Reset()
	}
	return n, err
}

// A reader is a program of docs/api.md that is run against a gateway.
type reader struct {
	*world
	model *llmtest.Server
	boss  *telegramtest.User
	tongue
	secret string // the key that the page tells to make
}

// run is what a program prints; it must end well.
func (r *reader) run(t *testing.T, code, base string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{r.file: code, "notes.txt": "The key is under the third pot.\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // "go run" compiles
	defer cancel()
	cmd := exec.CommandContext(ctx, r.command[0], append(r.command[1:], r.file)...)
	cmd.Dir = dir
	for _, e := range os.Environ() { // no proxy stands between
		if name, _, _ := strings.Cut(e, "="); slices.Contains([]string{"PATH", "HOME", "GOCACHE", "GOROOT", "GOPATH", "TMPDIR", "CC"}, name) {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, "GOFLAGS="+strings.Join(coretest.BuildFlags(), " "), "GATEHOUSE_URL="+base, "GATEHOUSE_KEY="+r.secret,
		"NODE_NO_WARNINGS=1") // Node 18 calls its fetch experimental, which is not about the example
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), complaints.String())
	}
	if r.program != "curl" && complaints.Len() > 0 {
		t.Errorf("it complains: %s", complaints.String())
	}
	return out.String()
}

// told is the text of an answer: curl prints the events, others the words.
func (r *reader) told(t *testing.T, out string) (text string) {
	t.Helper()
	if r.program != "curl" {
		return strings.TrimSuffix(out, "\n")
	}
	es := readEvents(t, strings.NewReader(out), -1)
	checkOrder(t, es)
	for _, e := range es {
		if e.Type == "text" {
			text += e.Data["content"].(string)
		}
	}
	return text
}

// Every program in docs/api.md does what its chapter says, in every language.
func TestTheExamplesOfTheAPIsDocumentWork(t *testing.T) {
	t.Parallel()
	all := examples(t)
	for _, l := range tongues {
		t.Run(l.program, func(t *testing.T) {
			if _, err := exec.LookPath(l.program); err != nil {
				if os.Getenv("CI") != "" {
					t.Fatalf("no %s, and CI must not go without: %v", l.program, err)
				}
				t.Skipf("SKIPPED: no %s here, its examples are not tried", l.program)
			}
			w, model := newModelWorld(t, nil)
			r := &reader{w, model, w.boss(), l, w.newKey(core.Vault, "chat", "read", "send")}
			w.quiet()
			steps := []func(*testing.T, string){r.asks, r.goesOn, r.uploads, r.lists, r.sends}
			names := []string{"ask", "resume", "upload", "sessions", "send"}
			if l.program == "curl" {
				steps, names = slices.Insert(steps, 4, r.searches), slices.Insert(names, 4, "search")
			}
			if len(all[l.fence]) != len(steps) {
				t.Fatalf("%d examples in %s, want %d", len(all[l.fence]), l.fence, len(steps))
			}
			for i, name := range names {
				t.Run(name, func(t *testing.T) { steps[i](t, all[l.fence][i]) })
			}
		})
	}
}

func (r *reader) asks(t *testing.T, code string) {
	r.model.Script(llmtest.Say("Two ", "minutes, ", "not more."))
	if text := r.told(t, r.run(t, code, "http://"+r.cfg.Addr)); text != "Two minutes, not more." {
		t.Errorf("%q", text)
	}
}

// goesOn is cut off three times, each time within an event.
func (r *reader) goesOn(t *testing.T, code string) {
	c := newCutter(t, r.cfg.Addr, 6, 1, 0)
	before := r.model.Total()
	r.model.Script(llmtest.Say("Black ", "tea: ", "three ", "to ", "four."))
	if text := r.told(t, r.run(t, code, c.url)); text != "Black tea: three to four." {
		t.Errorf("%q", text)
	}
	if n := r.model.Total() - before; n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	seen := c.seen()
	var run string
	if len(seen) > 1 {
		run, _, _ = strings.Cut(seen[1], ":")
	}
	if want := []string{"", run + ":6", run + ":7", run + ":7"}; run == "" || !slices.Equal(seen, want) {
		t.Errorf("it came back with %q, want %q", seen, want)
	}
}

func (r *reader) uploads(t *testing.T, code string) {
	r.model.Script(llmtest.Say("A hiding place."))
	if out := r.run(t, code, "http://"+r.cfg.Addr); !strings.Contains(out, "A hiding place.") {
		t.Errorf("%q", out)
	}
	sent := r.model.Requests()
	if last := string(sent[len(sent)-1].Body); !strings.Contains(last, "under the third pot") {
		t.Errorf("the file is not in what the model got: %s", last)
	}
}

func (r *reader) lists(t *testing.T, code string) {
	out := r.run(t, code, "http://"+r.cfg.Addr)
	var found []string
	if err := r.app.db.Select(t.Context(), &found, `SELECT id FROM sessions WHERE source = 'api' ORDER BY created_at`); err != nil || len(found) != 3 {
		t.Fatal(found, err)
	}
	for i, id := range found {
		want := 1 // in the list
		if i == 0 {
			want = 2 // and found, being the one on green tea
		}
		if n := strings.Count(out, id); n != want {
			t.Errorf("session %s is shown %d times, want %d: %s", id, n, want, out)
		}
	}
	if !strings.Contains(out, "How long does green tea brew") {
		t.Errorf("the place is not quoted: %s", out)
	}
}

func (r *reader) searches(t *testing.T, code string) {
	r.document("Notes/Tea.md", "Green tea brews for two minutes.")
	out := r.run(t, code, "http://"+r.cfg.Addr)
	for _, want := range []string{`"path":"Notes/Tea.md"`, `"marks":[[0,5],[6,9]]`, "How long does green tea brew", `"next":""`} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %s: %s", want, out)
		}
	}
}

func (r *reader) sends(t *testing.T, code string) {
	for range 2 { // it is said once, however often it is run
		if out := r.run(t, code, "http://"+r.cfg.Addr); !strings.Contains(out, "queued") && !strings.Contains(out, "sen") {
			t.Errorf("%q", out)
		}
		r.hearsText(r.boss, "The disk is nearly full.")
		r.quiet()
	}
	m := r.hearsText(r.boss, "The disk is nearly full.")
	if len(m.Entities) != 1 || m.Entities[0].Type != "bold" {
		t.Errorf("%+v", m.Entities)
	}
	if n := strings.Count(fmt.Sprint(r.said(r.boss.DM(), 0)), "The disk is nearly full."); n != 1 {
		t.Errorf("it was said %d times", n)
	}
}
