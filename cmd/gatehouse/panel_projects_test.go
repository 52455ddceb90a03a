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
	if page := b.page("/admin/chats/" + w.sessionIn(boss)); !strings.Contains(page, "<bdi>Garden · Olga</bdi>") {
		t.Error("the page of the conversation does not name its project")
	}
	if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'project.create' AND via = 'panel'`); n != 1 {
		t.Errorf("%d entries in the audit log, want 1", n)
	}
}
