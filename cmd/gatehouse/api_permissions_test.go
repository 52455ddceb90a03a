package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth"
)

// A lent is an API key of somebody who is not the operator: what their tools
// want beyond the ordinary is asked.
type lent struct {
	w      *world
	header http.Header
	user   int64
}

// lend makes a user with a key at vault.
func (w *world) lend() *lent {
	w.t.Helper()
	if w.count(`SELECT count(*) FROM users WHERE id = 7`) == 0 {
		w.exec(`INSERT INTO users (id, display, role, created_at) VALUES (7, 'Ada', 'guest', $1)`, core.Stamp(time.Now()))
	}
	secret, _, err := w.app.keys.Create(w.t.Context(), auth.NewKey{Label: "lent", User: 7, Trust: core.Vault, Scopes: []string{auth.ScopeChat}}, cli)
	if err != nil {
		w.t.Fatal(err)
	}
	return &lent{w, http.Header{"Authorization": {"Bearer " + secret}}, 7}
}

// exec changes the database behind the gateway's back.
func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	err := w.app.db.Tx(w.t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(w.t.Context(), query, args...)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// A reading is a stream that is read bit by bit.
type reading struct {
	t    testing.TB
	body io.ReadCloser
	s    *bufio.Scanner
	all  []sseEvent
}

// says sends a message and reads its stream.
func (l *lent) says(text, session string) *reading {
	l.w.t.Helper()
	body := map[string]any{"message": text}
	if session != "" {
		body["session_id"] = session
	}
	return l.w.read(l.w.open("POST", "/api/chat", body, l.header))
}

func (w *world) read(resp *http.Response) *reading {
	w.t.Helper()
	if resp.StatusCode != 200 {
		b, _ := io.ReadAll(resp.Body)
		w.t.Fatalf("%s: %s", resp.Status, b)
	}
	r := &reading{t: w.t, body: resp.Body, s: bufio.NewScanner(resp.Body)}
	r.s.Buffer(nil, 1<<20)
	w.t.Cleanup(func() { _ = r.body.Close() })
	return r
}

// until reads up to the first event of this type.
func (r *reading) until(kind string) sseEvent {
	r.t.Helper()
	for r.s.Scan() {
		data, ok := strings.CutPrefix(r.s.Text(), "data: ")
		if !ok {
			continue
		}
		var e sseEvent
		if err := json.Unmarshal([]byte(data), &e.Data); err != nil {
			r.t.Fatalf("%q: %v", data, err)
		}
		e.Type, _ = e.Data["type"].(string)
		if r.all = append(r.all, e); e.Type == kind {
			return e
		}
	}
	r.t.Fatalf("the stream ended before %s: %v", kind, types(r.all))
	return sseEvent{}
}

// order is where events of these types stand in what was read; each once.
func (r *reading) inOrder(kinds ...string) {
	r.t.Helper()
	var got []string
	for _, e := range r.all {
		if slices.Contains(kinds, e.Type) {
			got = append(got, e.Type)
		}
	}
	if !slices.Equal(got, kinds) {
		r.t.Errorf("the order is %v, want %v", got, kinds)
	}
}

var ofACall = []string{"tool_use_start", "permission_request", "permission_resolved", "tool_result", "done", "message_stop"}

// asksOf counts what was ever asked of people about tools.
func (w *world) asksOf() int { return w.count(`SELECT count(*) FROM asks WHERE kind = 'permission'`) }

func TestAToolCallIsAskedAndGrantedOverTheAPI(t *testing.T) {
	w := newWorld(t, nil)
	ada := w.lend()
	onlooker := w.read(w.open("GET", "/api/permissions/stream", nil, nil))
	onlooker.until("connected")
	run := ada.says(wantsToWrite, "")
	asked := run.until("permission_request").Data
	seen := onlooker.until("permissionRequest").Data["request"].(map[string]any)
	if asked["path"] != "Notes/plan.md" || asked["kind"] != "write" || seen["id"] != asked["id"] || seen["path"] != asked["path"] || seen["user_id"] != 7.0 || seen["trust_level"] != "vault" {
		t.Fatalf("asked %v, shown %v", asked, seen)
	}
	id := asked["id"].(string)
	for _, verb := range []string{"grant", "deny"} { // a guest decides nothing
		if resp := w.open("POST", "/api/permissions/"+id+"/"+verb, nil, ada.header); resp.StatusCode != 403 {
			t.Errorf("the guest's %s: %s", verb, resp.Status)
		}
	}
	if w.note() != "" {
		t.Fatalf("the file before the answer: %q", w.note())
	}
	pattern := asked["suggested_grants"].([]any)[1].(map[string]any)["pattern"].(string)
	if code, body := w.call("POST", "/api/permissions/"+id+"/grant", map[string]string{"pattern": pattern}); code != 200 || !strings.Contains(body, `"decision":"granted"`) {
		t.Fatalf("%d %s", code, body)
	}
	end := run.until("permission_resolved").Data
	if end["decision"] != "granted" || end["by"] != "operator via api" || end["id"] != id {
		t.Errorf("%v", end)
	}
	run.until("message_stop")
	run.inOrder(ofACall...)
	if w.note() != "Buy tea.\n" {
		t.Errorf("the file: %q", w.note())
	}
	if e := onlooker.until("permissionGranted"); e.Data["by"] != "operator via api" {
		t.Errorf("%v", e.Data)
	}
	if code, body := w.call("POST", "/api/permissions/"+id+"/deny", nil); code != 409 || !strings.Contains(body, `"resolved_by":"operator via api"`) {
		t.Errorf("the second decision: %d %s", code, body)
	}
	// What the pattern covers goes on unasked in this session, until it is revoked.
	session := run.all[0].Data["id"].(string)
	again := ada.says(strings.Replace(wantsToWrite, "Buy tea.", "Buy milk.", 1), session)
	again.until("message_stop")
	again.inOrder("tool_use_start", "tool_result", "done", "message_stop")
	_, body := w.call("GET", "/api/permissions/grants?session_id="+session, nil)
	var list struct {
		Grants []struct{ ID, Pattern string }
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Grants) != 1 || list.Grants[0].Pattern != pattern {
		t.Fatalf("%v %s", err, body)
	}
	if code, body := w.call("DELETE", "/api/permissions/grants/"+list.Grants[0].ID, nil); code != 204 {
		t.Fatalf("%d %s", code, body)
	}
	third := ada.says(strings.Replace(wantsToWrite, "Buy tea.", "Buy bread.", 1), session)
	w.call("POST", "/api/permissions/"+third.until("permission_request").Data["id"].(string)+"/deny", nil)
	third.until("message_stop")
}

func TestAToolCallIsRefusedInThePanel(t *testing.T) {
	w := newWorld(t, nil)
	ada, panel := w.lend(), w.browser()
	run := ada.says(wantsToWrite, "")
	id := run.until("permission_request").Data["id"].(string)
	page := panel.page("/admin/approvals")
	for _, want := range []string{"Write wants to change", "Notes/plan.md", "at trust <b>vault</b>", `action="/admin/approvals/` + id + `/allow"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if _, body := panel.submit("/admin/approvals/"+id+"/deny", page, url.Values{}); !strings.Contains(body, "Denied. The model continues") {
		t.Errorf("%s", body)
	}
	if end := run.until("permission_resolved").Data; end["decision"] != "denied" || end["by"] != "operator via panel" {
		t.Errorf("%v", end)
	}
	result := run.until("tool_result").Data
	if text, _ := result["result"].(string); result["is_error"] != true || !strings.Contains(text, "Denied by operator via panel") {
		t.Errorf("%v", result)
	}
	run.until("message_stop")
	run.inOrder(ofACall...)
	if w.note() != "" {
		t.Errorf("the file: %q", w.note())
	}
	if _, body := panel.submit("/admin/approvals/"+id+"/allow", page, url.Values{}); !strings.Contains(body, "Already decided by operator via panel (") {
		t.Errorf("the second decision: %s", body)
	}
}

func TestAToolCallThatNoOneAnswersIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ada := w.lend()
	onlooker := w.read(w.open("GET", "/api/permissions/stream", nil, nil))
	run := ada.says(wantsToWrite, "")
	run.until("permission_request")
	onlooker.until("permissionRequest")
	w.exec(`UPDATE asks SET expires_at = $1 WHERE state = 'open'`, core.Stamp(time.Now().Add(-time.Second))) // two minutes later
	if end := run.until("permission_resolved").Data; end["decision"] != "timeout" || end["by"] != "" {
		t.Errorf("%v", end)
	}
	run.until("message_stop")
	run.inOrder(ofACall...)
	if e := onlooker.until("permissionDenied").Data; e["decision"] != "timeout" {
		t.Errorf("%v", e)
	}
	if w.note() != "" {
		t.Errorf("the file: %q", w.note())
	}
	if page := w.browser().page("/admin/approvals"); !strings.Contains(page, "no one answered in time") {
		t.Errorf("the page does not say what became of it:\n%s", page)
	}
}

// Whoever reads no stream could not see the question: the answer is no at once,
// and the reply says why.
func TestWhereNoOneWatchesTheAnswerIsNoAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	ada := w.lend()
	header := ada.header.Clone()
	header.Set("Accept", "application/json")
	resp := w.open("POST", "/api/chat", map[string]any{"message": wantsToWrite}, header)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || !strings.Contains(string(b), "no one can be asked here") {
		t.Errorf("as JSON: %s %v %s", resp.Status, err, b)
	}
	header = ada.header.Clone()
	header.Set("Prefer", "respond-async")
	accepted := w.open("POST", "/api/chat", map[string]any{"message": wantsToWrite}, header)
	_ = accepted.Body.Close()
	run := w.read(w.open("GET", accepted.Header.Get("Location"), nil, ada.header))
	run.until("message_stop")
	run.inOrder("tool_use_start", "tool_result", "done", "message_stop")
	if n := w.asksOf(); n != 0 || w.note() != "" {
		t.Errorf("%d were asked, the file: %q", n, w.note())
	}
}

func TestTheFirstAnswerWinsBetweenThePanelAndTheAPI(t *testing.T) {
	w := newWorld(t, nil)
	ada, panel := w.lend(), w.browser()
	session, wins := "", map[string]int{}
	for i := range 6 {
		run := ada.says(strings.Replace(wantsToWrite, "plan.md", string(rune('a'+i))+".md", 1), session)
		id := run.until("permission_request").Data["id"].(string)
		session = run.all[0].Data["id"].(string)
		page := panel.page("/admin/approvals")
		var code int
		var api, html string
		var wg sync.WaitGroup
		wg.Go(func() { code, api = w.call("POST", "/api/permissions/"+id+"/grant", nil) })
		wg.Go(func() { _, html = panel.submit("/admin/approvals/"+id+"/deny", page, url.Values{}) })
		wg.Wait()
		end := run.until("permission_resolved").Data
		run.until("message_stop")
		switch end["by"] {
		case "operator via api":
			if end["decision"] != "granted" || code != 200 || !strings.Contains(html, "Already decided by operator via api (") {
				t.Errorf("%v: the API reads %d %s, the panel %q", end, code, api, flashOf(html))
			}
		case "operator via panel":
			if end["decision"] != "denied" || code != 409 || !strings.Contains(api, `"resolved_by":"operator via panel"`) || !strings.Contains(html, "Denied. The model continues") {
				t.Errorf("%v: the API reads %d %s, the panel %q", end, code, api, flashOf(html))
			}
		default:
			t.Errorf("decided by %v", end)
		}
		wins[end["by"].(string)]++
	}
	if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'ask.decide'`); n != 6 {
		t.Errorf("%d decisions are noted for 6 calls", n)
	}
	t.Log(wins)
}

// flashOf is what a page has to say about the decision.
func flashOf(html string) string {
	_, after, _ := strings.Cut(html, `id="flash"`)
	before, _, _ := strings.Cut(after, "</p>")
	return before
}

func TestAQuestionIsAnsweredOverTheAPIByThePersonWhoWasAsked(t *testing.T) {
	w := newWorld(t, nil)
	ada := w.lend()
	run := ada.says(`use AskUserQuestion {"questions":[{"question":"Which tea?","header":"Tea","options":[{"label":"Green"},{"label":"Black"}]}]}`, "")
	asked := run.until("user_question").Data
	session := run.all[0].Data["id"].(string)
	body := map[string]any{"id": asked["id"], "answers": map[string]string{"Which tea?": "Black"}}
	post := func(session string, header http.Header) int {
		resp := w.open("POST", "/api/chat/"+session+"/answer", body, header)
		defer resp.Body.Close()
		return resp.StatusCode
	}
	if code := post(session, nil); code != 404 { // the operator was not asked
		t.Errorf("the operator: %d", code)
	}
	other := ada.says("hello", "")
	other.until("message_stop")
	if code := post(other.all[0].Data["id"].(string), ada.header); code != 404 { // the question is of another session
		t.Errorf("in another session: %d", code)
	}
	if code := post(session, ada.header); code != 200 {
		t.Fatalf("the answer: %d", code)
	}
	if result := run.until("tool_result").Data; !strings.Contains(result["result"].(string), "Black") {
		t.Errorf("%v", result)
	}
	run.until("message_stop")
	if code := post(session, ada.header); code != 409 {
		t.Errorf("answered twice: %d", code)
	}
}
