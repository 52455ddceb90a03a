package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
	"gatehouse/web/auth"
)

// completion is what a client of OpenAI's API reads, whole or in chunks.
type completion struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Message struct{ Role, Content string }
		Delta   struct {
			Role    string
			Content *string
		}
		Finish *string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	Error *struct{ Message, Type, Param, Code string }
}

// visit reads an answer until ctx ends.
func (w *world) visit(ctx context.Context, path string, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		w.t.Error(err)
		return
	}
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+w.cfg.Addr+path, bytes.NewReader(b))
	if err != nil {
		w.t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
}

func user(text string) []map[string]any { return []map[string]any{{"role": "user", "content": text}} }

// complete asks for a whole answer.
func (w *world) complete(body map[string]any) (*http.Response, completion) {
	w.t.Helper()
	resp := w.open("POST", "/v1/chat/completions", body, nil)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	var c completion
	if err := json.Unmarshal(b, &c); err != nil {
		w.t.Fatalf("%d %s: %v", resp.StatusCode, b, err)
	}
	return resp, c
}

// chunks reads a stream; done says that it ended with [DONE].
func chunks(t testing.TB, r io.Reader) (out []completion, done bool) {
	t.Helper()
	s := bufio.NewScanner(r)
	s.Buffer(nil, 4<<20)
	for s.Scan() {
		data, ok := strings.CutPrefix(s.Text(), "data: ")
		switch {
		case !ok && s.Text() != "" && !strings.HasPrefix(s.Text(), ":"):
			t.Errorf("a line that clients do not expect: %q", s.Text())
		case !ok:
		case done:
			t.Errorf("after [DONE]: %q", data)
		case data == "[DONE]":
			done = true
		default:
			var c completion
			if err := json.Unmarshal([]byte(data), &c); err != nil {
				t.Fatalf("%q: %v", data, err)
			}
			out = append(out, c)
		}
	}
	return out, done
}

func TestOpenAIAnswersWholeAndStreamedAreTheSame(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Say("One ", "two ", "three."), llmtest.Say("One ", "two ", "three."))
	resp, c := w.complete(map[string]any{"model": fakeModel, "messages": user("Count.")})
	if resp.StatusCode != 200 || c.Object != "chat.completion" || c.Model != fakeModel || c.Created == 0 || !strings.HasPrefix(c.ID, "chatcmpl-") {
		t.Fatalf("%d %+v", resp.StatusCode, c)
	}
	if m := c.Choices[0]; m.Message.Role != "assistant" || m.Message.Content != "One two three." || *m.Finish != "stop" {
		t.Errorf("%+v", m)
	}
	if c.Usage.Prompt == 0 || c.Usage.Completion == 0 || c.Usage.Total != c.Usage.Prompt+c.Usage.Completion {
		t.Errorf("usage %+v", c.Usage)
	}
	stream := w.open("POST", "/v1/chat/completions", map[string]any{"model": fakeModel, "messages": user("Count."), "stream": true,
		"stream_options": map[string]any{"include_usage": true}}, nil)
	defer stream.Body.Close()
	if kind := stream.Header.Get("Content-Type"); stream.StatusCode != 200 || kind != "text/event-stream" {
		t.Fatalf("%d %s", stream.StatusCode, kind)
	}
	all, done := chunks(t, stream.Body)
	n := len(all)
	if n < 4 || !done {
		t.Fatalf("%d chunks, [DONE] %v", n, done)
	}
	text := ""
	for i, c := range all {
		if c.Object != "chat.completion.chunk" || c.ID != all[0].ID || c.Created != all[0].Created || c.Model != fakeModel {
			t.Errorf("chunk %d: %+v", i, c)
		}
		if (i == n-1) != (c.Usage != nil) || (i == n-1) != (len(c.Choices) == 0) {
			t.Errorf("chunk %d of %d: usage %v, %d choices", i, n, c.Usage, len(c.Choices))
			continue
		}
		if i == n-1 {
			continue
		}
		ch := c.Choices[0]
		if (i == 0) != (ch.Delta.Role == "assistant") || (i == n-2) != (ch.Finish != nil) {
			t.Errorf("chunk %d of %d: role %q, finish %v", i, n, ch.Delta.Role, ch.Finish)
		}
		if ch.Delta.Content != nil {
			text += *ch.Delta.Content
		}
	}
	if text != "One two three." || *all[n-2].Choices[0].Finish != "stop" {
		t.Errorf("%q, %s", text, *all[n-2].Choices[0].Finish)
	}
	if u := all[n-1].Usage; *u != *c.Usage {
		t.Errorf("usage %+v streamed, %+v whole", u, c.Usage)
	}
}

