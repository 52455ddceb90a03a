package main

import (
	"net/url"
	"strings"
	"testing"
)

// The owner's account of the panel and the owner in a chat have the same projects.
func TestProjectOfThePanelIsChosenInAChat(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	boss, gus := w.boss(), w.guest("Gus")
	b := w.browser()
	if _, page := b.submit("/admin/projects", b.page("/admin/projects"), url.Values{"name": {"Garden"}}); !strings.Contains(page, "The project Garden is created") {
		t.Fatalf("%s", page)
	}
	w.replies(boss, "/project garden")
	w.replies(boss, "The turnip of the garden")
	w.replies(gus, "/project Secret plan")
	w.quiet()
	if n := w.count(`SELECT count(*) FROM projects`); n != 2 {
		t.Fatalf("there are %d projects, want 2", n)
	}
	page := b.page("/admin/projects")
	for _, want := range []string{"<bdi>Garden</bdi></a>", "1 conversation</td>", "<bdi>Secret plan</bdi>", "<bdi>Gus</bdi>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	at := "/admin/chats/" + w.sessionIn(boss)
	if page := b.page(at); !strings.Contains(page, "<bdi>Garden</bdi></a></dd>") {
		t.Error("the page of the conversation does not name its project")
	}
	in := func(project string) int {
		return w.count(`SELECT count(*) FROM sessions s LEFT JOIN projects p ON p.project_id = s.project_id WHERE s.id = $1 AND coalesce(p.name, '') = $2`, w.sessionIn(boss), project)
	}
	id := func(name string) (id string) {
		if err := w.app.db.Get(t.Context(), &id, `SELECT project_id FROM projects WHERE name = $1`, name); err != nil {
			t.Fatal(err)
		}
		return id
	}
	if _, page := b.submit(at+"/project", b.page(at), url.Values{"value": {id("Secret plan")}}); !strings.Contains(page, "has no such project") || in("Garden") != 1 {
		t.Error("the conversation was put into another user's project")
	}
	b.submit(at+"/project", b.page(at), url.Values{"value": {""}})
	if in("") != 1 {
		t.Error("the conversation was not taken out of its project on its page")
	}
	b.submit(at+"/project", b.page(at), url.Values{"value": {id("Garden")}})
	if in("Garden") != 1 {
		t.Error("the conversation was not put into a project on its page")
	}
	if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'project.create' AND via = 'panel'`); n != 1 {
		t.Errorf("%d entries in the audit log, want 1", n)
	}
}
