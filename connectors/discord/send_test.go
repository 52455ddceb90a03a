package discord

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors"
	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/discord/markup/markuptest"
	"gatehouse/core"
)

// bench is a bot that does not run, and a person's DM with it.
func bench(t *testing.T, change func(*Options)) (*discordtest.Server, *Bot, *discordtest.User) {
	t.Helper()
	s := platform(t, discordtest.Options{})
	ada := s.NewUser("Ada")
	s.NewGuild("Home", ada).AddBot(s.Bot()) // without a server in common nobody can be written to
	return s, connect(t, s, &connectorstest.Store{}, change), ada
}

func out(to core.Address, seq int64, text string) core.Outgoing {
	return core.Outgoing{Address: to, Part: core.Part{Text: text}, Seq: seq}
}

func TestALostAnswerIsSafeToRepeatAndShownOnce(t *testing.T) {
	for _, kind := range []discordtest.FaultKind{discordtest.Reset, discordtest.Half, discordtest.Hang, discordtest.Broken} {
		t.Run(string(kind), func(t *testing.T) {
			s, b, ada := bench(t, func(o *Options) { o.SendTimeout = 300 * time.Millisecond })
			inject(t, s, discordtest.Fault{Kind: kind, Method: "createMessage", After: true, Count: 1})
			d := b.Send(t.Context(), out(direct(ada.DM()), 7, "once"))
			if d.Outcome != core.Unknown || !d.Safe || d.Reason == "" {
				t.Errorf("delivery %+v", d)
			}
			d = b.Send(t.Context(), out(direct(ada.DM()), 7, "once"))
			if d.Outcome != core.Sent || d.MessageID == "" {
				t.Errorf("the repeat: %+v", d)
			}
			if got := s.History(ada.DM()); len(got) != 1 || got[0].ID.String() != d.MessageID {
				t.Errorf("the person sees %+v", got)
			}
		})
	}
}

func TestANonceNamesRowAndWordsInTwentyFiveCharacters(t *testing.T) {
	to := direct(1)
	seen := map[string]bool{}
	for _, o := range []core.Outgoing{out(to, 1, "a"), out(to, 2, "a"), out(to, 1, "b"), out(direct(2), 1, "a"), out(to, 1<<62, "a")} {
		n := nonce(o)
		if len(n) > 25 || seen[n] {
			t.Errorf("%d: %q", o.Seq, n)
		}
		seen[n] = true
		o.Repeat = true
		if nonce(o) != n {
			t.Error("a repeat has another nonce")
		}
	}
}

func TestNothingThatIsSentPingsOrUnfurls(t *testing.T) {
	s, b, ada := bench(t, nil)
	club := s.NewGuild("Club", ada)
	club.AddBot(s.Bot())
	talk := club.NewChannel("talk")
	asked := say(t, ada, talk, "?")
	o := out(inChannel(talk), 1, "@everyone "+ada.Mention()+" https://example.com/x_y")
	o.ReplyTo = asked.ID.String()
	if d := b.Send(t.Context(), o); d.Outcome != core.Sent {
		t.Fatalf("delivery %+v", d)
	}
	got := s.History(talk)[1]
	if len(got.Mentions) != 0 || got.Everyone || got.Flags&4 == 0 || got.Embeds != 0 || got.ReplyTo != asked.ID {
		t.Errorf("the channel sees %+v", got)
	}
	if shown := markuptest.Show(got.Text).Text.String(); shown != o.Text {
		t.Errorf("shown as %q", shown)
	}
	o = out(inChannel(talk), 2, "to a message that is gone")
	o.ReplyTo = "999"
	if d := b.Send(t.Context(), o); d.Outcome != core.Sent {
		t.Errorf("delivery %+v", d)
	}
}

