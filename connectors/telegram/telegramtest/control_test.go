package telegramtest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/connectors/telegram/telegramtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func (o *one) control(method, path string, body, into any) int {
	o.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		o.Fatal(err)
	}
	req, err := http.NewRequest(method, o.URL()+"/control/"+path, bytes.NewReader(b))
	if err != nil {
		o.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		o.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		o.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(raw, into); err != nil {
			o.Fatalf("%s %s: %v in %s", method, path, err, raw)
		}
	}
	return res.StatusCode
}

func TestAnotherProcessPlaysUsersOverHTTP(t *testing.T) {
	o := world(t, noFlood, realClock)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", o.URL()+"/control/events", nil)
	stream, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	lines.Scan() // ": following"

	var ben telegramtest.Account
	o.control("POST", "users", telegramtest.Account{FirstName: "Ben", Username: "ben_b"}, &ben)
	var g telegramtest.Conversation
	o.control("POST", "groups", m{"kind": "forum", "title": "Club", "creator": o.ada.ID(), "members": []int64{ben.ID}}, &g)
	var topic struct{ Thread int }
	o.control("POST", "topics", m{"chat": g.Chat, "by": ben.ID, "name": "Books"}, &topic)
	var one telegramtest.Message
	o.control("POST", "send", m{"from": ben.ID, "text": "hello"}, &one)
	var two []telegramtest.Message
	o.control("POST", "send", []m{{"from": ben.ID, "text": "two"}, {"from": ben.ID, "chat": g.Chat, "thread": topic.Thread, "text": "three"}}, &two)
	if one.Text != "hello" || len(two) != 2 || two[1].Thread != topic.Thread {
		t.Fatalf("sent: %+v %+v", one, two)
	}
	o.must("sendMessage", m{"chat_id": ben.ID, "text": "Welcome", "reply_markup": keyboard(m{"text": "Go", "callback_data": "go"})}, nil)
	var screen telegramtest.Screen
	o.control("GET", "history?chat="+jsonOf(ben.ID), nil, &screen)
	last := screen.Messages[len(screen.Messages)-1]
	if last.Text != "Welcome" || !last.FromBot() {
		t.Errorf("history: %+v", screen)
	}
	var q struct{ Query string }
	if status := o.control("POST", "press", m{"from": ben.ID, "message": last.ID, "data": "go"}, &q); status != 200 || q.Query == "" {
		t.Errorf("press: %d %+v", status, q)
	}
	if status := o.control("POST", "edit", m{"from": ben.ID, "message": one.ID, "text": "hello!"}, nil); status != 200 {
		t.Errorf("edit: %d", status)
	}
	o.control("POST", "react", m{"from": ben.ID, "message": last.ID, "emoji": []string{"👍"}}, nil)
	o.control("POST", "member", m{"chat": g.Chat, "by": ben.ID, "status": "administrator"}, nil)
	o.control("POST", "block", m{"from": ben.ID}, nil)
	o.control("POST", "unblock", m{"from": ben.ID}, nil)
	o.control("POST", "flood", m{"on": false}, nil)
	var id struct {
		UpdateID int64 `json:"update_id"`
	}
	o.control("POST", "inject", m{"raw": `{"update_id":{id}}`}, &id)
	var log []telegramtest.Request
	o.control("GET", "log?method=sendMessage", nil, &log)
	if len(log) != 1 || log[0].Params["text"] != "Welcome" || id.UpdateID == 0 {
		t.Errorf("log: %+v", log)
	}
	if status := o.control("POST", "faults", telegramtest.Fault{Kind: telegramtest.Broken}, nil); status != 200 {
		t.Errorf("faults: %d", status)
	}
	o.control("DELETE", "faults", nil, nil)
	var fresh struct{ Token string }
	o.control("POST", "revoke", m{}, &fresh)
	if r := o.callAs(fresh.Token, "getMe", nil); !r.OK {
		t.Errorf("new token: %+v", r)
	}
	var state struct{ Users, Bots []telegramtest.Account }
	o.control("GET", "state", nil, &state)
	if len(state.Users) != 2 || len(state.Bots) != 1 {
		t.Errorf("state: %+v", state)
	}
	for _, c := range []struct {
		method, path string
		body         any
		want         int
	}{
		{"POST", "send", m{"from": 5, "text": "x"}, 404},
		{"POST", "send", m{"from": ben.ID, "text": ""}, 400},
		{"POST", "send", "nonsense", 400},
		{"GET", "nothing", nil, 404},
		{"POST", "faults", m{"kind": "boom"}, 400},
		{"POST", "users", m{}, 400},
	} {
		if got := o.control(c.method, c.path, c.body, nil); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.want)
		}
	}
	want := []string{"user", "chat", "member", "message", "message", "message", "message", "message", "message", "edit", "reaction", "member", "member", "member"}
	var got []string
	for len(got) < len(want) && lines.Scan() {
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			got = append(got, kind)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("events\n got %v\nwant %v", got, want)
	}
}

