package discord

import (
	"slices"
	"testing"

	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core"
)

// standings are the stored changes of the bot's own place, once there are n.
func (c *club) standings(n int) (out []core.Inbound) {
	c.t.Helper()
	eventually(c.t, "so many changes", func() bool {
		out = slices.DeleteFunc(c.store.Rows(), func(in core.Inbound) bool { return in.Standing == "" })
		return len(out) >= n
	})
	return out
}

func TestAServerThatLetsTheBotInOrThrowsItOutIsTold(t *testing.T) {
	c := newClub(t)
	hidden := c.guild.NewForum("help")
	added := c.standings(1)[0]
	if added.Standing != core.StandingAdded || added.Kind != core.KindService || added.Place != "" || added.PlaceName != "Club" || added.UpdateID == "" {
		t.Errorf("added: %+v", added)
	}
	c.guild.Outage() // the platform's own trouble is none of that
	c.guild.RemoveBot(c.Server.Bot())
	out := c.standings(2)[1]
	if out.Standing != core.StandingRemoved || out.PlaceName != "Club" || !slices.Equal(out.Places, []string{c.talk.String(), hidden.String()}) {
		t.Errorf("removed: %+v", out)
	}
	if d := c.bot.Send(t.Context(), core.Outgoing{Address: inChannel(c.talk), Part: core.Part{Text: "x"}}); d.Outcome != core.Refused || !d.Closed {
		t.Errorf("a send there: %+v", d)
	}
	c.guild.AddBot(c.Server.Bot())
	if back := c.standings(3)[2]; back.Standing != core.StandingAdded || back.UpdateID == added.UpdateID || !slices.Contains(back.Places, c.talk.String()) {
		t.Errorf("back: %+v", back)
	}
	c.Server.Bot().EndSessions() // a new session describes the server anew
	say(t, c.ada, c.talk, "hello")
	c.next()
	if n := len(c.standings(3)); n != 3 {
		t.Errorf("%d changes after a new session", n)
	}
}

func TestADeletedChannelIsTold(t *testing.T) {
	c := newClub(t)
	if err := c.guild.DeleteChannel(c.talk); err != nil {
		t.Fatal(err)
	}
	in := c.standings(2)[1]
	if in.Standing != core.StandingRemoved || in.Address != inChannel(c.talk) || in.PlaceName != "Club #talk" {
		t.Errorf("deleted: %+v", in)
	}
	if d := c.bot.Send(t.Context(), core.Outgoing{Address: inChannel(c.talk), Part: core.Part{Text: "x"}}); d.Outcome != core.Refused || !d.Closed || d.Reason != "the channel is gone (10003)" {
		t.Errorf("a send there: %+v", d)
	}
}

func TestAServerOfLongAgoIsNotTold(t *testing.T) {
	s := platform(t, discordtest.Options{FloodOff: true})
	ada := s.NewUser("Ada")
	g := s.NewGuild("Old", ada)
	talk := g.NewChannel("talk")
	store := &connectorstest.Store{}
	late := func(o *Options) { o.Clock = hurried{} } // far from when the bot joined
	b := connect(t, s, store, late)
	run(t, b, store).await(core.Running)
	say(t, ada, talk, "hello")
	store.Await(t, 1)
	for _, in := range store.Rows() {
		if in.Standing != "" {
			t.Errorf("told %+v", in)
		}
	}
}
