package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/store"
)

// oaiResponse is a response of OpenAI's Responses API as clients read it.
type oaiResponse struct {
	ID, Object, Status, Model string
	Created                   int64  `json:"created_at"`
	Previous                  string `json:"previous_response_id"`
	Background, Store         bool
	Output                    []struct {
		ID, Type, Role, Status string
		Content                []struct{ Type, Text string }
	}
	Incomplete *struct{ Reason string } `json:"incomplete_details"`
	Usage      *struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
		Total  int `json:"total_tokens"`
	}
	Error *struct{ Message, Type, Param, Code string }
}

func (r oaiResponse) text() (s string) {
	for _, o := range r.Output {
		for _, c := range o.Content {
			s += c.Text
		}
	}
	return s
}

// respond makes a request of the Responses API with a key, w's where it is nil.
func (w *world) respond(key http.Header, method, path string, body map[string]any) (*http.Response, oaiResponse) {
	w.t.Helper()
	var send any
	if body != nil {
		send = body
	}
	resp := w.open(method, "/v1/responses"+path, send, key)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	var r oaiResponse
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		w.t.Fatalf("%d %s: %v", resp.StatusCode, b, err)
	}
	return resp, r
}

// ask makes a response that must succeed.
func (w *world) askResponse(more map[string]any) oaiResponse {
	w.t.Helper()
	body := map[string]any{"model": fakeModel, "input": "Hello"}
	for k, v := range more {
		body[k] = v
	}
	resp, r := w.respond(nil, "POST", "", body)
	if resp.StatusCode != 200 {
		w.t.Fatalf("%d %+v", resp.StatusCode, r.Error)
	}
	return r
}

// streamEvent is one event of a stream.
type streamEvent struct {
	name     string
	Type     string
	Number   int `json:"sequence_number"`
	Delta    string
	Text     string
	Response *oaiResponse
	Code     string
	Message  string
}

func streamEvents(t testing.TB, r io.Reader) (all []streamEvent) {
	t.Helper()
	name := ""
	for s := bufio.NewScanner(r); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "event: "); ok {
			name = rest
		}
		if data, ok := strings.CutPrefix(s.Text(), "data: "); ok {
			ev := streamEvent{name: name}
			if err := json.Unmarshal([]byte(data), &ev); err != nil {
				t.Fatalf("%s: %v", data, err)
			}
			all = append(all, ev)
		}
	}
	return all
}

func typesOf(all []streamEvent) (types []string) {
	for _, ev := range all {
		types = append(types, ev.Type)
	}
	return types
}

func TestResponsesWholeAndStreamedAreTheSame(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Say("One ", "two ", "three."), llmtest.Say("One ", "two ", "three."))
	whole := w.askResponse(map[string]any{"input": "Count."})
	if whole.Object != "response" || whole.Status != "completed" || whole.Model != fakeModel || !strings.HasPrefix(whole.ID, "resp_") || whole.text() != "One two three." || !whole.Store {
		t.Errorf("%+v", whole)
	}
	if u := whole.Usage; u == nil || u.Input == 0 || u.Output == 0 || u.Total != u.Input+u.Output {
		t.Errorf("usage %+v", whole.Usage)
	}
	resp := w.open("POST", "/v1/responses", map[string]any{"model": fakeModel, "input": "Count.", "stream": true}, nil)
	defer resp.Body.Close()
	all := streamEvents(t, resp.Body)
	text := ""
	for i, ev := range all {
		if ev.Number != i || ev.name != ev.Type {
			t.Errorf("event %d: %+v", i, ev)
		}
		if ev.Type == "response.output_text.delta" {
			text += ev.Delta
		}
	}
	types := slices.Compact(typesOf(all))
	if want := []string{"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added", "response.output_text.delta",
		"response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed"}; !slices.Equal(types, want) {
		t.Errorf("%q", types)
	}
	last := all[len(all)-1].Response
	if text != "One two three." || last.text() != text || *last.Usage != *whole.Usage {
		t.Errorf("%q, then %+v", text, last)
	}
	for _, id := range []string{whole.ID, last.ID} { // and so it is read again, also in the moment of its end
		if _, got := w.respond(nil, "GET", "/"+id, nil); got.Status != "completed" || got.text() != text || *got.Usage != *whole.Usage {
			t.Errorf("%+v", got)
		}
	}
}

