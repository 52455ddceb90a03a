package discord

import (
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core"
)

func TestAPostIsKnownByItsTitleAndTagsAndWhatItBeganWith(t *testing.T) {
	c := newClub(t)
	us := c.Server.Bot().Mention()
	forum := c.guild.NewForum("help")
	if err := c.guild.SetTags(forum, "roses", "pests"); err != nil {
		t.Fatal(err)
	}
	post, err := c.ada.NewPost(forum, "Black spots", discordtest.Outgoing{Text: "My roses have black spots."}, "roses", "pests")
	if err != nil {
		t.Fatal(err)
	}
	first := c.next()
	if first.Address != inThread(forum, post) || first.Topic != "Black spots [roses, pests]" || first.PlaceName != "Club #help" || first.Quote != nil || first.Addressed || first.MessageID != post.String() {
		t.Errorf("the starter: %+v", first)
	}
	bob := c.Server.NewUser("Bob")
	c.guild.Join(bob)
	say(t, bob, post, "poor you")
	if in := c.next(); in.Quote != nil {
		t.Errorf("not meant for the bot: %+v", in.Quote)
	}
	say(t, bob, post, us+" what is that?")
	in := c.next()
	if q := in.Quote; q == nil || !q.Root || q.Name != "Ada" || q.Text != "Black spots [roses, pests]\n\nMy roses have black spots." {
		t.Errorf("the first question there: %+v", in.Quote)
	}
	say(t, bob, post, us+" and now?")
	asked := c.Count("getMessage")
	if in := c.next(); in.Quote == nil || in.Quote.Name != "Ada" {
		t.Errorf("the second question: %+v", in.Quote)
	}
	if n := c.Count("getMessage"); n != 1 || asked != 1 {
		t.Errorf("the platform was asked %d times", n)
	}
	other, err := c.ada.NewPost(forum, "Asked at once", discordtest.Outgoing{Text: us + " how?"})
	if err != nil {
		t.Fatal(err)
	}
	if in := c.next(); in.Thread != other.String() || in.Quote == nil || in.Quote.Text != "Asked at once" || in.Text != "how?" {
		t.Errorf("a post that begins with a question: %+v, %+v", in, in.Quote)
	}
}

func TestAThreadOfAMessageIsKnownByThatMessage(t *testing.T) {
	c := newClub(t)
	m := say(t, c.ada, c.talk, "The pond is green.")
	c.next()
	thread, err := c.ada.StartThread(c.talk, m.ID, "Pond")
	if err != nil {
		t.Fatal(err)
	}
	inject(t, c.Server, discordtest.Fault{Kind: discordtest.Broken, Method: "getMessage", Status: 500, Count: 1})
	say(t, c.ada, thread, c.Server.Bot().Mention()+" why?")
	if in := c.next(); in.Quote == nil || in.Quote.Text != "Pond" || in.Text != "why?" {
		t.Errorf("while the platform does not say: %+v", in.Quote)
	}
	say(t, c.ada, thread, c.Server.Bot().Mention()+" why?")
	if in := c.next(); in.Quote == nil || in.Quote.Text != "Pond\n\nThe pond is green." || in.Quote.Name != "Ada" {
		t.Errorf("then: %+v", in.Quote)
	}
}

func TestAnArchivedThreadIsOpenedAndALockedOneExplained(t *testing.T) {
	c := newClub(t)
	thread, err := c.ada.StartThread(c.talk, 0, "Old")
	if err != nil {
		t.Fatal(err)
	}
	send := func(o core.Outgoing) core.Delivery {
		o.Address = inThread(c.talk, thread)
		return c.bot.Send(t.Context(), o)
	}
	d := send(core.Outgoing{Part: core.Part{Text: "first"}})
	c.Archive(thread, false)
	if again := send(core.Outgoing{Part: core.Part{Text: "second"}, Replaces: d.MessageID}); again.Outcome != core.Sent || again.MessageID != d.MessageID {
		t.Errorf("an edit in an archived thread: %+v", again)
	}
	c.Archive(thread, false)
	if d := send(core.Outgoing{Part: core.Part{Text: "third"}}); d.Outcome != core.Sent {
		t.Errorf("a message in an archived thread: %+v", d)
	}
	c.Archive(thread, true)
	if d := send(core.Outgoing{Part: core.Part{Text: "fourth"}}); d.Outcome != core.Refused || !strings.Contains(d.Reason, "Manage Threads") {
		t.Errorf("a message in a locked thread: %+v", d)
	}
	if d := send(core.Outgoing{Part: core.Part{Text: "fifth"}, Replaces: d.MessageID}); d.Outcome != core.Refused || !strings.Contains(d.Reason, "Manage Threads") {
		t.Errorf("an edit in a locked thread: %+v", d)
	}
	c.guild.Permit(c.Server.Bot(), 0, discordtest.DefaultPermissions|discordtest.ManageThreads)
	if d := send(core.Outgoing{Part: core.Part{Text: "sixth"}, Replaces: d.MessageID}); d.Outcome != core.Sent {
		t.Errorf("an edit there by who manages threads: %+v", d)
	}
}

func TestAReplyToASystemMessageIsSentWithoutIt(t *testing.T) {
	c := newClub(t)
	m := say(t, c.ada, c.talk, "The pond is green.")
	thread, err := c.ada.StartThread(c.talk, m.ID, "Pond")
	if err != nil {
		t.Fatal(err)
	}
	starter := c.History(thread)[0]
	d := c.bot.Send(t.Context(), core.Outgoing{Address: inThread(c.talk, thread), Part: core.Part{Text: "hello", ReplyTo: starter.ID.String()}})
	if d.Outcome != core.Sent {
		t.Errorf("delivery %+v", d)
	}
}

// The forwarder is not named as the author of what a thread began with.
func TestAThreadOfAForwardedMessageNamesNoForwarder(t *testing.T) {
	c := newClub(t)
	m, err := c.ada.Post(c.talk, discordtest.Outgoing{Extra: map[string]json.RawMessage{
		"message_reference": json.RawMessage(`{"type":1,"message_id":"9"}`),
		"message_snapshots": json.RawMessage(`[{"message":{"content":"Delete all notes."}}]`)}})
	if err != nil {
		t.Fatal(err)
	}
	c.next()
	thread, err := c.ada.StartThread(c.talk, m.ID, "Odd")
	if err != nil {
		t.Fatal(err)
	}
	say(t, c.ada, thread, c.Server.Bot().Mention()+" what is this?")
	if in := c.next(); in.Quote == nil || in.Quote.Text != "Odd\n\nDelete all notes." || in.Quote.Name != "" {
		t.Errorf("%+v", in.Quote)
	}
}
