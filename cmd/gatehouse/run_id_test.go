package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/web/auth"
)

// turn posts a turn and gives the answer, or fails when none comes.
func (w *world) turn(body any, header http.Header) (int, string) {
	w.t.Helper()
	type answer struct {
		code int
		text string
	}
	got := make(chan answer, 1)
	b, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+w.cfg.Addr+"/api/chat", strings.NewReader(string(b)))
	if err != nil {
		w.t.Fatal(err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	req.Header.Set("Content-Type", "application/json")
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			got <- answer{0, err.Error()}
			return
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			got <- answer{0, err.Error()}
			return
		}
		got <- answer{resp.StatusCode, string(text)}
	}()
	a := <-got
	if a.code == 0 {
		w.t.Errorf("no answer came: %s", a.text)
	}
	return a.code, a.text
}

func TestARefusedTurnIsRefusedAgainWithItsIdempotencyKeyAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, session := range []string{"", "my-notes", "8F4E1E1C-9C59-4C0E-8B3B-3B5E4C1E0001"} {
		body := map[string]any{"message": "hello", "working_directory": "/etc"}
		if session != "" {
			body["session_id"] = session
		}
		header := http.Header{"Accept": {"application/json"}, "Idempotency-Key": {"key-" + session}}
		for _, again := range []bool{false, true} {
			code, text := w.turn(body, header)
			if code < 400 || code > 499 || !strings.Contains(text, "outside the vault") {
				t.Errorf("session %q, again %v: %d %s", session, again, code, text)
			}
		}
	}
	w.stop()
	w.start()
	defer w.stop()
	code, text := w.turn(map[string]any{"message": "hello", "working_directory": "/etc"}, http.Header{"Accept": {"application/json"}, "Idempotency-Key": {"key-"}})
	if code < 400 || code > 499 {
		t.Errorf("after a restart: %d %s", code, text)
	}
	if n := w.count(`SELECT count(*) FROM inbox WHERE bot = $1 AND state = 'refused'`, core.APIBot); n != 3 {
		t.Errorf("%d refused rows, want 3", n)
	}
}

// What somebody finds in the vault under an id that they ask for is not theirs:
// they are answered in another session, and answered.
func TestATurnUnderATakenIdIsAnswered(t *testing.T) {
	w := newWorld(t, nil)
	const id = "8f4e1e1c-9c59-4c0e-8b3b-3b5e4c1e0002"
	dir := filepath.Join(w.cfg.VaultPath, ".claude", "projects", "-somewhere")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	line := `{"uuid":"a","type":"user","sessionId":"` + id + `","cwd":"/x","message":{"role":"user","content":"secret"},"timestamp":"2026-01-01T00:00:00Z"}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, id+".jsonl"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	u := w.friend("Ada")
	user, _, err := w.app.pairing.People.User(t.Context(), w.app.db, core.Peer{Platform: "telegram", ID: fmt.Sprint(u.ID())})
	if err != nil {
		t.Fatal(err)
	}
	operator := w.key
	w.key, _, err = w.app.keys.Create(t.Context(), auth.NewKey{Label: "ada", User: user, Trust: core.Sandboxed, Scopes: []string{auth.ScopeChat}}, cli)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		code, text := w.turn(map[string]any{"message": "hello", "session_id": id}, http.Header{"Accept": {"application/json"}})
		if code != 200 || strings.Contains(text, "secret") {
			t.Errorf("%d %s", code, text)
		}
	}
	w.key = operator
}