// bodies are the messages that a model was sent in its nth request, in short.
func sentTo(t *testing.T, model *llmtest.Server, n int) string {
	t.Helper()
	var asked struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(model.Requests()[n].Body, &asked); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range asked.Messages {
		fmt.Fprintf(&b, "%s:%s|", m.Role, m.Content)
	}
	return b.String()
}

// A conversation of three responses is one session. Going on from an earlier one
// makes another session, which has what was said until there and nothing later.
func TestResponsesGoOnFromThePreviousOneAndBranch(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Say("Hello Ada."), llmtest.Say("You are Ada."), llmtest.Say("Goodbye."), llmtest.Say("Ada it is."))
	one := w.askResponse(map[string]any{"input": "I am Ada.", "instructions": "Speak like a gardener."})
	two := w.askResponse(map[string]any{"input": "Who am I?", "previous_response_id": one.ID})
	if two.Previous != one.ID {
		t.Errorf("%+v", two)
	}
	if sent := sentTo(t, model, 1); !strings.Contains(sent, "I am Ada.") || !strings.Contains(sent, "Hello Ada.") || strings.Contains(sent, "gardener") {
		t.Errorf("the second: %s", sent)
	}
	w.askResponse(map[string]any{"input": "Let us end.", "previous_response_id": two.ID})
	if n := w.count(`SELECT count(DISTINCT session_id) FROM runs`); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
	w.askResponse(map[string]any{"input": "Sure?", "previous_response_id": two.ID})
	sent := sentTo(t, model, 3)
	for _, want := range []string{"I am Ada.", "Hello Ada.", "Who am I?", "You are Ada.", "Sure?"} {
		if !strings.Contains(sent, want) {
			t.Errorf("the branch lacks %q: %s", want, sent)
		}
	}
	if strings.Contains(sent, "Let us end.") || w.count(`SELECT count(DISTINCT session_id) FROM runs`) != 2 {
		t.Errorf("the branch: %s", sent)
	}
	if n := w.count(`SELECT count(*) FROM sessions WHERE module = 'openai' AND archived = 1`); n != 2 {
		t.Errorf("%d archived sessions", n)
	}
}

// Two responses at once that go on from the same one do not see each other.
func TestResponsesThatGoOnFromOneAtOnceAreApart(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	first := w.askResponse(nil)
	done := make(chan oaiResponse, 2)
	for i := range 2 {
		go func() {
			_, r := w.respond(nil, "POST", "", map[string]any{"model": fakeModel, "input": fmt.Sprintf("Turn %d.", i), "previous_response_id": first.ID})
			done <- r
		}()
	}
	<-done
	<-done
	for n := 1; n <= 2; n++ {
		if sent := sentTo(t, model, n); strings.Contains(sent, "Turn 0.") == strings.Contains(sent, "Turn 1.") || !strings.Contains(sent, "Hello") {
			t.Errorf("%s", sent)
		}
	}
}

// A developer message stays for the conversation, instructions are for one response;
// references to items are what these say.
func TestResponsesSystemMessagesStayAndItemsAreReferredTo(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Say("Tea."), llmtest.Say("Yes."), llmtest.Say("No."))
	one := w.askResponse(map[string]any{"input": []map[string]any{{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "What to drink?"}}})
	w.askResponse(map[string]any{"input": "Sure?", "previous_response_id": one.ID})
	if sent := sentTo(t, model, 1); !strings.Contains(sent, "Be brief.") {
		t.Errorf("%s", sent)
	}
	w.askResponse(map[string]any{"input": []map[string]any{{"type": "item_reference", "id": one.Output[0].ID}, {"role": "user", "content": "Why?"}}})
	if sent := sentTo(t, model, 2); !strings.Contains(sent, "Tea.") || strings.Contains(sent, "Be brief.") {
		t.Errorf("%s", sent)
	}
	resp, r := w.respond(nil, "POST", "", map[string]any{"model": fakeModel, "input": []map[string]any{{"type": "item_reference", "id": "msg_none"}, {"role": "user", "content": "Why?"}}})
	if resp.StatusCode != 404 || r.Error.Param != "input[0].id" {
		t.Errorf("%d %+v", resp.StatusCode, r.Error)
	}
}

