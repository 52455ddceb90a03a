package api

import (
	"context"
	"testing"

	"gatehouse/core"
	"gatehouse/core/project"
	"gatehouse/core/store"
	"gatehouse/web/auth"
)

// projectStore returns real projects.
func (h *harness) projectStore() *project.Store {
	return project.New(project.Options{DB: h.db, Leave: h.store.LeaveProject})
}

// project makes the project p1 of user, and deletes all others.
func (h *harness) project(user int64) {
	h.t.Helper()
	err := h.db.Tx(context.Background(), func(tx *store.Tx) error {
		if _, err := tx.Exec(context.Background(), `DELETE FROM projects`); err != nil {
			return err
		}
		_, err := tx.Exec(context.Background(), `INSERT INTO projects (project_id, user_id, name, name_key, created_at) VALUES ('p1', $1, 'Shed', 'shed', $2)`, user, core.Stamp(h.clock.Now()))
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestProjectsAreMadeRenamedAndDeletedByTheirPersonOnly(t *testing.T) {
	h := open(t, options{})
	key, other := h.key(auth.ScopeChat), h.keyOf(8, core.Vault, auth.ScopeChat)
	made := h.want(201, "", key, "POST", "/api/projects", `{"name":"Garden"}`)
	at := "/api/projects/" + made["project_id"].(string)
	h.want(409, "conflict", key, "POST", "/api/projects", `{"name":"garden"}`)
	h.want(400, "invalid-request", key, "POST", "/api/projects", `{"name":" "}`)
	h.want(400, "invalid-request", key, "POST", "/api/projects", `{}`)
	if now := h.want(200, "", key, "PATCH", at, `{"name":"Shed"}`); now["name"] != "Shed" {
		t.Errorf("%v", now)
	}
	h.want(404, "not-found", other, "PATCH", at, `{"name":"Mine"}`)
	h.want(404, "not-found", other, "DELETE", at, "")
	if list := h.want(200, "", other, "GET", "/api/projects", "")["projects"].([]any); len(list) != 0 {
		t.Errorf("another person sees %v", list)
	}
	if list := h.want(200, "", key, "GET", "/api/projects", "")["projects"].([]any); len(list) != 1 {
		t.Errorf("%v", list)
	}
	h.want(204, "", key, "DELETE", at, "")
	h.want(404, "not-found", key, "DELETE", at, "")
}

func TestASessionIsMovedToAProject(t *testing.T) {
	h := open(t, options{})
	const sid = "3f0e1c9a-0000-4000-8000-000000000003"
	h.spareSession(sid, 7)
	key := h.key(auth.ScopeChat)
	if got := h.want(200, "", key, "PATCH", "/api/chat/"+sid, `{"project_id":"p1"}`, "If-Match", "*"); got["project_id"] != "p1" {
		t.Errorf("%v", got)
	}
	if got := h.want(200, "", key, "PATCH", "/api/chat/"+sid, `{"project_id":""}`, "If-Match", "*"); got["project_id"] != nil {
		t.Errorf("%v", got)
	}
	h.want(200, "", key, "GET", "/api/chat?project_id=p1", "")
	if h.query.Project != "p1" {
		t.Errorf("asked for %+v", h.query)
	}
}
