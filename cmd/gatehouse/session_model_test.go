package main

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
)

var anyVersion = http.Header{"If-Match": {"*"}}

// patch changes a session over the API and returns the status and the answer.
func (w *world) patch(id string, body any) (int, map[string]any) {
	w.t.Helper()
	status, m, _ := w.asked("PATCH", "/api/chat/"+id, body, anyVersion)
	return status, m
}

func TestModelChosenForAConversationAnswersItsNextTurn(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) {
		c.ModelFallbacks, c.RateLimit = values.List{"openai/fake-2", "local/quote"}, values.Rate{}
	})
	boss := w.boss()
	w.replies(boss, "hello")
	w.quiet()
	_, list, _ := w.asked("GET", "/api/chat?source=telegram", nil, nil)
	id := list["sessions"].([]any)[0].(map[string]any)["id"].(string)
	b := w.browser()
	next := func(says string) {
		t.Helper()
		if page := b.page("/admin/chats/" + id); !strings.Contains(page, "<dt>Next model</dt><dd>"+says+"</dd>") {
			t.Errorf("the page does not show %q as the next model: %.1500s", says, page)
		}
	}
	answers := func(want string) {
		t.Helper()
		w.replies(boss, "who answers?")
		w.quiet()
		if body := lastBody(model); !strings.Contains(body, `"model":"`+want+`"`) {
			t.Errorf("%.100s was asked, want %s", body, want)
		}
	}
	next(`<span class="num">openai/fake-1</span> (default)`)
	if status, m := w.patch(id, map[string]any{"model": "openai/fake-2"}); status != 200 || m["chosen_model"] != "openai/fake-2" || m["model"] != "openai/fake-1" {
		t.Fatalf("%d %v", status, m)
	}
	answers("fake-2")
	next(`<span class="num">openai/fake-2</span> (chosen here)`)

	// /model is the newer choice, also when the conversation had its own.
	w.replies(boss, "/model fake-1")
	next(`<span class="num">openai/fake-1</span> (by /model)`)
	answers("fake-1")
	b.submit("/admin/chats/"+id+"/model", b.page("/admin/chats/"+id), url.Values{"value": {"openai/fake-2"}})
	next(`<span class="num">openai/fake-2</span> (chosen here)`)
	answers("fake-2")
	if m := w.replies(boss, "/status"); !strings.Contains(m.Text, "openai/fake-2") {
		t.Errorf("/status says %q", m.Text)
	}

	// No choice: the chat's again.
	b.submit("/admin/chats/"+id+"/model", b.page("/admin/chats/"+id), url.Values{"value": {""}})
	answers("fake-1")
	w.patch(id, map[string]any{"model": "openai/fake-2"})
	w.replies(boss, "/new")
	answers("fake-1")

	status, m := w.patch(id, map[string]any{"model": "openai/nope"})
	if detail, _ := m["detail"].(string); status != 400 || !strings.Contains(detail, "openai/fake-1, openai/fake-2, local/quote") {
		t.Errorf("an unknown model: %d %v", status, m)
	}
	if _, page := b.submit("/admin/chats/"+id+"/model", b.page("/admin/chats/"+id), url.Values{"value": {"openai/nope"}}); !strings.Contains(page, "flash bad") || !strings.Contains(page, "openai/fake-1, openai/fake-2, local/quote") {
		t.Errorf("the panel on an unknown model: %.600s", page)
	}
}

func TestChosenModelThatIsGoneIsReplacedWithAWarning(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	w.chatEvents(map[string]any{"message": "hello", "session_id": "s"}, nil)
	w.sql(`UPDATE sessions SET chosen_model = 'openai/gone' WHERE id = $1`, sessionOf(t, w, "s"))
	_, es := w.chatEvents(map[string]any{"message": "hello", "session_id": "s"}, nil)
	if e := event(t, es, "warning"); e["code"] != "session_model" || !strings.Contains(e["message"].(string), "openai/gone") {
		t.Errorf("the warning is %v", e)
	}
	if !strings.Contains(lastBody(model), `"fake-1"`) {
		t.Errorf("%.200s was asked", lastBody(model))
	}
}

func TestGuestsConversationGetsNoModelButTheirs(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, func(c *configs.Config) { c.GuestModel = "local/quote" })
	ada := w.guest("Ada")
	w.replies(ada, "hello")
	w.quiet()
	if status, m := w.patch(w.sessionIn(ada), map[string]any{"model": fakeModel}); status != 403 || !strings.Contains(m["detail"].(string), "local/quote") {
		t.Errorf("%d %v", status, m)
	}
}

