package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
)

// A rig is a platform, a model and people around a gateway that runs as a
// child process and is treated badly. It stands between the two and sees every
// request arrive before the platform does, and every answer before the child
// does: this is how a kill meets a named point without help from inside.
type rig struct {
	t     *testing.T
	sim   *telegramtest.Server
	tap   *httptest.Server // the platform's address, as the child knows it
	model *httptest.Server
	dir   string
	vault string
	exe   string
	mode  string

	people []*telegramtest.User
	child  *child

	posts   sync.Mutex // taken before mu
	mu      sync.Mutex // never held in a call of sim, which calls saw
	changed *sync.Cond
	posted  map[int64][]string    // by person: their messages, in order
	said    map[int64][]utterance // by person: what the bot said to them, in order
	seen    map[string]bool       // messages with a visible answer
	doubt   map[string]bool       // messages whose answer was being sent at a kill
	sending map[string]bool       // outbox rows that were being sent at a kill
	calls   int                   // model calls
	asked   map[string]int        // message → model calls that were about it
	next    int                   // number of the next message
	tails   int                   // second parts of long answers, counted by prove

	onRequest func(req) bool     // a request has come; true: cut it off, the platform does not get it
	onAnswer  func(req) bool     // the platform has done it; true: the child does not hear of it
	onModel   func(int, float64) // share of answer n that is out: 0 before the first word, .5, 1
}

// A req is a request of the child to the platform.
type req struct {
	method string
	form   url.Values
}

func (r req) chat() int64 {
	n, _ := strconv.ParseInt(r.form.Get("chat_id"), 10, 64)
	return n
}

// offset is what a getUpdates confirms: all updates below it.
func (r req) offset() int64 {
	n, _ := strconv.ParseInt(r.form.Get("offset"), 10, 64)
	return n
}

// atLength asks the model for an answer that takes two messages.
const atLength = " at length"

var lastPart = regexp.MustCompile(`end of call [0-9]+`)

// An utterance is one message of the bot.
type utterance struct {
	id     int
	text   string // as it stands now
	tokens []string
}

// whole tells an answer from a preview of one.
func (u utterance) whole() bool { return strings.Contains(u.text, "as call") }

var crashToken = regexp.MustCompile(`m[0-9]{6}`)

func newRig(t *testing.T, exe, mode string, people int, platform telegramtest.Options) *rig {
	t.Helper()
	platform.FloodOff, platform.LogSize = true, 200_000
	r := &rig{
		t: t, exe: exe, mode: mode, dir: crashDir(t),
		posted: map[int64][]string{}, said: map[int64][]utterance{}, seen: map[string]bool{},
		doubt: map[string]bool{}, sending: map[string]bool{}, asked: map[string]int{}, next: 1,
	}
	r.vault = filepath.Join(r.dir, "vault")
	r.changed = sync.NewCond(&r.mu)
	r.sim = telegramtest.New(platform)
	t.Cleanup(func() { _ = r.sim.Close() })
	t.Cleanup(r.sim.Watch(r.saw))
	r.tap = httptest.NewServer(http.HandlerFunc(r.serveTap))
	r.model = httptest.NewServer(http.HandlerFunc(r.serveModel))
	t.Cleanup(func() { // before the servers' Close, which waits for what hangs
		if r.child != nil {
			r.child.kill()
			<-r.child.done
		}
		r.tap.Close()
		r.model.Close()
	})
	for i := range people {
		r.people = append(r.people, r.sim.NewUser("Person "+strconv.Itoa(i+1)))
	}
	return r
}

// start runs the gateway.
func (r *rig) start(settings ...string) *child {
	r.t.Helper()
	env := settingsOf(r.vault, r.sim.Token(), r.tap.URL, r.model.URL+"/v1", r.mode)
	for i := 0; i+1 < len(settings); i += 2 {
		env[settings[i]] = settings[i+1]
	}
	r.mu.Lock() // a hook that wants to kill waits for it
	defer r.mu.Unlock()
	r.child = startChild(r.t, r.dir, env, r.exe, "serve")
	return r.child
}

