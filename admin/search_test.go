package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/admin"
	"gatehouse/admin/find"
	"gatehouse/core"
	"gatehouse/core/index/search"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
	"gatehouse/web/auth"
)

// A findWorld is what the search finds: hits, in pages of perPage, whatever is asked
// for. Documents are those of the world's vault.
type findWorld struct {
	w *world

	mu      sync.Mutex
	hits    []search.Hit
	perPage int
	asked   search.Query
	reader  search.Reader
	secret  string // a file that only trust vault and above may read
	status  find.Status
}

func (f *findWorld) Search(_ context.Context, q search.Query, r search.Reader) (search.Page, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.w.fault(); err != nil {
		return search.Page{}, err
	}
	f.asked, f.reader = q, r
	from, err := strconv.Atoi("0" + q.Cursor)
	if err != nil {
		return search.Page{}, core.Errorf(core.Invalid, "the cursor is not valid")
	}
	var all []search.Hit
	for _, h := range f.hits {
		if len(q.Types) == 0 || slices.Contains(q.Types, h.Type) {
			all = append(all, h)
		}
	}
	if strings.Contains(q.Text, "nothing") {
		all = nil
	}
	p := search.Page{Hits: all[min(from, len(all)):min(from+f.perPage, len(all))]}
	if from+f.perPage < len(all) {
		p.Next = strconv.Itoa(from + f.perPage)
	}
	return p, nil
}

func (f *findWorld) mayRead(trust core.Trust, _ int64, name string) bool {
	return name != f.secret || trust >= core.Vault
}

func (f *findWorld) Status(context.Context) (find.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status, f.w.fault()
}

// openFind fills the options with the world's search.
func (w *world) openFind(o *admin.Options) {
	w.find = &findWorld{w: w, perPage: 20}
	o.Find = find.Options{Finder: w.find, Chats: w.chats, Files: w.vault.FS(), MayRead: w.find.mayRead, Index: w.find, Groups: w.chats.Groups}
}

const planFile = "Allotment/plan.md"

// notes has the search find a conversation and two documents.
func (w *world) notes() {
	now := w.clock.Now()
	page, err := w.chats.Page(context.Background(), w.session(w.ada), transcript.PageQuery{Limit: 1})
	must(err)
	w.file(planFile, "# Plan for the allotment\n\nThe shed needs paint before the winter.\n\n## Potatoes\n\nInes brings the seed potatoes, forty of them:\nearly ones for the bed by the gate, late ones for the rest.\n")
	w.find.mu.Lock()
	defer w.find.mu.Unlock()
	w.find.secret = "Journal/secret.md"
	w.find.hits = []search.Hit{
		{Type: search.Session, ID: w.ada, Title: "Allotment meeting", User: 2, Message: page.Messages[0].Line(), Role: "assistant", In: "text", Excerpt: "On Thursday at seven, in the shed by the gate. Ines brings the seed potatoes.", Marks: [][2]int{{63, 67}, {68, 76}}, At: now.Add(-2 * time.Hour)},
		{Type: search.Document, ID: "doc:1", Title: "Plan for the allotment", Path: planFile, Line: 7, Excerpt: "Potatoes: Ines brings the seed potatoes, forty of them: early ones for the bed by the gate …", Marks: [][2]int{{0, 8}, {26, 30}, {31, 39}}, At: now.Add(-30 * time.Hour)},
		{Type: search.Document, ID: "doc:2", Path: "Allotment/Recipes and other things that nobody reads/potatoes.txt", Line: 1, Excerpt: "## Boil the **potatoes**.", Marks: [][2]int{{14, 22}}, At: now.Add(-900 * time.Hour)},
		{Type: search.Session, ID: w.mine, User: core.Operator, In: "tag", Excerpt: "seed", Marks: [][2]int{{0, 4}}},
	}
	w.find.status = find.Status{Documents: 18_402, Without: 2, Last: now.Add(-4 * time.Minute), Faults: []find.Fault{
		{Path: "Archive/scan of the lease.pdf", Reason: "the PDF has no text, only pictures"}, {Path: "Notes/harvest.csv", Reason: "it is not text"}}}
}

