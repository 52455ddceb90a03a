package main

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/core/coretest"
	"gatehouse/core/llm/llmtest"
)

func onceAs(key string) http.Header { return http.Header{"Idempotency-Key": {key}} }

// The same Idempotency-Key means the same response, also for several at once and after a
// restart.
func TestResponsesWithOneIdempotencyKeyAreAskedOnce(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	body := map[string]any{"model": fakeModel, "input": "Only once."}
	var mu sync.Mutex
	ids := map[string]int{}
	note := func() {
		resp, r := w.respond(onceAs("order-1"), "POST", "", body)
		if resp.StatusCode != 200 || r.text() != fakeSays || r.Status != "completed" {
			t.Errorf("%d %+v", resp.StatusCode, r)
		}
		mu.Lock()
		defer mu.Unlock()
		ids[r.ID]++
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(note)
	}
	wg.Wait()
	w.stop()
	w.start()
	note()
	if resp, r := w.respond(onceAs("order-1"), "POST", "", map[string]any{"model": fakeModel, "input": "Something else."}); resp.StatusCode != 409 || r.Error.Code != "idempotency_key_reused" || resp.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("another body: %d %+v", resp.StatusCode, r.Error)
	}
	if resp, r := w.respond(onceAs("with space"), "POST", "", body); resp.StatusCode != 400 {
		t.Errorf("a key with a space: %d %+v", resp.StatusCode, r.Error)
	}
	stream := w.open("POST", "/v1/responses", map[string]any{"model": fakeModel, "input": "Only once.", "stream": false}, onceAs("order-1"))
	stream.Body.Close()
	if stream.StatusCode != 409 {
		t.Errorf("another body, with the same meaning: %d", stream.StatusCode)
	}
	for id := range ids {
		if resp := w.open("DELETE", "/v1/responses/"+id, nil, nil); resp.StatusCode != 200 {
			t.Error(resp.StatusCode)
		}
	}
	if resp, r := w.respond(onceAs("order-1"), "POST", "", body); resp.StatusCode != 409 || r.Error.Code != "idempotency_key_reused" {
		t.Errorf("after the deletion: %d %+v", resp.StatusCode, r.Error)
	}
	if len(ids) != 1 || model.Total() != 1 {
		t.Errorf("responses %v, %d calls of the model", ids, model.Total())
	}
}

// A client with an Idempotency-Key may come back: its run goes on without it, and a stream
// is followed from its beginning.
func TestAResponseWithAnIdempotencyKeyGoesOnWithoutItsClient(t *testing.T) {
	t.Parallel()
	clock := coretest.NewClock(time.Time{})
	model := llmtest.New(t, llmtest.Options{Key: modelKey, Clock: clock})
	model.Script(llmtest.Reply{Text: []string{"One ", "two."}, Pause: time.Minute})
	w, _ := newModelWorld(t, func(c *configs.Config) { c.OpenaiBaseURL = model.URL() })
	body := map[string]any{"model": fakeModel, "input": "Count.", "stream": true}
	go func() {
		clock.AwaitWaiters(1) // before the first words
		clock.Advance(time.Minute)
	}()
	first := w.open("POST", "/v1/responses", body, onceAs("stream-1"))
	clock.AwaitWaiters(1) // the model pauses again
	first.Body.Close()    // the connection breaks
	w.until("the server notices", func() bool { return w.metric("gatehouse_sse_streams") == 0 })
	again := w.open("POST", "/v1/responses", body, onceAs("stream-1"))
	defer again.Body.Close()
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-clock.Waiting(1):
				clock.Advance(time.Minute)
			case <-stop:
				return
			}
		}
	}()
	all := streamEvents(t, again.Body)
	close(stop)
	if len(all) == 0 || all[0].Type != "response.created" || all[len(all)-1].Type != "response.completed" || all[len(all)-1].Response.text() != "One two." {
		t.Fatalf("%q", typesOf(all))
	}
	late := w.open("POST", "/v1/responses", body, onceAs("stream-1"))
	defer late.Body.Close()
	if got := typesOf(streamEvents(t, late.Body)); len(got) != len(all) {
		t.Errorf("after the end: %q, want %q", got, typesOf(all))
	}
	if model.Total() != 1 {
		t.Errorf("%d calls of the model", model.Total())
	}
}

// Who has an Idempotency-Key cannot stop a run by leaving it, but by its id.
func TestAResponseWithAnIdempotencyKeyIsCancelledByItsID(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Reply{Text: []string{"Begun"}, Hang: true})
	stream := w.open("POST", "/v1/responses", map[string]any{"model": fakeModel, "input": "Hello", "stream": true}, onceAs("k"))
	defer stream.Body.Close()
	w.until("the model is asked", func() bool { return model.Total() == 1 })
	id := "resp_" + strings.ReplaceAll(stream.Header.Get("X-Run-Id"), "-", "")
	if resp, r := w.respond(nil, "POST", "/"+id+"/cancel", nil); resp.StatusCode != 200 || r.Status != "cancelled" {
		t.Errorf("%d %+v", resp.StatusCode, r)
	}
	if types := typesOf(streamEvents(t, stream.Body)); types[len(types)-1] != "response.failed" {
		t.Errorf("%q", types)
	}
}

// What is not stored is answered once: a repeat after the end is refused, not asked again.
func TestAResponseThatIsNotStoredIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	body := map[string]any{"model": fakeModel, "input": "Only once.", "store": false}
	if resp, r := w.respond(onceAs("k"), "POST", "", body); resp.StatusCode != 200 || r.text() != fakeSays {
		t.Fatalf("%d %+v", resp.StatusCode, r)
	}
	for range 2 {
		if resp, r := w.respond(onceAs("k"), "POST", "", body); resp.StatusCode != 409 || r.Error.Code != "idempotency_key_reused" {
			t.Errorf("%d %+v", resp.StatusCode, r.Error)
		}
		w.quiet()
		w.upkeepAt(1)
	}
	if model.Total() != 1 {
		t.Errorf("%d calls of the model", model.Total())
	}
}

// A failure is answered again as it was.
func TestARepeatedResponseThatFailedFailsAgain(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	model.Script(llmtest.Refuse(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key"))
	for range 2 {
		if resp, r := w.respond(onceAs("k"), "POST", "", map[string]any{"model": fakeModel, "input": "Hello"}); resp.StatusCode != 502 || r.Error == nil {
			t.Errorf("%d %+v", resp.StatusCode, r)
		}
	}
	if model.Total() != 1 {
		t.Errorf("%d calls of the model", model.Total())
	}
}
