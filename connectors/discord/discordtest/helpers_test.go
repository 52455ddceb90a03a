package discordtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core"
	"gatehouse/core/coretest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

type m = map[string]any

// one is a world with a person, a guild with a channel, and a clock that
// stands still.
type one struct {
	*testing.T
	*discordtest.Server
	clock   *coretest.Clock
	ada     *discordtest.User
	guild   *discordtest.Guild
	general discordtest.ID
	dm      discordtest.ID
	header  http.Header
}

func world(t *testing.T, change ...func(*discordtest.Options)) *one {
	t.Helper()
	clock := coretest.NewClock(time.Time{})
	opt := discordtest.Options{Clock: clock}
	for _, f := range change {
		f(&opt)
	}
	s := discordtest.New(opt)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	ada := s.NewUser("Ada")
	g := s.NewGuild("Club", ada)
	return &one{T: t, Server: s, clock: clock, ada: ada, guild: g, general: g.NewChannel("general"), dm: ada.DM()}
}

func noFlood(o *discordtest.Options)   { o.FloodOff = true }
func realClock(o *discordtest.Options) { o.Clock = core.System{} }
func content(o *discordtest.Options) {
	o.Bots = []discordtest.BotAccount{{Intents: discordtest.IntentContent}}
}

// reply is an answer as a bot reads it.
type reply struct {
	status  int
	header  http.Header
	body    []byte
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Retry   float64         `json:"retry_after"`
	Global  bool            `json:"global"`
	Errors  json.RawMessage `json:"errors"`
}

