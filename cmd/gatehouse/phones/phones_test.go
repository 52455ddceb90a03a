package phones_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/phones"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/coretest"
)

func serve(t *testing.T, opt phones.Options) (*telegramtest.Server, *httptest.Server) {
	t.Helper()
	sim := telegramtest.New(telegramtest.Options{FloodOff: true})
	t.Cleanup(func() { sim.Close() })
	h, err := phones.New(sim, opt)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	return sim, web
}

func TestThePageRunsNoInlineCode(t *testing.T) {
	_, web := serve(t, phones.Options{Panel: "http://127.0.0.1:1/admin"})
	res, err := http.Get(web.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	csp := res.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("policy %q lacks %s", csp, want)
		}
	}
	if strings.Contains(csp, "unsafe") {
		t.Errorf("policy %q", csp)
	}
	if m := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script(?:[^>]*[^>])?>[^<]`).Find(b); m != nil {
		t.Errorf("inline code: %q", m)
	}
	for _, want := range []string{`lang="en"`, `name="viewport"`, `role="log" aria-live="polite"`, `for="add-name"`, `href="http://127.0.0.1:1/admin"`, `type="module"`} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, file := range []string{"phones.js", "styled.js", "phones.css", "icon.svg"} {
		res, err := http.Get(web.URL + "/static/" + file)
		if err != nil {
			t.Fatal(err)
		}
		src, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 200 || regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b`).Match(src) {
			t.Errorf("%s: status %d, or it writes markup", file, res.StatusCode)
		}
	}
}

func TestOnlyThisMachinesOwnPagesMayAct(t *testing.T) {
	sim, web := serve(t, phones.Options{})
	u := sim.Users()[0]
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"its own page":        {func(r *http.Request) { r.Header.Set("Origin", web.URL) }, 200},
		"another origin":      {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		"a rebound name":      {func(r *http.Request) { r.Host = "evil.example" }, 403},
		"cross-site metadata": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"a form":              {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 400},
	} {
		body, _ := json.Marshal(map[string]any{"from": u.ID(), "text": "hi"})
		req, _ := http.NewRequest("POST", web.URL+"/send", bytes.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		c.change(req)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", name, res.StatusCode, c.want)
		}
	}
}

func post(t *testing.T, web *httptest.Server, path string, v any) (int, string) {
	t.Helper()
	b, _ := json.Marshal(v)
	res, err := http.Post(web.URL+path, "application/json", bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	out, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(out)
}

// stream reads events into kind and data.
type stream struct {
	t *testing.T
	s *bufio.Scanner
}

func follow(t *testing.T, web *httptest.Server) *stream {
	t.Helper()
	res, err := (&http.Client{Timeout: 20 * time.Second}).Get(web.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	s := bufio.NewScanner(res.Body)
	s.Buffer(nil, 1<<20)
	return &stream{t, s}
}

func (s *stream) next(into any) (kind string) {
	s.t.Helper()
	for s.s.Scan() {
		line := s.s.Text()
		if v, ok := strings.CutPrefix(line, "event: "); ok {
			kind = v
		}
		if v, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(v), into); err != nil {
				s.t.Fatal(err)
			}
			return kind
		}
	}
	s.t.Fatal("the stream ended", s.s.Err())
	return ""
}

type state struct {
	People []struct {
		ID         int64
		Name, Note string
	}
	Private map[int64]telegramtest.Screen
	Group   struct {
		ID       int64
		Messages []telegramtest.Message
	}
	Claim string
}

