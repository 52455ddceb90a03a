package main

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/index/chunk"
	"gatehouse/core/index/document"
	"gatehouse/core/llm/llmtest"
)

// document writes a file of the vault and indexes it. Guests read what is in Public.
func (w *world) document(name, text string) {
	w.t.Helper()
	w.put(name, text)
	title, _, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ".")
	err := w.app.library.Documents.Put(w.t.Context(), document.Document{
		File:  document.File{Path: name, Size: int64(len(text)), Modified: time.Now(), Hash: "hash of " + name, Open: strings.HasPrefix(name, "Public/")},
		Title: title, Chunks: []chunk.Chunk{{Text: text, Line: 1}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// finds returns the paths of documents and the excerpts of conversations that a search shows.
func (w *world) finds(key http.Header, query string) (out []string) {
	w.t.Helper()
	status, page, _ := w.asked("GET", "/api/search?"+query, nil, key)
	if status != 200 || page["next"] != "" {
		w.t.Fatalf("%s: %d %v", query, status, page)
	}
	for _, h := range page["hits"].([]any) {
		h := h.(map[string]any)
		if h["type"] == "document" {
			out = append(out, h["path"].(string))
		} else {
			out = append(out, h["excerpt"].(string))
		}
	}
	slices.Sort(out)
	return out
}

func TestSearchOverTheAPIFindsOnlyWhatTheKeyMayRead(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	boss := w.boss()
	gus, vera := w.guest("Gus"), w.guest("Vera")
	w.replies(boss, "The turnip of the owner")
	w.replies(gus, "The turnip of the guest")
	w.quiet()
	w.document("Notes/Secret.md", "A turnip is buried under the shed.")
	w.document("Public/Garden.md", "The turnip is sown in May.")
	w.document(core.GuestDir(w.person(gus))+"/mine.md", "My turnip.")
	theirs := core.GuestDir(w.person(vera)) + "/theirs.md"
	w.document(theirs, "Another guest's turnip.")

	owners, guests := "The turnip of the owner", "The turnip of the guest"
	own := core.GuestDir(w.person(gus)) + "/mine.md"
	for name, c := range map[string]struct {
		key  http.Header
		want []string
	}{
		"the guest's key":                   {w.keyOf(gus, core.Sandboxed, "read"), []string{"Public/Garden.md", guests, own}},
		"the owner's key at vault":          {w.keyOf(boss, core.Vault, "read"), []string{theirs, "Notes/Secret.md", "Public/Garden.md", owners, own}},
		"the owner's key at sandboxed":      {w.keyOf(boss, core.Sandboxed, "chat"), []string{"Public/Garden.md", owners}},
		"the owner's key with read and all": {w.keyOf(boss, core.Vault, "read", "admin"), []string{theirs, "Notes/Secret.md", "Public/Garden.md", guests, owners, own}},
	} {
		t.Run(name, func(t *testing.T) {
			want := slices.Sorted(slices.Values(c.want))
			if got := w.finds(c.key, "q=turnip"); !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
	key := w.keyOf(boss, core.Vault, "read")
	for query, want := range map[string][]string{
		"q=turnip&type=session":                        {owners},
		"q=turnip&folder=Notes":                        {"Notes/Secret.md"},
		"q=turnip&type=document&folder=/Public/":       {"Public/Garden.md"},
		"q=turnip&before=2020-01-01":                   nil,
		"q=turnip+-shed+in:Notes":                      nil,
		"q=turnip+shed&after=2020-01-01T00:00:00Z":     {"Notes/Secret.md"},
		"q=turnip&tag=nothing-has-this":                nil,
		"q=%22turnip+is+sown%22&type=document&limit=1": {"Public/Garden.md"},
	} {
		if got := w.finds(key, query); !slices.Equal(got, want) {
			t.Errorf("%s finds %q, want %q", query, got, want)
		}
	}
	if status := w.status(w.keyOf(boss, core.Full, "send", "metrics"), "GET", "/api/search?q=turnip", nil); status != 403 {
		t.Errorf("a key without read and chat: %d", status)
	}
}

func TestSearchFindsTheConversationsOfOneProject(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	boss, gus := w.boss(), w.guest("Gus")
	w.replies(boss, "/project Garden")
	w.replies(boss, "The turnip of the garden")
	w.replies(gus, "/project Garden")
	w.replies(gus, "The turnip of the guest")
	w.replies(boss, "/new")
	w.replies(boss, "/project off")
	w.replies(boss, "The turnip of the kitchen")
	w.quiet()
	w.document("Public/Garden.md", "The turnip is sown in May.")
	id := func(u *telegramtest.User) (id string) {
		t.Helper()
		if err := w.app.db.Get(t.Context(), &id, `SELECT project_id FROM projects WHERE user_id = $1`, w.person(u)); err != nil {
			t.Fatal(err)
		}
		return id
	}
	own, all := w.keyOf(boss, core.Vault, "read"), w.keyOf(boss, core.Vault, "read", "admin")
	for name, c := range map[string]struct {
		key   http.Header
		query string
		want  []string
	}{
		"without a project":                  {own, "q=turnip", []string{"Public/Garden.md", "The turnip of the garden", "The turnip of the kitchen"}},
		"of one's own":                       {own, "q=turnip&project=" + id(boss), []string{"The turnip of the garden"}},
		"of one's own, with another type":    {own, "q=turnip&type=document&project=" + id(boss), nil},
		"of another's":                       {own, "q=turnip&project=" + id(gus), nil},
		"of another's, with the scope admin": {all, "q=turnip&project=" + id(gus), []string{"The turnip of the guest"}},
		"that no one has":                    {all, "q=turnip&project=none", nil},
	} {
		if got := w.finds(c.key, c.query); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
	for _, bad := range []string{"", strings.Repeat("x", 65), "a%00b"} {
		if status, problem, _ := w.asked("GET", "/api/search?q=turnip&project="+bad, nil, own); status != 400 || problem["field"] != "project" {
			t.Errorf("project %q: %d %v", bad, status, problem)
		}
	}
}

// Who chats without a key on this machine finds those conversations and no others, as
// in the list.
func TestSearchFindsTheConversationsOfKeylessCallers(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) { c.LocalhostAccess = "chat" })
	model.Script(llmtest.Say("Hello."))
	none := http.Header{"Authorization": nil, "Accept": {"application/json"}}
	if status, reply, _ := w.asked("POST", "/api/chat", map[string]any{"message": "A turnip without a key"}, none); status != 200 {
		t.Fatalf("%d %v", status, reply)
	}
	w.replies(w.boss(), "The turnip of the owner")
	w.quiet()
	if got := w.finds(none, "q=turnip"); !slices.Equal(got, []string{"A turnip without a key"}) {
		t.Errorf("found %q", got)
	}
}

func TestSearchOverTheAPIIsReadPageByPage(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	boss := w.boss()
	for _, text := range []string{"The first turnip", "The second turnip"} {
		w.replies(boss, "/new")
		w.replies(boss, text)
	}
	w.quiet()
	for i := range 13 {
		w.put(fmt.Sprintf("Field/%02d.md", i), "A turnip grows here.")
	}
	w.until("all are indexed", func() bool { // and none is indexed again between two pages
		return w.count(`SELECT count(*) FROM chunks WHERE chunk_text LIKE '%turnip grows%'`) == 13
	})
	query, seen := url.Values{"q": {"turnip"}, "limit": {"4"}}, map[any]bool{}
	for pages := 1; ; pages++ {
		status, page, _ := w.asked("GET", "/api/search?"+query.Encode(), nil, nil)
		hits, _ := page["hits"].([]any)
		if status != 200 || len(hits) > 4 || pages > 8 {
			t.Fatalf("page %d: %d %v", pages, status, page)
		}
		for _, h := range hits {
			id := h.(map[string]any)["id"]
			if seen[id] {
				t.Errorf("%v is on two pages", id)
			}
			seen[id] = true
		}
		if page["next"] == "" {
			break
		}
		query.Set("cursor", page["next"].(string))
	}
	if len(seen) != 15 {
		t.Errorf("%d of 15 on all pages", len(seen))
	}
	cursor := query.Get("cursor")
	for name, q := range map[string]string{"of another search": "q=parsnip&cursor=" + cursor, "of another folder": "q=turnip&folder=Field&cursor=" + cursor, "of a project": "q=turnip&project=p&cursor=" + cursor, "made up": "q=turnip&cursor=x"} {
		if status, problem, _ := w.asked("GET", "/api/search?"+q, nil, nil); cursor == "" || status != 400 || problem["field"] != "cursor" {
			t.Errorf("a cursor %s: %d %v", name, status, problem)
		}
	}
}
