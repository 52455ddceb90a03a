package main

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
)

// prunedRun has a run with an Idempotency-Key that ended; ago moves its end into the past and
// prunes.
type prunedRun struct {
	*world
	model  *llmtest.Server
	events []sseEvent
}

const prunedKey, prunedText = "order-4712", "one two three four"

func newPrunedRun(t *testing.T) *prunedRun {
	t.Helper()
	w, model := newModelWorld(t, nil)
	p := &prunedRun{world: w, model: model}
	model.Script(llmtest.Reply{Text: strings.SplitAfter(prunedText, " ")})
	resp := p.send("text/event-stream")
	defer resp.Body.Close()
	p.events = readEvents(t, resp.Body, -1)
	checkOrder(t, p.events)
	w.stop() // nothing is left in memory
	w.start()
	return p
}

func (p *prunedRun) send(accept string) *http.Response {
	return p.open("POST", "/api/chat", map[string]any{"message": "Count."}, http.Header{"Idempotency-Key": {prunedKey}, "Accept": {accept}})
}

func (p *prunedRun) session() string { return p.events[0].Data["id"].(string) }

func (p *prunedRun) run() string { return p.events[0].Data["run_id"].(string) }

func (p *prunedRun) last() sseEvent { return p.events[len(p.events)-1] }

func (p *prunedRun) ago(d time.Duration) {
	p.t.Helper()
	p.exec(`UPDATE runs SET ended = $1 WHERE id = $2`, core.Stamp(p.app.clock.Now().Add(-d)), p.run())
	if n, err := p.app.events.Prune(p.t.Context()); n == 0 || err != nil {
		p.t.Fatalf("%d rows pruned, %v", n, err)
	}
}

// from checks what a reader gets who has the events up to i: these types, from the first
// event that is missing on.
func (p *prunedRun) from(i int, want string) (last sseEvent) {
	p.t.Helper()
	es := p.joinAt(p.session(), p.run(), p.events[i].ID)
	if len(es) == 0 || strings.Join(types(es), " ") != want || es[0].Data["from"] != p.events[i+1].ID {
		p.t.Fatalf("after %s: %v, want %s", p.events[i].ID, es, want)
	}
	return es[len(es)-1]
}

// whole checks that a reader with this id is told that nothing is left to read.
func (p *prunedRun) whole(id string) {
	p.t.Helper()
	resp := p.open("GET", "/api/chat/"+p.session()+"/events?run="+p.run(), nil, http.Header{"Last-Event-Id": {id}})
	defer resp.Body.Close()
	if resp.StatusCode != 204 {
		p.t.Errorf("after %s: %d %v, want 204", id, resp.StatusCode, readEvents(p.t, resp.Body, -1))
	}
}

// An hour after the end of a run only its end is stored: a reader that was cut is told what it
// cannot get any more, and how the run ended.
func TestAReaderOfAPrunedRunGetsAGapAndItsEnd(t *testing.T) {
	t.Parallel()
	p := newPrunedRun(t)
	p.ago(2 * time.Hour)
	for _, i := range []int{0, 2, len(p.events) - 4} {
		if last := p.from(i, "gap done message_stop"); last.ID != p.last().ID {
			t.Errorf("the last event is %s, was %s", last.ID, p.last().ID)
		}
	}
	sameEvents(t, "the end", p.joinAt(p.session(), p.run(), p.events[len(p.events)-3].ID), p.events[len(p.events)-2:])
	p.whole(p.last().ID)
	live := p.open("GET", "/api/chat/"+p.session()+"/events", nil, http.Header{"Last-Event-Id": {p.events[2].ID}})
	defer live.Body.Close()
	if es := readEvents(t, live.Body, 3); strings.Join(types(es), " ") != "gap done message_stop" || es[1].Data["response"] != prunedText {
		t.Errorf("on the session's stream: %v", es)
	}

	p.ago(3 * 24 * time.Hour) // the end goes too, the run is still known
	p.whole(p.from(2, "gap message_stop").ID)
	live = p.open("GET", "/api/chat/"+p.session()+"/events", nil, http.Header{"Last-Event-Id": {p.events[2].ID}})
	defer live.Body.Close()
	if es := readEvents(t, live.Body, 2); strings.Join(types(es), " ") != "gap message_stop" {
		t.Errorf("on the session's stream, days later: %v", es)
	}
}

// A request that repeats another by its Idempotency-Key is answered as the first was, also when
// the events of the run are gone; nothing is asked again. Where the answer itself is gone, the
// refusal is final.
func TestARepeatedKeyOfAPrunedRunIsAnsweredFromItsEnd(t *testing.T) {
	t.Parallel()
	p := newPrunedRun(t)
	repeat := func(accept string) (int, string, []sseEvent) {
		resp := p.send(accept)
		defer resp.Body.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 200 || accept == "application/json" {
			return resp.StatusCode, b.String(), nil
		}
		return resp.StatusCode, "", readEvents(t, &b, -1)
	}
	p.ago(2 * time.Hour)
	if status, body, _ := repeat("application/json"); status != 200 || !strings.Contains(body, `"response":"`+prunedText+`"`) || !strings.Contains(body, p.run()) {
		t.Errorf("%d %s", status, body)
	}
	if status, body, es := repeat("text/event-stream"); status != 200 || strings.Join(types(es), " ") != "gap done message_stop" {
		t.Errorf("%d %s %v", status, body, es)
	}
	p.ago(3 * 24 * time.Hour)
	if status, body, _ := repeat("application/json"); status != 409 || !strings.Contains(body, "read the transcript") || !strings.Contains(body, p.run()) {
		t.Errorf("days later: %d %s", status, body)
	}
	if n := p.model.Total(); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}
