package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/web/api/sessions"
	"gatehouse/web/auth"
)

// shelfDouble is the real store of sessions; a transaction as the gateway makes one.
type shelfDouble struct {
	*session.Store
	h *harness
}

func (d shelfDouble) Detail(ctx context.Context, id string) (session.Detail, error) {
	return d.Store.Detail(ctx, d.h.db, id)
}

// Export waits where the test wants it to.
func (d shelfDouble) Export(ctx context.Context, s session.Session) (string, error) {
	d.h.mu.Lock()
	wait := d.h.onExport
	d.h.mu.Unlock()
	if wait != nil {
		wait()
	}
	return d.Store.Export(ctx, s)
}

func (d shelfDouble) Update(ctx context.Context, id string, c session.Change, by core.Actor) (got session.Detail, err error) {
	err = d.h.db.Tx(ctx, func(tx *store.Tx) (err error) { got, err = d.Store.Update(ctx, tx, id, c, by); return err })
	return got, err
}

func (d shelfDouble) Delete(ctx context.Context, id string, versions []string, by core.Actor) error {
	return d.h.db.Tx(ctx, func(tx *store.Tx) error {
		if err := d.Store.Match(ctx, tx, id, versions); err != nil {
			return err
		}
		return d.Store.Delete(ctx, tx, id, by)
	})
}