func TestTheControlInterfaceIsNotForBrowsers(t *testing.T) {
	o := world(t)
	for name, change := range map[string]func(*http.Request){
		"an origin":        func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"a rebound domain": func(r *http.Request) { r.Host = "evil.example" },
	} {
		req, _ := http.NewRequest("POST", o.URL()+"/control/revoke", strings.NewReader("{}"))
		change(req)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 403 {
			t.Errorf("%s: %d", name, res.StatusCode)
		}
	}
	if _, err := telegramtest.Open(telegramtest.Options{Addr: "0.0.0.0:0"}); err == nil {
		t.Error("it listens beyond loopback")
	}
	if _, err := telegramtest.Open(telegramtest.Options{Bots: []telegramtest.BotAccount{{Token: "x"}}}); err == nil {
		t.Error("a malformed token was taken")
	}
}

func TestStateSurvivesARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "telegram.json")
	keep := func(opt *telegramtest.Options) { opt.StateFile, opt.FloodOff = file, true }
	o := world(t, keep)
	g := o.NewGroup(telegramtest.Forum, "Club", o.ada)
	thread := g.NewTopic(o.ada, "Books")
	var mine sent
	o.must("sendMessage", m{"chat_id": o.ada.ID(), "text": "kept", "reply_markup": keyboard(m{"text": "a", "callback_data": "b"})}, &mine)
	ids := o.updates(nil)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the state file: %v %v", info, err)
	}

	again := &one{T: t, clock: o.clock, Server: telegramtest.New(telegramtest.Options{Clock: o.clock, StateFile: file})}
	again.ada = again.User(o.ada.ID())
	if again.ada == nil || again.ada.Account().FirstName != "Ada" {
		t.Fatal("Ada is gone")
	}
	h := again.History(again.ada.DM())
	if len(h) != 2 || h[1].Text != "kept" || h[1].ID != mine.MessageID || h[1].Buttons[0][0].Text != "a" {
		t.Errorf("history: %+v", h)
	}
	next := again.ada.Send("after the restart")
	if next.ID != mine.MessageID+1 {
		t.Errorf("message id %d, want %d", next.ID, mine.MessageID+1)
	}
	us := again.updates(nil)
	if len(us) != len(ids)+1 || us[len(us)-1].ID != ids[len(ids)-1].ID+1 {
		t.Errorf("%d updates wait, want %d, and ids go on", len(us), len(ids)+1)
	}
	again.must("sendMessage", m{"chat_id": g.ID(), "message_thread_id": thread, "text": "topics are known"}, nil)

	// As kill -9 would leave it: a file from before the last numbers.
	again.Close()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(file, bytes.Replace(b, []byte(`"clean":true`), []byte(`"clean":false`), 1), 0o600)
	crashed := telegramtest.New(telegramtest.Options{Clock: o.clock, StateFile: file})
	defer crashed.Close()
	if got := crashed.User(o.ada.ID()).Send("x").ID; got < next.ID+1000 {
		t.Errorf("after a crash ids skip ahead: got %d after %d", got, next.ID)
	}
	if b, err = os.ReadFile(file); err != nil || !bytes.Contains(b, []byte(`"clean":false`)) {
		t.Errorf("while the server runs its file says clean: %v", err)
	}
	os.WriteFile(file, []byte("{damaged"), 0o600)
	if _, err := telegramtest.Open(telegramtest.Options{StateFile: file}); err == nil {
		t.Error("a damaged state file was taken for a fresh world")
	}
}

