package phones_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/phones"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/coretest"
)

// A stage is the page with both platforms behind it.
type stage struct {
	telegram *telegramtest.Server
	discord  *discordtest.Server
	web      *httptest.Server
}

func serve(t *testing.T, opt phones.Options) stage {
	t.Helper()
	s := stage{telegram: telegramtest.New(telegramtest.Options{FloodOff: true}), discord: discordtest.New(discordtest.Options{FloodOff: true})}
	t.Cleanup(func() { s.telegram.Close(); s.discord.Close() })
	s.web = httptest.NewServer(handler(t, s.telegram, s.discord, opt))
	t.Cleanup(func() { s.web.CloseClientConnections(); s.web.Close() })
	return s
}

func handler(t *testing.T, telegram *telegramtest.Server, discord *discordtest.Server, opt phones.Options) http.Handler {
	t.Helper()
	one, err := phones.Telegram(telegram)
	if err != nil {
		t.Fatal(err)
	}
	two, err := phones.Discord(discord)
	if err != nil {
		t.Fatal(err)
	}
	h, err := phones.New(opt, one, two)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestThePageRunsNoInlineCode(t *testing.T) {
	web := serve(t, phones.Options{Panel: "http://127.0.0.1:1/admin"}).web
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
	for _, want := range []string{`lang="en"`, `name="viewport"`, `role="log" aria-live="polite"`, `for="add-telegram"`, `for="add-discord"`, `<h2 id="title-telegram">Telegram</h2>`, `<h2 id="title-discord">Discord</h2>`, `href="http://127.0.0.1:1/admin"`, `type="module"`} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, file := range []string{"phones.js", "window.js", "telegram.js", "discord.js", "dom.js", "styled.js", "phones.css", "telegram.css", "discord.css", "icon.svg"} {
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
	s := serve(t, phones.Options{})
	web, u := s.web, s.telegram.Users()[0]
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
		body, _ := json.Marshal(map[string]any{"platform": "telegram", "from": fmt.Sprint(u.ID()), "text": "hi"})
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
	t   *testing.T
	web *httptest.Server
	s   *bufio.Scanner
}

func follow(t *testing.T, web *httptest.Server) *stream {
	t.Helper()
	res, err := (&http.Client{Timeout: 5 * time.Minute}).Get(web.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	s := bufio.NewScanner(res.Body)
	s.Buffer(nil, 1<<20)
	return &stream{t, web, s}
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
	Worlds []phones.World
	Claim  string
}

// chat is the first one of a kind; of a person where that is not "".
func chat(t *testing.T, w phones.World, kind, person string) phones.Chat {
	t.Helper()
	for _, c := range w.Chats {
		if c.Kind == kind && c.Person == person {
			return c
		}
	}
	t.Fatalf("no %s chat of %q on %s", kind, person, w.Name)
	return phones.Chat{}
}

func TestTheStreamBeginsWithTheStateAndFollowsEveryChange(t *testing.T) {
	for platform, n := range map[string]int{"telegram": 0, "discord": 1} {
		t.Run(platform, func(t *testing.T) {
			stage := serve(t, phones.Options{Claim: func() string { return "ABCD2345" }})
			events := follow(t, stage.web)
			var s state
			if kind := events.next(&s); kind != "state" || len(s.Worlds) != 2 || s.Claim != "ABCD2345" {
				t.Fatalf("%s: %+v", kind, s)
			}
			w := s.Worlds[n]
			if w.Platform != platform || len(w.People) != 3 || w.People[2].Name != "Olga" || w.People[0].Note != "a stranger at first" || !w.Bot.Bot {
				t.Fatalf("the world is %+v", w)
			}
			ada := w.People[0].ID
			events.sends(map[string]any{"platform": platform, "from": ada, "text": "hello"}, chat(t, w, phones.Private, ada).ID, "hello")
			events.sends(map[string]any{"platform": platform, "from": ada, "chat": chat(t, w, phones.Shared, "").ID, "text": "hello all"}, chat(t, w, phones.Shared, "").ID, "hello all")
			const evil = `<img src=x onerror=alert(1)> "x"`
			status, body := post(t, stage.web, "/people", map[string]any{"platform": platform, "name": evil})
			if status != 200 || strings.Contains(body, "<img") {
				t.Errorf("a hostile name: %d %s", status, body)
			}
			var c phones.Change
			if events.next(&c); c.Kind != phones.ChangePerson || c.Person.Name != evil || chat(t, phones.World{Chats: c.Chats}, phones.Private, c.Person.ID).ID == "" {
				t.Errorf("somebody new: %+v", c)
			}
			var again state
			follow(t, stage.web).next(&again)
			if w := again.Worlds[n]; len(w.People) != 4 || w.People[3].Name != evil || len(chat(t, w, phones.Private, ada).Messages) != 1 {
				t.Errorf("a second visitor sees %+v", w)
			}
			// Who is new is in what everybody shares.
			if status, body := post(t, stage.web, "/send", map[string]any{"platform": platform, "from": c.Person.ID, "chat": chat(t, w, phones.Shared, "").ID, "text": "hi all"}); status != 200 {
				t.Error("the new person is not let in: ", status, body)
			}
		})
	}
}

// sends writes as a person, and sees it come.
func (s *stream) sends(body map[string]any, in, text string) {
	s.t.Helper()
	if status, answer := post(s.t, s.web, "/send", body); status != 200 {
		s.t.Fatal(status, answer)
	}
	var c phones.Change
	if s.next(&c); c.Platform != body["platform"] || c.Kind != phones.ChangeMessage || c.Chat != in || c.Message.Text != text || c.Message.From.ID != body["from"] {
		s.t.Errorf("change: %+v", c)
	}
}

// bot makes a request of the simulated Discord as the bot.
func (s stage) bot(t testing.TB, method, path string, body any) (answer struct{ ID string }) {
	t.Helper()
	b, _ := json.Marshal(body)
	req, err := http.NewRequest(method, s.discord.URL()+"/api/v10"+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bot "+s.discord.Token())
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "DiscordBot (https://example.com, 1)")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	out, _ := io.ReadAll(res.Body)
	if res.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, out)
	}
	_ = json.Unmarshal(out, &answer) // 204 has none
	return answer
}

// What a bot does on Discord is on the page: typing, a message with markup and
// buttons, its edit, its end; a press that nobody answers is told to who pressed.
func TestTheStreamFollowsABotOnDiscord(t *testing.T) {
	s := serve(t, phones.Options{})
	cleo := s.discord.Users()[0]
	dm := cleo.DM().String()
	cleo.Send("hello")
	events := follow(t, s.web)
	var first state
	events.next(&first)
	next := func(kind string) (c phones.Change) {
		t.Helper()
		if events.next(&c); c.Platform != "discord" || c.Kind != kind || c.Chat != dm && kind != phones.ChangeNote {
			t.Fatalf("%+v, want %s", c, kind)
		}
		return c
	}
	s.bot(t, "POST", "/channels/"+dm+"/typing", nil)
	if c := next(phones.ChangeTyping); c.Typing.By != "gatehouse" || c.Typing.Until.IsZero() {
		t.Errorf("typing %+v", c.Typing)
	}
	m := s.bot(t, "POST", "/channels/"+dm+"/messages", map[string]any{"content": "**May I** ask <@" + cleo.ID().String() + "> \\*something\\*?",
		"components": []any{map[string]any{"type": 1, "components": []any{
			map[string]any{"type": 2, "style": 3, "label": "Yes", "custom_id": "y"}, map[string]any{"type": 2, "style": 4, "label": "No", "custom_id": "n", "disabled": true}}}}})
	c := next(phones.ChangeMessage)
	want := []phones.Style{{Kind: "bold", Length: 5}, {Kind: "mention", Offset: 10, Length: 5}}
	if c.Message.Text != "May I ask @Cleo *something*?" || !reflect.DeepEqual(c.Message.Styles, want) || !c.Message.From.Bot {
		t.Errorf("the message: %+v", c.Message)
	}
	if keys := c.Message.Buttons; len(keys) != 1 || len(keys[0]) != 2 || !reflect.DeepEqual(keys[0][0], phones.Button{Text: "Yes", Data: "y", Look: "success"}) || !keys[0][1].Disabled {
		t.Errorf("the buttons: %+v", keys)
	}
	if status, body := post(t, s.web, "/press", map[string]any{"platform": "discord", "from": cleo.ID().String(), "chat": dm, "message": m.ID, "data": "y"}); status != 200 {
		t.Error("pressing: ", status, body)
	}
	s.bot(t, "PATCH", "/channels/"+dm+"/messages/"+m.ID, map[string]any{"content": "Thank you.", "components": []any{}})
	if c := next(phones.ChangeEdit); c.Message.Text != "Thank you." || !c.Message.Edited || len(c.Message.Buttons) != 0 || c.Message.ID != m.ID {
		t.Errorf("the edit: %+v", c.Message)
	}
	if c := next(phones.ChangeNote); c.Person.ID != cleo.ID().String() || c.Text != "This interaction failed" { // after 3 s without an answer
		t.Errorf("the note: %+v", c)
	}
	s.bot(t, "DELETE", "/channels/"+dm+"/messages/"+m.ID, nil)
	if c := next(phones.ChangeDelete); c.ID != m.ID {
		t.Errorf("the end: %+v", c)
	}
}

// On Discord a name with an at sign becomes a mention, as in the app; a thread
// is a chat of its own, and shown once somebody starts it.
func TestAMentionOnDiscordIsOneAndAThreadIsAChat(t *testing.T) {
	s := serve(t, phones.Options{})
	events := follow(t, s.web)
	var first state
	events.next(&first)
	w := first.Worlds[1]
	channel := chat(t, w, phones.Shared, "")
	if c := chat(t, w, phones.Thread, ""); c.Title == "" || c.ID == channel.ID {
		t.Errorf("the thread: %+v", c)
	}
	events.sends(map[string]any{"platform": "discord", "from": w.People[0].ID, "chat": channel.ID, "text": "@gatehouse, and @dan.d. But nobody@gatehouses or @nobody?"},
		channel.ID, "@gatehouse, and @Dan. But nobody@gatehouses or @nobody?")
	in, err := discordtest.ParseID(channel.ID)
	if err != nil {
		t.Fatal(err)
	}
	history := s.discord.History(in)
	if m := history[len(history)-1]; len(m.Mentions) != 2 || !strings.HasPrefix(m.Text, s.discord.Bot().Mention()+",") {
		t.Errorf("the platform has %+v", m)
	}
	if _, err := s.discord.Users()[0].StartThread(in, 0, "Later"); err != nil {
		t.Fatal(err)
	}
	for {
		var c phones.Change
		if events.next(&c); c.Kind != phones.ChangeChat {
			continue
		}
		if i := slices.IndexFunc(c.Chats, func(c phones.Chat) bool { return c.Title == "Later" && c.Kind == phones.Thread }); i < 0 {
			t.Errorf("the new thread is not among %+v", c.Chats)
		}
		return
	}
}

// A page stays open for long: its code is another one once the old one ran out,
// and none when somebody owns the bot.
func TestThePagesClaimCodeIsAlwaysTheOneThatWorks(t *testing.T) {
	clock := coretest.NewClock(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))
	var mu sync.Mutex
	code := "AAAA2222"
	set := func(c string) { mu.Lock(); defer mu.Unlock(); code = c }
	stage := serve(t, phones.Options{Clock: clock, Claim: func() string { mu.Lock(); defer mu.Unlock(); return code }})
	sim := stage.telegram
	events := follow(t, stage.web)
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
	ada := sim.Users()[0]
	ada.Send("hello")
	events.next(&phones.Change{})
	res, err := http.Post(sim.URL()+"/bot"+sim.Token()+"/sendMessage", "application/json", strings.NewReader(fmt.Sprintf(`{"chat_id": %d, "text": "You are the owner now."}`, ada.ID())))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	events.next(&phones.Change{})
	if kind := events.next(&now); kind != "claim" || now != "" {
		t.Fatalf("%s %q", kind, now)
	}
}

