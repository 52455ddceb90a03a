package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A question is one of a program, which repeats it until it is taken, and then follows the
// answer, on whichever gateway serves.
type question struct {
	c            *cluster
	once         string // its Idempotency-Key
	session, run string
	last         string // id of the last whole event
	text         string
	ends         []string // types of the events that end it
	response     string
	ids          map[string]bool
}

// ask asks one question over the API and follows its answer to the end.
func (c *cluster) ask(client int) {
	c.asks.Lock()
	c.asked++
	q := question{c: c, once: fmt.Sprint("question-", c.asked), session: fmt.Sprint("program-", client), ids: map[string]bool{}}
	c.asks.Unlock()
	for end, try := time.Now().Add(patience), 0; ; try++ {
		if time.Now().After(end) || c.t.Failed() {
			c.t.Errorf("%s has no answer: run %q, after event %q of %v", q.once, q.run, q.last, q.ends)
			return
		}
		if q.attempt(c.addrs[try%len(c.addrs)]) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if len(q.ends) != 1 || q.ends[0] != "done" {
		c.t.Errorf("%s ends with %v", q.once, q.ends)
	}
	if strings.TrimSpace(q.text) != strings.TrimSpace(q.response) {
		c.t.Errorf("%s: the stream says %q, the answer is %q", q.once, q.text, q.response)
	}
}

// attempt asks, or follows the answer, at one address; it reports whether the end was read.
func (q *question) attempt(addr string) bool {
	if q.run == "" {
		q.post(addr)
	}
	return q.run != "" && q.follow(addr)
}

// call makes a request with the operator's key, which a gateway writes when it begins to serve.
func (q *question) call(method, url, body string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(q.c.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	keys, _ := filepath.Glob(filepath.Join(q.c.dir, "run", "*", "key"))
	for _, name := range keys {
		if b, err := os.ReadFile(name); err == nil {
			req.Header.Set("X-API-Key", strings.TrimSpace(string(b)))
		}
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return q.c.http.Do(req)
}

// busy reports whether a program has to try again later.
func busy(status int) bool {
	return status >= 500 || status == http.StatusTooManyRequests
}

func (q *question) post(addr string) {
	body := fmt.Sprintf(`{"message": "please look at %s", "session_id": %q}`, q.once, q.session)
	resp, err := q.call("POST", "http://"+addr+"/api/chat", body, "Content-Type", "application/json", "Idempotency-Key", q.once, "Prefer", "respond-async")
	if err != nil {
		return
	}
	defer resp.Body.Close()
	var taken struct {
		SessionID string `json:"session_id"`
		RunID     string `json:"run_id"`
		Detail    string
	}
	if json.NewDecoder(resp.Body).Decode(&taken) != nil || busy(resp.StatusCode) {
		return
	}
	if resp.StatusCode != http.StatusAccepted {
		q.c.t.Errorf("%s: %d %s", q.once, resp.StatusCode, taken.Detail)
		return
	}
	q.session, q.run = taken.SessionID, taken.RunID
}

func (q *question) follow(addr string) bool {
	resp, err := q.call("GET", "http://"+addr+"/api/chat/"+q.session+"/events?run="+q.run, "", "Last-Event-ID", q.last)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		if !busy(resp.StatusCode) {
			q.c.t.Errorf("%s: its events: %d, after %q", q.once, resp.StatusCode, q.last)
		}
		return false
	}
	id, data := "", ""
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "id: "); ok {
			id = rest
		} else if rest, ok := strings.CutPrefix(line, "data: "); ok {
			data = rest
		} else if line == "" && data != "" {
			if q.event(id, data) {
				return true
			}
			id, data = "", ""
		}
	}
	return false
}

// event takes one event, and reports whether it is the last one.
func (q *question) event(id, data string) bool {
	var e struct{ Type, Content, Response, Message string }
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		q.c.t.Errorf("%s: %q: %v", q.once, data, err)
	}
	if q.ids[id] {
		q.c.t.Errorf("%s: the event %s came twice", q.once, id)
	}
	q.ids[id], q.last = true, id
	switch e.Type {
	case "text":
		q.text += e.Content
	case "gap": // the turn begins again, or what a gateway had not stored is gone with it
		q.text = ""
	case "done", "aborted", "error":
		q.ends, q.response = append(q.ends, strings.TrimSpace(e.Type+" "+e.Message)), e.Response
	}
	return e.Type == "message_stop"
}