func TestWorkspaceOfASessionIsChangedByPATCH(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "AGENTS.md"), []byte("Secrets of the host."), 0o600); err != nil {
		t.Fatal(err)
	}
	w.puts(map[string]string{
		"Kitchen/AGENTS.md":                         "Wear an apron.",
		".parachute/workspaces/kitchen/config.yaml": "trust_level: vault\nworking_directory: Kitchen\n",
		".parachute/workspaces/link/config.yaml":    "trust_level: vault\nworking_directory: Way\n",
	})
	if err := os.Symlink(outside, filepath.Join(w.app.vault.Path(), "Way")); err != nil {
		t.Fatal(err)
	}
	w.until("the workspaces are read", func() bool { return len(w.app.agents.Workspaces()) == 2 })
	key := w.as(core.Full)
	say := func() []sseEvent {
		_, es := w.chatEvents(map[string]any{"message": "hello", "session_id": "s"}, key)
		return es
	}
	say()
	id := sessionOf(t, w, "s")
	owner := http.Header{"If-Match": {"*"}, "Authorization": {"Bearer " + w.newKey(core.Full, "read", "chat", "admin")}}
	status, m, _ := w.asked("PATCH", "/api/chat/"+id, map[string]any{"workspace": "kitchen"}, owner)
	if _, got, _ := w.asked("GET", "/api/chat/"+id, nil, nil); status != 200 || m["workspace"] != "kitchen" || got["workspace"] != "kitchen" {
		t.Fatalf("%d %v, then %v", status, m, got)
	}
	es := say()
	if _, system := asked(t, model); es[0].Data["trust_level"] != "vault" || !strings.Contains(system, "Wear an apron.") {
		t.Errorf("a turn in the workspace: %v, %s", es[0].Data, system)
	}
	if page := w.browser().page("/admin/chats/" + id); !strings.Contains(page, `<dt>Workspace</dt><dd class="num">kitchen</dd>`) {
		t.Error("the conversation's page does not show the workspace")
	}

	w.asked("PATCH", "/api/chat/"+id, map[string]any{"workspace": "link"}, owner)
	if es := say(); slices.Contains(types(es), "done") {
		t.Errorf("a turn below full works behind a link that leaves the vault: %v", es)
	}
	w.asked("PATCH", "/api/chat/"+id, map[string]any{"workspace": ""}, owner)
	es = say()
	if _, system := asked(t, model); es[0].Data["trust_level"] != "full" || strings.Contains(system, "apron") {
		t.Errorf("a turn out of the workspace: %v, %s", es[0].Data, system)
	}

	for _, c := range []struct {
		body   map[string]any
		key    http.Header
		status int
	}{
		{map[string]any{"workspace": "nowhere"}, owner, 400}, {map[string]any{"workspace": "../kitchen"}, owner, 400}, {map[string]any{"workspace": 7}, owner, 400},
		{map[string]any{"project_id": "garden"}, owner, 400}, {map[string]any{"chosen_model": fakeModel}, owner, 400},
		{map[string]any{"workspace": "kitchen"}, key, 403},
	} {
		c.key.Set("If-Match", "*")
		if status, m, _ := w.asked("PATCH", "/api/chat/"+id, c.body, c.key); status != c.status {
			t.Errorf("%v: %d %v, want %d", c.body, status, m, c.status)
		}
	}
	if n := w.count(`SELECT count(*) FROM sessions WHERE id = $1 AND workspace IS NULL`, id); n != 1 {
		t.Error("a refused change was stored")
	}
}

// GUEST_MODEL binds guests alone: in the panel a model is chosen for the conversations of
// all others, as they choose one themselves.
func TestAVaultConversationCanBeGivenAModelBesideAGuestModel(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) {
		c.GuestModel, c.ModelFallbacks, c.RateLimit = "local/quote", values.List{"openai/fake-2"}, values.Rate{}
		c.Activity = false // its summaries would be the newest requests
	})
	w.boss()
	ada, vera, cora := w.guest("Ada"), w.guest("Vera"), w.guest("Cora")
	w.sql(`UPDATE access SET trust_level = 'vault' WHERE user_id = $1`, w.person(vera))
	w.sql(`UPDATE users SET role = 'admin' WHERE id = $1`, w.person(cora))
	b := w.browser()
	if page := b.page("/admin/talk"); !strings.Contains(page, "<option>openai/fake-2</option>") {
		t.Error("a new chat is offered no model")
	}
	for _, u := range []*telegramtest.User{vera, cora} {
		w.replies(u, "/new")
		w.replies(u, "hello")
		w.quiet()
		chat := "/admin/chats/" + w.sessionIn(u)
		page := b.page(chat)
		if !strings.Contains(page, "<option>openai/fake-2</option>") || !strings.Contains(page, fakeModel+`</span> (default)`) {
			t.Errorf("the conversation of %s is offered no model, or another is next: %.2000s", u.Account().FirstName, page)
		}
		if _, page := b.submit(chat+"/model", page, url.Values{"value": {"openai/fake-2"}}); !strings.Contains(page, "flash good") || !strings.Contains(page, `openai/fake-2</span> (chosen here)`) {
			t.Errorf("the conversation of %s is not given the model: %.2000s", u.Account().FirstName, page)
		}
		w.replies(u, "who answers?")
		w.quiet()
		if !strings.Contains(lastBody(model), `"model":"fake-2"`) {
			t.Errorf("%s is answered by another: %.100s", u.Account().FirstName, lastBody(model))
		}
	}
	w.replies(ada, "hello")
	w.quiet()
	chat := "/admin/chats/" + w.sessionIn(ada)
	page := b.page(chat)
	if strings.Contains(page, `action="`+chat+`/model"`) {
		t.Error("a guest's conversation is offered a model")
	}
	if _, page := b.submit(chat+"/model", page, url.Values{"value": {"openai/fake-2"}}); !strings.Contains(page, "flash bad") {
		t.Error("a guest's conversation is given a model")
	}
}

