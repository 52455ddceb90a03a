package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"gatehouse/admin"
	adminprojects "gatehouse/admin/projects"
	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/attach/content"
	"gatehouse/core/project"
	"gatehouse/core/session"
	"gatehouse/core/store"
)

const projectsPath = "/admin/projects"

// projectWorld is a real store of projects, with its database.
type projectWorld struct {
	*project.Store
	db *store.DB
}

// openProjects fills the options with real projects; openChats goes before.
func (w *world) openProjects(db *store.DB, o *admin.Options) {
	w.projects = projectWorld{project.New(project.Options{DB: db, Leave: w.chats.LeaveProject}), db}
	o.Projects = adminprojects.Options{Store: w.projects.Store, Did: func(_ context.Context, by core.Actor, action, subject string) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.note(by, "%s %s", action, subject)
		return nil
	}}
}

// grouped has the operator and Ines have projects, one of which has a conversation with a
// file. talks goes before.
func (w *world) grouped() {
	ctx := context.Background()
	garden, err := w.projects.Create(ctx, 2, "Allotment")
	must(err)
	own, err := w.projects.Create(ctx, core.Operator, "Tax return 2026")
	must(err)
	must(w.chats.Update(ctx, w.ada, session.Change{Project: &garden.ID}, core.Actor{}))
	must(w.projects.db.Tx(ctx, func(tx *store.Tx) error {
		f := core.File{Path: "Chat/assets/2026-11-27/0123456789ab-minutes.pdf", Size: 9}
		read := content.Of("Minutes of the allotment committee, May\n\nPresent: Ines, Matteo, Jun-ho. The tap by the shed still drips.")
		read.Pages, read.Words, read.Truncated = 12, 4021, true
		return w.ledger.Record(ctx, tx, attach.Turn{User: 2, Session: w.ada, Run: adaRun}, []core.File{f}, map[string]content.Content{f.Path: read})
	}))
	w.did, w.actors = nil, nil
	w.garden, w.taxes = garden, own
}

// row returns the line of the list with this project.
func projectRow(t *testing.T, a answer, id string) string {
	t.Helper()
	_, line, found := strings.Cut(a.body, `<tr id="p-`+id+`">`)
	if !found {
		t.Fatalf("the project is not listed in %s", a.main())
	}
	line, _, _ = strings.Cut(line, "</tr>")
	return line
}

func TestProjects_AreListedWithTheirOwnersAndWhatBelongsToThem(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	s.get(projectsPath).has(t, "No project yet", "<code>/project</code>")
	w.full()
	garden, own := w.garden, w.taxes
	_, err := w.projects.Rename(context.Background(), core.Operator, own.ID, "Tax return 2026 <b>")
	must(err)
	a := s.get(projectsPath)
	line := projectRow(t, a, garden.ID)
	for _, want := range []string{`<a href="/admin/chats?project=` + garden.ID + `&amp;state=all"><bdi>Allotment</bdi></a>`, "<bdi>Ines Carvalho</bdi>", "1 conversation<small>1 file</small>"} {
		if !strings.Contains(line, want) {
			t.Errorf("no %q in %s", want, line)
		}
	}
	if strings.Contains(line, "<form") {
		t.Errorf("another person's can be changed: %s", line)
	}
	if line = projectRow(t, a, own.ID); !strings.Contains(line, "Tax return 2026 &lt;b&gt;") || strings.Count(line, "<form") != 2 || strings.Contains(line, "/admin/chats?") {
		t.Errorf("one's own: %s", line)
	}
	for query, want := range map[string][]string{"?q=ALLOT": {garden.ID}, "?user=1": {own.ID}, "?q=%25": nil, "?user=2&q=tax": nil, "?after=9": nil, "": {garden.ID, own.ID}} {
		a := s.get(projectsPath + query)
		for _, id := range []string{garden.ID, own.ID} {
			if got := strings.Contains(a.body, `<tr id="p-`+id); got != slices.Contains(want, id) {
				t.Errorf("%q: the project %s is listed: %v", query, id, got)
			}
		}
	}
}