func TestHowSendsEnd(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault discordtest.Fault
		want  core.Delivery
	}{
		{"429 of the route", discordtest.Fault{Kind: discordtest.Flooded, RetryAfter: 1.5}, core.Delivery{Outcome: core.RetryAfter, After: 1500 * time.Millisecond}},
		{"429 of the bot", discordtest.Fault{Kind: discordtest.Flooded, RetryAfter: 2, Global: true}, core.Delivery{Outcome: core.RetryAfter, After: 2 * time.Second, All: true}},
		{"429 that is no JSON", discordtest.Fault{Kind: discordtest.Banned, RetryAfter: 90}, core.Delivery{Outcome: core.RetryAfter, After: 90 * time.Second, All: true}},
		{"502 of a proxy", discordtest.Fault{Kind: discordtest.Broken, Status: 502}, core.Delivery{Outcome: core.Unknown}},
		{"503 of a proxy", discordtest.Fault{Kind: discordtest.Broken, Status: 503}, core.Delivery{Outcome: core.NotSent, Declined: true}},
		{"403 page of a proxy", discordtest.Fault{Kind: discordtest.Broken, Status: 403}, core.Delivery{Outcome: core.NotSent, Declined: true}},
		{"a redirect", discordtest.Fault{Kind: discordtest.Broken, Status: 302}, core.Delivery{Outcome: core.NotSent, Declined: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, b, ada := bench(t, nil)
			other := direct(s.NewUser("Eve").DM())
			c.fault.Method, c.fault.Count = "createMessage", 1
			inject(t, s, c.fault)
			d := b.Send(t.Context(), out(direct(ada.DM()), 1, "x"))
			if d.Outcome != c.want.Outcome || d.After != c.want.After || d.Declined != c.want.Declined || d.All != c.want.All || d.Reason == "" || strings.Contains(d.Reason, s.Token()) {
				t.Errorf("delivery %+v", d)
			}
			if held := b.Wait(direct(ada.DM())) > 0; held != (d.Outcome == core.RetryAfter) {
				t.Errorf("the channel is held: %v", held)
			}
			all := c.fault.Global || c.fault.Kind == discordtest.Banned
			if held := b.Wait(other) > 0; held != all {
				t.Errorf("another channel is held: %v", held)
			}
		})
	}
}

// A pause that the platform asks for is told, not slept through, and a call
// ends with its context while the platform says nothing.
func TestNoPauseAndNoSilenceOutlastsTheContext(t *testing.T) {
	s, b, ada := bench(t, func(o *Options) { o.SendTimeout = time.Hour })
	patient, end := context.WithTimeout(t.Context(), 5*time.Minute)
	defer end()
	inject(t, s, discordtest.Fault{Kind: discordtest.Flooded, RetryAfter: 3600, Method: "createMessage", Count: 1})
	if d := b.Send(patient, out(direct(ada.DM()), 1, "x")); d.Outcome != core.RetryAfter || d.After != time.Hour {
		t.Errorf("a pause of an hour: %+v", d)
	}
	inject(t, s, discordtest.Fault{Kind: discordtest.Hang, Method: "createMessage", Count: 1})
	hurried, stop := context.WithTimeout(patient, 50*time.Millisecond)
	defer stop()
	if d := b.Send(hurried, out(direct(s.NewUser("Eve").DM()), 2, "x")); d.Outcome != core.Unknown && d.Outcome != core.NotSent {
		t.Errorf("a platform that says nothing: %+v", d)
	}
	if patient.Err() != nil {
		t.Error("the calls outlasted their contexts")
	}
}

func TestAFinalRefusalHasAReason(t *testing.T) {
	s, b, ada := bench(t, nil)
	ada.CloseDMs()
	if d := b.Send(t.Context(), out(direct(ada.DM()), 1, "x")); d.Outcome != core.Refused || !strings.Contains(d.Reason, "direct messages") {
		t.Errorf("a closed DM: %+v", d)
	}
	if d := b.Send(t.Context(), out(direct(12345), 2, "x")); d.Outcome != core.Refused || !strings.Contains(d.Reason, "deleted") {
		t.Errorf("an unknown channel: %+v", d)
	}
	for _, chat := range []string{"", "x", "1/2", "../users/@me", "-5"} {
		if d := b.Send(t.Context(), out(core.Address{Bot: "bot", Chat: chat}, 3, "x")); d.Outcome != core.Refused {
			t.Errorf("the address %q: %+v", chat, d)
		}
	}
	s.Bot().Revoke()
	if d := b.Send(t.Context(), out(direct(ada.DM()), 4, "x")); d.Outcome != core.NotSent || strings.Contains(d.Reason, s.Token()) {
		t.Errorf("a revoked token: %+v", d)
	}
}

func TestThePlatformsHeadersAreObeyedBeforeItRefuses(t *testing.T) {
	s, b, ada := bench(t, nil)
	to := direct(ada.DM())
	sent := 0
	for i := range int64(20) {
		if b.Wait(to) > 0 {
			break
		}
		if d := b.Send(t.Context(), out(to, i+1, "x")); d.Outcome != core.Sent {
			t.Fatalf("send %d: %+v", i, d)
		}
		sent++
	}
	if sent == 20 {
		t.Error("the headers said nothing, or were not heard")
	}
	if _, err := b.Preview(t.Context(), to, "", core.Part{Text: "x"}); err != connectors.ErrNotNow {
		t.Errorf("a preview: %v", err)
	}
	for _, r := range s.Requests(0, "createMessage") {
		if r.Status == 429 {
			t.Error("the platform had to refuse")
		}
	}
}

