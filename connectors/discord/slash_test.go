package discord

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors"
	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core"
	"gatehouse/core/coretest"
)

var menu = []connectors.Command{
	{Name: "new", Description: "begin a new conversation", Args: "keep"},
	{Name: "usage", Description: strings.Repeat("long ", 40), Private: true},
	{Name: "model", Description: "list the models", Args: "NAME", Completes: true},
}

// slashed is a bot that has registered menu.
func slashed(t *testing.T, s *discordtest.Server, store *connectorstest.Store, change func(*Options)) *Bot {
	t.Helper()
	b := connect(t, s, store, func(o *Options) {
		o.Menu = menu
		if change != nil {
			change(o)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx, store, func(core.BotState) {}) }()
	t.Cleanup(func() { cancel(); <-ended })
	eventually(t, "the commands are registered", func() bool { return len(s.Bot().Commands(0)) == len(menu)+1 })
	return b
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(5 * time.Minute)
	for !f() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("never: %s", what)
		}
	}
}

func TestSlashCommandsAreRegisteredOncePerChange(t *testing.T) {
	s := platform(t, discordtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	slashed(t, s, store, nil)
	if got := s.Bot().Commands(0); !slices.Contains(got, "ask") || !slices.Contains(got, "usage") {
		t.Errorf("registered %v", got)
	}
	eventually(t, "the hash is kept", func() bool {
		v, _ := store.Load(t.Context(), "discord:"+s.Bot().ID().String()+":commands")
		return v != ""
	})
	b := connect(t, s, store, func(o *Options) { o.Menu = menu })
	b.answers.Deploy(t.Context(), s.Bot().ID().String())
	if n := len(s.Requests(0, "overwriteCommands")); n != 1 {
		t.Errorf("registered %d times", n)
	}
	b = connect(t, s, store, func(o *Options) { o.Menu = menu[:1] })
	b.answers.Deploy(t.Context(), s.Bot().ID().String())
	if got := s.Bot().Commands(0); len(got) != 2 {
		t.Errorf("after a change: %v", got)
	}
}

// A slash command is stored, "thinking…" stands in the chat, and the answer
// takes its place.
func TestTheAnswerOfASlashCommandTakesThePlaceOfThinking(t *testing.T) {
	s := platform(t, discordtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	ada := s.NewUser("Ada")
	guild := s.NewGuild("Club", ada)
	talk := guild.NewChannel("talk")
	b := slashed(t, s, store, nil)
	for n, c := range []struct {
		in           discordtest.ID
		name, option string
		value        string
		want         core.Inbound
		only         bool
	}{
		{ada.DM(), "ask", "question", "why?", core.Inbound{Kind: core.KindMessage, Text: "why?"}, false},
		{talk, "new", "words", " keep ", core.Inbound{Kind: core.KindCommand, Command: "new", Text: "keep"}, false},
		{talk, "usage", "", "", core.Inbound{Kind: core.KindCommand, Command: "usage"}, true},
	} {
		id, err := ada.Slash(c.in, c.name, map[string]any{c.option: c.value})
		if err != nil {
			t.Fatal(err)
		}
		rows := store.Await(t, n+1)
		in := rows[n]
		if in.Kind != c.want.Kind || in.Command != c.want.Command || in.Text != c.want.Text || !in.Addressed || in.Slot == "" || in.From.ID != ada.ID().String() {
			t.Fatalf("/%s became %+v", c.name, in)
		}
		eventually(t, "it thinks", func() bool { i, _ := s.Interaction(id); return i.State == discordtest.StateThinking })
		if _, err := b.Preview(t.Context(), in.Address, in.Slot, core.Part{Text: "half"}); err != nil {
			t.Errorf("/%s preview: %v", c.name, err)
		}
		d := b.Send(t.Context(), core.Outgoing{Address: in.Address, Part: core.Part{Text: "whole"}, Seq: int64(n + 1), Replaces: in.Slot})
		i, _ := s.Interaction(id)
		m, _ := s.Message(c.in, i.Message)
		if d.Outcome != core.Sent || d.MessageID != i.Message.String() || i.State != discordtest.StateAnswered || m.Text != "whole" || (m.OnlyFor == ada.ID()) != c.only {
			t.Errorf("/%s: %+v, %+v, shown as %+v", c.name, d, i, m)
		}
	}
}

// What one person alone may see is seen by them alone to its last part, and by
// nobody once the platform takes no more of it.
func TestFurtherPartsOfAPrivateAnswerAreAsPrivate(t *testing.T) {
	s := platform(t, discordtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	ada := s.NewUser("Ada")
	talk := s.NewGuild("Club", ada).NewChannel("talk")
	b := slashed(t, s, store, nil)
	for n, c := range []struct {
		name string
		only bool
	}{{"new", false}, {"usage", true}} {
		id, err := ada.Slash(talk, c.name, nil)
		if err != nil {
			t.Fatal(err)
		}
		in := store.Await(t, n+1)[n]
		eventually(t, "it thinks", func() bool { i, _ := s.Interaction(id); return i.State == discordtest.StateThinking })
		for part, replaces := range []string{in.Slot, "", ""} {
			if part == 1 { // nothing of it is remembered
				b = connect(t, s, store, func(o *Options) { o.Menu = menu })
			}
			out := core.Outgoing{Address: in.Address, Part: core.Part{Text: fmt.Sprint(c.name, part), Aside: in.Aside}, Seq: int64(10*n + part + 1), Answer: "reply:" + c.name, Replaces: replaces}
			if d := b.Send(t.Context(), out); d.Outcome != core.Sent || d.MessageID == "" {
				t.Fatalf("/%s part %d: %+v", c.name, part, d)
			}
		}
		all := s.History(talk)
		for part, m := range all[len(all)-3:] {
			if m.Text != fmt.Sprint(c.name, part) || (m.OnlyFor == ada.ID()) != c.only {
				t.Errorf("/%s part %d is shown as %+v", c.name, part, m)
			}
		}
	}
	// Another answer in the chat is for everybody, as before.
	if d := b.Send(t.Context(), core.Outgoing{Address: core.Address{Bot: "discord", Chat: talk.String()}, Part: core.Part{Text: "to all"}, Seq: 99, Answer: "run:1"}); d.Outcome != core.Sent {
		t.Fatalf("%+v", d)
	}
	if all := s.History(talk); all[len(all)-1].Text != "to all" || all[len(all)-1].OnlyFor != 0 {
		t.Errorf("shown as %+v", all[len(all)-1])
	}
	gone := "slot:" + "1/" + s.Bot().ID().String() + "/nonsense"
	before := len(s.History(talk))
	for _, replaces := range []string{gone, ""} {
		d := b.Send(t.Context(), core.Outgoing{Address: core.Address{Bot: "discord", Chat: talk.String()}, Part: core.Part{Text: "a secret", Aside: gone}, Seq: 100, Answer: "reply:late", Replaces: replaces})
		if d.Outcome != core.Refused || !d.Late || len(s.History(talk)) != before {
			t.Errorf("too late: %+v, %+v", d, s.History(talk))
		}
	}
}

// What one person alone sees is edited for them alone, by the token it was sent
// with, and what a button under it asks for is as private.
func TestAPrivateAnswerWithButtonsContinuesInPrivate(t *testing.T) {
	s := platform(t, discordtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	ada := s.NewUser("Ada")
	talk := s.NewGuild("Club", ada).NewChannel("talk")
	b := slashed(t, s, store, nil)
	id, err := ada.Slash(talk, "usage", nil)
	if err != nil {
		t.Fatal(err)
	}
	in := store.Await(t, 1)[0]
	eventually(t, "it thinks", func() bool { i, _ := s.Interaction(id); return i.State == discordtest.StateThinking })
	part := core.Part{Text: "which?", Aside: in.Aside, Buttons: [][]core.Button{{{Label: "This", Data: "abcdefghijklmnop:0"}}}}
	shown := b.Send(t.Context(), core.Outgoing{Address: in.Address, Part: part, Seq: 1, Answer: "notice:1", Replaces: in.Slot})
	message, err := discordtest.ParseID(shown.MessageID)
	if err != nil {
		t.Fatal(err)
	}
	if id, err = ada.Press(talk, message, "abcdefghijklmnop:0"); err != nil {
		t.Fatal(err)
	}
	press := store.Await(t, 2)[1]
	if press.Kind != core.KindCallback || press.Aside == "" || press.Slot != "" {
		t.Fatalf("the press became %+v", press)
	}
	edited := b.Send(t.Context(), core.Outgoing{Address: in.Address, Part: core.Part{Text: "this", Aside: in.Aside}, Seq: 2, Answer: "notice:1", Replaces: shown.MessageID})
	answered := b.Send(t.Context(), core.Outgoing{Address: in.Address, Part: core.Part{Text: "the answer", Aside: press.Aside}, Seq: 3, Answer: "notice:2"})
	all := s.History(talk)
	if len(all) != 2 || all[0].Text != "this" || all[1].Text != "the answer" || all[0].OnlyFor != ada.ID() || all[1].OnlyFor != ada.ID() {
		t.Errorf("edited %+v, answered %+v: the channel shows %+v", edited, answered, all)
	}
	late := b.Send(t.Context(), core.Outgoing{Address: in.Address, Part: core.Part{Text: "late", Aside: "slot:" + "1/2/x"}, Seq: 4, Answer: "notice:1", Replaces: shown.MessageID})
	if late.Outcome != core.Refused || late.Late || len(s.History(talk)) != 2 {
		t.Errorf("an edit that comes too late: %+v, %+v", late, s.History(talk))
	}
}

// What comes in between, such as a question of a tool's, stands for itself: what
// is shown of the answer does not write over it.
func TestAMessageInBetweenDoesNotTakeThePlaceOfThinking(t *testing.T) {
	s := platform(t, discordtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	ada := s.NewUser("Ada")
	b := slashed(t, s, store, nil)
	id, err := ada.Slash(ada.DM(), "new", nil)
	if err != nil {
		t.Fatal(err)
	}
	in := store.Await(t, 1)[0]
	eventually(t, "it thinks", func() bool { i, _ := s.Interaction(id); return i.State == discordtest.StateThinking })
	if d := b.Send(t.Context(), core.Outgoing{Address: in.Address, Part: core.Part{Text: "May I?"}, Seq: 1}); d.Outcome != core.Sent {
		t.Fatalf("%+v", d)
	}
	if _, err := b.Preview(t.Context(), in.Address, in.Slot, core.Part{Text: "half"}); err != nil {
		t.Fatal(err)
	}
	if all := s.History(ada.DM()); len(all) != 2 || all[0].Text != "half" || all[1].Text != "May I?" {
		t.Errorf("the chat shows %+v", all)
	}
}

// After a minute without an answer the sign goes, and an answer that comes
// later is a message of its own; so is one to a token that has ended.
func TestAnAnswerThatComesLateIsAMessageOfItsOwn(t *testing.T) {
	clock := coretest.NewClock(time.Now())
	s := platform(t, discordtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	ada := s.NewUser("Ada")
	b := slashed(t, s, store, func(o *Options) { o.Clock = clock })
	id, err := ada.Slash(ada.DM(), "ask", map[string]any{"question": "why?"})
	if err != nil {
		t.Fatal(err)
	}
	in := store.Await(t, 1)[0]
	eventually(t, "it thinks", func() bool { i, _ := s.Interaction(id); return i.State == discordtest.StateThinking })
	eventually(t, "the sign goes", func() bool {
		clock.Advance(time.Minute)
		return len(s.History(ada.DM())) == 0
	})
	shown, err := b.Preview(t.Context(), in.Address, in.Slot, core.Part{Text: "half"})
	if all := s.History(ada.DM()); err != nil || len(all) != 1 || shown != all[0].ID.String() || all[0].Text != "half" {
		t.Fatalf("a preview in the place of what is gone: %q, %v, %+v", shown, err, all)
	}
	if d := b.Send(t.Context(), core.Outgoing{Address: in.Address, Part: core.Part{Text: "late 0"}, Seq: 1, Replaces: shown}); d.MessageID != shown {
		t.Errorf("its final: %+v", d)
	}
	for n, slot := range []string{"slot:" + "1/" + s.Bot().ID().String() + "/nonsense", "slot:" + "x"} {
		n++
		text := fmt.Sprint("late ", n)
		if d := b.Send(t.Context(), core.Outgoing{Address: in.Address, Part: core.Part{Text: text}, Seq: int64(n + 1), Replaces: slot}); d.Outcome != core.Sent {
			t.Fatalf("%+v", d)
		}
		if all := s.History(ada.DM()); len(all) != n+1 || all[n].Text != text {
			t.Errorf("the chat shows %+v", all)
		}
	}
}

// The token of a command ends after 15 minutes; a run may take longer. A private answer
// has no other way.
func TestTheAnswerOfALongRunReplacesThePreviewOfItsCommand(t *testing.T) {
	for _, private := range []bool{false, true} {
		t.Run(map[bool]string{false: "public", true: "private"}[private], func(t *testing.T) {
			clock := coretest.NewClock(time.Now())
			s := platform(t, discordtest.Options{FloodOff: true, Clock: clock})
			store := &connectorstest.Store{}
			ada := s.NewUser("Ada")
			talk := s.NewGuild("Club", ada).NewChannel("talk")
			b := slashed(t, s, store, func(o *Options) { o.Clock = clock })
			name, options := "ask", map[string]any{"question": "why?"}
			if private {
				name, options = "usage", nil
			}
			id, err := ada.Slash(talk, name, options)
			if err != nil {
				t.Fatal(err)
			}
			in := store.Await(t, 1)[0]
			eventually(t, "it thinks", func() bool { i, _ := s.Interaction(id); return i.State == discordtest.StateThinking })
			shown := in.Slot
			for _, wait := range []time.Duration{0, 11 * time.Minute} {
				clock.Advance(wait)
				got, err := b.Preview(t.Context(), in.Address, shown, core.Part{Text: "half " + wait.String()})
				if slot := wait == 0 || private; err != nil || (got == in.Slot) != slot {
					t.Fatalf("the preview after %v: %q, %v", wait, got, err)
				}
				shown = got
			}
			clock.Advance(5 * time.Minute)
			i, _ := s.Interaction(id)
			if private {
				if m, _ := s.Message(talk, i.Message); m.Text != "half 11m0s" || m.OnlyFor != ada.ID() {
					t.Errorf("she sees %+v", m)
				}
				return
			}
			d := b.Send(t.Context(), core.Outgoing{Address: in.Address, Part: core.Part{Text: "whole"}, Seq: 1, Replaces: shown})
			if all := s.History(talk); d.Outcome != core.Sent || len(all) != 1 || all[0].ID != i.Message || all[0].Text != "whole" {
				t.Errorf("%+v; the chat shows %+v", d, all)
			}
		})
	}
}

// There the token of the command alone reaches its message, for 15 minutes.
func TestTheAnswerOfALongRunInAHiddenChannelReplacesThePreviewOfItsCommand(t *testing.T) {
	clock := coretest.NewClock(time.Now())
	s := platform(t, discordtest.Options{FloodOff: true, Clock: clock})
	store := &connectorstest.Store{}
	ada := s.NewUser("Ada")
	club := s.NewGuild("Club", ada)
	talk := club.NewChannel("talk")
	b := slashed(t, s, store, func(o *Options) { o.Clock = clock })
	id, err := ada.Slash(talk, "ask", map[string]any{"question": "why?"})
	if err != nil {
		t.Fatal(err)
	}
	in := store.Await(t, 1)[0]
	eventually(t, "it thinks", func() bool { i, _ := s.Interaction(id); return i.State == discordtest.StateThinking })
	club.Permit(s.Bot(), talk, 0)
	clock.Advance(11 * time.Minute)
	shown, err := b.Preview(t.Context(), in.Address, in.Slot, core.Part{Text: "half"})
	if err != nil || shown != in.Slot {
		t.Errorf("the preview is %q, %v", shown, err)
	}
	clock.Advance(2 * time.Minute)
	d := b.Send(t.Context(), core.Outgoing{Address: in.Address, Part: core.Part{Text: "whole"}, Seq: 1, Replaces: shown})
	if all := s.History(talk); d.Outcome != core.Sent || len(all) != 1 || all[0].Text != "whole" {
		t.Errorf("%+v; the chat shows %+v", d, all)
	}
}

// "thinking…" is deleted just when the answer arrives.
func TestAnAnswerWaitsForTheDeletionOfThinkingAndIsAMessageOfItsOwn(t *testing.T) {
	clock := coretest.NewClock(time.Now())
	s := platform(t, discordtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	ada := s.NewUser("Ada")
	target, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	deleting, edited := make(chan bool, 1), make(chan bool, 1)
	pass := httputil.NewSingleHostReverseProxy(target)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hook := strings.Contains(r.URL.Path, "/webhooks/")
		if hook && r.Method == http.MethodDelete {
			deleting <- true
			select {
			case <-edited:
			case <-time.After(200 * time.Millisecond): // it waits for us
			}
		}
		pass.ServeHTTP(w, r)
		if hook && r.Method == http.MethodPatch {
			edited <- true
		}
	}))
	t.Cleanup(between.Close)
	b := slashed(t, s, store, func(o *Options) { o.Clock, o.APIURL = clock, between.URL+target.Path })
	id, err := ada.Slash(ada.DM(), "ask", map[string]any{"question": "why?"})
	if err != nil {
		t.Fatal(err)
	}
	in := store.Await(t, 1)[0]
	eventually(t, "it thinks", func() bool { i, _ := s.Interaction(id); return i.State == discordtest.StateThinking })
	eventually(t, "the deletion begins", func() bool {
		clock.Advance(time.Minute)
		return len(deleting) > 0
	})
	d := b.Send(t.Context(), core.Outgoing{Address: in.Address, Part: core.Part{Text: "whole"}, Seq: 1, Replaces: in.Slot})
	if all := s.History(ada.DM()); d.Outcome != core.Sent || len(all) != 1 || all[0].Text != "whole" || all[0].ID.String() != d.MessageID {
		t.Errorf("%+v; the chat shows %+v", d, all)
	}
}

func TestAHalfTypedOptionIsCompletedAndNothingIsStored(t *testing.T) {
	s := platform(t, discordtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	ada := s.NewUser("Ada")
	slashed(t, s, store, func(o *Options) {
		o.Complete = func(_ context.Context, who core.Peer, command, typed string) (out []string) {
			if who.ID != ada.ID().String() || command != "model" {
				return nil
			}
			for n := range 40 {
				out = append(out, fmt.Sprintf("%s-%d", typed, n))
			}
			return append([]string{strings.Repeat("x", 101), ""}, out...)
		}
	})
	if _, err := ada.HalfType(ada.DM(), "new", "words", "k"); err == nil {
		t.Error("an option that is not completed")
	}
	id, err := ada.HalfType(ada.DM(), "model", "words", "loc")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "choices are offered", func() bool { i, _ := s.Interaction(id); return i.State == discordtest.StateAnswered })
	if i, _ := s.Interaction(id); len(i.Choices) != 25 || i.Choices[0] != "loc-0" {
		t.Errorf("offered %v", i.Choices)
	}
	ada.Send("after it")
	if rows := store.Await(t, 1); rows[0].Text != "after it" {
		t.Errorf("stored %+v", rows)
	}
}