func TestHistoriesAreBounded(t *testing.T) {
	o := world(t, noFlood)
	for range 600 {
		o.ada.Send("x")
	}
	h := o.History(o.ada.DM())
	if len(h) != 500 || h[0].ID != 102 {
		t.Errorf("%d messages, first %d", len(h), h[0].ID)
	}
	o.refused("sendMessage", m{"chat_id": o.ada.ID(), "text": "x", "reply_parameters": m{"message_id": 1}}, 400, "Bad Request: message to be replied not found")
}

func TestASlowSubscriberIsCutOff(t *testing.T) {
	o := world(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := o.Subscribe(ctx, 2)
	for range 3 {
		o.ada.Send("x")
	}
	n := 0
	for range c {
		n++
	}
	if n != 2 {
		t.Errorf("%d changes before the end, want 2", n)
	}
}

func TestAChangeHasTheTimeWhenAMessageBecameVisible(t *testing.T) {
	o := world(t)
	o.clock.Advance(1234567 * time.Nanosecond)
	seen := make(chan telegramtest.Change, 10)
	defer o.Watch(func(c telegramtest.Change) { seen <- c })()
	o.must("sendMessage", m{"chat_id": o.ada.ID(), "text": "now"}, nil)
	if c := <-seen; c.Kind != telegramtest.ChangeMessage || !c.At.Equal(o.clock.Now()) || c.Message.Text != "now" {
		t.Errorf("change: %+v", c)
	}
}

func TestUsersAreLimitedByTheirApp(t *testing.T) {
	o := world(t)
	ben := o.NewUser("Ben")
	g := o.NewGroup(telegramtest.Supergroup, "Club", o.ada)
	if _, err := ben.Post(g.Conversation(), telegramtest.Outgoing{Text: "x"}); err == nil {
		t.Error("a person who is not in a group wrote in it")
	}
	if _, err := ben.Post(o.ada.DM(), telegramtest.Outgoing{Text: "x"}); err == nil {
		t.Error("a person wrote in somebody else's chat")
	}
	if _, err := o.ada.Post(o.ada.DM(), telegramtest.Outgoing{Text: strings.Repeat("x", 4097)}); err == nil {
		t.Error("a person sent 4097 characters")
	}
	if _, err := ben.Edit(o.ada.DM(), o.first.ID, "mine now"); err == nil {
		t.Error("a person edited somebody else's message")
	}
	g.Join(ben)
	if _, err := ben.Post(g.Conversation(), telegramtest.Outgoing{Text: "now I am in"}); err != nil {
		t.Error(err)
	}
	g.Leave(ben)
	o.ada.Block()
	if _, err := o.ada.Post(o.ada.DM(), telegramtest.Outgoing{Text: "x"}); err == nil {
		t.Error("a person wrote to a bot they block")
	}
	if _, err := o.AddUser(telegramtest.Account{FirstName: "Fake", Username: "GATEHOUSE_bot"}); err == nil {
		t.Error("a person took the bot's user name")
	}
	again, err := o.AddUser(telegramtest.Account{ID: ben.ID(), FirstName: "Benjamin"})
	if err != nil || again != ben || ben.Account().FirstName != "Benjamin" {
		t.Errorf("renaming: %v %v", again, err)
	}
}
