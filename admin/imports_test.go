package admin_test

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/admin"
	"gatehouse/admin/imports"
	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/report"
	"gatehouse/web/auth"
	"gatehouse/web/importing"
)

const importPath = "/admin/import"

// An importWorld has the imports of a world.
type importWorld struct {
	w *world

	mu   sync.Mutex
	list []report.State
}

func (i *importWorld) StartFile(_ context.Context, f *os.File, name string, size int64, o report.Order, t foreign.Terms, by core.Actor) (string, error) {
	text := make([]byte, size)
	if _, err := f.ReadAt(text, 0); err != nil {
		return "", err
	}
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.w.note(by, "import %s %q of %d at %s, dry %v, archive %v", name, text, t.User, t.Trust, o.DryRun, o.Archive)
	return "new", f.Close()
}

func (i *importWorld) Start(_ context.Context, o report.Order, t foreign.Terms, by core.Actor) (string, error) {
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.w.note(by, "import the path %s of %d at %s", o.Path, t.User, t.Trust)
	return "new", nil
}

func (i *importWorld) Stop(_ context.Context, id string, by core.Actor) error {
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.w.note(by, "stop the import %s", id)
	return nil
}

func (i *importWorld) List() []report.State {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.list
}

func (i *importWorld) Entries(id string) (io.ReadSeekCloser, time.Time, error) {
	if id != "done" {
		return nil, time.Time{}, core.Errorf(core.NotFound, "there is no such import any more")
	}
	return nopCloser{strings.NewReader(`{"file":"conversations.json","outcome":"added"}` + "\n")}, i.w.clock.Now(), nil
}

type nopCloser struct{ io.ReadSeeker }

func (nopCloser) Close() error { return nil }

// openImports fills the options with the world's imports.
func (w *world) openImports(o *admin.Options) {
	w.imports = &importWorld{w: w}
	o.Imports = imports.Options{Imports: w.imports, Entries: w.imports, Temp: w.vault.Unnamed, Intake: importing.NewIntake(w.imports.List)}
}

// brought has the world import, or have imported, what there can be.
func (w *world) brought(running bool) {
	now := w.clock.Now()
	w.imports.mu.Lock()
	defer w.imports.mu.Unlock()
	w.imports.list = []report.State{
		{ID: "done", State: report.Done, HasFile: true, Report: report.Report{Name: "chatgpt-export.zip", Format: "an export of ChatGPT", Added: 412, Updated: 3, Unchanged: 18, Continued: 2, Failed: 2, Missing: 37, Read: 9 << 20, Size: 9 << 20, Began: now.Add(-time.Hour), Ended: now.Add(-59 * time.Minute),
			Faults: []report.Entry{{File: "conversations.json", Index: 17, Title: "<b>Trip</b> to the coast", Outcome: "failed", Reason: "it is larger than 16 MB"}, {File: "conversations.json", Index: 230, Outcome: "failed", Reason: "it has no messages"}}}},
		{ID: "stopped", State: report.Done, HasFile: true, Report: report.Report{Name: "claude-export.zip", Format: "an export of Claude", Added: 7, Stopped: true, Read: 1 << 20, Size: 8 << 20, Began: now.Add(-2 * time.Hour), Faults: []report.Entry{}}},
		{ID: "failed", State: report.Failed, Error: "holiday.jpg is none of what can be imported", Report: report.Report{Name: "holiday.jpg", Began: now.Add(-3 * time.Hour), Faults: []report.Entry{}}},
	}
	if running {
		w.imports.list = slices.Insert(w.imports.list, 0, report.State{ID: "running", State: report.Running, Report: report.Report{Name: "projects", Format: "transcripts of Claude Code", Added: 120, Failed: 1, Read: 300 << 20, Size: 1 << 30, Began: now.Add(-time.Minute), Faults: []report.Entry{}}})
	}
}

func TestImports_AFileOrAPathIsImportedForWhoIsSignedIn(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.get(importPath).has(t, `enctype="multipart/form-data"`, "at most 4 GB", "Or a path on the gateway’s machine")
	token := s.csrf()
	if a := s.postFiles(importPath, formPart{name: "csrf", body: token}, formPart{name: "dry_run", body: "on"}, formPart{name: "file", file: "../../x.json", body: "[]"}); a.status != 303 {
		t.Errorf("%d %s", a.status, a.body)
	}
	s.postFiles(importPath, formPart{name: "csrf", body: token}, formPart{name: "path", body: " /srv/old "}, formPart{name: "file"})
	s.postFiles(importPath, formPart{name: "csrf", body: token}, formPart{name: "path", body: "relative"}).has(t, "The path must be absolute", `name="path" value="relative"`)
	s.postFiles(importPath, formPart{name: "csrf", body: token}, formPart{name: "path"}, formPart{name: "file"}).has(t, "Choose a file, or name a path")
	if a := s.postFiles(importPath, formPart{name: "csrf", body: "guess"}, formPart{name: "file", file: "x.json", body: "[]"}); a.status != 403 {
		t.Errorf("without the token: %d", a.status)
	}
	if did := s.world.done(); !slices.Equal(did, []string{`import x.json "[]" of 1 at full, dry true, archive false`, "import the path /srv/old of 1 at full"}) {
		t.Errorf("done: %q", did)
	}
}

