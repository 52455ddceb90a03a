package main

import (
	"net/http"
	"testing"

	"gatehouse/core/llm/llmtest"
)

// A repeat that is turned away (too many streams) does not make the first one
// unknown: its run can be followed although it has not begun.
func TestARepeatThatIsTurnedAwayDoesNotForgetTheFirst(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	const id = "8f4e1e1c-9c59-4c0e-8b3b-3b5e4c1e0003"
	model.Script(llmtest.Reply{HangHead: true})
	calls := model.Total()
	first := w.open("POST", "/api/chat", map[string]any{"message": "long", "session_id": id}, nil) // holds the lane
	defer first.Body.Close()
	if err := model.Await(t.Context(), calls+1); err != nil {
		t.Fatal(err)
	}
	key := http.Header{"Idempotency-Key": {"once"}}
	body := map[string]any{"message": "short", "session_id": id}
	second := w.open("POST", "/api/chat", body, key)
	run := second.Header.Get("X-Run-Id")
	defer second.Body.Close()
	for range 14 {
		r := w.open("GET", "/api/chat/"+id+"/events", nil, nil)
		defer r.Body.Close()
	}
	if r := w.open("POST", "/api/chat", body, key); r.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("the repeat: %d", r.StatusCode)
	}
	first.Body.Close()
	w.until("a stream is free", func() bool {
		r := w.open("GET", "/api/chat/"+id+"/events?run="+run, nil, nil)
		defer r.Body.Close()
		if r.StatusCode == http.StatusNotFound {
			t.Fatal("the run that waits is not known any more")
		}
		return r.StatusCode == http.StatusOK
	})
}