func TestResponsesThatAreNotStoredLeaveNothing(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Say("xyzzyanswer"))
	r := w.askResponse(map[string]any{"input": "xyzzyquestion", "store": false})
	if r.text() != "xyzzyanswer" || r.Store {
		t.Errorf("%+v", r)
	}
	for path, method := range map[string]string{"": "GET", "/input_items": "GET", "/cancel": "POST"} {
		if resp, got := w.respond(nil, method, "/"+r.ID+path, nil); resp.StatusCode != 404 {
			t.Errorf("%s: %d %+v", path, resp.StatusCode, got)
		}
	}
	if resp, got := w.respond(nil, "POST", "", map[string]any{"model": fakeModel, "input": "And?", "previous_response_id": r.ID}); resp.StatusCode != 404 || got.Error.Param != "previous_response_id" || got.Error.Code != "previous_response_not_found" {
		t.Errorf("%d %+v", resp.StatusCode, got.Error)
	}
	w.quiet()
	w.upkeepAt(1)
	if n := w.count(`SELECT (SELECT count(*) FROM sessions) + (SELECT count(*) FROM responses)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	w.nowhereInVault("xyzzy")
}

// nowhereInVault fails the test where a file of the vault has the word.
func (w *world) nowhereInVault(word string) {
	w.t.Helper()
	err := filepath.WalkDir(w.cfg.VaultPath, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.Contains(path, ".db") { // deleted rows are not overwritten
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(word)) {
			w.t.Errorf("%s has the word", path)
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
}

func TestResponsesAreDeletedWithTheLastOfTheirSession(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	one := w.askResponse(nil)
	two := w.askResponse(map[string]any{"previous_response_id": one.ID})
	w.quiet()
	for i, id := range []string{one.ID, two.ID} {
		resp := w.open("DELETE", "/v1/responses/"+id, nil, nil)
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := fmt.Sprintf(`{"deleted":true,"id":"%s","object":"response"}`, id); resp.StatusCode != 200 || strings.TrimSpace(string(b)) != want {
			t.Errorf("%d %s", resp.StatusCode, b)
		}
		if resp, _ := w.respond(nil, "GET", "/"+id, nil); resp.StatusCode != 404 {
			t.Errorf("it is still there: %d", resp.StatusCode)
		}
		if n := w.count(`SELECT count(*) FROM sessions`); n != 1-i {
			t.Errorf("after %d: %d sessions", i+1, n)
		}
	}
	if n := w.count(`SELECT count(*) FROM responses`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	// A session that is deleted takes its responses along.
	three := w.askResponse(nil)
	w.quiet()
	var session string
	if err := w.app.db.Get(t.Context(), &session, `SELECT session_id FROM responses`); err != nil {
		t.Fatal(err)
	}
	w.call("DELETE", "/api/chat/"+session, nil)
	if resp, _ := w.respond(nil, "GET", "/"+three.ID, nil); resp.StatusCode != 404 {
		t.Errorf("the response of a deleted session: %d", resp.StatusCode)
	}
}

func TestWhatWasReadOfFilesIsForgottenWithTheirSession(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	w.askResponse(nil)
	w.quiet()
	var session string
	if err := w.app.db.Get(t.Context(), &session, `SELECT session_id FROM responses`); err != nil {
		t.Fatal(err)
	}
	if err := w.app.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO attachments (path, user_id, session_id, run, at, word_count, preview) VALUES ('Chat/assets/a.txt', 1, $1, 'r', '', 3, 'encrypted')`, session)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	w.call("DELETE", "/api/chat/"+session, nil)
	if n := w.count(`SELECT count(*) FROM attachments WHERE preview IS NULL AND word_count IS NULL`); n != 1 {
		t.Error("the beginning of the file's text is kept")
	}
}

