package discord

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/discord/markup/markuptest"
	"gatehouse/core"
)

// A club is a running bot in a guild.
type club struct {
	*discordtest.Server
	t        *testing.T
	ada      *discordtest.User
	guild    *discordtest.Guild
	talk     discordtest.ID
	store    *connectorstest.Store
	bot      *Bot
	received int
}

func newClub(t *testing.T) *club {
	t.Helper()
	return newClubWith(t, nil)
}

func newClubWith(t *testing.T, change func(*Options)) *club {
	t.Helper()
	s := platform(t, discordtest.Options{FloodOff: true})
	c := &club{Server: s, t: t, ada: s.NewUser("Ada"), store: &connectorstest.Store{}}
	c.guild = s.NewGuild("Club", c.ada)
	c.guild.AddBot(s.Bot())
	c.talk = c.guild.NewChannel("talk")
	c.bot = connect(t, s, c.store, change)
	run(t, c.bot, c.store).await(core.Running)
	return c
}

// next is the next update that is no service.
func (c *club) next() core.Inbound {
	c.t.Helper()
	c.received++
	return c.store.Await(c.t, c.received)[c.received-1]
}

func TestWhatIsMeantForTheBot(t *testing.T) {
	c := newClub(t)
	us := c.Server.Bot().Mention()
	for _, w := range []struct {
		say, text, command string
		addressed          bool
	}{
		{"hello all", "hello all", "", false},
		{us + " hello", "hello", "", true},
		{us + ", " + us + ": hello", "hello", "", true},
		{"hello " + us + " there", "hello @gatehouse there", "", true},
		{us, "@gatehouse", "", true},
		{"gatehouse and @gatehouse", "gatehouse and @gatehouse", "", false},
		{"@everyone look", "@everyone look", "", false},
		{"/Help me", "me", "help", true},
		{us + " /status", "", "status", true},
		{"/etc/hosts is a file", "/etc/hosts is a file", "", false},
		{"see /help", "see /help", "", false},
		{us + " ask " + c.ada.Mention(), "ask @Ada", "", true},
		{us + " in <#" + c.talk.String() + "> <:wave:123>", "in #talk :wave:", "", true},
	} {
		say(t, c.ada, c.talk, w.say)
		in := c.next()
		kind := core.KindMessage
		if w.command != "" {
			kind = core.KindCommand
		}
		if in.Text != w.text || in.Addressed != w.addressed || in.Command != w.command || in.Kind != kind {
			t.Errorf("%q became %q, addressed %v, command %q (%s)", w.say, in.Text, in.Addressed, in.Command, in.Kind)
		}
		if in.Address != inChannel(c.talk) || in.PlaceName != "Club #talk" {
			t.Errorf("from %+v, called %q", in.Address, in.PlaceName)
		}
	}
	d := c.bot.Send(t.Context(), out(inChannel(c.talk), 1, "answer"))
	id, err := discordtest.ParseID(d.MessageID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ada.Post(c.talk, discordtest.Outgoing{Text: "why?", ReplyTo: id, Quiet: true}); err != nil {
		t.Fatal(err)
	}
	if in := c.next(); !in.Addressed || in.ReplyTo != d.MessageID {
		t.Errorf("a reply to the bot: %+v", in)
	}
}

func TestThreadsAndPostsAreChatsOfTheirChannel(t *testing.T) {
	c := newClub(t)
	forum := c.guild.NewForum("help")
	post, err := c.ada.NewPost(forum, "A question", discordtest.Outgoing{Text: c.Server.Bot().Mention() + " how?"})
	if err != nil {
		t.Fatal(err)
	}
	if in := c.next(); in.Address != inThread(forum, post) || in.PlaceName != "Club #help" || !in.Addressed {
		t.Errorf("the post: %+v", in)
	}
	thread, err := c.ada.StartThread(c.talk, 0, "aside")
	if err != nil {
		t.Fatal(err)
	}
	forget(t, c.bot, thread) // as after a restart that resumed
	forget(t, c.bot, c.talk)
	say(t, c.ada, thread, "in here")
	if in := c.next(); in.Address != inThread(c.talk, thread) {
		t.Errorf("the thread: %+v", in)
	}
}

func TestEditsReactionsAndWhatIsNone(t *testing.T) {
	c := newClub(t)
	m := c.ada.Send("first")
	c.next()
	if _, err := c.ada.Edit(c.ada.DM(), m.ID, "second"); err != nil {
		t.Fatal(err)
	}
	if in := c.next(); in.Kind != core.KindEdit || in.Text != "second" || in.Edit == "" || in.MessageID != m.ID.String() {
		t.Errorf("the edit: %+v", in)
	}
	beside := fmt.Sprintf(`{"id":"%s","channel_id":"%s","content":"third","author":{"id":"%s"},"edited_timestamp":"2026-01-02T03:04:05.678000+00:00","attachments":[{"id":"none"}]}`, m.ID, c.ada.DM(), c.ada.ID())
	if err := c.Server.Bot().Dispatch("MESSAGE_UPDATE", json.RawMessage(beside)); err != nil {
		t.Fatal(err)
	}
	if in := c.next(); in.Kind != core.KindEdit || !strings.HasPrefix(in.Text, "third\n\n[sent with a ") {
		t.Errorf("the edit of what can't all be read: %+v", in)
	}
	unfurled := fmt.Sprintf(`{"id":"%s","channel_id":"%s","content":"second","author":{"id":"%s"},"edited_timestamp":null,"embeds":[{}]}`, m.ID, c.ada.DM(), c.ada.ID())
	if err := c.Server.Bot().Dispatch("MESSAGE_UPDATE", json.RawMessage(unfurled)); err != nil {
		t.Fatal(err)
	}
	for _, set := range []bool{true, false, true} { // each is an update of its own
		react := c.ada.Unreact
		if set {
			react = c.ada.React
		}
		if err := react(c.ada.DM(), m.ID, "👍"); err != nil {
			t.Fatal(err)
		}
		if in := c.next(); in.Kind != core.KindReaction || (in.Text == "👍") != set || in.From.ID != c.ada.ID().String() || in.MessageID != m.ID.String() {
			t.Errorf("the reaction: %+v", in)
		}
	}
}

func TestFilesComeWithTheMessage(t *testing.T) {
	c := newClub(t)
	if _, err := c.ada.Post(c.ada.DM(), discordtest.Outgoing{Text: "look", Files: []discordtest.File{
		{Name: "a.png", Type: "image/png", Data: []byte("one")}, {Name: "b.pdf", Type: "application/pdf", Data: []byte("three")},
	}}); err != nil {
		t.Fatal(err)
	}
	in := c.next()
	if in.Text != "look" || in.Unsupported != "" || len(in.Files) != 2 {
		t.Fatalf("became %+v", in)
	}
	for i, want := range []core.File{{Name: "a.png", Type: "image/png", Size: 3}, {Name: "b.pdf", Type: "application/pdf", Size: 5}} {
		f := in.Files[i]
		if want.Ref = f.Ref; f != want || f.Ref == "" {
			t.Errorf("file %+v, want %+v", f, want)
		}
	}
	if _, err := c.ada.Post(c.ada.DM(), discordtest.Outgoing{Files: []discordtest.File{{Name: "v.ogg", Type: "audio/ogg", Data: []byte("x")}},
		Extra: map[string]json.RawMessage{"flags": json.RawMessage(`8192`)}}); err != nil {
		t.Fatal(err)
	}
	if in := c.next(); len(in.Files) != 1 || !in.Files[0].Voice || in.Text != "" {
		t.Errorf("a voice message became %+v", in)
	}
}

func TestContentWithoutAFileBecomesText(t *testing.T) {
	c := newClub(t)
	for _, w := range []struct{ field, value, text, unsupported string }{
		{"sticker_items", `[{"id":"1","name":"wave"}]`, "[sticker wave]", ""},
		{"poll", `{"question":{"text":"When?"},"answers":[{"poll_media":{"text":"now"}},{"poll_media":{"text":"later"}}]}`, "[poll: When?; now; later]", ""},
		{"components", `[{"type":987,"x":[[]]}]`, "", "message of a kind unknown here"},
	} {
		if _, err := c.ada.Post(c.ada.DM(), discordtest.Outgoing{Extra: map[string]json.RawMessage{w.field: json.RawMessage(w.value)}}); err != nil {
			t.Fatal(err)
		}
		if in := c.next(); in.Text != w.text || in.Unsupported != w.unsupported || in.Malformed != "" {
			t.Errorf("%s: %+v", w.field, in)
		}
	}
}

func TestFormsOfLaterTimesLoseNoMessage(t *testing.T) {
	c := newClub(t)
	if _, err := c.ada.Post(c.ada.DM(), discordtest.Outgoing{Text: "still here", Extra: map[string]json.RawMessage{
		"components": json.RawMessage(`[{"type":4242,"components":"?"}]`), "embeds": json.RawMessage(`{"odd":1}`), "attachments": json.RawMessage(`"odd"`),
		"mentions": json.RawMessage(`{}`), "poll": json.RawMessage(`[]`), "sticker_items": json.RawMessage(`7`), "message_snapshots": json.RawMessage(`{}`),
	}}); err != nil {
		t.Fatal(err)
	}
	if in := c.next(); !strings.HasPrefix(in.Text, "still here") || in.Malformed != "" {
		t.Errorf("became %+v", in)
	}
}

func TestWebhooksAndBotsAreNoUsers(t *testing.T) {
	c := newClub(t)
	if _, err := c.PostWebhook(c.talk, "Ada", "I am Ada"); err != nil {
		t.Fatal(err)
	}
	if in := c.next(); !in.From.Shared {
		t.Errorf("a webhook is %+v", in.From)
	}
}

func TestAMegabyteOfTextComesThrough(t *testing.T) {
	c := newClub(t)
	text := strings.Repeat("0123456789abcdef", 1<<16)
	raw, err := json.Marshal(map[string]any{"id": "900000000000000001", "channel_id": c.ada.DM().String(), "content": text, "author": map[string]any{"id": c.ada.ID().String()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Server.Bot().Dispatch("MESSAGE_CREATE", raw); err != nil {
		t.Fatal(err)
	}
	if in := c.next(); in.Text != text {
		t.Errorf("%d bytes came", len(in.Text))
	}
}

func TestAPressedButtonIsAnsweredOnceItIsStored(t *testing.T) {
	c := newClub(t)
	o := out(direct(c.ada.DM()), 1, "allow?")
	o.Buttons = [][]core.Button{{{Label: "Yes", Data: "ask7:yes"}}}
	d := c.bot.Send(t.Context(), o)
	message, err := discordtest.ParseID(d.MessageID)
	if err != nil {
		t.Fatal(err)
	}
	c.store.Watch(func([]core.Inbound) {
		if n := c.Count("createResponse"); n != 0 {
			t.Error("the button was answered before it was stored")
		}
	})
	// The first answer is slow: what Acknowledge says must not overtake it.
	inject(t, c.Server, discordtest.Fault{Kind: discordtest.Slow, Method: "createResponse", Delay: 200 * time.Millisecond, Count: 1})
	pressed, err := c.ada.Press(c.ada.DM(), message, "ask7:yes")
	if err != nil {
		t.Fatal(err)
	}
	in := c.next()
	if in.Kind != core.KindCallback || in.Callback == nil || in.Callback.Data != "ask7:yes" || !in.Addressed || in.MessageID != d.MessageID || in.Address != direct(c.ada.DM()) || in.From.ID != c.ada.ID().String() {
		t.Fatalf("the press is %+v", in)
	}
	if err := c.bot.Acknowledge(t.Context(), in.Address, in.Callback.ID, "Allowed *once*"); err != nil {
		t.Fatal(err)
	}
	if err := c.bot.Acknowledge(t.Context(), in.Address, in.Callback.ID, ""); err != nil {
		t.Error(err)
	}
	history := c.History(c.ada.DM())
	last := history[len(history)-1]
	if last.OnlyFor != c.ada.ID() || markuptest.Show(last.Text).Text.String() != "Allowed *once*" {
		t.Errorf("the person sees %+v of %+v", last, pressed)
	}
	if err := c.bot.Acknowledge(t.Context(), in.Address, "1/2/no-such-token", "x"); err != nil {
		t.Errorf("an old press: %v", err)
	}
	if err := c.bot.Acknowledge(t.Context(), in.Address, "nonsense", "x"); err == nil {
		t.Error("nonsense was taken for a press")
	}
}
