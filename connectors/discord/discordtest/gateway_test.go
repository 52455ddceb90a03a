package discordtest_test

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"gatehouse/connectors/discord/discordtest"
)

func TestTheGatewayIsFoundAndGreets(t *testing.T) {
	o := world(t)
	var g struct {
		URL    string `json:"url"`
		Shards int    `json:"shards"`
		Limit  struct {
			Total, Remaining int
			Max              int `json:"max_concurrency"`
		} `json:"session_start_limit"`
	}
	o.must("GET", "gateway/bot", nil, &g)
	if g.URL != "ws"+strings.TrimPrefix(o.URL(), "http")+"/gateway" || g.Shards != 1 || g.Limit.Total != 1000 || g.Limit.Remaining != 1000 || g.Limit.Max != 1 {
		t.Errorf("got %+v", g)
	}
	k := o.dial("/gateway/?v=10&encoding=json")
	var hello struct {
		Interval int `json:"heartbeat_interval"`
	}
	if json.Unmarshal(k.want(10).D, &hello); hello.Interval != 41250 {
		t.Errorf("hello: %+v", hello)
	}
	k.send(1, nil) // before IDENTIFY, without a sequence number
	k.want(11)
	k.identify("Bot "+o.Token(), plain)
	if p := k.event("READY"); !bytes.Contains(p.D, []byte(`"unavailable":true`)) || *p.S != 1 {
		t.Errorf("READY: %s", p.D)
	}
	if p := k.event("GUILD_CREATE"); !bytes.Contains(p.D, []byte(`"general"`)) {
		t.Errorf("GUILD_CREATE: %s", p.D)
	}
	if o.must("GET", "gateway/bot", nil, &g); g.Limit.Remaining != 999 || !o.Bot().Online() {
		t.Errorf("after IDENTIFY: %+v", g)
	}
}

func TestBrokenRulesCloseTheConnection(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(o *one, k *socket)
		code int
		text string
	}{
		{"opcode", func(o *one, k *socket) { k.identify(o.Token(), plain); k.send(99, nil) }, 4001, "Unknown opcode."},
		{"no JSON", func(_ *one, k *socket) { k.ws.WriteMessage(websocket.TextMessage, []byte("hello")) }, 4002, "Error while decoding payload."},
		{"4097 bytes", func(_ *one, k *socket) { k.send(1, strings.Repeat("x", 4096)) }, 4002, "Error while decoding payload."},
		{"no properties", func(o *one, k *socket) { k.send(2, m{"token": o.Token(), "intents": 0}) }, 4002, "Error while decoding payload."},
		{"not identified", func(_ *one, k *socket) { k.send(3, m{}) }, 4003, "Not authenticated."},
		{"token", func(_ *one, k *socket) { k.identify("wrong", 0) }, 4004, "Authentication failed."},
		{"resume with a wrong token", func(_ *one, k *socket) { k.send(6, m{"token": "wrong", "session_id": "x", "seq": 1}) }, 4004, "Authentication failed."},
		{"twice", func(o *one, k *socket) { k.identify(o.Token(), 0); k.identify(o.Token(), 0) }, 4005, "Already authenticated."},
		{"heartbeat from the future", func(o *one, k *socket) { k.identify(o.Token(), 0); k.send(1, 99) }, 4007, "Invalid seq."},
		{"121 payloads", func(o *one, k *socket) {
			for range 121 {
				k.send(1, nil)
			}
		}, 4008, "Rate limited."},
		{"shard", func(o *one, k *socket) {
			k.send(2, m{"token": o.Token(), "intents": 0, "properties": m{}, "shard": []int{1, 1}})
		}, 4010, "Invalid shard."},
		{"no intents", func(o *one, k *socket) { k.send(2, m{"token": o.Token(), "properties": m{}}) }, 4013, "Invalid intent(s)."},
		{"unknown intent", func(o *one, k *socket) { k.identify(o.Token(), 1<<17) }, 4013, "Invalid intent(s)."},
		{"message content", func(o *one, k *socket) { k.identify(o.Token(), plain|discordtest.IntentContent) }, 4014, "Disallowed intent(s)."},
		{"members", func(o *one, k *socket) { k.identify(o.Token(), discordtest.IntentMembers) }, 4014, "Disallowed intent(s)."},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := world(t)
			k := o.open()
			c.do(o, k)
			k.closed(c.code, c.text)
			if log := o.GatewayLog(0, "close"); len(log) != 1 || log[0].Code != c.code {
				t.Errorf("the log: %+v", log)
			}
		})
	}
	o := world(t)
	o.dial("/gateway?v=6&encoding=json").closed(4012, "Invalid API version.")
	o.dial("/gateway").closed(4012, "Invalid API version.")
}