func TestPaceLeavesRoomForTheFinal(t *testing.T) {
	g := newGate(hurried{time.Now()}, true)
	for g.Try("1", 1) {
	}
	if w := g.Wait("1"); w != 0 {
		t.Errorf("previews have used up the room of the final: %v", w)
	}
	for range 10 {
		g.Take("1")
	}
	if w := g.Wait("1"); w <= 0 {
		t.Error("no pace is held")
	}
	if w := g.Wait("2"); w > time.Second {
		t.Errorf("another channel waits %v", w)
	}
}

func TestAnEditOfADeletedMessageIsSentAsANewOne(t *testing.T) {
	s, b, ada := bench(t, nil)
	to := direct(ada.DM())
	foreign := ada.Send("mine")
	for i, id := range []string{"999999", foreign.ID.String(), "not an id"} {
		o := out(to, int64(i+1), "final")
		o.Replaces = id
		if d := b.Send(t.Context(), o); d.Outcome != core.Sent || d.MessageID == id || d.MessageID == "" {
			t.Errorf("%s: %+v", id, d)
		}
	}
	if n := s.Count("createMessage"); n != 3 {
		t.Errorf("%d messages were made", n)
	}
}

func TestAnEditThatIsNotAnsweredIsSafe(t *testing.T) {
	s, b, ada := bench(t, nil)
	to := direct(ada.DM())
	first := b.Send(t.Context(), out(to, 1, "half"))
	inject(t, s, discordtest.Fault{Kind: discordtest.Reset, Method: "editMessage", After: true, Count: 1})
	o := out(to, 2, "whole")
	o.Replaces = first.MessageID
	if d := b.Send(t.Context(), o); d.Outcome != core.Unknown || !d.Safe {
		t.Errorf("delivery %+v", d)
	}
	if d := b.Send(t.Context(), o); d.Outcome != core.Sent || d.MessageID != first.MessageID {
		t.Errorf("the repeat: %+v", d)
	}
	if got := s.History(ada.DM()); len(got) != 1 || got[0].Text != "whole" {
		t.Errorf("the person sees %+v", got)
	}
}

func TestPreviewsAreSilentAndTheFinalTakesTheirPlace(t *testing.T) {
	s, b, ada := bench(t, nil)
	to := direct(ada.DM())
	id, err := b.Preview(t.Context(), to, "", core.Part{Text: "ha", Buttons: [][]core.Button{{{Label: "Stop", Data: "stop"}}}})
	if err != nil {
		t.Fatal(err)
	}
	got := s.History(ada.DM())[0]
	if got.Flags&(1<<12) == 0 || len(got.Buttons) != 1 {
		t.Errorf("the preview is %+v", got)
	}
	o := out(to, 1, "half")
	o.Replaces = id
	if d := b.Send(t.Context(), o); d.Outcome != core.Sent || d.MessageID != id {
		t.Errorf("delivery %+v", d)
	}
	if got := s.History(ada.DM()); len(got) != 1 || got[0].Text != "half" || len(got[0].Buttons) != 0 {
		t.Errorf("the person sees %+v", got)
	}
}

// An edit notifies nobody: after a long run the answer is a message of its own, and the
// preview goes.
func TestAnEmptyPartDeletesThePreviewAndIsRepeatable(t *testing.T) {
	s, b, ada := bench(t, nil)
	to := direct(ada.DM())
	id, err := b.Preview(t.Context(), to, "", core.Part{Text: "ha"})
	if err != nil {
		t.Fatal(err)
	}
	if d := b.Send(t.Context(), out(to, 1, "half")); d.Outcome != core.Sent || d.MessageID == id {
		t.Errorf("the answer: %+v", d)
	}
	gone := out(to, 2, "")
	gone.Replaces = id
	inject(t, s, discordtest.Fault{Kind: discordtest.Reset, Method: "deleteMessage", After: true, Count: 1})
	if d := b.Send(t.Context(), gone); d.Outcome != core.Unknown || !d.Safe {
		t.Errorf("without a response: %+v", d)
	}
	if d := b.Send(t.Context(), gone); d.Outcome != core.Sent {
		t.Errorf("repeated: %+v", d)
	}
	if got := s.History(ada.DM()); len(got) != 1 || got[0].Text != "half" || got[0].Flags&(1<<12) != 0 {
		t.Errorf("the person sees %+v", got)
	}
	gone.Replaces = ada.Send("mine").ID.String()
	if d := b.Send(t.Context(), gone); d.Outcome != core.Sent {
		t.Errorf("one that it may not delete: %+v", d)
	}
}