func (w *world) session(id string) session.Session {
	d, err := w.chats.Detail(context.Background(), id)
	must(err)
	return d.Session
}

func TestTheSearchListsConversationsAndDocumentsWithMarkedWords(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	page := s.get("/admin/search?q=seed+potatoes")
	page.has(t, `<h1>Search</h1>`, "What matches, the best first.",
		`>Allotment meeting</a>`, `<bdi>Ines Carvalho</bdi> · answer`, `brings the <mark>seed</mark> <mark>potatoes</mark>.`,
		`<bdi class="num">Allotment/plan.md:7</bdi>`, `href="/admin/search/document?line=7&amp;path=Allotment%2Fplan.md&amp;q=seed&#43;potatoes#line"`,
		`>potatoes.txt</a>`, `<p dir="auto">## Boil the **<mark>potatoes</mark>**.</p>`, `>Untitled</a>`, `<bdi>Matteo</bdi> · tag`, `href="/admin/chats/`+s.world.mine+`"`,
		`<time datetime="`+s.clock.Now().Add(-2*time.Hour).UTC().Format(time.RFC3339)+`"`,
		`id="seek" name="q" value="seed potatoes"`)
	if got := s.world.find.asked; got.Text != "seed potatoes" || len(got.Types) != 0 || got.Limit != 20 {
		t.Errorf("asked for %+v", got)
	}
	// A type keeps the words, and words keep the type.
	page.has(t, `<a href="/admin/search?q=seed&#43;potatoes" aria-current="page">All</a>`, `<a href="/admin/search?q=seed&#43;potatoes&amp;type=document">Documents</a>`)
	page = s.get("/admin/search?q=seed+potatoes&type=document")
	page.has(t, `aria-current="page">Documents</a>`, "potatoes.txt", `<input type="hidden" name="type" value="document">`, `type=document#line"`)
	page.lacks(t, "Allotment meeting")
	if got := s.world.find.asked.Types; !slices.Equal(got, []string{search.Document}) {
		t.Errorf("asked for types %q", got)
	}
	s.get("/admin/search?q=seed&type=session").lacks(t, "potatoes.txt")
	s.get("/admin/search?q=seed&type=else").has(t, "potatoes.txt", "Allotment meeting")
}

func TestAHitInAJournalLeadsToTheEntryOnThePageOfItsDay(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.world.find.mu.Lock()
	s.world.find.hits = []search.Hit{
		{Type: search.Journal, ID: "abc123def456", Title: "Wednesday", Path: diaryFile, Line: 3, Excerpt: "square"},
		{Type: search.Journal, ID: "zzz123def456", Title: "Of a guest", Path: "Guests/7/" + diaryFile, Line: 3, Excerpt: "square"},
		{Type: search.Document, ID: "doc:1", Title: "The day's file", Path: diaryFile, Line: 1, Excerpt: "square"},
	}
	s.world.find.mu.Unlock()
	day := "/admin/journal?date=" + diaryDay
	page := s.get("/admin/search?q=square")
	page.has(t, `href="`+day+`#e-abc123def456"`, `href="/admin/search/document?line=3&amp;path=Guests`, `href="/admin/search/document?line=1&amp;path=Daily`)
	s.get(day).has(t, `id="e-abc123def456"`)
}

