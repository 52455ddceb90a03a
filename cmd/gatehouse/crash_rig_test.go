package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gatehouse/cmd/loadgen/crowd"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/texts"
)

// A rig is platforms, a model and people around a gateway that runs as a
// child process and is treated badly. It stands between the two and sees every
// request arrive before the platform does, and every answer before the child
// does: this is how a kill meets a named point without help from inside. What
// a platform tells by itself (Discord's events) does not pass by it.
type rig struct {
	t        *testing.T
	telegram *telegramtest.Server
	discord  *discordtest.Server
	crowds   []*crowd.Platform
	taps     []*httptest.Server // the platforms' addresses, as the child knows them
	model    *httptest.Server
	dir      string
	vault    string
	database string // address of one on a server; "" is the file in the vault
	exe      string
	mode     string

	chats []place
	child *child
	met   bool // Discord has seen the gateway

	posts   sync.Mutex // taken before mu
	mu      sync.Mutex // never held in a call of a simulator, which calls saw
	changed *sync.Cond
	posted  map[string][]string    // by chat: its people's messages, in order
	said    map[string][]utterance // by chat: what the bot said there, in order
	seen    map[string]bool        // messages with a visible answer
	doubt   map[string]bool        // messages whose answer was being sent at a kill
	sending map[string]bool        // outbox rows that were being sent at a kill
	calls   int                    // model calls
	asked   map[string]int         // message → model calls that were about it
	next    int                    // number of the next message
	tails   int                    // last parts of long answers, counted by prove

	births atomic.Int64 // children that were started
	since  int64        // the first of them that the hooks are for

	onRequest func(req) bool     // a request has come; true: cut it off, the platform does not get it
	onAnswer  func(req) bool     // the platform has done it; true: the child does not hear of it
	onModel   func(int, float64) // share of answer n that is out: 0 before the first word, .5, 1
}

// atLength asks the model for an answer that takes several messages.
const atLength = " at length"

var lastPart = regexp.MustCompile(`end of call [0-9]+`)

// An utterance is one message of the bot.
type utterance struct {
	id     string
	text   string // as it stands now
	tokens []string
	silent bool // on Discord: a preview, or the final in its place
}

// whole tells an answer (its first part) from a preview of one.
func (u utterance) whole() bool { return strings.Contains(u.text, "as call") }

// notice reports whether u is about a message that may be missing.
func (u utterance) notice() bool {
	return strings.HasPrefix(u.text, texts.Text("unsure")) || strings.HasPrefix(u.text, texts.Text("unsure_again")) || strings.HasPrefix(u.text, texts.Text("unsure_arrived"))
}

// later tells a later part of a long answer from a preview.
func (u utterance) later() bool {
	return strings.HasPrefix(strings.TrimSpace(u.text), "and so on") || lastPart.MatchString(u.text)
}

var crashToken = regexp.MustCompile(`m[0-9]{6}`)

func newRig(t *testing.T, exe, mode string, who population, o telegramtest.Options) *rig {
	t.Helper()
	r := &rig{
		t: t, exe: exe, mode: mode, dir: crashDir(t),
		posted: map[string][]string{}, said: map[string][]utterance{}, seen: map[string]bool{},
		doubt: map[string]bool{}, sending: map[string]bool{}, asked: map[string]int{}, next: 1,
	}
	r.vault = filepath.Join(r.dir, "vault")
	r.changed = sync.NewCond(&r.mu)
	r.model = r.tapped(r.serveModel)
	o.FloodOff, o.LogSize = true, 200_000
	r.telegram = telegramtest.New(o)
	r.join(crowd.Telegram(r.telegram, who.telegram))
	if who.direct > 0 {
		r.discord = discordtest.New(discordtest.Options{FloodOff: true, Starts: 1_000_000})
		r.join(crowd.Discord(r.discord, who.direct, who.channels))
	}
	t.Cleanup(func() { // before the servers' Close, which waits for what hangs
		if r.child != nil {
			r.child.kill()
			<-r.child.done
		}
		for _, tap := range r.taps {
			tap.Close()
		}
		r.model.Close()
	})
	return r
}

// settings are the child's.
func (r *rig) settings() map[string]string {
	env := settingsOf(r.vault, r.model.URL+"/v1", r.mode)
	if r.database != "" {
		env["DATABASE_URL"] = r.database
	}
	for i, p := range r.crowds {
		maps.Copy(env, p.Settings(r.taps[i].URL))
	}
	return env
}

// start runs the gateway. At the first start the owner has enabled all channels.
func (r *rig) start(settings ...string) *child {
	r.t.Helper()
	env := r.settings()
	for i := 0; i+1 < len(settings); i += 2 {
		env[settings[i]] = settings[i+1]
	}
	r.enable()
	r.births.Add(1)
	r.mu.Lock() // a hook that wants to kill waits for it
	r.child = startChild(r.t, r.dir, env, r.exe, "serve")
	r.mu.Unlock()
	if r.discord != nil && !r.met {
		r.met = true
		r.online(true)
	}
	return r.child
}

