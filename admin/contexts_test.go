package admin_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/admin"
	admincontexts "gatehouse/admin/contexts"
	"gatehouse/core"
	"gatehouse/core/contexts"
)

const contextsPath, gardenPlan = "/admin/contexts", "Allotment/plan.md"

// openContexts fills the options with the saved contexts of the world's vault.
func (w *world) openContexts(o *admin.Options) {
	o.Contexts = admincontexts.Options{
		Store: contexts.New(w.vault), Files: w.vault.FS(),
		May: func(trust core.Trust, _ int64, name string, _ bool) bool {
			return trust >= core.Vault && !strings.HasPrefix(name, "Secret") || strings.HasPrefix(name, "Public")
		},
		Did: func(_ context.Context, by core.Actor, action, subject string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.note(by, "%s %s", action, subject)
			return nil
		},
	}
}

// about has the vault hold saved contexts.
func (w *world) about() {
	w.file("Chat/contexts/garden.json", `{"name":"garden","description":"The allotment: beds, seeds, and who brings what","folders":["Allotment","Public"],"files":["`+gardenPlan+`"]}`)
	w.file("Chat/contexts/house-move.json", `{"description":"Everything about the new flat","folders":["Flat/Contracts"],"files":["Flat/boxes.md","Secret/rent.md"]}`)
	w.file("Public/notice.md", "The gate is locked at nine.\n")
	w.file("Chat/contexts/old.json", `[]`)
}

func (w *world) saved(name string) string {
	b, err := os.ReadFile(filepath.Join(w.vault.Path(), "Chat/contexts", name+".json"))
	if err != nil {
		return ""
	}
	return string(b)
}

func versionIn(t *testing.T, a answer) string {
	t.Helper()
	m := regexp.MustCompile(`name="version" value="([^"]+)"`).FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("no version in %s", a.main())
	}
	return m[1]
}

func TestSavedContexts_AreListedWithWhatIsWrong(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.get(contextsPath).has(t, "No saved context yet", "Make the first one")
	s.world.full()
	page := s.get(contextsPath)
	page.has(t, "garden", "The allotment: beds", ">Allotment</bdi>", gardenPlan, "house-move", "2 not in the vault", "old", "Invalid file", `href="/admin/contexts/edit?name=garden"`)
	page.lacks(t, "Secret/rent.md")
	s.get("/admin/chats").has(t, `href="/admin/contexts"`)
	s.get("/admin/contexts/edit?name=none").has(t, "There is no such saved context")
	s.get("/admin/contexts/edit?name=old").has(t, "is not a saved context")
}

func TestSavedContexts_AreMadeChangedAndDeleted(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	edit := contextsPath + "/edit"
	s.post(edit, url.Values{"name": {"shed"}, "description": {"The shed"}, "paths": {"Allotment\r\n\r\nTools/\r\n" + gardenPlan + "\r\n"}}).has(t, "shed is saved. Not in the vault now: Tools.")
	if got := s.world.saved("shed"); !strings.Contains(got, `"Allotment",`) || !strings.Contains(got, `"Tools"`) || !strings.Contains(got, `"files": [`+"\n    "+`"`+gardenPlan+`"`) {
		t.Errorf("%s", got)
	}
	for name, form := range map[string]url.Values{
		"There is a saved context garden":       {"name": {"garden"}, "paths": {"Public"}},
		"A name has 1 to 64 letters":            {"name": {"../x"}, "paths": {"Public"}},
		"is not a path in the vault":            {"name": {"x"}, "paths": {"../etc"}},
		"One of the paths is not open to your ": {"name": {"x"}, "paths": {"Secret/rent.md"}},
	} {
		a := s.postForm(edit, form)
		a.has(t, name, form.Get("paths")+"</textarea>")
		if a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d", name, a.status)
		}
	}
	version := versionIn(t, s.get(edit+"?name=house-move"))
	form := url.Values{"name": {"house-move"}, "version": {version}, "description": {"Moved"}, "paths": {"Flat/Contracts/\nFlat/boxes.md"}}
	s.post(edit, form).has(t, "house-move is saved.")
	if got := s.world.saved("house-move"); !strings.Contains(got, "Moved") || !strings.Contains(got, "Secret/rent.md") || !strings.Contains(got, `"folders": [`+"\n    "+`"Flat/Contracts"`) {
		t.Errorf("a path that the account does not see has to stay: %s", got)
	}
	form.Set("paths", "Public")
	again := s.postForm(edit, form) // for the version before
	again.has(t, "The context was changed meanwhile", "What is saved now", "Flat/boxes.md", "Public</textarea>")
	form.Set("version", versionIn(t, again))
	s.post(edit, form).has(t, "house-move is saved.")
	s.post(contextsPath+"/garden/delete", nil).has(t, "garden is deleted.")
	if got := s.world.saved("garden"); got != "" {
		t.Errorf("%s", got)
	}
	if did := s.world.done(); !slices.Equal(did, []string{"context.save shed", "context.save house-move", "context.save house-move", "context.delete garden"}) {
		t.Errorf("done: %q", did)
	}
}

func TestSavedContexts_OneIsChosenForAConversation(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	mine, ada := "/admin/chats/"+s.world.mine, "/admin/chats/"+s.world.ada
	s.get(mine).has(t, "<option>garden</option>")
	s.post(mine+"/context", url.Values{"value": {"garden"}}).has(t, "It is about garden from the next turn on.", gardenPlan, "Take the folders and files off")
	s.post(mine+"/context", url.Values{"value": {""}}).lacks(t, "Take the folders and files off")
	s.post(mine+"/context", url.Values{"value": {"nothing"}}).has(t, "There is no saved context nothing")
	s.post(ada+"/lower", url.Values{"value": {"sandboxed"}})
	s.post(ada+"/context", url.Values{"value": {"garden"}}).has(t, "2 paths were left out: this conversation may not read them.", `<dt>About</dt><dd><bdi class="num">Public</bdi></dd>`)
	s.post("/admin/talk/new", url.Values{"text": {"What grows?"}, "context": {"garden"}})
	s.postForm("/admin/talk/new", url.Values{"text": {"What grows?"}, "context": {"nothing"}}).has(t, "There is no saved context nothing", "What grows?</textarea>")
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if said := s.world.said; len(said) != 1 || !slices.Equal(said[0].Contexts, []string{"Allotment", "Public", gardenPlan}) {
		t.Errorf("said %+v", said)
	}
}