func TestResponsesInTheBackgroundAreFetchedLater(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Say("Tea."))
	r := w.askResponse(map[string]any{"background": true})
	if r.Status != "queued" || !r.Background || len(r.Output) != 0 {
		t.Errorf("%+v", r)
	}
	w.until("it is completed", func() bool {
		_, got := w.respond(nil, "GET", "/"+r.ID, nil)
		return got.Status == "completed" && got.text() == "Tea." && got.Usage != nil
	})
	stream := w.open("GET", "/v1/responses/"+r.ID+"?stream=true&starting_after=2", nil, nil)
	defer stream.Body.Close()
	all := streamEvents(t, stream.Body)
	if len(all) < 4 || all[0].Number != 3 || all[0].Type != "response.output_item.added" || all[len(all)-1].Response.text() != "Tea." {
		t.Errorf("%+v", all)
	}
	if resp, got := w.respond(nil, "POST", "/"+r.ID+"/cancel", nil); resp.StatusCode != 200 || got.Status != "completed" {
		t.Errorf("cancelled after its end: %d %+v", resp.StatusCode, got)
	}
}

// What no client asks for is stored all the same, before the run's events go.
func TestResponsesInTheBackgroundAreStoredWithoutAnyoneAsking(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Say("Tea."))
	r := w.askResponse(map[string]any{"background": true})
	w.until("the run has ended", func() bool { return w.count(`SELECT count(*) FROM runs WHERE state = 'done'`) == 1 })
	w.quiet()
	w.upkeepAt(1)
	w.sql(`DELETE FROM run_events`)
	if _, got := w.respond(nil, "GET", "/"+r.ID, nil); got.Status != "completed" || got.text() != "Tea." {
		t.Errorf("%+v", got)
	}
}

func TestResponsesInTheBackgroundAreCancelled(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Reply{Text: []string{"Begun"}, Hang: true})
	r := w.askResponse(map[string]any{"background": true})
	w.until("the model is asked", func() bool { return model.Total() == 1 })
	stream := w.open("GET", "/v1/responses/"+r.ID+"?stream=true", nil, nil)
	defer stream.Body.Close()
	if resp, got := w.respond(nil, "POST", "/"+r.ID+"/cancel", nil); resp.StatusCode != 200 || got.Status != "cancelled" || got.Error != nil {
		t.Errorf("%d %+v", resp.StatusCode, got)
	}
	w.until("the run is aborted", func() bool { return w.count(`SELECT count(*) FROM runs WHERE state = 'aborted'`) == 1 })
	if types := typesOf(streamEvents(t, stream.Body)); types[len(types)-1] != "response.failed" {
		t.Errorf("its stream: %q", types)
	}
	one := w.askResponse(nil)
	if resp, got := w.respond(nil, "POST", "/"+one.ID+"/cancel", nil); resp.StatusCode != 400 {
		t.Errorf("one that is not in the background: %d %+v", resp.StatusCode, got)
	}
	if resp, got := w.respond(nil, "POST", "", map[string]any{"model": fakeModel, "input": "And?", "previous_response_id": r.ID}); resp.StatusCode != 400 || got.Error.Param != "previous_response_id" {
		t.Errorf("going on from a cancelled one: %d %+v", resp.StatusCode, got.Error)
	}
}

// Whoever goes away has the run stopped, and finds the response cancelled.
func TestResponsesStopWhenTheirClientGoesAway(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	for _, streamed := range []bool{true, false} {
		model.Script(llmtest.Reply{Text: []string{"Begun"}, Hang: true})
		began := model.Total()
		ctx, leave := context.WithCancel(t.Context())
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			w.visit(ctx, "/v1/responses", map[string]any{"model": fakeModel, "input": "Hello", "stream": streamed})
		}()
		w.until("the model is asked", func() bool { return model.Total() > began })
		leave()
		<-asked
		w.until("the run is aborted", func() bool { return w.count(`SELECT count(*) FROM runs WHERE state = 'running'`) == 0 })
	}
	w.until("both are stored as cancelled", func() bool {
		return w.count(`SELECT count(*) FROM responses WHERE state = 'ended' AND answer LIKE '%"cancelled"%'`) == 2
	})
}

