package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	maxRequest = 16 << 20 // bytes that are read of a request
	wordTime   = 25 * time.Millisecond
	judgeTime  = 300 * time.Millisecond // until a comparison, rating or review
)

// Handler serves the models by OpenAI's chat completions API, below /v1.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", list)
	mux.HandleFunc("POST /v1/chat/completions", complete)
	return mux
}

func list(w http.ResponseWriter, _ *http.Request) {
	type entry struct {
		ID     string `json:"id"`
		Object string `json:"object"`
	}
	data := []entry{}
	for _, m := range models() {
		data = append(data, entry{m.name, "model"})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
}

// A request is what is read of a chat completion's. Content is a text or a list of parts.
type request struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Format struct {
		JSONSchema struct {
			Name string `json:"name"`
		} `json:"json_schema"`
	} `json:"response_format"`
}

func complete(w http.ResponseWriter, r *http.Request) {
	var req request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
		refuse(w, http.StatusBadRequest, "the body is not a chat completion request")
		return
	}
	all := models()
	i := slices.IndexFunc(all, func(m model) bool { return m.name == req.Model })
	if i < 0 {
		refuse(w, http.StatusNotFound, fmt.Sprintf("the model %q does not exist", req.Model))
		return
	}
	text, think := all[i].answerTo(req.question()), all[i].think
	if format := req.Format.JSONSchema.Name; format != "" {
		var err error
		if text, err = all[i].judge(format, req.question()); err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		think = judgeTime
	}
	stream(r.Context(), w, req, text, think)
}

// revision begins the request for a better answer, which is no question of its own.
const revision = "Reviewers found these issues in your answer."

// question returns the last message of a user.
func (r *request) question() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role != "user" {
			continue
		}
		if text := plain(m.Content); !strings.HasPrefix(text, revision) {
			return text
		}
	}
	return ""
}

func plain(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(content, &parts) // other content has no text
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text + "\n")
	}
	return b.String()
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": message, "type": "invalid_request_error"}})
}

// stream sends a text word by word, and about how many tokens both sides took.
func stream(ctx context.Context, w http.ResponseWriter, req request, text string, think time.Duration) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	event := func(fields map[string]any) bool {
		fields["id"], fields["object"], fields["model"] = "chatcmpl-scripted", "chat.completion.chunk", req.Model
		b, err := json.Marshal(fields)
		if err != nil {
			return false
		}
		_, err = fmt.Fprintf(w, "data: %s\n\n", b)
		return err == nil && out.Flush() == nil
	}
	choice := func(delta map[string]string, finish any) []any {
		return []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}
	}
	words := strings.SplitAfter(text, " ")
	for i, word := range words {
		delay := wordTime
		if i == 0 {
			delay = think
		}
		if !wait(ctx, delay) || !event(map[string]any{"choices": choice(map[string]string{"content": word}, nil)}) {
			return
		}
	}
	input := 0
	for _, m := range req.Messages {
		input += len(m.Content) / 4
	}
	if event(map[string]any{"choices": choice(map[string]string{}, "stop")}) &&
		event(map[string]any{"choices": []any{}, "usage": map[string]int{"prompt_tokens": input, "completion_tokens": len(text) / 4, "total_tokens": input + len(text)/4}}) {
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

// wait waits for d; false: the client went.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