func TestAPageOfResultsLeadsToTheNext(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.world.find.perPage = 3
	page := s.get("/admin/search?q=seed")
	page.has(t, `rel="next" href="/admin/search?cursor=3&amp;q=seed">Next</a>`)
	page.lacks(t, ">First</a>", "Untitled")
	page = s.get("/admin/search?q=seed&cursor=3")
	page.has(t, "Untitled", `href="/admin/search?q=seed">First</a>`)
	page.lacks(t, ">Next</a>", "Allotment meeting")
	if a := s.get("/admin/search?q=seed&cursor=x"); a.status != http.StatusUnprocessableEntity {
		t.Errorf("a cursor that is none: %d\n%s", a.status, a.main())
	} else {
		a.has(t, "The cursor is not valid.", `href="/admin/search?q=seed">First</a>`)
		a.lacks(t, "Nothing found", "See the log")
	}
	page = s.get("/admin/search?q=nothing&cursor=3")
	page.has(t, "No further results", `href="/admin/search?q=nothing">First</a>`)
	page.lacks(t, "Nothing found</h2>", "The exact phrase")
}

func TestTheSearchExplainsItselfWhenThereIsNothing(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	operators := []string{"The exact phrase", "potatoes -seed", "tag:garden", "in:Allotment/2026", "type:document"}
	page := s.get("/admin/search?q=nothing&type=document")
	page.has(t, append(operators, "Nothing found", `<a href="/admin/search?q=nothing">Search conversations and documents</a>`)...)
	s.get("/admin/search").has(t, operators...)
	s.world.setBroken(errors.New("disk I/O error"))
	page = s.get("/admin/search?q=seed")
	page.has(t, "The search can’t be read right now.")
	page.lacks(t, "Nothing found", "disk I/O error")
	page = s.get("/admin/search")
	page.has(t, append(operators, "The state of the search index can’t be read right now.")...)
	page.lacks(t, "Up to date", "disk I/O error")
}

func TestThePanelSaysHowManyConversationsWaitForTheIndex(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	page := s.get("/admin/search")
	page.has(t, "Up to date")
	page.lacks(t, "Conversations to index")
	s.world.find.status.Conversations = 4_988
	page = s.get("/admin/search")
	page.has(t, `<span class="pill note">Indexing conversations</span>`, `<dt>Conversations to index</dt><dd>4,988</dd>`)
	page.lacks(t, "Up to date")
}

func TestALongSearchIsCutAtTheLimit(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.get("/admin/search?q=" + strings.Repeat("ä", search.MaxText+9))
	if got := s.world.find.asked.Text; got != strings.Repeat("ä", search.MaxText) {
		t.Errorf("asked for %d bytes", len(got))
	}
}

// All accounts read all conversations, as on the page Chats; files are those of their trust.
func TestTheSearchHasTheRightsOfTheAccount(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.world.file("Journal/secret.md", "the code is 4711\n")
	const secret = "/admin/search/document?path=Journal%2Fsecret.md"
	s.get("/admin/search?q=code")
	if r := s.world.find.reader; r.User != core.Operator || r.Trust != core.Vault || !r.Everyone || r.MayRead != nil {
		t.Errorf("the owner's reader is %+v", r)
	}
	s.get(secret).has(t, "the code is 4711")
	s.world.find.status.Faults[0].Path = "Journal/secret.md"
	s.get("/admin/search").has(t, "Journal/secret.md", "Notes/harvest.csv")
	for name, c := range map[string]struct {
		trust  core.Trust
		status int
	}{auth.RoleAdmin: {core.Vault, http.StatusOK}, auth.RoleViewer: {core.Sandboxed, http.StatusNotFound}} {
		t.Run(name, func(t *testing.T) {
			user := s.enterAs("x"+name, name)
			s.get("/admin/search?q=code")
			if r := s.world.find.reader; r.User != user || r.Trust != c.trust || !r.Everyone {
				t.Errorf("the reader is %+v", r)
			}
			if index := s.get("/admin/search"); strings.Contains(index.body, "Journal/secret.md") != (c.status == http.StatusOK) || strings.Contains(index.body, "18,402") != (c.status == http.StatusOK) {
				t.Errorf("the state of the index: %s", index.main())
			}
			a := s.get(secret)
			if a.status != c.status || strings.Contains(a.body, "4711") != (a.status == http.StatusOK) {
				t.Errorf("the file: %d\n%s", a.status, a.main())
			}
			if gone := s.get("/admin/search/document?path=Journal%2Fgone.md"); a.status == http.StatusNotFound && gone.main() != a.main() {
				t.Errorf("a file that may not be read differs from one that is not there:\n%s\n%s", a.main(), gone.main())
			}
		})
	}
}