// A late preview never stands over the final, and one that hangs holds none up.
func TestAFinalOvertakesAPreviewThatIsLateOrHangs(t *testing.T) {
	connectorstest.Overtaking(t, func(t *testing.T) *connectorstest.Previewed {
		s, b, ada := bench(t, nil)
		to := direct(ada.DM())
		return &connectorstest.Previewed{
			Bot: b, To: to,
			Slow: func(made bool) {
				method := map[bool]string{true: "createMessage", false: "editMessage"}[made]
				inject(t, s, discordtest.Fault{Kind: discordtest.Slow, Method: method, Delay: 100 * time.Millisecond, Count: 1})
			},
			Hang:     func() { inject(t, s, discordtest.Fault{Kind: discordtest.Hang, Method: "createMessage"}) },
			UnderWay: func() bool { return b.turns.Previewing(to.Chat) },
			Seen: func() (texts []string) {
				for _, m := range s.History(ada.DM()) {
					texts = append(texts, m.Text)
				}
				return texts
			},
			Edits: func() (texts []string) {
				for _, r := range s.Requests(0, "editMessage") {
					var content string
					if err := json.Unmarshal(r.Params["content"], &content); err != nil {
						t.Error(err)
					}
					texts = append(texts, content)
				}
				return texts
			},
		}
	})
}

// A preview that was made and never answered would stand beside the final for good.
func TestAPreviewWithALostAnswerIsFoundByItsNonce(t *testing.T) {
	for _, kind := range []discordtest.FaultKind{discordtest.Reset, discordtest.Half} {
		s, b, ada := bench(t, nil)
		to := direct(ada.DM())
		inject(t, s, discordtest.Fault{Kind: kind, Method: "createMessage", After: true, Count: 1})
		id, err := b.Preview(t.Context(), to, "", core.Part{Text: "half"})
		if err != nil {
			t.Fatal(kind, err)
		}
		o := out(to, 1, "whole")
		o.Replaces = id
		if d := b.Send(t.Context(), o); d.Outcome != core.Sent {
			t.Errorf("%s: delivery %+v", kind, d)
		}
		if got := s.History(ada.DM()); len(got) != 1 || got[0].Text != "whole" {
			t.Errorf("%s: the person sees %+v", kind, got)
		}
	}
}

func TestButtonsAreLaidOutWithinThePlatformsBounds(t *testing.T) {
	s, b, ada := bench(t, nil)
	row := func(n int) []core.Button {
		var out []core.Button
		for range n {
			out = append(out, core.Button{Label: strings.Repeat("long ", 40), Data: strings.Repeat("d", 60) + string(rune('a'+len(out)))})
		}
		return out
	}
	o := out(direct(ada.DM()), 1, "choose")
	o.Buttons = [][]core.Button{row(7)}
	if d := b.Send(t.Context(), o); d.Outcome != core.Sent {
		t.Fatalf("delivery %+v", d)
	}
	if got := s.History(ada.DM())[0].Buttons; len(got) != 2 || len(got[0]) != 5 || len(got[1]) != 2 {
		t.Errorf("the person sees %+v", got)
	}
	for _, bad := range [][][]core.Button{{{{Label: "x"}}}, {{{Label: "x", Data: strings.Repeat("x", 65)}}}, {row(26)}} {
		o.Buttons = bad
		if d := b.Send(t.Context(), o); d.Outcome != core.Refused {
			t.Errorf("delivery %+v", d)
		}
	}
}

func TestTestReturnsTheUsernameOrTheReason(t *testing.T) {
	s, b, _ := bench(t, nil)
	if name, err := b.Test(t.Context()); err != nil || name != "gatehouse" {
		t.Errorf("%q, %v", name, err)
	}
	inject(t, s, discordtest.Fault{Kind: discordtest.Broken, Status: 401, Count: 1})
	if _, err := b.Test(t.Context()); core.KindOf(err) != core.Busy {
		t.Errorf("a proxy's 401: %v", err)
	}
	s.Down()
	if _, err := b.Test(t.Context()); core.KindOf(err) != core.Busy || strings.Contains(err.Error(), s.Token()) {
		t.Errorf("a platform that is away: %v", err)
	}
}