func TestTheStreamBeginsWithTheStateAndFollowsEveryChange(t *testing.T) {
	sim, web := serve(t, phones.Options{Claim: func() string { return "ABCD2345" }})
	events := follow(t, web)
	var s state
	if kind := events.next(&s); kind != "state" || len(s.People) != 3 || s.People[0].Name != "Ada" || s.Claim != "ABCD2345" || s.Group.ID >= 0 {
		t.Fatalf("%s: %+v", kind, s)
	}
	ada := s.People[0].ID
	if status, body := post(t, web, "/send", map[string]any{"from": ada, "text": "hello"}); status != 200 {
		t.Fatal(status, body)
	}
	var c telegramtest.Change
	if events.next(&c); c.Kind != telegramtest.ChangeMessage || c.Chat != ada || c.Message.Text != "hello" {
		t.Errorf("change: %+v", c)
	}
	if status, body := post(t, web, "/send", map[string]any{"from": ada, "chat": s.Group.ID, "text": "hello all"}); status != 200 {
		t.Fatal(status, body)
	}
	c = telegramtest.Change{}
	if events.next(&c); c.Chat != s.Group.ID || c.Message.Text != "hello all" {
		t.Errorf("change: %+v", c)
	}
	const evil = `<img src=x onerror=alert(1)> "x"`
	if status, body := post(t, web, "/people", map[string]any{"name": evil}); status != 200 || strings.Contains(body, "<img") {
		t.Errorf("a hostile name: %d %s", status, body)
	}
	if len(sim.Users()) != 4 {
		t.Error("nobody was added")
	}
	var again state
	follow(t, web).next(&again)
	if len(again.People) != 4 || again.People[3].Name != evil || len(again.Private[ada].Messages) != 1 {
		t.Errorf("a second visitor sees %+v", again)
	}
	last := again.Group.Messages[len(again.Group.Messages)-1]
	if !strings.HasSuffix(last.Service, "joined the group") {
		t.Errorf("the new person is not in the group: %+v", last)
	}
}

// A page stays open for long: its code is another one once the old one ran out,
// and none when somebody owns the bot.
func TestThePagesClaimCodeIsAlwaysTheOneThatWorks(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))
	var mu sync.Mutex
	code := "AAAA2222"
	set := func(c string) { mu.Lock(); defer mu.Unlock(); code = c }
	sim, web := serve(t, phones.Options{Clock: clock, Claim: func() string { mu.Lock(); defer mu.Unlock(); return code }})
	events := follow(t, web)
	var s state
	if events.next(&s); s.Claim != "AAAA2222" {
		t.Fatalf("the page begins with %q", s.Claim)
	}
	set("BBBB3333")
	clock.AwaitWaiters(1)
	clock.Advance(15 * time.Second)
	var now string
	if kind := events.next(&now); kind != "claim" || now != "BBBB3333" {
		t.Fatalf("%s %q", kind, now)
	}
	set("")
	sim.User(s.People[0].ID).Send("hello")
	events.next(&telegramtest.Change{})
	res, err := http.Post(sim.URL()+"/bot"+sim.Token()+"/sendMessage", "application/json", strings.NewReader(fmt.Sprintf(`{"chat_id": %d, "text": "You are the owner now."}`, s.People[0].ID)))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	events.next(&telegramtest.Change{})
	if kind := events.next(&now); kind != "claim" || now != "" {
		t.Fatalf("%s %q", kind, now)
	}
}

func TestWhatMakesNoSenseIsRefusedWithWords(t *testing.T) {
	sim, web := serve(t, phones.Options{})
	ada := sim.Users()[0].ID()
	for name, c := range map[string]struct {
		path string
		body map[string]any
		want int
	}{
		"nobody":       {"/send", map[string]any{"from": 1, "text": "x"}, 404},
		"nothing":      {"/send", map[string]any{"from": ada, "text": "  "}, 400},
		"a long text":  {"/send", map[string]any{"from": ada, "text": strings.Repeat("x", 5000)}, 400},
		"a huge body":  {"/send", map[string]any{"from": ada, "text": strings.Repeat("x", 100_000)}, 413},
		"no button":    {"/press", map[string]any{"from": ada, "message": 1, "data": "x"}, 404},
		"no name":      {"/people", map[string]any{"name": " "}, 400},
		"an odd group": {"/send", map[string]any{"from": ada, "chat": -5, "text": "x"}, 404},
	} {
		if status, body := post(t, web, c.path, c.body); status != c.want || !strings.Contains(body, `"error":"`) {
			t.Errorf("%s: %d %s, want %d", name, status, body, c.want)
		}
	}
}

func TestSeedKeepsThePeopleOfAWorldThatHasSome(t *testing.T) {
	sim := telegramtest.New(telegramtest.Options{})
	defer sim.Close()
	for range 2 {
		if _, err := phones.Seed(sim); err != nil {
			t.Fatal(err)
		}
	}
	groups := 0
	for _, c := range sim.Chats() {
		if c.Title == phones.GroupTitle {
			groups++
		}
	}
	if len(sim.Users()) != 3 || groups != 1 {
		t.Errorf("%d people and %d groups after two starts", len(sim.Users()), groups)
	}
}
