package main

import (
	"testing"
	"time"

	"gatehouse/core"
)

// Reading a session over the API, in either of its forms, is opening it: it moves to the front of
// lists. Older pages and other routes are not.
func TestOpeningASessionOverTheAPIMovesItInLists(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	_, es := w.chatEvents(map[string]any{"message": "Hello."}, nil)
	session := es[0].Data["id"].(string)
	written := func() {
		t.Helper()
		if _, err := w.app.sessions.Touched(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	moves := func(path string) bool {
		t.Helper()
		written() // what was opened before
		const long = "2020-01-01T00:00:00.000000Z"
		w.exec(`UPDATE sessions SET last_accessed = $1 WHERE id = $2`, long, session)
		if status, body := w.call("GET", path, nil); status != 200 {
			t.Fatal(path, status, body)
		}
		written()
		var at string
		if err := w.app.db.Get(t.Context(), &at, `SELECT last_accessed FROM sessions WHERE id = $1`, session); err != nil {
			t.Fatal(err)
		}
		return time.Since(core.TimeOf(at)) < 24*time.Hour
	}
	for path, want := range map[string]bool{
		"/api/chat/" + session:           true,
		"/api/chat/session/" + session:   true,
		"/api/chat/" + session + "/tags": false,
		"/api/chat/sessions":             false,
		"/api/chat/" + session + "/messages?before=" + firstOf(w, session): false,
	} {
		if got := moves(path); got != want {
			t.Errorf("GET %s moves it: %v, want %v", path, got, want)
		}
	}
}

// firstOf is the id of a session's oldest message.
func firstOf(w *world, session string) string {
	w.t.Helper()
	_, m, _ := w.asked("GET", "/api/chat/"+session, nil, nil)
	return m["messages"].([]any)[0].(map[string]any)["id"].(string)
}