func TestAHitLeadsToItsMessage(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	var messages []transcript.Message
	for i := range 60 {
		messages = append(messages, transcript.Message{Role: []string{"user", "assistant"}[i%2], Blocks: []core.Block{text(fmt.Sprintf("message %d.", i))}})
	}
	messages[31].Blocks[0].Text += strings.Repeat(" and so on", 9000) // no room for it behind another
	id := s.world.talk(session.Ref{Address: core.Address{Bot: "telegram", Chat: "long"}, User: 2, Trust: core.Vault, Source: "telegram"}, "Long", "r9", messages...)
	all, err := s.world.chats.Page(t.Context(), s.world.session(id), transcript.PageQuery{Limit: 200})
	must(err)
	for _, i := range []int{0, 5, 29, 30, 31, 47, 48, 59} {
		line := all.Messages[i].Line()
		a := s.get("/admin/search/message?" + url.Values{"session": {id}, "message": {line}}.Encode())
		to, anchor, _ := strings.Cut(a.header.Get("Location"), "#")
		if a.status != http.StatusSeeOther || anchor != "m-"+line {
			t.Fatalf("message %d: %d to %q", i, a.status, a.header.Get("Location"))
		}
		page := s.get(to)
		page.has(t, `id="m-`+line+`"`)
		if i >= 48 && to != "/admin/chats/"+id {
			t.Errorf("message %d, one of the newest, is shown at %s", i, to)
		}
	}
	for query, want := range map[string]string{"session=" + id + "&message=gone": "/admin/chats/" + id, "session=none&message=x": ""} {
		a := s.get("/admin/search/message?" + query)
		if got := a.header.Get("Location"); got != want || want == "" && a.status != http.StatusNotFound {
			t.Errorf("%s: %d to %q, want %q", query, a.status, got, want)
		}
	}
}

func TestADocumentIsShownAsTextWithTheLineThatWasFound(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	show := func(name, more string) answer {
		t.Helper()
		a := s.get("/admin/search/document?path=" + url.QueryEscape(name) + more)
		if a.status != http.StatusOK {
			t.Fatalf("%s: %d", name, a.status)
		}
		return a
	}
	page := show(planFile, "&line=7&q=seed&type=document")
	page.has(t, `<li id="line" aria-current="true">Ines brings the seed potatoes, forty of them:</li>`, `<ol class="listing card" start="1"`, "<li># Plan for the allotment</li>",
		`<a href="/admin/search?q=seed&amp;type=document">Search</a>`, `<meta name="robots" content="noindex">`, "<title>plan.md · Gatehouse</title>")
	if n := strings.Count(page.body, "<li>"); n < 7 {
		t.Errorf("%d lines", n)
	}
	show(planFile, "&line=99").lacks(t, `id="line"`)
	show(planFile, "").lacks(t, `id="line"`, "To the passage")
	s.world.file("Notes/bad.html", hostile+"\r\nsecond\r\n")
	page = show("Notes/bad.html", "&line=2")
	page.has(t, "&lt;script&gt;alert(1)&lt;/script&gt;", `aria-current="true">second</li>`)
	page.lacks(t, "<script>alert", "<img src=x")
	s.world.file("Notes/empty.md", "")
	show("Notes/empty.md", "").has(t, "The file is empty.")
	s.world.file("Notes/photo.jpg", "\xff\xd8\x00\x01binary")
	page = show("Notes/photo.jpg", "")
	page.has(t, "This file is not plain text")
	page.lacks(t, "binary")
	// Of a large one the beginning, of many lines those around the one that was found.
	s.world.file("Notes/large.txt", "first\n"+strings.Repeat("é", 600_000))
	page = show("Notes/large.txt", "")
	page.has(t, "this is its beginning", "<li>first</li>")
	page.lacks(t, "not plain text")
	s.world.file("Notes/lines.txt", strings.Repeat("x\n", 50_000))
	page = show("Notes/lines.txt", "&line=30000")
	page.has(t, `start="20000"`, `<li id="line" aria-current="true">x</li>`, "19999 lines above are not shown.", "10001 lines below are not shown.")
	if before, _, _ := strings.Cut(page.body, `id="line"`); strings.Count(before, "<li>x</li>") != 10_000 {
		t.Errorf("line 30000 is number %d of those shown", strings.Count(before, "<li>x</li>"))
	}
	must(os.Symlink("lines.txt", filepath.Join(s.world.vault.Path(), "Notes/link.txt")))
	for _, name := range []string{"", ".", "Notes/link.txt", "a\x00b", "..", "../x", "/etc/passwd", "Notes/../" + planFile, "Notes", "Notes/gone.md"} {
		if a := s.get("/admin/search/document?path=" + url.QueryEscape(name)); a.status != http.StatusNotFound {
			t.Errorf("%q: %d, want 404", name, a.status)
		}
	}
}