func TestImports_OnlyTheOwnerNamesAPathAndAViewerChangesNothing(t *testing.T) {
	for _, role := range []string{auth.RoleAdmin, auth.RoleViewer} {
		s := newSite(t, nil, nil)
		s.enterAs("nina", role)
		s.get(importPath).lacks(t, `name="path"`)
		token := s.csrf()
		s.postFiles(importPath, formPart{name: "csrf", body: token}, formPart{name: "path", body: "/srv/old"})
		if did := s.world.done(); len(did) != 0 {
			t.Errorf("%s did %q", role, did)
		}
	}
}

// While a file is being received the page says so, and no other one is read.
func TestImports_AFileThatIsBeingReceivedIsShownAndTheNextIsRefusedUnread(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	token := s.csrf()
	sent, pipe := io.Pipe()
	form := multipart.NewWriter(pipe)
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+importPath, sent)
	must(err)
	req.Header.Set("Content-Type", form.FormDataContentType())
	ended := make(chan answer, 1)
	go func() {
		res, err := s.http.Do(req)
		if err != nil {
			ended <- answer{body: err.Error()}
			return
		}
		defer res.Body.Close()
		ended <- answer{status: res.StatusCode}
	}()
	must(form.WriteField("csrf", token))
	part, err := form.CreateFormFile("file", "large.zip")
	must(err)
	_, err = part.Write(bytes.Repeat([]byte("x"), 300<<10))
	must(err)
	page := s.get(importPath)
	for range 1000 { // until the gateway has read the name
		if strings.Contains(page.body, "large.zip") {
			break
		}
		page = s.get(importPath)
	}
	page.has(t, "Receiving <bdi>large.zip</bdi>", `data-every="1"`, "The import begins when all of it is there.")
	page.lacks(t, `type="file"`)
	body := new(counted)
	body.left.Store(64 << 20)
	second, err := http.NewRequestWithContext(t.Context(), "POST", s.url+importPath, io.MultiReader(strings.NewReader("--b\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\n"+token+"\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"b.zip\"\r\n\r\n"), body))
	must(err)
	second.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	second.ContentLength = 64 << 20
	if res, err := s.http.Do(second); err == nil { // the connection may end before the answer is read
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "The file of another import is being received") {
			t.Errorf("the second: %d %s", res.StatusCode, text)
		}
	}
	if left := body.left.Load(); left < 32<<20 {
		t.Errorf("%d bytes of a file that is refused were sent", 64<<20-left)
	}
	must(form.Close())
	must(pipe.Close())
	if a := <-ended; a.status != http.StatusSeeOther {
		t.Errorf("the first: %d %s", a.status, a.body)
	}
	s.get(importPath).has(t, `type="file"`)
	if did := s.world.done(); len(did) != 1 || !strings.HasPrefix(did[0], "import large.zip") {
		t.Errorf("done: %.100q", did)
	}
}

// A counted is a body of zero bytes. It may be read after its request has ended.
type counted struct{ left atomic.Int64 }

func (c *counted) Read(p []byte) (int, error) {
	left := c.left.Load()
	if left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), int(left))
	clear(p[:n])
	c.left.Store(left - int64(n))
	return n, nil
}

func TestImports_ProgressOutcomeAndReportAreShown(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.brought(true)
	a := s.get(importPath)
	a.has(t, `data-every="1"`, `<progress class="wide" max="100" value="29"`, "121 conversations, 300 MB of 1.0 GB (29 %), 1 left out", `action="/admin/import/running/stop"`,
		"chatgpt-export.zip", "an export of ChatGPT", "<dd>412</dd>", "Continued here, left alone", "conversation 17", "it is larger than 16 MB", "&lt;b&gt;Trip&lt;/b&gt;", `href="/admin/import/done/report"`, "Stopped", "Import the same file again to go on.", "holiday.jpg is none of what can be imported")
	a.lacks(t, `type="file"`, "<b>Trip</b>") // one import at a time
	s.post("/admin/import/running/stop", nil).has(t, "The import stops after the current conversation.")
	if did := s.world.done(); !slices.Equal(did, []string{"stop the import running"}) {
		t.Errorf("done: %q", did)
	}
	file := s.get("/admin/import/done/report")
	file.has(t, `"outcome":"added"`)
	if at := file.header.Get("Content-Disposition"); !strings.HasPrefix(at, `attachment; filename="import-`) {
		t.Errorf("disposition %q", at)
	}
	s.get("/admin/chats").has(t, `href="/admin/import"`)
}
