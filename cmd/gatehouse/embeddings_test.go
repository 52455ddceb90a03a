package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/llm/embedtest"
)

// embeddings asks for vectors and returns the status, the vectors as they came, and
// the error.
func (w *world) embeddings(body map[string]any) (status int, vectors []json.RawMessage, tokens int, param string) {
	w.t.Helper()
	code, text := w.call("POST", "/v1/embeddings", body)
	var got struct {
		Data []struct {
			Index     int
			Embedding json.RawMessage
		}
		Usage struct {
			Total int `json:"total_tokens"`
		}
		Error struct{ Param, Message string }
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || code != 200 && got.Error.Message == "" {
		w.t.Fatalf("%d %s: %v", code, text, err)
	}
	for i, d := range got.Data {
		if d.Index != i {
			w.t.Errorf("the vector %d is of %d", i, d.Index)
		}
		vectors = append(vectors, d.Embedding)
	}
	return code, vectors, got.Usage.Total, got.Error.Param
}

func TestEmbeddingsAreThoseOfTheServerAndCountForBudgets(t *testing.T) {
	t.Parallel()
	server := embedtest.New(t, 8)
	w, _ := newModelWorld(t, func(c *configs.Config) { c.EmbedURL, c.EmbedModel, c.BudgetDay.Tokens = server.URL, "small", 5000 })
	status, vectors, tokens, _ := w.embeddings(map[string]any{"model": "small", "input": []string{"green tea", "roof"}})
	if status != 200 || len(vectors) != 2 || tokens == 0 {
		t.Fatalf("%d, %d vectors, %d tokens", status, len(vectors), tokens)
	}
	var want []float32
	if err := json.Unmarshal(vectors[0], &want); err != nil || len(want) != 8 {
		t.Fatalf("%s: %v", vectors[0], err)
	}
	_, vectors, _, _ = w.embeddings(map[string]any{"model": "small", "input": "green tea", "encoding_format": "base64"})
	var text string
	_ = json.Unmarshal(vectors[0], &text)
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != 32 {
		t.Fatalf("%q: %v", text, err)
	}
	for i, x := range want {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])); got != x {
			t.Errorf("value %d is %g, want %g", i, got, x)
		}
	}
	if n := w.count(`SELECT count(*) FROM usage WHERE user_id = $1 AND model = 'openai/small'`, core.Operator); n != 2 {
		t.Errorf("%d calls are counted", n)
	}
	for param, body := range map[string]map[string]any{
		"model": {"model": "large", "input": "x"}, "input": {"model": "small", "input": []int{1, 2}}, "input[1]": {"model": "small", "input": []string{"x", ""}},
		"dimensions": {"model": "small", "input": "x", "dimensions": 3}, "encoding_format": {"model": "small", "input": "x", "encoding_format": "hex"},
	} {
		if status, _, _, got := w.embeddings(body); status != 400 && status != 404 || got != param {
			t.Errorf("%v: %d, param %q", body, status, got)
		}
	}
	resp := w.open("POST", "/v1/embeddings", map[string]any{"model": "small", "input": strings.Repeat("word ", 6000)}, nil)
	resp.Body.Close()
	if wait, err := strconv.Atoi(resp.Header.Get("Retry-After")); resp.StatusCode != 429 || err != nil || wait < 1 || wait > 86400 {
		t.Errorf("above the budget: %s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
	}
}

func TestEmbeddingsWithoutAServerAreA404InOpenAIsForm(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	if status, _, _, param := w.embeddings(map[string]any{"model": "text-embedding-3-small", "input": "x"}); status != 404 || param != "model" {
		t.Errorf("%d, param %q", status, param)
	}
}
