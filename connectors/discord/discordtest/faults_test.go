package discordtest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"

	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core/coretest"
)

func lost(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE)
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		fault     discordtest.Fault
		delivered bool
		check     func(reply, error) bool
	}{
		{discordtest.Fault{Kind: discordtest.Reset}, false, func(_ reply, err error) bool { return lost(err) }},
		{discordtest.Fault{Kind: discordtest.Reset, After: true}, true, func(_ reply, err error) bool { return lost(err) }},
		{discordtest.Fault{Kind: discordtest.Half}, true, func(_ reply, err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		{discordtest.Fault{Kind: discordtest.Broken}, false, func(r reply, _ error) bool { return r.status == 502 && bytes.Contains(r.body, []byte("<html>")) }},
		{discordtest.Fault{Kind: discordtest.Broken, Status: 503, After: true}, true, func(r reply, _ error) bool { return r.status == 503 }},
		{discordtest.Fault{Kind: discordtest.Flooded, RetryAfter: 1.5}, false, func(r reply, _ error) bool { return r.status == 429 && r.Retry == 1.5 && !r.Global }},
		{discordtest.Fault{Kind: discordtest.Flooded, Global: true}, false, func(r reply, _ error) bool { return r.status == 429 && r.Global }},
		{discordtest.Fault{Kind: discordtest.Banned, RetryAfter: 60}, false, func(r reply, _ error) bool {
			return r.status == 429 && !json.Valid(r.body) && r.header.Get("Retry-After") == "60" && r.header.Get("X-Ratelimit-Scope") == ""
		}},
		{discordtest.Fault{Kind: discordtest.Hang, Delay: time.Nanosecond, After: true}, true, func(_ reply, err error) bool { return lost(err) }},
	} {
		t.Run(fmt.Sprint(c.fault.Kind, " after=", c.fault.After, c.fault.Global), func(t *testing.T) {
			o := world(t, noFlood, realClock)
			c.fault.Method, c.fault.Count = "CREATEmessage", 1
			if _, err := o.Inject(c.fault); err != nil {
				t.Fatal(err)
			}
			if r, err := o.try("POST", messages(o.dm), m{"content": "one"}); !c.check(r, err) {
				t.Errorf("got %d %s %v, %v", r.status, r.body, r.header, err)
			}
			if got := len(o.History(o.dm)) == 1; got != c.delivered {
				t.Errorf("delivered: %v, want %v", got, c.delivered)
			}
			o.send(o.dm, m{"content": "two"})
			log := o.Requests(0, "createMessage")
			if len(log) != 2 || log[0].Outcome == "answered" || log[1].Outcome != "answered" || log[0].OK() != c.delivered || log[1].Text("content") != "two" {
				t.Errorf("the log: %+v", log)
			}
			if c.delivered && log[0].MessageID == 0 {
				t.Error("the log does not name the message that was delivered")
			}
		})
	}
	o := world(t)
	if _, err := o.Inject(discordtest.Fault{Kind: "flaky"}); err == nil {
		t.Error("an unknown fault")
	}
	o.Inject(discordtest.Fault{Kind: discordtest.Broken, Method: "gateway", Count: 1})
	res, err := http.Get(o.URL() + "/gateway?v=10&encoding=json")
	if err != nil || res.StatusCode != 502 {
		t.Errorf("the gateway: %v, %v", res, err)
	}
	res.Body.Close()
	o.open()
}

func TestDownAndUp(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	o.Down()
	if _, err := o.try("GET", "users/@me", nil); err == nil {
		t.Error("it answers while down")
	}
	if _, _, err := k.ws.ReadMessage(); err == nil {
		t.Error("the gateway stays while down")
	}
	o.ada.Send("meanwhile")
	if err := o.Up(); err != nil {
		t.Fatal(err)
	}
	n := o.resumed(k, k.seq)
	if got := n.message("MESSAGE_CREATE"); got.Content != "meanwhile" {
		t.Errorf("got %+v", got)
	}
}

func TestTheWorldSurvivesARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	keep := func(opt *discordtest.Options) { opt.StateFile, opt.FloodOff = file, true }
	o := world(t, keep)
	o.ada.Send("before")
	mine := o.send(o.general, m{"content": "mine", "components": []m{row(button("a"))}})
	thread, _ := o.ada.StartThread(o.general, mine.ID, "thread")
	o.must("PUT", "applications/"+o.Bot().ID().String()+"/commands", []m{{"name": "ask", "description": "d"}}, nil)
	token := o.Bot().Revoke()
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	s := discordtest.New(discordtest.Options{StateFile: file, FloodOff: true, Clock: coretest.NewClock(time.Time{})}) // at the hour when the first began
	defer s.Close()
	if s.URL() != o.URL() {
		t.Errorf("it was at %s and is at %s", o.URL(), s.URL())
	}
	if other, err := discordtest.Open(discordtest.Options{StateFile: file}); err != nil { // that address is taken
		t.Error(err)
	} else if err := other.Close(); err != nil || other.URL() == s.URL() {
		t.Errorf("two at %s, %v", s.URL(), err)
	}
	ada := s.User(o.ada.ID())
	if ada == nil || ada.DM() != o.dm || s.Token() != token {
		t.Fatal("the person, the DM or the token is another")
	}
	if h := s.History(o.dm); len(h) != 1 || h[0].Text != "before" {
		t.Errorf("history: %+v", h)
	}
	if v, ok := s.Message(o.general, mine.ID); !ok || v.Text != "mine" || len(v.Buttons) != 1 || v.Flags&discordtest.HasThread == 0 {
		t.Errorf("got %+v", v)
	}
	if v, err := ada.Say(thread, "on"); err != nil || v.ID <= mine.ID {
		t.Errorf("in the thread: %+v, %v", v, err)
	}
	if got := s.Bot().Commands(0); len(got) != 1 {
		t.Errorf("commands: %v", got)
	}
}