// An admin of the panel has a row of admin_accounts, and the role of a guest as a user.
func TestAnAdminsSandboxedConversationInThePanelIsNoGuests(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) {
		c.GuestModel, c.ModelFallbacks, c.Activity = "local/quote", values.List{"openai/fake-2"}, false
	})
	owner := w.browser()
	_, page := owner.submit("/admin/accounts", owner.page("/admin/accounts"), url.Values{"name": {"nina"}, "role": {"admin"}})
	once := regexp.MustCompile(`[a-z0-9]{4}(-[a-z0-9]{4}){3}`).FindString(page)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	nina := &browser{w, &http.Client{Jar: jar}}
	nina.submit("/admin/login", nina.page("/admin/login"), url.Values{"name": {"nina"}, "password": {once}})
	nina.submit("/admin/password", nina.page("/admin/password"), url.Values{"new": {"a very long pass phrase"}, "again": {"a very long pass phrase"}})
	nina.submit("/admin/talk/new", nina.page("/admin/talk"), url.Values{"text": {"hello"}})
	w.quiet()
	var id string
	if err := w.app.db.Get(t.Context(), &id, `SELECT s.id FROM sessions s JOIN admin_accounts a ON a.user_id = s.user_id WHERE a.name = 'nina'`); err != nil {
		t.Fatal(err)
	}
	w.sql(`UPDATE sessions SET trust_level = 'sandboxed' WHERE id = $1`, id)
	chat := "/admin/chats/" + id
	page = nina.page(chat)
	if !strings.Contains(page, "<option>openai/fake-2</option>") || !strings.Contains(page, fakeModel+`</span> (default)`) {
		t.Fatalf("her conversation is offered no model, or another is next: %.2000s", page)
	}
	if _, page := nina.submit(chat+"/model", page, url.Values{"value": {"openai/fake-2"}}); !strings.Contains(page, "flash good") {
		t.Errorf("her conversation is not given the model: %.2000s", page)
	}
	nina.submit("/admin/talk/"+id, nina.page(chat), url.Values{"text": {"who answers?"}})
	w.quiet()
	if !strings.Contains(lastBody(model), `"model":"fake-2"`) {
		t.Errorf("she is answered by another: %.100s", lastBody(model))
	}
}

// A turn is at the trust of its workspace and agent at most.
func TestAConversationInASandboxedWorkspaceIsOfferedTheModelsOfGuests(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, func(c *configs.Config) {
		c.GuestModel, c.ModelFallbacks, c.RateLimit, c.Activity = "local/quote", values.List{"openai/fake-2"}, values.Rate{}, false
	})
	w.boss()
	vera := w.guest("Vera")
	w.sql(`UPDATE access SET trust_level = 'vault' WHERE user_id = $1`, w.person(vera))
	w.puts(map[string]string{".parachute/workspaces/kitchen/config.yaml": "trust_level: sandboxed\n"})
	w.until("the workspace is read", func() bool { return len(w.app.agents.Workspaces()) == 1 })
	w.replies(vera, "/new")
	w.replies(vera, "hello")
	w.quiet()
	id := w.sessionIn(vera)
	b := w.browser()
	offered := func() bool { return strings.Contains(b.page("/admin/chats/"+id), `action="/admin/chats/`+id+`/model"`) }
	if !offered() {
		t.Fatal("her conversation is offered no model")
	}
	w.sql(`UPDATE sessions SET workspace = 'kitchen' WHERE id = $1`, id)
	if offered() {
		t.Error("in the workspace, her conversation is offered models that no turn gets")
	}
	if status, m := w.patch(id, map[string]any{"model": "openai/fake-2"}); status != 403 {
		t.Errorf("in the workspace: %d %v", status, m)
	}
}
