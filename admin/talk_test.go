package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"html"
	"image"
	"image/color"
	"image/png"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/admin"
	"gatehouse/admin/chats"
	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/attach"
	"gatehouse/core/attach/content"
	"gatehouse/core/coretest"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
	"gatehouse/web/auth"
)

// say notes what the operator said.
func (w *world) say(_ context.Context, s chats.Saying, by core.Actor) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Session != "" && s.Session != w.mine {
		return "", core.Errorf(core.NotFound, "there is no such session")
	}
	w.note(by, "say %q", s.Text)
	w.said = append(w.said, s)
	return w.mine, nil
}

// A conversation exists from its first turn on, which may have to wait: until then its page
// says so, and renews itself.
func TestANewChatWaitsForItsFirstTurn(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	const none = "/admin/chats/11111111-2222-4333-8444-555555555555"
	s.get(none+"?new=1").has(t, "Your message is stored.", `data-every="1"`)
	if a := s.do("GET", none, nil); a.status != http.StatusNotFound {
		t.Errorf("without a first message: status %d", a.status)
	}
	s.get("/admin/chats/"+s.world.mine+"?new=1").has(t, `action="/admin/talk/`+s.world.mine+`"`)
}

func TestTheOperatorTalksInThePanelWithoutJavaScript(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.get("/admin/talk").has(t, `action="/admin/talk/new"`, "Nothing yet: write the first message below.")
	s.world.full()
	mine := s.world.mine
	s.get("/admin/talk").has(t, `href="/admin/chats/`+mine+`#end"`, `<span class="pill note">Running</span>`)
	for path, want := range map[string]string{"/admin/talk/new": `say "Sum up\nthis week."`, "/admin/talk/" + mine: `say "And the next?"`} {
		text := map[bool]string{true: "Sum up\r\nthis week. ", false: "And the next?"}[path == "/admin/talk/new"]
		a := s.postForm(path, url.Values{"text": {text}})
		if did := s.world.done(); a.status != http.StatusSeeOther || a.header.Get("Location") != "/admin/chats/"+mine+map[bool]string{true: "?new=1"}[path == "/admin/talk/new"]+"#end" || did[len(did)-1] != want {
			t.Errorf("%s: %d to %q, did %q", path, a.status, a.header.Get("Location"), did)
		}
		if by := s.world.lastActor(); by != (core.Actor{User: core.Operator, Via: "panel"}) {
			t.Errorf("said by %+v", by)
		}
	}
	for text, status := range map[string]int{" \r\n ": http.StatusUnprocessableEntity, strings.Repeat("x", 20_001): http.StatusRequestEntityTooLarge} {
		if a := s.postForm("/admin/talk/new", url.Values{"text": {text}}); a.status != status || !strings.Contains(a.body, `id="say-error"`) {
			t.Errorf("%d bytes: status %d", len(text), a.status)
		}
	}
	if n := len(s.world.done()); n != 2 {
		t.Errorf("%d things were done, want the 2 messages", n)
	}
	// An answer that is being made has a place for its words, and the composer stands below it.
	a := s.get("/admin/chats/" + mine)
	a.has(t, `data-stream="/api/chat/`+mine+`/events"`, `action="/admin/talk/`+mine+`"`)
	s.get("/admin/chats/"+s.world.ada).lacks(t, `id="composer"`, "data-stream") // somebody else's
}

// Questions and Answer are the guard's.
func (w *world) Questions(_ context.Context, session string, user int64) ([]ask.Question, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if session != w.mine || user != max(w.asker, core.Operator) {
		return nil, w.broken
	}
	return slices.Clone(w.asked), w.broken
}

func (w *world) Answer(_ context.Context, session, id string, answers json.RawMessage, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = slices.DeleteFunc(w.asked, func(q ask.Question) bool { return q.ID == id })
	w.note(by, "answer %s %s", id, answers)
	return nil
}

// A part of a form with files; file is "" for a field.
type formPart struct{ name, file, body string }