// row inserts a session of user.
func (h *harness) row(id string, user int64) {
	h.t.Helper()
	err := h.db.Tx(context.Background(), func(tx *store.Tx) error {
		_, err := tx.Exec(context.Background(), `INSERT INTO sessions (id, title, source, created_at, last_accessed, user_id, trust_level, agent_type)
			VALUES ($1, 'old', 'api', $2, $2, $3, $4, 'vault-agent') ON CONFLICT (id) DO NOTHING`, id, core.Stamp(h.clock.Now()), user, core.Vault)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// talk adds messages to a session of the store.
func (h *harness) talk(id string, messages ...transcript.Message) {
	h.t.Helper()
	sess, err := h.store.ByID(context.Background(), h.db, id)
	if err != nil {
		h.t.Fatal(err)
	}
	c, err := h.store.Open(context.Background(), sess)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := errors.Join(c.Append("r", 0, messages...), c.Sync(), c.Close()); err != nil {
		h.t.Fatal(err)
	}
}

func textBlocks(s string) []core.Block { return []core.Block{{Type: "text", Text: s}} }

// owned is a session of user's that both the doubles and the store know.
func (h *harness) owned(user int64) string {
	id := uuid.NewString()
	h.row(id, user)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions[id] = sessions.Row{ID: id, User: user, CreatedAt: h.clock.Now(), LastAccessed: h.clock.Now()}
	return id
}

func TestASessionIsReadChangedAndDeleted(t *testing.T) {
	h := open(t, options{})
	key, path := h.key(auth.ScopeChat), "/api/chat/"+h.owned(7)
	res := h.do(key, "GET", path, "")
	first := res.Header.Get("ETag")
	if m := h.answer(res); m["title"] != "old" || m["title_source"] != "default" || fmt.Sprint(m["messages"], m["has_more"], m["metadata"]) != "[] false map[]" || len(first) < 10 {
		t.Fatalf("%v %s", m, first)
	}
	h.want(428, "precondition-required", key, "PATCH", path, `{"title":"a"}`, "If-Match", "")
	for _, stale := range []string{`"other"`, "W/" + first, "garbage"} {
		h.want(412, "precondition-failed", key, "PATCH", path, `{"title":"a"}`, "If-Match", stale)
	}
	res = h.do(key, "PATCH", path, `{"title":"mine","archived":true,"module":"daily","metadata":{"a":1},"colour":"red"}`, "If-Match", `"x", `+first)
	second, warned := res.Header.Get("ETag"), res.Header.Get("Warning")
	if m := h.answer(res); m["title"] != "mine" || m["title_source"] != "user" || m["archived"] != true || m["module"] != "daily" ||
		fmt.Sprint(m["metadata"]) != "map[a:1]" || second == first || !strings.Contains(warned, "colour") {
		t.Errorf("%v %q", m, warned)
	}
	h.want(412, "precondition-failed", key, "PATCH", path, `{"title":"late"}`, "If-Match", first)
	h.want(412, "precondition-failed", key, "POST", path+"/unarchive", "", "If-Match", first)
	h.want(412, "precondition-failed", key, "DELETE", path, "", "If-Match", first)
	if m := h.want(200, "", key, "POST", path+"/unarchive", "", "If-Match", second); m["archived"] != false {
		t.Errorf("%v", m)
	}
	if m := h.want(200, "", key, "POST", path+"/archive", ""); m["archived"] != true || m["title"] != "mine" {
		t.Errorf("%v", m)
	}
	h.want(204, "", key, "DELETE", path, "")
	h.want(404, "not-found", key, "GET", path, "")
	var actions []string
	if err := h.db.Select(context.Background(), &actions, `SELECT action || ' ' || user_id || ' ' || via FROM audit_events WHERE action LIKE 'session.%' ORDER BY id`); err != nil {
		t.Fatal(err)
	}
	if want := []string{"session.update 7 api", "session.update 7 api", "session.update 7 api", "session.delete 7 api"}; !slices.Equal(actions, want) {
		t.Errorf("audit %v", actions)
	}
}

func TestChangesOutsideTheContractAreRefusedByName(t *testing.T) {
	h := open(t, options{})
	key, id := h.key(auth.ScopeChat), h.owned(7)
	path := "/api/chat/" + id
	for body, field := range map[string]string{
		`{"title":1}`: "title", `{"archived":"yes"}`: "archived", `{"metadata":[]}`: "metadata", `{"agentType":{}}`: "agent_type",
		`{"trust_level":"full"}`: "trust_level", `{"userId":1}`: "user_id", `{"tags":[]}`: "tags",
	} {
		m := h.want(400, "", key, "PATCH", path, body)
		if m["field"] != field {
			t.Errorf("%s: %v", body, m)
		}
	}
	h.want(413, "too-large", key, "PATCH", path, `{"title":"`+strings.Repeat("a", 1001)+`"}`)
	h.want(413, "too-large", key, "PATCH", path, `{"metadata":{"a":"`+strings.Repeat("a", 20<<10)+`"}}`)
	h.want(415, "unsupported-media-type", key, "PATCH", path, `{}`, "Content-Type", "text/plain")
	for _, body := range []string{`[]`, `{}`, `{"tag":""}`, `{"tags":["a",1]}`, `{"tags":[""]}`, `{"tag":"` + strings.Repeat("a", 129) + `"}`} {
		h.want(400, "invalid-request", key, "POST", path+"/tags", body)
	}
	for _, body := range []string{`[]`, `{}`, `{"contexts":"a"}`, `{"contexts":["../a"]}`, `{"contexts":["/etc/passwd"]}`} {
		h.want(400, "invalid-request", key, "PUT", path+"/contexts", body)
		h.want(400, "invalid-request", key, "POST", path+"/contexts", body)
	}
	for _, query := range []string{"/messages?before=a&after=b", "/messages?before=", "/messages?limit=0", "/messages?limit=201", "?limit=x"} {
		h.want(400, "invalid-request", key, "GET", path+query, "")
	}
	h.want(404, "not-found", key, "GET", path+"/messages?before=nope", "")
	h.want(400, "invalid-request", key, "GET", "/api/contexts/sessions", "")
	if d, err := h.store.Detail(context.Background(), h.db, id); err != nil || d.Title != "old" || len(d.Tags)+len(d.Contexts) != 0 {
		t.Errorf("something stayed: %+v %v", d, err)
	}
}

func TestSessionPermissionsAreChangedByTheOwnerOnly(t *testing.T) {
	h := open(t, options{})
	id, theirs := h.owned(core.Operator), h.owned(7)
	permit := `{"metadata":{"permissions":{"bash":true}}}`
	for name, c := range map[string]struct{ key, session string }{
		"a guest": {h.key(auth.ScopeChat), theirs}, "another admin": {h.keyOf(7, core.Full, auth.ScopeChat, auth.ScopeAdmin), theirs},
		"the owner's key for chats": {h.keyOf(core.Operator, core.Full, auth.ScopeChat), id},
		"the owner's small key":     {h.keyOf(core.Operator, core.Sandboxed, auth.ScopeChat, auth.ScopeAdmin), id},
	} {
		for _, body := range []string{permit, `{"metadata":{"Permissions":{"bash":true}}}`, `{"agent_type":"helper"}`} {
			if res := h.do(c.key, "PATCH", "/api/chat/"+c.session, body); res.StatusCode != 403 {
				t.Errorf("%s: %s: %d", name, body, res.StatusCode)
			}
		}
	}
	key := h.keyOf(core.Operator, core.Vault, auth.ScopeChat, auth.ScopeAdmin)
	m := h.want(200, "", key, "PATCH", "/api/chat/"+id, permit)
	if fmt.Sprint(m["metadata"]) != "map[permissions:map[bash:true]]" {
		t.Errorf("%v", m)
	}
	h.want(400, "invalid-request", key, "PATCH", "/api/chat/"+id, `{"metadata":{"permissions":{"read":"everything"}}}`)
}

func TestTagsAndContextsAreAddedAndRemoved(t *testing.T) {
	h := open(t, options{})
	key, path := h.key(auth.ScopeChat), "/api/chat/"+h.owned(7)
	list := func(want, method, where, body string) {
		t.Helper()
		m := h.want(200, "", key, method, path+where, body)
		if got := fmt.Sprint(m["tags"], m["contexts"]); got != want {
			t.Errorf("%s %s: %s", method, where, got)
		}
	}
	list("[garden work] <nil>", "POST", "/tags", `{"tag":" Garden","tags":["WORK","work"]}`)
	list("[garden] <nil>", "DELETE", "/tags/Work", "")
	list("[garden] <nil>", "DELETE", "/tags/unknown", "")
	list("[a/b garden] <nil>", "POST", "/tags", `{"tag":"a/b"}`)
	list("[garden] <nil>", "DELETE", "/tags/a%2Fb", "")
	list("[garden] <nil>", "GET", "/tags", "")
	list("<nil> [Notes A/b]", "PUT", "/contexts", `{"contexts":["Notes/","A/b"]}`)
	list("<nil> [Notes A/b C]", "POST", "/contexts", `{"contexts":["C","Notes"]}`)
	list("<nil> [A/b C]", "DELETE", "/contexts?path=Notes", "")
	list("<nil> [C]", "PUT", "/contexts", `{"contexts":["C"]}`)
	list("<nil> [C]", "GET", "/contexts", "")
	if m := h.want(200, "", key, "GET", "/api/tags", ""); fmt.Sprint(m["tags"]) != "[map[count:1 tag:garden]]" {
		t.Errorf("%v", m)
	}
	if m := h.want(200, "", h.keyOf(8, core.Vault, auth.ScopeChat), "GET", "/api/tags", ""); fmt.Sprint(m["tags"]) != "[]" {
		t.Errorf("somebody else's tags: %v", m)
	}
	h.want(200, "", key, "GET", "/api/tags/Garden/sessions?limit=3", "")
	if h.query.Tag != "Garden" || h.query.Limit != 3 || h.query.User != 7 || h.query.Everybody {
		t.Errorf("%+v", h.query)
	}
	h.want(200, "", h.key(auth.ScopeRead, auth.ScopeAdmin), "GET", "/api/contexts/sessions?path=A/b", "")
	if h.query.Context != "A/b" || !h.query.Everybody {
		t.Errorf("%+v", h.query)
	}
}

func TestMessagesAreReadByPagesAndAsMarkdown(t *testing.T) {
	h := open(t, options{})
	key, id := h.key(auth.ScopeRead), h.owned(7)
	h.want(404, "not-found", h.key(auth.ScopeAdmin), "GET", "/api/chat/"+id+"/transcript", "")
	h.talk(id, transcript.Message{Role: "user", Blocks: append(textBlocks("look"), core.Block{Type: "media", Media: []core.Media{{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n12345")}}})},
		transcript.Message{Role: "assistant", Model: "m", Blocks: []core.Block{{Type: "thinking", Text: "hm", Signature: "secret"}, {Type: "tool_use", ID: "t1", Name: "Read", Input: []byte(`{"p":1}`)}}},
		transcript.Message{Role: "user", Blocks: []core.Block{{Type: "tool_result", ToolUseID: "t1", Text: "no", IsError: true}}},
		transcript.Message{Role: "assistant", Model: "m", Blocks: textBlocks("done")})
	newest := h.want(200, "", key, "GET", "/api/chat/"+id+"?limit=1", "")
	last := newest["messages"].([]any)[0].(map[string]any)
	if len(newest["messages"].([]any)) != 1 || newest["has_more"] != true || fmt.Sprint(last["content"]) != "[map[text:done type:text]]" || last["run_id"] != "r" || last["model"] != "m" {
		t.Errorf("%v", newest)
	}
	before := h.want(200, "", key, "GET", "/api/chat/"+id+"/messages?before="+last["id"].(string), "")
	all := before["messages"].([]any)
	if got := fmt.Sprint(before); len(all) != 3 || before["has_more"] != false || strings.Contains(got, "secret") ||
		!strings.Contains(got, "map[bytes:13 type:image/png]") || !strings.Contains(got, "is_error:true") || !strings.Contains(got, "input:map[p:1]") {
		t.Errorf("%v", got)
	}
	behind := h.want(200, "", key, "GET", "/api/chat/"+id+"/messages?limit=2&after="+all[0].(map[string]any)["id"].(string), "")
	if len(behind["messages"].([]any)) != 2 || behind["has_more"] != true {
		t.Errorf("%v", behind)
	}
	res := h.do(key, "GET", "/api/chat/"+id+"/export.md", "")
	if page := readAll(t, res); !strings.HasPrefix(res.Header.Get("Content-Type"), "text/markdown") || !strings.Contains(page, "### Assistant") || !strings.Contains(page, "session_id: \""+id) ||
		res.Header.Get("Content-Disposition") != `attachment; filename="session-`+id+`.md"` {
		t.Errorf("%v %s", res.Header, page)
	}
	res = h.do(h.key(auth.ScopeAdmin), "GET", "/api/chat/"+id+"/transcript", "")
	if lines := strings.Split(strings.TrimSpace(readAll(t, res)), "\n"); len(lines) != 4 || !strings.Contains(lines[1], `"signature":"secret"`) {
		t.Errorf("%d lines: %s", len(lines), lines)
	}
}

// TestAnotherUsersSessionIsNotFoundOnEveryRoute walks the document: what has an
// id in its path answers another person's key, whatever its scopes short of
// admin, as it answers for what does not exist.
func TestAnotherUsersSessionIsNotFoundOnEveryRoute(t *testing.T) {
	h := open(t, options{})
	furnish(h, 7)
	sid, _, _ := (*sessionsDouble)(h).Locate(context.Background(), 7, "s1")
	other := h.keyOf(8, core.Full, auth.ScopeChat, auth.ScopeRead, auth.ScopeSend, auth.ScopeMetrics)
	walked := 0
	for path, item := range h.seen.doc.Paths.Map() {
		for method, op := range item.Operations() {
			if !strings.Contains(path, "{id}") {
				continue
			}
			i := slices.IndexFunc(routes, func(r struct {
				method, path, body string
				scopes             []string
			}) bool {
				bare, _, _ := strings.Cut(r.path, "?")
				return r.method == method && matches(path, r.path) && h.seen.doc.Paths.Value(bare) == nil
			})
			if i < 0 {
				t.Errorf("%s %s is not among the routes", method, path)
				continue
			}
			walked++
			if slices.Equal(routes[i].scopes, []string{auth.ScopeAdmin}) { // nobody's own: no key without admin gets that far
				h.want(403, "forbidden", other, method, routes[i].path, routes[i].body)
				continue
			}
			slug := "not-found"
			if strings.HasPrefix(path, "/v1/") { // in OpenAI's form
				slug = ""
			}
			theirs := h.want(404, slug, other, method, strings.Replace(routes[i].path, "/s1", "/"+sid, 1), routes[i].body)
			nobodys := h.want(404, slug, other, method, strings.Replace(routes[i].path, "/s1", "/"+uuid.NewString(), 1), routes[i].body)
			delete(theirs, "request_id")
			delete(nobodys, "request_id")
			if fmt.Sprint(theirs) != fmt.Sprint(nobodys) {
				t.Errorf("%s (%s): %v tells more than %v", path, op.OperationID, theirs, nobodys)
			}
		}
	}
	if walked < 20 {
		t.Errorf("only %d operations have an id", walked)
	}
	if d, err := h.store.Detail(context.Background(), h.db, sid); err != nil || d.Title != "old" || d.Archived || len(d.Tags)+len(d.Contexts) != 0 {
		t.Errorf("something was changed: %+v %v", d, err)
	}
	if h.want(200, "", h.key(auth.ScopeChat), http.MethodGet, "/api/chat/"+sid, "")["id"] != sid {
		t.Error("its own person does not find it")
	}
}

// matches reports whether path, with values, is one of the document's template.
func matches(template, path string) bool {
	path, _, _ = strings.Cut(path, "?")
	a, b := strings.Split(template, "/"), strings.Split(path, "/")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !strings.HasPrefix(a[i], "{") && a[i] != b[i] {
			return false
		}
	}
	return true
}

// What is counted is what the list would show: the caller's own, or everybody's
// for everyone who may see them, by the same filters.
func TestSessionsAreCountedAsTheyAreListed(t *testing.T) {
	h := open(t, options{})
	h.sessions = map[string]sessions.Row{"a": {ID: "a", User: 7}, "b": {ID: "b", User: 7}, "c": {ID: "c", User: 8}}
	for _, c := range []struct {
		key  string
		want float64
	}{
		{h.keyOf(7, core.Vault, auth.ScopeRead), 2}, {h.keyOf(8, core.Sandboxed, auth.ScopeChat), 1}, {h.keyOf(9, core.Vault, auth.ScopeChat), 0},
		{h.keyOf(9, core.Vault, auth.ScopeRead, auth.ScopeAdmin), 3},
	} {
		if m := h.want(200, "", c.key, "GET", "/api/chat/count?archived=false&module=daily&source=api&agent_type=cook&tag=tea", ""); m["count"] != c.want {
			t.Errorf("%v, want %v", m, c.want)
		}
		if q := h.query; q.Archived == nil || *q.Archived || q.Module != "daily" || q.Source != "api" || q.AgentType != "cook" || q.Tag != "tea" {
			t.Errorf("asked for %+v", q)
		}
	}
	for _, q := range []string{"search=x", "limit=1", "offset=1", "cursor=x", "archived=perhaps"} {
		h.want(400, "invalid-request", h.key(auth.ScopeRead), "GET", "/api/chat/count?"+q, "")
	}
}

// Over the API as in a chat: the owner sets an agent's limits, so who may
// not say /agent does not get past them by naming another agent or workspace.
func TestAgentAndWorkspaceAreChosenByTheOwnerAndAdminsOnly(t *testing.T) {
	h := open(t, options{})
	h.onPut = func(in core.Inbound) { h.reply(in, "ok") }
	guest, full := h.keyOf(7, core.Sandboxed, auth.ScopeChat), h.keyOf(7, core.Full, auth.ScopeChat, auth.ScopeRead)
	for _, body := range []string{`{"message":"a","agent_path":"cook"}`, `{"message":"a","agentPath":"nobody"}`, `{"message":"a","workspace":"kitchen"}`, `{"message":"a","session_id":"new","workspace":"nowhere"}`} {
		for _, key := range []string{guest, full} {
			if m := h.want(403, "forbidden", key, "POST", "/api/chat", body); m["field"] == nil {
				t.Errorf("%s: %v", body, m)
			}
		}
	}
	if len(h.put) != 0 {
		t.Errorf("%d turns were put", len(h.put))
	}
	for _, key := range []string{h.keyOf(core.Operator, core.Sandboxed, auth.ScopeChat), h.keyOf(7, core.Vault, auth.ScopeChat, auth.ScopeAdmin)} {
		h.want(200, "", key, "POST", "/api/chat", `{"message":"a","agent_path":"cook","workspace":"kitchen"}`, "Accept", "application/json")
		if o := h.last().Turn; o.Agent != "cook" || o.Workspace != "kitchen" {
			t.Errorf("%+v", o)
		}
	}
}

// An export lies in memory until its reader has it: a key reads two at once.
func TestConcurrentExportsAreLimited(t *testing.T) {
	h := open(t, options{})
	key, other := h.key(auth.ScopeRead), h.keyOf(7, core.Vault, auth.ScopeRead)
	furnish(h, 7)
	began, go_ := make(chan struct{}, 10), make(chan struct{})
	h.mu.Lock()
	h.onExport = func() { began <- struct{}{}; <-go_ }
	h.mu.Unlock()
	var wg sync.WaitGroup
	get := func(key string, want int) {
		res, err := h.try(key, "GET", "/api/chat/s1/export.md", "")
		if err != nil || res.StatusCode != want || want == 429 && res.Header.Get("Retry-After") == "" {
			t.Errorf("%v %v, want %d", res, err, want)
			return
		}
		res.Body.Close()
	}
	for range sessions.MaxExports {
		wg.Go(func() { get(key, 200) })
	}
	for range sessions.MaxExports {
		<-began
	}
	get(key, 429)
	wg.Go(func() { get(other, 200) })
	<-began
	close(go_)
	wg.Wait()
	get(key, 200)
}

func TestTheLastErrorOfASessionIsShownAndItsCauseOnlyToTheOperator(t *testing.T) {
	h := open(t, options{})
	id := h.owned(7)
	guest, admin := h.keyOf(7, core.Vault, auth.ScopeChat), h.keyOf(core.Operator, core.Full, auth.Scopes()...)
	if m := h.want(200, "", guest, "GET", "/api/chat/"+id, ""); m["last_error"] != nil {
		t.Errorf("of a session whose newest turn was answered: %v", m["last_error"])
	}
	h.failed = map[string]bool{id: true}
	last, _ := h.want(200, "", guest, "GET", "/api/chat/"+id, "")["last_error"].(map[string]any)
	if last["kind"] != "auth" || last["message"] != "The provider rejects the key." || last["run_id"] != "r1" || len(last) != 4 {
		t.Errorf("a guest reads %v", last)
	}
	last, _ = h.want(200, "", admin, "GET", "/api/chat/"+id, "")["last_error"].(map[string]any)
	if last["what_to_do"] != "Replace the key." || last["setting"] != "GATEHOUSE_OPENAI_API_KEY" || last["provider_message"] != "status 401" {
		t.Errorf("the operator reads %v", last)
	}
}