func TestTheStateOfTheSearchIndexIsShown(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.get("/admin/search").has(t, "Begins soon", "never")
	s.world.full()
	page := s.get("/admin/search")
	page.has(t, "<dd>18,402</dd>", "4 min ago", "Up to date", "Notes/harvest.csv", "it is not text", `data-every="10"`)
	page.lacks(t, "not shown", "Reading the vault", "Not finished")
	f := s.world.find
	f.status.Running, f.status.Without = true, 4_000
	page = s.get("/admin/search")
	page.has(t, "Reading the vault", "3,998 more are not shown.")
	page.lacks(t, "Up to date")
	f.status.Running, f.status.Err = false, hostile
	page = s.get("/admin/search")
	page.has(t, "Not finished", "&lt;script&gt;alert(1)")
	page.lacks(t, "Up to date", "<script>alert(1)")
	page.has(t, "Nothing leaves this machine.")
	f.status.Model, f.status.Embedded, f.status.All, f.status.ModelErr = hostile, 1_200, 34_567, hostile
	page = s.get("/admin/search")
	page.has(t, "<dd>1,200 of 34,567</dd>", "gets the text of documents, journals and conversations, what is searched for and what is remembered", "&lt;script&gt;alert(1)")
	page.lacks(t, "Nothing leaves this machine", "<script>alert(1)")
	s.get("/admin/search?q=nothing").has(t, `<a href="/admin/search#index">`)
}

func TestWithoutASearchThereIsNoFieldForIt(t *testing.T) {
	s := newSite(t, nil, func(o *admin.Options) { o.Find = find.Options{} }).enter()
	s.get("/admin").lacks(t, `id="seek"`)
	if a := s.get("/admin/search?q=x"); a.status != http.StatusNotFound {
		t.Errorf("the search: %d, want 404", a.status)
	}
	s = newSite(t, nil, func(o *admin.Options) {
		o.Find.Files, o.Find.Chats, o.Find.Index, o.Find.Groups = nil, nil, nil, nil
	}).enter()
	s.world.full()
	s.get("/admin").has(t, `id="seek"`)
	page := s.get("/admin/search?q=seed")
	page.has(t, `href="/admin/chats/`+s.world.ada+`"`, "Plan for the allotment")
	page.lacks(t, "/admin/search/document", "/admin/search/message")
	s.get("/admin/search").lacks(t, `id="index"`)
	s.get("/admin/search?q=nothing").lacks(t, "#index")
}