func TestTheSecondIdentifyInFiveSecondsIsInvalid(t *testing.T) {
	o := world(t)
	o.identify(plain)
	k := o.open()
	k.identify(o.Token(), plain)
	if p := k.want(9); string(p.D) != "false" {
		t.Errorf("op 9: %s", p.D)
	}
	o.clock.Advance(5 * time.Second)
	k.identify(o.Token(), plain)
	k.event("READY")
}

func TestTooManyIdentifiesResetTheToken(t *testing.T) {
	o := world(t, noFlood, func(opt *discordtest.Options) { opt.Starts = 2 })
	old := o.Token()
	first := o.identify(plain)
	o.identify(plain)
	k := o.open()
	k.identify(old, plain)
	k.closed(4004, "Authentication failed.")
	first.closed(4004, "Authentication failed.")
	if o.Token() == old {
		t.Error("the token stays")
	}
}

func TestMissedHeartbeatsCloseAndTheSessionStays(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	o.clock.AwaitWaiters(1)
	o.clock.Advance(41250 * time.Millisecond)
	k.quiet() // a beat in time
	o.clock.Advance(41250 * time.Millisecond)
	o.clock.AwaitWaiters(1)
	o.clock.Advance(25 * time.Second)
	k.closed(4000, "Heartbeat missed.")
	again := o.resumed(k, k.seq)
	again.event("RESUMED")
}

// resumed opens a connection and sends RESUME.
func (o *one) resumed(k *socket, seq int64) *socket {
	o.Helper()
	n := o.dial("/gateway/resume?v=10&encoding=json")
	n.want(10)
	n.session = k.session
	n.send(6, m{"token": o.Token(), "session_id": k.session, "seq": seq})
	return n
}

func TestResumeReplaysWhatWasMissed(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	o.ada.Send("seen")
	k.message("MESSAGE_CREATE")
	before := k.seq
	o.Bot().Drop()
	for i := range 3 {
		o.ada.Send(fmt.Sprint("missed ", i))
	}
	n := o.resumed(k, before)
	for i := range 3 {
		if got := n.message("MESSAGE_CREATE"); got.Content != fmt.Sprint("missed ", i) || n.seq != before+int64(i)+1 {
			t.Errorf("replayed %q as %d", got.Content, n.seq)
		}
	}
	n.event("RESUMED")
	o.ada.Send("new")
	n.message("MESSAGE_CREATE")
	if e, err := o.AwaitGateway(o.soon(), 0, "resumed"); err != nil || e.Replayed != 3 || e.SeqNo != before {
		t.Errorf("the log: %+v, %v", e, err)
	}
}

func TestWhatCantBeResumed(t *testing.T) {
	invalid := func(o *one, k *socket, seq int64) {
		o.Helper()
		n := o.resumed(k, seq)
		if p := n.want(9); string(p.D) != "false" {
			o.Errorf("op 9: %s", p.D)
		}
		n.identify(o.Token(), plain) // the connection stands
		n.event("READY")
	}
	t.Run("unknown", func(t *testing.T) {
		o := world(t, noFlood)
		invalid(o, &socket{session: "nope"}, 1)
	})
	t.Run("after 1000", func(t *testing.T) {
		o := world(t, noFlood)
		k := o.identify(plain)
		k.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Second))
		if e, err := o.AwaitGateway(o.soon(), 0, "left"); err != nil || e.Code != 1000 {
			t.Fatal(e, err)
		}
		invalid(o, k, k.seq)
	})
	t.Run("after minutes", func(t *testing.T) {
		o := world(t, noFlood)
		k := o.identify(plain)
		o.Bot().Drop()
		o.clock.Advance(3 * time.Minute)
		invalid(o, k, k.seq)
	})
	t.Run("too far behind", func(t *testing.T) {
		o := world(t, noFlood, func(opt *discordtest.Options) { opt.Replay = 5 })
		k := o.identify(plain)
		o.Bot().Drop()
		for range 6 {
			o.ada.Send("x")
		}
		invalid(o, k, k.seq)
	})
	t.Run("from the future", func(t *testing.T) {
		o := world(t, noFlood)
		k := o.identify(plain)
		o.Bot().Drop()
		o.resumed(k, 1000).closed(4007, "Invalid seq.")
	})
	t.Run("after 4009", func(t *testing.T) {
		o := world(t, noFlood)
		k := o.identify(plain)
		o.Bot().Hangup(4009, "Session timed out.")
		k.closed(4009, "Session timed out.")
		invalid(o, k, k.seq)
	})
	t.Run("after 4000 it can", func(t *testing.T) {
		o := world(t, noFlood)
		k := o.identify(plain)
		o.Bot().Hangup(4000, "Unknown error.")
		k.closed(4000, "Unknown error.")
		o.resumed(k, k.seq).event("RESUMED")
	})
}

