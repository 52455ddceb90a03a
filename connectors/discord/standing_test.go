package discord

import (
	"slices"
	"testing"

	"gatehouse/connectors"
	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/discord/readback"
	"gatehouse/connectors/discord/wire"
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

func TestJoiningAndLeavingAServerIsReported(t *testing.T) {
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

func TestADeletedChannelIsReported(t *testing.T) {
	c := newClub(t)
	if err := c.guild.DeleteChannel(c.talk); err != nil {
		t.Fatal(err)
	}
	in := c.standings(2)[1]
	if in.Standing != core.StandingRemoved || in.Address != inChannel(c.talk) || in.PlaceName != "Club #talk" {
		t.Errorf("deleted: %+v", in)
	}
	if d := c.bot.Send(t.Context(), core.Outgoing{Address: inChannel(c.talk), Part: core.Part{Text: "x"}}); d.Outcome != core.Refused || !d.Closed || d.Reason != "the channel was deleted (10003)" {
		t.Errorf("a send there: %+v", d)
	}
}

func TestAServerJoinedLongAgoIsNotReported(t *testing.T) {
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

// removals are the stored news that the bot was removed from somewhere.
func removals(store *connectorstest.Store) []core.Inbound {
	return slices.DeleteFunc(store.Rows(), func(in core.Inbound) bool { return in.Standing != core.StandingRemoved })
}

// A server that threw the bot out while the gateway was away is told of, once,
// whether the session goes on after it or a new one begins; a server that the
// platform merely calls unavailable is not.
func TestARemovalWhileTheGatewayWasAwayIsReportedOnce(t *testing.T) {
	for _, resumed := range []bool{true, false} {
		t.Run(map[bool]string{true: "resumed", false: "new session"}[resumed], func(t *testing.T) {
			s := platform(t, discordtest.Options{FloodOff: true})
			ada := s.NewUser("Ada")
			club, other := s.NewGuild("Club", ada), s.NewGuild("Other", ada)
			talk, there := club.NewChannel("talk"), other.NewChannel("there")
			store := &connectorstest.Store{}
			r := run(t, connect(t, s, store, nil), store)
			r.await(core.Running)
			thread, err := ada.StartThread(talk, 0, "aside")
			if err != nil {
				t.Fatal(err)
			}
			us := s.Bot().Mention()
			for n, in := range []discordtest.ID{thread, there} {
				say(t, ada, in, us+" hello")
				store.Await(t, n+1)
			}
			for n := range 2 {
				r.stop()
				left(t, s)
				if n == 0 {
					club.RemoveBot(s.Bot())
				}
				if !resumed {
					s.Bot().EndSessions()
				}
				r = run(t, connect(t, s, store, nil), store)
				r.await(core.Running)
				say(t, ada, there, us+" again")
				store.Await(t, 3+n)
				all := removals(store)
				if len(all) != 1 || all[0].Kind != core.KindService || !slices.Equal(all[0].Places, []string{talk.String()}) || all[0].UpdateID == "" || all[0].Bot == "" {
					t.Fatalf("after start %d: told %+v", n+1, all)
				}
			}
		})
	}
}

// left waits until the platform has noticed that the bot went away.
func left(t *testing.T, s *discordtest.Server) {
	t.Helper()
	for seen := lastSeq(s, ""); s.Bot().Online(); seen = lastSeq(s, "") {
		gatewayEvent(t, s, seen, "left")
	}
}

// twoServers is a bot in two servers, which Ada has addressed in each.
type twoServers struct {
	*running
	s           *discordtest.Server
	store       *connectorstest.Store
	ada         *discordtest.User
	club        *discordtest.Guild // of talk; there is in the other server
	talk, there discordtest.ID
}

func inTwoServers(t *testing.T) twoServers {
	t.Helper()
	h := twoServers{s: platform(t, discordtest.Options{FloodOff: true}), store: &connectorstest.Store{}}
	h.ada = h.s.NewUser("Ada")
	h.club = h.s.NewGuild("Club", h.ada)
	h.talk, h.there = h.club.NewChannel("talk"), h.s.NewGuild("Other", h.ada).NewChannel("there")
	h.running = run(t, connect(t, h.s, h.store, nil), h.store)
	h.await(core.Running)
	for n, in := range []discordtest.ID{h.talk, h.there} {
		say(t, h.ada, in, h.s.Bot().Mention()+" hello")
		h.store.Await(t, n+1)
	}
	return h
}

func TestAReportedRemovalIsNotReportedAgain(t *testing.T) {
	h := inTwoServers(t)
	s, r, store := h.s, h.running, h.store
	h.club.RemoveBot(s.Bot())
	say(t, h.ada, h.there, s.Bot().Mention()+" it is gone")
	store.Await(t, 3)
	r.stop()
	left(t, s)
	s.Bot().EndSessions()
	r = run(t, connect(t, s, store, nil), store)
	r.await(core.Running)
	say(t, h.ada, h.there, s.Bot().Mention()+" again")
	store.Await(t, 4)
	if all := removals(store); len(all) != 1 {
		t.Errorf("told %+v", all)
	}
}

// A mention that waits for what was missed in its channel does not have the channel known again.
func TestARemovalIsNotReportedAgainBecauseOfWhatWasHeld(t *testing.T) {
	h := inTwoServers(t)
	s, r, store := h.s, h.running, h.store
	r.stop()
	left(t, s)
	r = again(t, s, store, discordtest.Fault{Kind: discordtest.Hang, Method: "getMessages"})
	asked(t, s, 2)
	say(t, h.ada, h.talk, s.Bot().Mention()+" held")
	h.club.RemoveBot(s.Bot())
	store.Await(t, 3)
	s.NewUser("Eve").Send("behind the removal")
	store.Await(t, 4)
	r.stop()
	left(t, s)
	s.ClearFaults()
	again(t, s, store, discordtest.Fault{})
	say(t, h.ada, h.there, s.Bot().Mention()+" again")
	store.Await(t, 5)
	if all := removals(store); len(all) != 1 {
		t.Errorf("told %+v", all)
	}
}

// That a server is missing is believed only of a platform that names the
// others, and says of the server's channel, too, that it is closed.
func TestAServerIsGoneOnlyIfReadyAndItsChannelAgree(t *testing.T) {
	c := newClub(t)
	r := &receiver{bot: c.bot, in: c.store, report: func(core.BotState) {}, marks: connectors.NewLRU[string, *mark](maxMarks), back: readback.New(readback.Options{})}
	club := c.guild.ID().String()
	r.marks.Put(c.talk.String(), &mark{Channel: c.talk.String(), Guild: club, Message: "1"})
	told := func(named ...string) int {
		t.Helper()
		now := &wire.Ready{Session: "s"}
		if named != nil {
			now.Guilds.V = []wire.Guild{}
		}
		for _, id := range named {
			if id != "" {
				now.Guilds.V = append(now.Guilds.V, wire.Guild{ID: id, Unavailable: true})
			}
		}
		if err := r.missing(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		return len(removals(c.store))
	}
	if told("") != 0 {
		t.Error("its channel is open")
	}
	inject(t, c.Server, discordtest.Fault{Kind: discordtest.Broken, Method: "getChannel"})
	if told("") != 0 {
		t.Error("the platform could not be asked")
	}
	c.ClearFaults()
	c.guild.Permit(c.Server.Bot(), c.talk, 0)
	if told(club) != 0 {
		t.Error("only its channel is closed")
	}
	if told() != 0 {
		t.Error("the platform named none at all")
	}
	if told("") != 1 {
		t.Error("nobody hears of it")
	}
}