func TestControl(t *testing.T) {
	o := world(t, noFlood)
	order := func(name string, body any, into any) int {
		t.Helper()
		b, _ := json.Marshal(body)
		res, err := http.Post(o.URL()+"/control/"+name, "application/json", bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if into != nil {
			if err := json.NewDecoder(res.Body).Decode(into); err != nil {
				t.Fatal(name, err)
			}
		}
		return res.StatusCode
	}
	var u discordtest.Account
	order("users", m{"name": "Grace"}, &u)
	var v discordtest.Message
	if code := order("send", m{"from": u.ID, "text": "by control"}, &v); code != 200 || v.Text != "by control" || v.From.ID != u.ID {
		t.Errorf("send: %d %+v", code, v)
	}
	var list []discordtest.Message
	if order("send", []m{{"from": u.ID, "text": "1"}, {"from": u.ID, "text": "2", "reply_to": v.ID}}, &list); len(list) != 2 || list[1].ReplyTo != v.ID {
		t.Errorf("many: %+v", list)
	}
	if code := order("send", m{"from": u.ID, "channel": o.general, "text": "x"}, nil); code != 404 {
		t.Errorf("a stranger writes in a guild: %d", code)
	}
	var g struct{ Guild, Channel discordtest.ID }
	order("guilds", m{"name": "New", "owner": u.ID}, &g)
	order("channels", m{"guild": g.Guild, "name": "forum", "type": discordtest.Forum}, &g)
	if code := order("posts", m{"from": u.ID, "channel": g.Channel, "name": "Post", "text": "body"}, &g); code != 200 || len(o.History(g.Channel)) != 1 {
		t.Errorf("posts: %d", code)
	}
	k := o.identify(plain)
	if code := order("gateway", m{"do": "hangup", "code": 4014, "text": "Disallowed intent(s)."}, nil); code != 200 {
		t.Errorf("gateway: %d", code)
	}
	k.event("GUILD_CREATE") // the new guild's
	k.closed(4014, "Disallowed intent(s).")
	req, _ := http.NewRequest("GET", o.URL()+"/control/state", nil)
	req.Header.Set("Origin", "http://localhost")
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != 403 {
		t.Errorf("a browser: %v %v", res, err)
	}
	res.Body.Close()
	var st struct{ Users []discordtest.Account }
	res, err = http.Get(o.URL() + "/control/state")
	if err != nil || json.NewDecoder(res.Body).Decode(&st) != nil || len(st.Users) != 2 {
		t.Errorf("state: %+v, %v", st, err)
	}
	res.Body.Close()
}

func TestChangesAreStreamed(t *testing.T) {
	o := world(t, noFlood)
	req, _ := http.NewRequestWithContext(o.soon(), "GET", o.URL()+"/control/events", nil)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Scan() // ": following"
	o.ada.Send("streamed")
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var c discordtest.Change
			if err := json.Unmarshal([]byte(text), &c); err != nil || c.Kind != discordtest.ChangeMessage || c.Message.Text != "streamed" {
				t.Errorf("%v in %s", err, text)
			}
			return
		}
	}
	t.Error("the stream ended")
}