func TestThePlatformAsksForThings(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	o.Bot().AskHeartbeat()
	k.want(1)
	k.quiet()
	o.Bot().Reconnect()
	k.want(7)
	o.clock.Advance(5 * time.Second)
	k.closed(4000, "Reconnect.")
	n := o.resumed(k, k.seq)
	n.event("RESUMED")
	o.Bot().Invalidate(true)
	if p := n.want(9); string(p.D) != "true" {
		t.Errorf("op 9: %s", p.D)
	}
	n.send(6, m{"token": o.Token(), "session_id": k.session, "seq": n.seq})
	n.event("RESUMED")
	o.Bot().Invalidate(false)
	if p := n.want(9); string(p.D) != "false" {
		t.Errorf("op 9: %s", p.D)
	}
	n.send(6, m{"token": o.Token(), "session_id": k.session, "seq": n.seq})
	n.want(9)
}

func TestIntentsDecideWhatIsSent(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(discordtest.IntentDirect)
	o.ada.Say(o.general, "not asked for")
	o.guild.NewChannel("new")
	o.ada.Type(o.dm)
	v := o.ada.Send("asked for")
	if got := k.message("MESSAGE_CREATE"); got.ID != v.ID {
		t.Errorf("got %+v", got)
	}
	o.ada.React(o.dm, v.ID, "👍")
	k.quiet()
}

func TestContentIsForThoseWhoMayReadIt(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	post := func(in discordtest.ID, p discordtest.Outgoing) sent {
		t.Helper()
		if _, err := o.ada.Post(in, p); err != nil {
			t.Fatal(err)
		}
		return k.message("MESSAGE_CREATE")
	}
	file := []discordtest.File{{Name: "a.txt", Data: []byte("x")}}
	if got := post(o.general, discordtest.Outgoing{Text: "secret", Files: file}); got.Content != "" || len(got.Attachments) != 0 || got.Author.ID != o.ada.ID() || got.Member == nil || got.Guild != o.guild.ID() {
		t.Errorf("unmentioned: %+v", got)
	}
	if got := post(o.general, discordtest.Outgoing{Text: "@everyone secret"}); got.Content != "" {
		t.Errorf("a mention of everyone: %+v", got)
	}
	if got := post(o.general, discordtest.Outgoing{Text: o.Bot().Mention() + " hello", Files: file}); got.Content == "" || len(got.Mentions) != 1 || len(got.Attachments) != 1 {
		t.Errorf("mentioned: %+v", got)
	}
	if got := post(o.dm, discordtest.Outgoing{Text: "private"}); got.Content != "private" || got.Guild != 0 {
		t.Errorf("in a DM: %+v", got)
	}
	own := o.send(o.general, m{"content": "my own"})
	if got := k.message("MESSAGE_CREATE"); got.Content != "my own" {
		t.Errorf("its own: %+v", got)
	}
	if got := post(o.general, discordtest.Outgoing{Text: "an answer", ReplyTo: own.ID}); got.Content != "an answer" || got.Referenced == nil {
		t.Errorf("a reply to it: %+v", got)
	}
	if got := post(o.general, discordtest.Outgoing{Text: "an answer", ReplyTo: own.ID, Quiet: true}); got.Content != "" {
		t.Errorf("a quiet reply: %+v", got)
	}
	var page []sent
	o.must("GET", messages(o.general)+"?limit=100", nil, &page)
	if i := slices.IndexFunc(page, func(s sent) bool { return s.Content == "secret" }); i >= 0 {
		t.Error("REST tells what the gateway hides")
	}
	o.Bot().SetIntents(discordtest.IntentContent)
	n := o.identify(plain | discordtest.IntentContent)
	o.ada.Say(o.general, "open")
	if got := n.message("MESSAGE_CREATE"); got.Content != "open" {
		t.Errorf("with the intent: %+v", got)
	}
	if got := k.message("MESSAGE_CREATE"); got.Content != "" {
		t.Errorf("the session without: %+v", got)
	}
}