func TestResponsesBelongToTheirUser(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	ada, bob := w.guest("Ada"), w.guest("Bob")
	key, other := w.keyOf(ada, core.Sandboxed, "chat"), w.keyOf(bob, core.Sandboxed, "chat")
	_, r := w.respond(key, "POST", "", map[string]any{"model": fakeModel, "input": "Hello"})
	if r.Status != "completed" {
		t.Fatalf("%+v", r)
	}
	second := w.keyOf(ada, core.Sandboxed, "chat")
	if resp, _ := w.respond(second, "GET", "/"+r.ID, nil); resp.StatusCode != 200 {
		t.Errorf("another key of hers: %d", resp.StatusCode)
	}
	for _, key := range []http.Header{other, nil} { // the operator's neither
		for path, method := range map[string]string{"": "GET", "/input_items": "GET", "/cancel": "POST"} {
			if resp, got := w.respond(key, method, "/"+r.ID+path, nil); resp.StatusCode != 404 {
				t.Errorf("%s %s: %d %+v", method, path, resp.StatusCode, got)
			}
		}
		if resp, _ := w.respond(key, "DELETE", "/"+r.ID, nil); resp.StatusCode != 404 {
			t.Errorf("deleted by another: %d", resp.StatusCode)
		}
		if resp, _ := w.respond(key, "POST", "", map[string]any{"model": fakeModel, "input": "x", "previous_response_id": r.ID}); resp.StatusCode != 404 {
			t.Errorf("gone on from by another: %d", resp.StatusCode)
		}
	}
	if n := w.count(`SELECT count(*) FROM sessions WHERE module = 'openai' AND trust_level = $1`, core.Sandboxed); n != 1 {
		t.Errorf("%d sessions of a guest's trust", n)
	}
}

func TestResponsesThatFailHaveTheStatusesOfCompletions(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	for _, c := range []struct {
		reply  llmtest.Reply
		status int
		code   string
	}{
		{llmtest.Limited("3600"), 429, "rate_limit_exceeded"},
		{llmtest.Refuse(400, "Your input exceeds the context window of this model. Please adjust your input and try again.", "invalid_request_error", "context_length_exceeded"), 400, "context_length_exceeded"},
	} {
		for _, streamed := range []bool{false, true} {
			model.Script(c.reply)
			body := map[string]any{"model": fakeModel, "input": "Hello", "stream": streamed}
			resp := w.open("POST", "/v1/responses", body, nil)
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if streamed && resp.StatusCode == 200 { // so slow that the stream has begun
				if all := streamEvents(t, bytes.NewReader(b)); all[len(all)-1].Type != "response.failed" || all[len(all)-1].Response.Error.Code != c.code {
					t.Errorf("%+v", all)
				}
				continue
			}
			var r oaiResponse
			if err := json.Unmarshal(b, &r); err != nil {
				t.Fatalf("%d %s: %v", resp.StatusCode, b, err)
			}
			if resp.StatusCode != c.status || r.Error == nil || r.Error.Code != c.code {
				t.Errorf("stream %v: %d %+v, want %d %s", streamed, resp.StatusCode, r.Error, c.status, c.code)
			}
			if c.status == 429 && resp.Header.Get("Retry-After") == "" {
				t.Errorf("429 without Retry-After: %v", resp.Header)
			}
		}
	}
	model.Script(llmtest.Reply{Text: []string{"Half of "}, Cut: true}, llmtest.Reply{Text: []string{"So far"}, Finish: "length"})
	stream := w.open("POST", "/v1/responses", map[string]any{"model": fakeModel, "input": "Hello", "stream": true}, nil)
	defer stream.Body.Close()
	all := streamEvents(t, stream.Body)
	n := len(all)
	if last := all[n-1]; last.Type != "response.failed" || last.Response.Status != "failed" || last.Response.Error.Code != "cut_off" || all[n-2].Type != "error" || all[n-2].Code != "cut_off" {
		t.Errorf("%+v", all[n-2:])
	}
	if r := w.askResponse(nil); r.Status != "incomplete" || r.Incomplete == nil || r.Incomplete.Reason != "max_output_tokens" || r.text() != "So far" {
		t.Errorf("%+v", r)
	}
}