func TestWhatIsSeenComesInOrder(t *testing.T) {
	o := world(t, noFlood, realClock)
	ctx := o.soon()
	changes := o.Subscribe(ctx, 100)
	go o.ada.Send("one")
	v, err := o.AwaitMessage(ctx, o.dm, func(v discordtest.Message) bool { return v.Text == "one" })
	if err != nil || v.From.ID != o.ada.ID() {
		t.Fatal(v, err)
	}
	if c := <-changes; c.Kind != discordtest.ChangeMessage || c.Message.ID != v.ID || c.Channel != o.dm {
		t.Errorf("got %+v", c)
	}
}

func TestAddressesAreLoopback(t *testing.T) {
	if _, err := discordtest.Open(discordtest.Options{Addr: "0.0.0.0:0"}); err == nil {
		t.Error("it listens to the world")
	}
}

// toward sends a library's requests to the simulator.
type toward struct{ host string }

func (r toward) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL, req.Host = &url.URL{Scheme: "http", Host: r.host, Path: req.URL.Path, RawQuery: req.URL.RawQuery}, r.host
	return http.DefaultTransport.RoundTrip(req)
}

// A library that was written against the real platform gets on with this one.
func TestDiscordgoWorks(t *testing.T) {
	o := world(t, realClock, content)
	s, err := discordgo.New("Bot " + o.Token())
	if err != nil {
		t.Fatal(err)
	}
	s.Client = &http.Client{Transport: toward{strings.TrimPrefix(o.URL(), "http://")}}
	s.Identify.Intents = plain | discordtest.IntentContent
	s.StateEnabled = true
	got := make(chan *discordgo.MessageCreate, 10)
	s.AddHandler(func(_ *discordgo.Session, v *discordgo.MessageCreate) { got <- v })
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := o.ada.Say(o.general, strings.Repeat("long ", 300)); err != nil {
		t.Fatal(err)
	}
	v := <-got
	if len(v.Content) != 1499 || v.Author.ID != o.ada.ID().String() || v.GuildID != o.guild.ID().String() {
		t.Errorf("got %+v", v.Message)
	}
	back, err := s.ChannelMessageSendReply(v.ChannelID, "answer", v.Reference())
	if err != nil || back.Type != discordgo.MessageTypeReply {
		t.Fatal(back, err)
	}
	if v = <-got; v.ID != back.ID {
		t.Errorf("its own message: %+v", v.Message)
	}
	_, err = s.ChannelMessageSend("42", "x")
	var rest *discordgo.RESTError
	if !errors.As(err, &rest) || rest.Message == nil || rest.Message.Code != discordgo.ErrCodeUnknownChannel {
		t.Errorf("got %v", err)
	}
	if page, err := s.ChannelMessages(o.general.String(), 100, "", "0", ""); err != nil || len(page) != 2 || page[0].ID != back.ID {
		t.Errorf("history: %v, %v", page, err)
	}
}