// hooks replaces what happens at the named points.
func (r *rig) hooks(request, answer func(req) bool, model func(int, float64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onRequest, r.onAnswer, r.onModel = request, answer, model
	r.since = r.births.Load()
	if r.child == nil || r.child.ended() {
		r.since++
	}
}

// saw keeps what people see of the bot.
func (r *rig) saw(chat string, m crowd.Message) {
	if !m.Bot && !m.Deleted {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.changed.Broadcast()
	u := utterance{m.ID, m.Text, crashToken.FindAllString(m.Text, -1), m.Silent}
	list := r.said[chat]
	i := slices.IndexFunc(list, func(o utterance) bool { return o.id == u.id })
	switch {
	case m.Deleted:
		if i >= 0 {
			r.said[chat] = slices.Delete(list, i, i+1)
		}
		return
	case i < 0:
		r.said[chat] = append(list, u)
	default:
		if list[i].whole() && (!u.whole() || !slices.Equal(list[i].tokens, u.tokens)) {
			r.t.Errorf("an answer was overwritten: %q by %q", list[i].text, u.text)
		}
		list[i] = u
	}
	if u.whole() {
		for _, t := range u.tokens {
			r.seen[t] = true
		}
	}
}

// post has somebody in the n-th chat write one message.
func (r *rig) post(n int) string { return r.postBehind(n, "") }

// postBehind is post with a text in front of the message.
func (r *rig) postBehind(n int, before string) string {
	c := r.chats[n%len(r.chats)]
	r.posts.Lock() // the order of the list is the order of the chat
	defer r.posts.Unlock()
	r.mu.Lock()
	number := r.next
	token := tokenOf(number)
	r.next++
	r.posted[c.key] = append(r.posted[c.key], token)
	r.mu.Unlock()
	text := before + "please look at " + token
	if number%9 == 0 {
		text += atLength
	}
	if _, err := c.Say(number, text); err != nil {
		r.t.Errorf("write in %s: %v", c.key, err)
	}
	return token
}

type birthKey struct{}

// tapped starts a server that notes with each connection which child it is of.
func (r *rig) tapped(h http.HandlerFunc) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, birthKey{}, r.births.Load())
	}
	s.Start()
	return s
}

// early reports whether the request is of a child before the one that the hooks are for: it
// may be read a while after that child's death. Call it with r.mu held.
func (r *rig) early(in *http.Request) bool { return in.Context().Value(birthKey{}).(int64) < r.since }

// serveTap passes a request on to its platform, where the hooks let it.
func (r *rig) serveTap(p *crowd.Platform, w http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the child died while it wrote
	}
	in.Body = io.NopCloser(bytes.NewReader(body))
	q := readReq(p.Name, in, body)
	r.mu.Lock()
	request, answer := r.onRequest, r.onAnswer
	if r.early(in) {
		request, answer = nil, nil
	}
	r.mu.Unlock()
	if request != nil && request(q) {
		panic(http.ErrAbortHandler)
	}
	if answer == nil || q.method == "getupdates" {
		p.Handler.ServeHTTP(w, in)
		return
	}
	kept := httptest.NewRecorder()
	p.Handler.ServeHTTP(kept, in)
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
		Tools    []struct{ Type string }
	}
	if json.NewDecoder(in.Body).Decode(&q) != nil || len(q.Messages) == 0 {
		panic(http.ErrAbortHandler)
	}
	last := q.Messages[len(q.Messages)-1].Content
	about := crashToken.FindAllString(last, -1)
	r.mu.Lock()
	r.calls++
	n, hook := r.calls, r.onModel
	if r.early(in) || len(q.Tools) == 0 { // what is done besides turns, such as notes on long conversations, has none
		hook = nil
	}
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

// answered waits until every message is answered, or its answer is in doubt,
// as long as there is one answer more within less than a lease: a slow machine
// takes its time, and a wait for a lease is a wait in which nothing is answered.
func (r *rig) answered() {
	r.t.Helper()
	r.mu.Lock()
	missing := r.missing()
	r.mu.Unlock()
	for {
		before := len(missing)
		if r.wait(leaseTime-5*time.Second, func() bool { missing = r.missing(); return len(missing) == 0 }) {
			return
		}
		if len(missing) >= before {
			r.t.Fatalf("%d messages are without answer: %v\n%s", len(missing), missing[:min(len(missing), 20)], r.child.tail())
		}
	}
}

// stop ends the gateway by SIGTERM, which must be clean.
func (r *rig) stop() {
	r.t.Helper()
	r.child.says(r.t, `"serving"`)
	r.child.signal(r.t, syscall.SIGTERM)
	if code := r.child.gone(r.t, patience); code != 0 {
		r.t.Fatalf("exit code %d after SIGTERM\n%s", code, r.child.tail())
	}
}