func TestWhatMakesNoSenseIsRefusedWithWords(t *testing.T) {
	s := serve(t, phones.Options{})
	for platform, somebody := range map[string]string{"telegram": fmt.Sprint(s.telegram.Users()[0].ID()), "discord": s.discord.Users()[0].ID().String()} {
		for name, c := range map[string]struct {
			path string
			body map[string]any
			want int
		}{
			"nobody":          {"/send", map[string]any{"from": "1", "text": "x"}, 404},
			"no id":           {"/send", map[string]any{"from": "x", "text": "x"}, 404},
			"nothing":         {"/send", map[string]any{"text": "  "}, 400},
			"a long text":     {"/send", map[string]any{"text": strings.Repeat("x", 5000)}, 400},
			"a huge body":     {"/send", map[string]any{"text": strings.Repeat("x", 100_000)}, 413},
			"no message":      {"/press", map[string]any{"data": "x"}, 404},
			"no button":       {"/press", map[string]any{"message": "1", "data": "x"}, 404},
			"no name":         {"/people", map[string]any{"name": " "}, 400},
			"a long name":     {"/people", map[string]any{"name": strings.Repeat("x", 300)}, 400},
			"an odd chat":     {"/send", map[string]any{"chat": "-5", "text": "x"}, 404},
			"no chat":         {"/send", map[string]any{"chat": "x", "text": "x"}, 404},
			"no such answer":  {"/send", map[string]any{"reply_to": "x", "text": "x"}, 404},
			"no such country": {"/send", map[string]any{"platform": "elsewhere", "text": "x"}, 404},
		} {
			body := map[string]any{"platform": platform, "from": somebody}
			maps.Copy(body, c.body)
			if status, answer := post(t, s.web, c.path, body); status != c.want || !strings.Contains(answer, `"error":"`) {
				t.Errorf("%s, %s: %d %s, want %d", platform, name, status, answer, c.want)
			}
		}
	}
}

func TestAWorldThatHasPeopleKeepsThem(t *testing.T) {
	s := serve(t, phones.Options{})
	handler(t, s.telegram, s.discord, phones.Options{}) // a second start
	groups := 0
	for _, c := range s.telegram.Chats() {
		if c.Title == phones.GroupTitle {
			groups++
		}
	}
	if len(s.telegram.Users()) != 3 || groups != 1 {
		t.Errorf("%d people and %d groups on Telegram after two starts", len(s.telegram.Users()), groups)
	}
	if len(s.discord.Users()) != 3 || len(s.discord.Guilds()) != 1 {
		t.Errorf("%d people and %d servers on Discord after two starts", len(s.discord.Users()), len(s.discord.Guilds()))
	}
}