func TestProjects_AreCreatedRenamedAndDeleted(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	garden, own := w.garden, w.taxes
	mine := func() (names []string) {
		list, _, err := w.projects.All(context.Background(), project.Filter{User: core.Operator, Limit: 10})
		must(err)
		for _, p := range list {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		return names
	}
	for _, c := range []struct{ at, name, said string }{
		{projectsPath, " Boat ", "The project Boat is created"},
		{projectsPath, "boat", "You have a project &#34;boat&#34; already"},
		{projectsPath, " ", "A project&#39;s name has 1 to 80 characters"},
		{projectsPath + "/" + own.ID + "/rename", "Taxes", "The project is called Taxes."},
		{projectsPath + "/" + own.ID + "/rename", "Boat", "already"},
		{projectsPath + "/" + garden.ID + "/rename", "Mine now", "There is no such project"},
		{projectsPath + "/" + garden.ID + "/delete", "", "There is no such project"},
		{projectsPath + "/" + own.ID + "/burn", "", "There is no such action"},
	} {
		a := s.postForm(c.at, url.Values{"name": {c.name}})
		if a.status == http.StatusSeeOther {
			a = s.get(a.header.Get("Location"))
		}
		a.has(t, c.said)
	}
	if got := mine(); !slices.Equal(got, []string{"Boat", "Taxes"}) {
		t.Errorf("the operator has %q", got)
	}
	s.post(projectsPath+"/"+own.ID+"/delete", nil).has(t, "The project is deleted. Its conversations stay.")
	if got := mine(); !slices.Equal(got, []string{"Boat"}) {
		t.Errorf("the operator has %q", got)
	}
	if did := w.done(); len(did) != 3 || !strings.HasPrefix(did[0], "project.create ") || did[1] != "project.rename "+own.ID || did[2] != "project.delete "+own.ID {
		t.Errorf("in the audit log: %q", did)
	}
}

func TestProjects_AConversationIsPutIntoAProjectOfItsUserOnItsPage(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	at := "/admin/chats/" + w.mine
	a := s.get(at)
	a.has(t, `action="`+at+`/project"`, `<option value="`+w.taxes.ID+`">Tax return 2026</option>`)
	if strings.Contains(a.body, "Allotment") {
		t.Error("a project of another user is offered")
	}
	s.post(at+"/project", url.Values{"value": {w.taxes.ID}}).has(t, "It belongs to the project from now on.", `<dt>Project</dt><dd><a href="/admin/chats?state=all&amp;project=`+w.taxes.ID+`"><bdi>Tax return 2026</bdi></a>`, `<option value="`+w.taxes.ID+`" selected>`)
	a = s.post(at+"/project", url.Values{"value": {""}})
	a.has(t, "It belongs to no project from now on.")
	if strings.Contains(a.body, "<dt>Project</dt>") {
		t.Error("it has a project still")
	}
}

// A name that is refused stays in its field, with the reason.
func TestProjects_ARefusedNameIsShownAtItsField(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	own := s.world.taxes
	_, err := s.world.projects.Create(context.Background(), core.Operator, "Boat")
	must(err)
	a := s.postForm(projectsPath, url.Values{"name": {"boat"}})
	a.has(t, `value="boat" aria-invalid="true" aria-describedby="fault"`, `<p class="reason bad" id="fault" role="alert">You have a project &#34;boat&#34; already`)
	if a.status != http.StatusUnprocessableEntity || strings.Count(a.body, "already") != 1 {
		t.Errorf("%d: the reason is shown %d times", a.status, strings.Count(a.body, "already"))
	}
	a = s.postForm(projectsPath+"/"+own.ID+"/rename", url.Values{"name": {"BOAT"}})
	if line := projectRow(t, a, own.ID); !strings.Contains(line, `id="ren-`+own.ID+`" open>`) || !strings.Contains(line, `value="BOAT" required`) || !strings.Contains(line, "already") {
		t.Errorf("%s", line)
	}
	if a.status != http.StatusUnprocessableEntity || strings.Count(a.body, `id="fault"`) != 1 || strings.Count(a.body, `<tr id="p-`) != 1 {
		t.Errorf("%d, %s", a.status, a.main())
	}
}

func TestProjects_ArePagedAndChosenInChatsAndTheSearch(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	garden := w.garden
	a := s.get("/admin/chats?state=all&project=" + garden.ID)
	a.has(t, `<option value="`+garden.ID+`" selected>Allotment · Ines Carvalho</option>`, `<tr id="s-`+w.ada)
	if strings.Contains(a.body, `<tr id="s-`+w.mine) {
		t.Error("a conversation of no project is listed")
	}
	s.get("/admin/chats/"+w.ada).has(t, `<dt>Project</dt><dd><a href="/admin/chats?state=all&amp;project=`+garden.ID+`"><bdi>Allotment</bdi></a>`)
	s.get("/admin/search?q=potatoes&project="+garden.ID).has(t, `<option value="`+garden.ID+`" selected>`)
	w.find.mu.Lock()
	if got := w.find.asked.Project; got != garden.ID {
		t.Errorf("the search was asked for the project %q", got)
	}
	w.find.mu.Unlock()
	for i := range 60 {
		_, err := w.projects.Create(context.Background(), 3, fmt.Sprint("Project ", i))
		must(err)
	}
	seen, at := 0, projectsPath+"?user=3"
	for pages := 0; at != "" && pages < 3; pages++ {
		a := s.get(at)
		if a.status != http.StatusOK {
			t.Fatal(a.status)
		}
		seen += strings.Count(a.body, `<tr id="p-`)
		_, rest, _ := strings.Cut(a.body, `rel="next" href="`)
		at, _, _ = strings.Cut(rest, `"`)
		at = strings.ReplaceAll(at, "&amp;", "&")
	}
	if seen != 60 {
		t.Errorf("%d of 60 on all pages", seen)
	}
}