func (o *one) try(verb, path string, body any) (reply, error) {
	var r io.Reader
	if body != nil {
		b, ok := body.([]byte)
		if !ok {
			b, _ = json.Marshal(body)
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(o.Context(), verb, o.URL()+"/api/v10/"+path, r)
	if err != nil {
		return reply{}, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bot "+o.Token())
	req.Header.Set("User-Agent", "DiscordBot (https://example.org, 1)")
	for k, v := range o.header {
		req.Header[k] = v
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	out := reply{status: res.StatusCode, header: res.Header, body: b}
	json.Unmarshal(b, &out)
	return out, err
}

func (o *one) call(verb, path string, body any) reply {
	o.Helper()
	r, err := o.try(verb, path, body)
	if err != nil {
		o.Fatal(verb, path, err)
	}
	return r
}

// must expects success and decodes the answer.
func (o *one) must(verb, path string, body, into any) reply {
	o.Helper()
	r := o.call(verb, path, body)
	if r.status/100 != 2 {
		o.Fatalf("%s %s: %d %s", verb, path, r.status, r.body)
	}
	if into != nil {
		if err := json.Unmarshal(r.body, into); err != nil {
			o.Fatalf("%s %s: %v in %s", verb, path, err, r.body)
		}
	}
	return r
}

// refused expects the platform's own status, code and words.
func (o *one) refused(verb, path string, body any, status, code int, text string) reply {
	o.Helper()
	r := o.call(verb, path, body)
	if r.status != status || r.Code != code || r.Message != text {
		o.Errorf("%s %s %v:\n got %d %s\nwant %d code %d %q", verb, path, body, r.status, r.body, status, code, text)
	}
	return r
}

// wrong expects error 50035 with one nested error.
func (o *one) wrong(verb, path string, body any, field, code, text string) {
	o.Helper()
	r := o.refused(verb, path, body, 400, 50035, "Invalid Form Body")
	var node any
	json.Unmarshal(r.Errors, &node)
	for _, key := range strings.FieldsFunc(field, func(r rune) bool { return r == '.' }) {
		node, _ = node.(m)[key].(m)
	}
	tree, _ := node.(m)
	list, _ := tree["_errors"].([]any)
	for _, e := range list {
		if e.(m)["code"] == code && e.(m)["message"] == text {
			return
		}
	}
	o.Errorf("%v: no %s %q at %q in %s", body, code, text, field, r.Errors)
}

func messages(id discordtest.ID) string { return "channels/" + id.String() + "/messages" }

type sent struct {
	ID       discordtest.ID  `json:"id"`
	Type     int             `json:"type"`
	Channel  discordtest.ID  `json:"channel_id"`
	Guild    discordtest.ID  `json:"guild_id"`
	Content  string          `json:"content"`
	Flags    int             `json:"flags"`
	Nonce    json.RawMessage `json:"nonce"`
	Edited   *string         `json:"edited_timestamp"`
	Mentions []struct {
		ID discordtest.ID `json:"id"`
	} `json:"mentions"`
	Everyone    bool              `json:"mention_everyone"`
	Components  []json.RawMessage `json:"components"`
	Attachments []struct {
		URL  string `json:"url"`
		Size int    `json:"size"`
	} `json:"attachments"`
	Author struct {
		ID  discordtest.ID `json:"id"`
		Bot bool           `json:"bot"`
	} `json:"author"`
	Referenced *sent `json:"referenced_message"`
	Member     any   `json:"member"`
}

func (o *one) send(in discordtest.ID, p m) sent {
	o.Helper()
	var out sent
	o.must("POST", messages(in), p, &out)
	return out
}

// A socket is a bot's gateway connection in a test.
type socket struct {
	*testing.T
	ws      *websocket.Conn
	seq     int64
	session string
	resume  string
}

type packet struct {
	Op int             `json:"op"`
	T  string          `json:"t"`
	S  *int64          `json:"s"`
	D  json.RawMessage `json:"d"`
}

func (o *one) dial(path string) *socket {
	o.Helper()
	ws, _, err := websocket.DefaultDialer.DialContext(o.Context(), "ws"+strings.TrimPrefix(o.URL(), "http")+path, nil)
	if err != nil {
		o.Fatal(err)
	}
	k := &socket{T: o.T, ws: ws}
	o.Cleanup(func() { ws.Close() })
	return k
}

// open dials and reads HELLO.
func (o *one) open() *socket {
	o.Helper()
	k := o.dial("/gateway?v=10&encoding=json")
	k.want(10)
	return k
}

const plain = discordtest.IntentGuilds | discordtest.IntentMessages | discordtest.IntentDirect

func (o *one) identify(intents int) *socket {
	o.Helper()
	k := o.open()
	k.identify(o.Token(), intents)
	p := k.event("READY")
	var r struct {
		Session string `json:"session_id"`
		Resume  string `json:"resume_gateway_url"`
	}
	json.Unmarshal(p.D, &r)
	k.session, k.resume = r.Session, r.Resume
	if intents&discordtest.IntentGuilds != 0 {
		k.event("GUILD_CREATE")
	}
	return k
}

func (k *socket) send(op int, d any) {
	k.Helper()
	if err := k.ws.WriteJSON(m{"op": op, "d": d}); err != nil {
		k.Fatal(err)
	}
}

func (k *socket) identify(token string, intents int) {
	k.Helper()
	k.send(2, m{"token": token, "intents": intents, "properties": m{"os": "linux"}})
}

func (k *socket) read() packet {
	k.Helper()
	k.ws.SetReadDeadline(time.Now().Add(5 * time.Minute))
	_, b, err := k.ws.ReadMessage()
	if err != nil {
		k.Fatal(err)
	}
	var p packet
	if err := json.Unmarshal(b, &p); err != nil {
		k.Fatalf("%v in %s", err, b)
	}
	if p.S != nil {
		k.seq = *p.S
	}
	return p
}

func (k *socket) want(op int) packet {
	k.Helper()
	p := k.read()
	if p.Op != op {
		k.Fatalf("got op %d %s %s, want op %d", p.Op, p.T, p.D, op)
	}
	return p
}

func (k *socket) event(name string) packet {
	k.Helper()
	p := k.want(0)
	if p.T != name {
		k.Fatalf("got %s %s, want %s", p.T, p.D, name)
	}
	return p
}

func (k *socket) message(name string) sent {
	k.Helper()
	var s sent
	if err := json.Unmarshal(k.event(name).D, &s); err != nil {
		k.Fatal(err)
	}
	return s
}

// quiet proves that nothing is on its way: a heartbeat's ACK comes next.
func (k *socket) quiet() {
	k.Helper()
	k.send(1, k.seq)
	k.want(11)
}

// closed expects a close code with its text.
func (k *socket) closed(code int, text string) {
	k.Helper()
	k.ws.SetReadDeadline(time.Now().Add(5 * time.Minute))
	for {
		_, b, err := k.ws.ReadMessage()
		if err == nil {
			k.Logf("before the close: %s", b)
			continue
		}
		if !websocket.IsCloseError(err, code) || !strings.HasSuffix(err.Error(), text) {
			k.Errorf("got %v, want %d %s", err, code, text)
		}
		return
	}
}

func (o *one) soon() context.Context {
	ctx, cancel := context.WithTimeout(o.Context(), 5*time.Minute)
	o.Cleanup(cancel)
	return ctx
}