func (s *site) postFiles(path string, parts ...formPart) answer {
	s.t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for _, p := range parts {
		var to io.Writer
		var err error
		if p.name == "file" {
			to, err = form.CreatePart(textproto.MIMEHeader{"Content-Disposition": {mime.FormatMediaType("form-data", map[string]string{"name": "file", "filename": p.file})}, "Content-Type": {"application/octet-stream"}})
		} else {
			to, err = form.CreateFormField(p.name)
		}
		if err == nil {
			_, err = io.WriteString(to, p.body)
		}
		must(err)
	}
	must(form.Close())
	req, err := http.NewRequest("POST", s.url+path, &b)
	must(err)
	req.Header.Set("Content-Type", form.FormDataContentType())
	res, err := s.http.Do(req)
	must(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(err)
	return answer{res.StatusCode, res.Header, string(body)}
}

// kept are the files below the vault's folder of attachments.
func (w *world) kept() (names []string) {
	must(fs.WalkDir(os.DirFS(w.vault.Path()), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasPrefix(name, attach.Folder) {
			names = append(names, name)
		}
		return err
	}))
	return names
}

func TestFilesGoWithAMessageAndWhatIsNotTakenLeavesNothing(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	token, png := s.csrf(), string(picture(40, 30))
	s.get("/admin/talk").has(t, `enctype="multipart/form-data"`, `<input type="file" name="file" multiple`, "At most 20 files, 20 MB each and 32 MB together.")
	a := s.postFiles("/admin/talk/new", formPart{"csrf", "", token}, formPart{"text", "", "Look\r\nat this"}, formPart{"agent", "", "notes"},
		formPart{"file", "shed.png", png}, formPart{"file", "plan.txt", "Sow on Monday."}, formPart{"file", "", ""})
	if a.status != http.StatusSeeOther || len(s.world.said) != 1 {
		t.Fatalf("status %d, said %+v\n%s", a.status, s.world.said, a.main())
	}
	said := s.world.said[0]
	if said.Text != "Look\nat this" || said.Agent != "notes" || len(said.Files) != 2 || said.Files[0].Name != "shed.png" || said.Files[0].Type != "image/png" || said.Files[1].Name != "plan.txt" {
		t.Errorf("said %+v", said)
	}
	if kept := s.world.kept(); len(kept) != 2 {
		t.Errorf("in the vault lie %q", kept)
	}
	for name, c := range map[string]struct {
		status int
		says   string
		parts  []formPart
	}{
		"no token":         {http.StatusForbidden, "CSRF", []formPart{{"text", "", "x"}, {"file", "a.txt", "a"}}},
		"a foreign one":    {http.StatusForbidden, "CSRF", []formPart{{"csrf", "", "somebody-elses"}, {"file", "a.txt", "a"}}},
		"a token too late": {http.StatusForbidden, "CSRF", []formPart{{"file", "a.txt", "a"}, {"csrf", "", token}}},
		"a program":        {http.StatusUnprocessableEntity, "tool.exe", []formPart{{"csrf", "", token}, {"text", "", "keep me"}, {"file", "a.txt", "a"}, {"file", "tool.exe", "MZ\x90"}}},
		"too many":         {http.StatusRequestEntityTooLarge, "at most 20 files", append([]formPart{{"csrf", "", token}}, slices.Repeat([]formPart{{"file", "a.txt", "a"}}, 21)...)},
		"one too large":    {http.StatusRequestEntityTooLarge, "big.txt", []formPart{{"csrf", "", token}, {"file", "big.txt", strings.Repeat("x", 20<<20+1)}}},
		"too large in all": {http.StatusRequestEntityTooLarge, "32 MB together", []formPart{{"csrf", "", token}, {"file", "a.txt", strings.Repeat("x", 17<<20)}, {"file", "b.txt", strings.Repeat("x", 17<<20)}}},
		"nothing":          {http.StatusUnprocessableEntity, "Write something first", []formPart{{"csrf", "", token}, {"file", "", ""}}},
		"no such agent":    {http.StatusUnprocessableEntity, "no agent named", []formPart{{"csrf", "", token}, {"text", "", "x"}, {"agent", "", "nobody"}}},
		"no such model":    {http.StatusUnprocessableEntity, "not configured", []formPart{{"csrf", "", token}, {"text", "", "x"}, {"model", "", "none/such"}}},
	} {
		a := s.postFiles("/admin/talk/new", c.parts...)
		if a.status != c.status || !strings.Contains(strings.ToLower(a.body), strings.ToLower(c.says)) {
			t.Errorf("%s: status %d, want %d and %q\n%s", name, a.status, c.status, c.says, a.main())
		}
		if name == "a program" {
			a.has(t, ">keep me</textarea>", "Files have to be chosen again.")
		}
	}
	if kept := s.world.kept(); len(kept) != 2 || len(s.world.said) != 1 {
		t.Errorf("of what was refused stays %q, said %d", kept, len(s.world.said))
	}
}