// hooks replaces what happens at the named points.
func (r *rig) hooks(request, answer func(req) bool, model func(int, float64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onRequest, r.onAnswer, r.onModel = request, answer, model
}

// saw keeps what people see of the bot.
func (r *rig) saw(c telegramtest.Change) {
	if c.Kind != telegramtest.ChangeMessage && c.Kind != telegramtest.ChangeEdit || !c.Message.FromBot() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	u := utterance{c.Message.ID, c.Message.Text, crashToken.FindAllString(c.Message.Text, -1)}
	list := r.said[c.Chat]
	if i := slices.IndexFunc(list, func(o utterance) bool { return o.id == u.id }); i >= 0 {
		if list[i].whole() && (!u.whole() || !slices.Equal(list[i].tokens, u.tokens)) {
			r.t.Errorf("an answer was overwritten: %q by %q", list[i].text, u.text)
		}
		list[i] = u
	} else {
		r.said[c.Chat] = append(list, u)
	}
	if u.whole() {
		for _, t := range u.tokens {
			r.seen[t] = true
		}
	}
	r.changed.Broadcast()
}

// post has person p write one message.
func (r *rig) post(p int) string {
	u := r.people[p%len(r.people)]
	id := u.ID()
	r.posts.Lock() // the order of the list is the order of the chat
	defer r.posts.Unlock()
	r.mu.Lock()
	n := r.next
	token := tokenOf(n)
	r.next++
	r.posted[id] = append(r.posted[id], token)
	r.mu.Unlock()
	text := "please look at " + token
	if n%9 == 0 {
		text += atLength
	}
	u.Send(text)
	return token
}

// serveTap passes a request on to the platform, where the hooks let it.
func (r *rig) serveTap(w http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the child died while it wrote
	}
	in.Body = io.NopCloser(bytes.NewReader(body))
	form, _ := url.ParseQuery(string(body))
	q := req{strings.ToLower(in.URL.Path[strings.LastIndexByte(in.URL.Path, '/')+1:]), form}
	r.mu.Lock()
	request, answer := r.onRequest, r.onAnswer
	r.mu.Unlock()
	if request != nil && request(q) {
		panic(http.ErrAbortHandler)
	}
	if answer == nil || q.method == "getupdates" {
		r.sim.ServeHTTP(w, in)
		return
	}
	kept := httptest.NewRecorder()
	r.sim.ServeHTTP(kept, in)
	if answer(q) {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), kept.Header())
	w.WriteHeader(kept.Code)
	_, _ = w.Write(kept.Body.Bytes())
}

// serveModel answers the last message by naming every message that is in it.
func (r *rig) serveModel(w http.ResponseWriter, in *http.Request) {
	var q struct {
		Messages []struct{ Role, Content string }
	}
	if json.NewDecoder(in.Body).Decode(&q) != nil || len(q.Messages) == 0 {
		panic(http.ErrAbortHandler)
	}
	last := q.Messages[len(q.Messages)-1].Content
	about := crashToken.FindAllString(last, -1)
	r.mu.Lock()
	r.calls++
	n, hook := r.calls, r.onModel
	for _, t := range about {
		r.asked[t]++
	}
	r.changed.Broadcast()
	r.mu.Unlock()
	if hook == nil {
		hook = func(int, float64) {}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	words := append([]string{"This", "answers"}, append(slices.Clone(about), "as", fmt.Sprintf("call %d", n))...)
	if strings.Contains(last, atLength) { // too long for one message
		words = append(words, "\n\n"+strings.Repeat("and so on ", 500)+"\n\n"+fmt.Sprintf("end of call %d", n))
	}
	hook(n, 0)
	for i, word := range words {
		b, _ := json.Marshal(word + " ")
		fmt.Fprintf(w, `data: {"id":"c%d","object":"chat.completion.chunk","model":"echo","choices":[{"index":0,"delta":{"content":%s}}]}`+"\n\n", n, b)
		if i == len(words)/2 {
			w.(http.Flusher).Flush()
			hook(n, .5)
		}
	}
	hook(n, 1)
	fmt.Fprintf(w, `data: {"id":"c%d","object":"chat.completion.chunk","model":"echo","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", n)
}

// wait waits until ok, which is called with r.mu held, holds; false when that
// takes too long.
func (r *rig) wait(within time.Duration, ok func() bool) bool {
	end := time.Now().Add(within)
	timer := time.AfterFunc(within, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !ok() {
		if !time.Now().Before(end) {
			return false
		}
		r.changed.Wait()
	}
	return true
}

// modelCalls is how often the model was asked.
func (r *rig) modelCalls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

// missing are the messages without a visible answer and without a doubtful
// one; r.mu is held.
func (r *rig) missing() []string {
	var out []string
	for _, list := range r.posted {
		for _, t := range list {
			if !r.seen[t] && !r.doubt[t] {
				out = append(out, t)
			}
		}
	}
	slices.Sort(out)
	return out
}

// leaseTime is the queue's: a gateway that came back waits for no lease of its
// former self.
const leaseTime = 30 * time.Second

// answered waits until every message is answered, or its answer is in doubt.
func (r *rig) answered() {
	r.t.Helper()
	var missing []string
	if !r.wait(leaseTime-5*time.Second, func() bool { missing = r.missing(); return len(missing) == 0 }) {
		r.t.Fatalf("%d messages are without answer: %v\n%s", len(missing), missing[:min(len(missing), 20)], r.child.tail())
	}
}

// stop ends the gateway by SIGTERM, which must be clean.
func (r *rig) stop() {
	r.t.Helper()
	r.child.says(r.t, `"serving"`)
	r.child.signal(r.t, syscall.SIGTERM)
	if code := r.child.gone(r.t, 30*time.Second); code != 0 {
		r.t.Fatalf("exit code %d after SIGTERM\n%s", code, r.child.tail())
	}
}