// The request's messages are the conversation: roles, pictures, temperature,
// max_tokens and stop reach the model, and a session of its own keeps it all.
func TestOpenAIMessagesAndSettingsReachTheModel(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	pixel, _ := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	url := "data:image/png;base64," + base64.StdEncoding.EncodeToString(pixel)
	body := map[string]any{"model": fakeModel, "temperature": 0, "max_tokens": 77, "stop": []string{"END"}, "messages": []map[string]any{
		{"role": "system", "content": "Speak like a gardener."},
		{"role": "user", "content": "My name is Ada."},
		{"role": "assistant", "content": "Hello Ada."},
		{"role": "developer", "content": "Be brief."},
		{"role": "user", "content": []map[string]any{{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": map[string]any{"url": url, "detail": "low"}}}},
	}}
	model.Script(llmtest.Say("A ro", "se. EN", "D and more"))
	resp, c := w.complete(body)
	if resp.StatusCode != 200 || c.Choices[0].Message.Content != "A rose. " || *c.Choices[0].Finish != "stop" {
		t.Fatalf("%d %+v", resp.StatusCode, c)
	}
	sent := model.Requests()[0].Body
	var asked struct {
		Temperature *float64
		MaxTokens   int `json:"max_tokens"`
		Stop        []string
		Messages    []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(sent, &asked); err != nil {
		t.Fatal(err)
	}
	if asked.Temperature == nil || *asked.Temperature != 0 || asked.MaxTokens != 77 || !slices.Equal(asked.Stop, []string{"END"}) {
		t.Errorf("temperature %v, max_tokens %d, stop %q", asked.Temperature, asked.MaxTokens, asked.Stop)
	}
	var roles []string
	for _, m := range asked.Messages {
		roles = append(roles, m.Role)
	}
	if !slices.Equal(roles, []string{"system", "user", "assistant", "user"}) {
		t.Fatalf("roles %q", roles)
	}
	for i, want := range []string{"Speak like a gardener.\\n\\nBe brief.", "My name is Ada.", "Hello Ada.", base64.StdEncoding.EncodeToString(pixel)} {
		if !strings.Contains(string(asked.Messages[i].Content), want) {
			t.Errorf("message %d is %s, without %q", i, asked.Messages[i].Content, want)
		}
	}
	if n := w.count(`SELECT count(*) FROM sessions WHERE message_count = 4`); n != 1 {
		t.Errorf("%d sessions hold the four messages", n)
	}
	// The next request begins anew: nothing is remembered but what it says.
	w.complete(map[string]any{"model": fakeModel, "messages": user("Who am I?")})
	if again := model.Requests()[1].Body; strings.Contains(string(again), "Ada") {
		t.Errorf("the second request knows of the first: %s", again)
	}
}

func TestOpenAIModelsAreTheAgentsAndTheConfiguredModels(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) { c.ModelFallbacks = values.List{"local/quote"} })
	code, body := w.call("GET", "/v1/models", nil)
	var list struct {
		Object string
		Data   []struct {
			ID, Object string
			Created    int64
			OwnedBy    string `json:"owned_by"`
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || code != 200 || list.Object != "list" {
		t.Fatalf("%d %s", code, body)
	}
	var ids []string
	for _, m := range list.Data {
		ids = append(ids, m.ID)
		if m.Object != "model" || m.Created == 0 || m.OwnedBy == "" {
			t.Errorf("%+v", m)
		}
		if code, body := w.call("GET", "/v1/models/"+m.ID, nil); code != 200 || !strings.Contains(body, m.ID) {
			t.Errorf("%s: %d %s", m.ID, code, body)
		}
	}
	for _, want := range []string{fakeModel, "local/quote", "vault-agent"} {
		if !slices.Contains(ids, want) {
			t.Errorf("%s is not among %q", want, ids)
		}
	}
	ada := w.keyOf(w.guest("Ada"), core.Sandboxed, "chat")
	if code, body := w.chatText(ada, "/v1/models"); code != 200 || strings.Contains(body, "vault-agent") || !strings.Contains(body, fakeModel) {
		t.Errorf("a guest, who chooses no agent in a chat, is shown %d %s", code, body)
	}
	if code := w.status(ada, "POST", "/v1/chat/completions", map[string]any{"model": "vault-agent", "messages": user("Hello")}); code != 404 {
		t.Errorf("a guest chooses an agent: %d", code)
	}
	before := model.Total()
	if resp, c := w.complete(map[string]any{"model": "local/quote", "messages": user("What does the vault say about tea?")}); resp.StatusCode != 200 || c.Choices[0].Message.Content == "" || model.Total() != before {
		t.Errorf("%d %+v", resp.StatusCode, c)
	}
	if resp, c := w.complete(map[string]any{"model": "vault-agent", "messages": user("Hello")}); resp.StatusCode != 200 || c.Model != "vault-agent" || model.Total() != before+1 {
		t.Errorf("%d %+v", resp.StatusCode, c)
	}
	resp, c := w.complete(map[string]any{"model": "gpt-none", "messages": user("Hello")})
	if resp.StatusCode != 404 || c.Error == nil || c.Error.Code != "model_not_found" || c.Error.Type != "invalid_request_error" {
		t.Errorf("%d %+v", resp.StatusCode, c.Error)
	}
}

func TestOpenAIRefusalsOfTheModelHaveOpenAIsFormAndStatus(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	for _, c := range []struct {
		reply  llmtest.Reply
		status int
		code   string
		final  bool
	}{
		{llmtest.Limited("3600"), 429, "rate_limit_exceeded", false},
		{llmtest.Refuse(400, "Your input exceeds the context window of this model. Please adjust your input and try again.", "invalid_request_error", "context_length_exceeded"), 400, "context_length_exceeded", true},
		{llmtest.Refuse(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key"), 502, "auth", true},
	} {
		for _, streamed := range []bool{false, true} {
			model.Script(c.reply)
			resp, got := w.complete(map[string]any{"model": fakeModel, "messages": user("Hello"), "stream": streamed})
			if resp.StatusCode != c.status || got.Error == nil || got.Error.Code != c.code || got.Error.Message == "" {
				t.Errorf("stream %v: %d %+v, want %d %s", streamed, resp.StatusCode, got.Error, c.status, c.code)
			}
			if final := resp.Header.Get("X-Should-Retry") == "false"; final != c.final {
				t.Errorf("%s: X-Should-Retry %q", c.code, resp.Header.Get("X-Should-Retry"))
			}
			if c.status == 429 && resp.Header.Get("Retry-After") == "" {
				t.Errorf("429 without Retry-After: %v", resp.Header)
			}
		}
	}
	// In the middle of an answer the error comes in the stream, without [DONE].
	model.Script(llmtest.Reply{Text: []string{"Half of "}, Cut: true})
	stream := w.open("POST", "/v1/chat/completions", map[string]any{"model": fakeModel, "messages": user("Hello"), "stream": true}, nil)
	defer stream.Body.Close()
	all, done := chunks(t, stream.Body)
	if last := all[len(all)-1]; done || last.Error == nil || last.Error.Code != "cut_off" {
		t.Errorf("[DONE] %v, last %+v", done, last)
	}
}

func TestOpenAIFinishReasonTellsAnAnswerThatWasCut(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Reply{Text: []string{"So far"}, Finish: "length"}, llmtest.Reply{Text: []string{"Hm"}, Finish: "content_filter"})
	for _, want := range []string{"length", "content_filter"} {
		_, c := w.complete(map[string]any{"model": fakeModel, "messages": user("Hello")})
		if len(c.Choices) != 1 || *c.Choices[0].Finish != want {
			t.Errorf("%+v, want %s", c, want)
		}
	}
}

func TestOpenAIABudgetThatIsUsedUpIs429WithRetryAfter(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, func(c *configs.Config) { c.BudgetDay = values.Budget{Tokens: 1} })
	resp, c := w.complete(map[string]any{"model": fakeModel, "messages": user("Hello")})
	if resp.StatusCode != 429 || c.Error == nil || c.Error.Code != "insufficient_quota" || c.Error.Type != "insufficient_quota" {
		t.Fatalf("%d %+v", resp.StatusCode, c.Error)
	}
	if resp.Header.Get("Retry-After") == "" || resp.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("%v", resp.Header)
	}
}

// Whoever goes away has the run stopped: nobody can come back for its answer.
func TestOpenAIARunIsStoppedWhenItsClientGoesAway(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	for _, streamed := range []bool{true, false} {
		model.Script(llmtest.Reply{Text: []string{"Begun"}, Hang: true})
		began := model.Total()
		ctx, leave := context.WithCancel(t.Context())
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			w.visit(ctx, "/v1/chat/completions", map[string]any{"model": fakeModel, "messages": user("Hello"), "stream": streamed})
		}()
		w.until("the model is asked", func() bool { return model.Total() > began })
		leave()
		<-asked
		w.until("the run is aborted", func() bool { return w.count(`SELECT count(*) FROM runs WHERE state = 'running'`) == 0 })
	}
	if n := w.count(`SELECT count(*) FROM runs WHERE state = 'aborted'`); n != 2 {
		t.Errorf("%d runs are aborted, want 2", n)
	}
}

// A run that nobody watches asks nobody: what would need a word is refused.
func TestOpenAIRunsAskNoOneAndUseToolsOfTheirTrust(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Reply{Text: []string{"Let me see."}, Calls: []llmtest.Call{{ID: "c1", Name: "Write", Fragments: []string{`{"file_path":"Elsewhere/x.md","content":"x"}`}}}}, llmtest.Say("I may not."))
	resp, c := w.complete(map[string]any{"model": fakeModel, "messages": user("Write.")})
	if resp.StatusCode != 200 || c.Choices[0].Message.Content != "Let me see.\n\nI may not." {
		t.Errorf("%d %+v", resp.StatusCode, c)
	}
	if n := w.count(`SELECT count(*) FROM asks`); n != 0 {
		t.Errorf("%d asks", n)
	}
}

func TestOpenAIKeysNeedTheScopeChat(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	secret, _, err := w.app.keys.Create(t.Context(), auth.NewKey{Label: "reader", User: core.Operator, Trust: core.Vault, Scopes: []string{auth.ScopeRead}}, cli)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{secret: 403, "gh_wrong": 401, w.key: 200} {
		resp := w.open("GET", "/v1/models", nil, http.Header{"Authorization": {"Bearer " + key}})
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		var c completion
		if err := json.Unmarshal(b, &c); err != nil || resp.StatusCode != want || (want != 200) != (c.Error != nil) {
			t.Errorf("%d %s, want %d", resp.StatusCode, b, want)
		}
	}
	resp := w.open("GET", "/v1/models", nil, http.Header{"Origin": {"https://elsewhere.example"}})
	resp.Body.Close()
	if resp.StatusCode != 403 {
		t.Errorf("a foreign page: %d", resp.StatusCode)
	}
}