func TestEventsOfPeople(t *testing.T) {
	o := world(t, noFlood, content)
	k := o.identify(plain | discordtest.IntentContent | discordtest.IntentTyping | discordtest.IntentDirectReactions | discordtest.IntentReactions)
	v, _ := o.ada.Say(o.general, "one")
	k.message("MESSAGE_CREATE")
	o.ada.Edit(o.general, v.ID, "two")
	if got := k.message("MESSAGE_UPDATE"); got.Content != "two" || got.Edited == nil {
		t.Errorf("edited: %+v", got)
	}
	o.ada.React(o.general, v.ID, "👍")
	if p := k.event("MESSAGE_REACTION_ADD"); !bytes.Contains(p.D, []byte(`"name":"👍"`)) {
		t.Errorf("reaction: %s", p.D)
	}
	o.ada.Unreact(o.general, v.ID, "👍")
	k.event("MESSAGE_REACTION_REMOVE")
	o.ada.Type(o.general)
	k.event("TYPING_START")
	o.ada.Delete(o.general, v.ID)
	k.event("MESSAGE_DELETE")
	o.PostWebhook(o.general, "Hook", "from a webhook")
	if p := k.event("MESSAGE_CREATE"); !bytes.Contains(p.D, []byte(`"webhook_id"`)) {
		t.Errorf("webhook: %s", p.D)
	}
	o.guild.RemoveBot(o.Bot())
	k.event("GUILD_DELETE")
	o.ada.Say(o.general, "unheard")
	k.quiet()
	o.guild.AddBot(o.Bot())
	k.event("GUILD_CREATE")
}

func TestWhatTheGatewayCanDoToABot(t *testing.T) {
	o := world(t, noFlood)
	k := o.identify(plain)
	b := o.Bot()
	b.Shuffle(2)
	o.ada.Send("first")
	o.ada.Send("second")
	if got := k.message("MESSAGE_CREATE"); got.Content != "second" {
		t.Errorf("got %q", got.Content)
	}
	k.message("MESSAGE_CREATE")
	b.InjectRaw("garbage {")
	if _, raw, err := k.ws.ReadMessage(); err != nil || string(raw) != "garbage {" {
		t.Errorf("got %s, %v", raw, err)
	}
	b.Dispatch("FUTURE_EVENT", json.RawMessage(`{"x":1}`))
	k.event("FUTURE_EVENT")
	o.ada.Post(o.dm, discordtest.Outgoing{Text: "odd", Extra: map[string]json.RawMessage{"components": json.RawMessage(`[{"type":99,"new":{}}]`)}})
	if got := k.message("MESSAGE_CREATE"); len(got.Components) != 1 || !bytes.Contains(got.Components[0], []byte("99")) {
		t.Errorf("got %+v", got)
	}
	b.Deafen(true)
	var last uint64
	for _, e := range o.GatewayLog(0, "") {
		last = e.Seq
	}
	k.send(1, nil)
	if _, err := o.AwaitGateway(o.soon(), last, "heartbeat"); err != nil {
		t.Fatal(err)
	}
	o.ada.Send("but heard")
	k.message("MESSAGE_CREATE") // and no op 11 before it
	b.Deafen(false)
	b.Freeze(true)
	o.ada.Send("later")
	b.Freeze(false)
	k.message("MESSAGE_CREATE")
	b.Slow(time.Second)
	waiting := o.clock.Waiting(2) // the heartbeat watch, and the frame
	o.ada.Send("slowly")
	<-waiting
	o.clock.Advance(time.Second)
	k.message("MESSAGE_CREATE")
	b.Slow(0)
	b.Drop()
	if _, _, err := k.ws.ReadMessage(); err == nil || websocket.IsCloseError(err, 1000, 4000) {
		t.Errorf("got %v", err)
	}
}

func TestPayloadCompression(t *testing.T) {
	o := world(t, noFlood)
	k := o.open()
	k.send(2, m{"token": o.Token(), "intents": plain, "properties": m{}, "compress": true})
	k.event("READY") // small: plain
	long := strings.Repeat("x", 2000)
	k.event("GUILD_CREATE")
	o.ada.Send(long)
	kind, b, err := k.ws.ReadMessage()
	if err != nil || kind != websocket.BinaryMessage {
		t.Fatal(kind, err)
	}
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if plain, _ := io.ReadAll(z); !bytes.Contains(plain, []byte(long)) {
		t.Errorf("got %s", plain)
	}
}