// picture is a PNG of this size.
func picture(w, h int) []byte {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetRGBA(x, y, color.RGBA{uint8(80 + x%120), uint8(120 + y%100), 90, 255})
		}
	}
	var b bytes.Buffer
	must(png.Encode(&b, m))
	return b.Bytes()
}

var thumbLink = regexp.MustCompile(`<a class="thumb" href="([^"]+)"[^>]*><img src="([^"]+)" width="(\d+)" height="(\d+)"`)

func TestPicturesThatCameAlongAreShownSmallAndOpenWhole(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	big := picture(1200, 900)
	svg := []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`)
	id := w.talk(session.Ref{Address: core.Address{Bot: "telegram", Chat: "pictures"}, User: 2, Trust: core.Vault, Source: "telegram"}, "Pictures", "rp",
		transcript.Message{Role: "user", Blocks: []core.Block{text("look"), {Type: "media", Media: []core.Media{{Type: "text/html", Name: "shed.png", Data: big}, {Type: "image/svg+xml", Name: "x.svg", Data: svg}, {Type: "application/pdf", Name: "plan.pdf", Data: []byte("%PDF-1.4 x")}}}}},
		transcript.Message{Role: "assistant", Model: "m", Blocks: []core.Block{text("A shed.")}})
	page := s.get("/admin/chats/" + id)
	page.has(t, "<bdi>A picture</bdi> <small>image/png", "<bdi>plan.pdf</bdi></a> <small>application/pdf", "x.svg&#34; (image/svg&#43;xml, 71 bytes) is left out")
	m := thumbLink.FindStringSubmatch(page.body)
	if m == nil || m[3] != "160" || m[4] != "120" {
		t.Fatalf("no small picture, or another size: %q", m)
	}
	whole, small := s.get(html.UnescapeString(m[1])), s.get(html.UnescapeString(m[2]))
	if whole.body != string(big) || whole.header.Get("Content-Type") != "image/png" || !strings.Contains(whole.header.Get("Content-Security-Policy"), "sandbox") || whole.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("whole: %d %v", whole.status, whole.header)
	}
	c, kind, err := image.DecodeConfig(strings.NewReader(small.body))
	if err != nil || kind != "jpeg" || c.Width != 160 || c.Height != 120 || len(small.body) > 12_000 {
		t.Errorf("small: %d bytes of %s, %dx%d, %v", len(small.body), kind, c.Width, c.Height, err)
	}
	pdf := s.get(strings.Replace(html.UnescapeString(m[1]), "n=0", "n=1", 1))
	if got := pdf.header.Get("Content-Disposition"); got != "attachment; filename=plan.pdf" {
		t.Errorf("the document comes as %q", got)
	}
	for _, q := range []string{"n=2", "n=-1", "n=x"} {
		if a := s.get(strings.Replace(html.UnescapeString(m[1]), "n=0", q, 1)); a.status != http.StatusNotFound {
			t.Errorf("%s: status %d", q, a.status)
		}
	}
	if a := s.get(strings.Replace(html.UnescapeString(m[1]), id, w.mine, 1)); a.status != http.StatusNotFound {
		t.Errorf("through another conversation: status %d", a.status)
	}
}

func TestWhatWasReadOfAFileIsShownBesideItsMessage(t *testing.T) {
	asked := 0
	s := newSite(t, nil, func(o *admin.Options) {
		o.Chats.Read = func(_ context.Context, session string, runs ...string) ([]attach.Read, error) {
			if asked++; len(runs) != 1 || runs[0] != "rq" {
				return nil, nil
			}
			return []attach.Read{{Name: "minutes<b>.pdf", Run: "rq", Content: content.Content{Pages: 12, Words: 4021, Truncated: true, Preview: "Minutes of <i>May</i>"}}, {Name: "note.txt", Run: "rq", Content: content.Content{Words: 1}}}, nil
		}
	}).enter()
	w := s.world
	w.full()
	id := w.talk(session.Ref{Address: core.Address{Bot: "telegram", Chat: "files"}, User: 2, Trust: core.Vault, Source: "telegram"}, "Files", "rq",
		transcript.Message{Role: "user", Blocks: []core.Block{text("What was decided?")}},
		transcript.Message{Role: "assistant", Model: "m", Blocks: []core.Block{text("Nothing.")}})
	page := s.get("/admin/chats/" + id)
	page.has(t, "<bdi>minutes&lt;b&gt;.pdf</bdi> <small>12 pages, 4,021 words</small>", "The model was given a part", "Minutes of &lt;i&gt;May&lt;/i&gt;", "<bdi>note.txt</bdi> <small>1 word</small></li>")
	if n := strings.Count(page.body, `aria-label="Files that were read"`); n != 1 || asked != 1 {
		t.Errorf("the files are shown %d times, and were read %d times", n, asked)
	}
}

func TestApprovalsAndQuestionsAreAnsweredInTheirConversation(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	now := s.clock.Now()
	r := core.PermissionRequest{ID: "qm", ToolName: "Write", Kind: "write", Path: "Daily/today.md", ExpiresAt: now.Add(2 * time.Minute)}
	a := call(now, core.Operator, core.Full, r, "Write wants to change Daily/today.md")
	a.Payload = strings.Replace(a.Payload, "7f8a9c1e-0b52-4d3e-9a77-30d4c2b1e6f0", w.mine, 1)
	w.asks = append(w.asks, a)
	w.asked = []ask.Question{{ID: "a1", ExpiresAt: now.Add(time.Minute), Questions: json.RawMessage(`[{"question":"Which week?","options":[{"label":"This one","description":"from Monday"},{"label":"Last <b>one</b>"}]},{"question":"Whose?","multiSelect":true,"options":[{"label":"Mine"},{"label":"Ours"}]}]`)}}
	page := s.get("/admin/chats/" + w.mine)
	page.has(t, "Write wants to change", "Daily/today.md", `action="/admin/approvals/qm/allow"`, `name="chat" value="`+w.mine+`"`,
		"The model asks you", "Which week?", `type="radio" name="choice0" value="This one"`, "Last &lt;b&gt;one&lt;/b&gt;", `type="checkbox" name="choice1" value="Ours"`)
	s.get("/admin/chats/"+w.ada).lacks(t, `action="/admin/approvals/qm/allow"`, "The model asks you")
	s.post("/admin/approvals/qm/allow", url.Values{"chat": {w.mine}}).has(t, "Allowed, this call only.", "About this conversation") // back where it was asked
	page.has(t, `placeholder="Your answer"`)
	path := "/admin/chats/" + w.mine + "/questions/a1"
	s.post(path, url.Values{"own0": {" "}}).has(t, "flash bad", "Choose an option or write your own answer.")
	s.post(path, url.Values{"choice0": {"This one"}, "choice1": {"Mine", "Ours"}, "own0": {"Next week"}}).has(t, "The model has your answer.")
	if did := w.done(); did[len(did)-1] != `answer a1 {"Which week?":"Next week","Whose?":"Mine, Ours"}` {
		t.Errorf("did %q", did)
	}
	s.post(path, url.Values{"choice0": {"This one"}}).has(t, "flash note", "It was answered already")
	// What is written in the field for messages is the answer while one is asked for.
	w.asked = []ask.Question{{ID: "a2", ExpiresAt: now.Add(time.Minute), Questions: json.RawMessage(`[{"question":"Which tea?","options":[{"label":"Green"}]}]`)}}
	s.post("/admin/talk/"+w.mine, url.Values{"text": {"Black tea"}}).has(t, `placeholder="Your message"`)
	if did := w.done(); did[len(did)-1] != `answer a2 "Black tea"` || len(w.said) != 0 {
		t.Errorf("did %q, said %+v", did, w.said)
	}
	s.post("/admin/talk/"+w.mine, url.Values{"text": {"and another thing"}})
	if len(w.said) != 1 || w.said[0].Text != "and another thing" {
		t.Errorf("said %+v", w.said)
	}
}

// What a model asks another admin in their own conversation is theirs to answer, in every way.
func TestAnotherAdminAnswersTheQuestionsOfTheirOwnConversation(t *testing.T) {
	s := newSite(t, nil, nil)
	w := s.world
	w.full()
	owners := w.mine
	w.asker = s.enterAs("nina", auth.RoleAdmin)
	w.mine = w.talk(session.Ref{Address: core.Address{Bot: core.APIBot, Chat: "0192fa3c-41aa-7000-8000-0000000000ab"}, User: w.asker, Trust: core.Vault, Options: &core.Options{}}, "", "rnina",
		transcript.Message{Role: "user", Blocks: []core.Block{text("What shall we plant?")}})
	asks := func(id string) {
		w.asked = []ask.Question{{ID: id, ExpiresAt: s.clock.Now().Add(time.Minute), Questions: json.RawMessage(`[{"question":"Which bed?","options":[{"label":"North"}]}]`)}}
	}
	asks("a1")
	s.get("/admin/chats/"+owners).lacks(t, "The model asks you", `id="composer"`)
	s.get("/admin/chats/"+w.mine).has(t, "The model asks you", "Which bed?", `id="composer"`)
	s.post("/admin/chats/"+w.mine+"/questions/a1", url.Values{"choice0": {"North"}}).has(t, "The model has your answer.")
	asks("a2")
	s.post("/admin/talk/"+w.mine, url.Values{"text": {"South"}})
	if did := strings.Join(w.done(), ", "); !strings.Contains(did, `answer a1 {"Which bed?":"North"}, answer a2 "South"`) || len(w.said) != 0 {
		t.Errorf("did %s", did)
	}
	if by := w.lastActor(); by.User != w.asker {
		t.Errorf("answered by %+v", by)
	}
}

func TestTheModelOfAConversationIsChosenAmongThoseThereAre(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	path := "/admin/chats/" + w.ada
	s.get(path).has(t, `action="`+path+`/model"`, `<option>local/quote</option>`)
	s.post(path+"/model", url.Values{"value": {"local/quote"}}).has(t, "local/quote answers there from the next turn on.", `<option selected>local/quote</option>`)
	s.post(path+"/model", url.Values{"value": {"none/such"}}).has(t, "flash bad")
	s.post(path+"/model", url.Values{"value": {""}}).has(t, "The model of chat, agent or settings answers there")
	if d, err := w.chats.Detail(t.Context(), w.ada); err != nil || d.ChosenModel != "" {
		t.Errorf("model %q, %v", d.ChosenModel, err)
	}
}

func TestDayLinesSayUTCWithoutJavaScript(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 3, 4, 23, 59, 0, 0, time.UTC))
	s := newSite(t, clock, nil).enter()
	w := s.world
	w.full()
	clock.Advance(2 * time.Minute)
	d, err := w.chats.Detail(t.Context(), w.ada)
	must(err)
	c, err := w.chats.Open(t.Context(), d.Session)
	must(err)
	must(errors.Join(c.Append("0192fa3c-41aa-7000-8000-0000000000d1", 0, transcript.Message{Role: "user", Blocks: []core.Block{text("And on Sunday?")}}, transcript.Message{Role: "assistant", Blocks: []core.Block{text("Nobody.")}}), c.Sync(), c.Close()))
	var lines []string
	for _, m := range regexp.MustCompile(`<li class="day"[^>]*>([^<]*)</li>\s*<li class="said (\w+)"`).FindAllStringSubmatch(s.get("/admin/chats/"+w.ada).body, -1) {
		lines = append(lines, m[1]+" before "+m[2])
	}
	if want := []string{"Wednesday, 4 March 2026 (UTC) before person", "Thursday, 5 March 2026 (UTC) before person"}; !slices.Equal(lines, want) {
		t.Errorf("lines %q, want %q", lines, want)
	}
}

func TestTheMenuHasOneEntryForChatsWithANewOneBehindIt(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	a := s.get("/admin/chats")
	if n := strings.Count(a.body, `<span>Chat`); n != 1 {
		t.Errorf("%d entries of the menu begin with Chat", n)
	}
	a.has(t, `<a class="button primary" href="/admin/talk">New chat</a>`)
	s.get("/admin/talk").has(t, "<h1>New chat</h1>", `<a href="/admin/chats" aria-current="page">`)
}
