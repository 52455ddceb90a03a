package chat

import (
	"context"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors/chat/saved"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/command"
	"gatehouse/pairing/places"
)

// stopping is a Stopper that finds a run.
type stopping struct{}

func (stopping) Stop(context.Context, command.Request) (stopped, others bool, err error) {
	return true, false, nil
}

func (stopping) StopRun(context.Context, command.Request, string) (stopped, others bool, err error) {
	return true, false, nil
}

// Discord shows "thinking…" in the place of the answer until there is one. Elsewhere the end of
// the run is the answer.
func TestAStopWithAPlaceForItsAnswerIsAnswered(t *testing.T) {
	a := &answers{stopper: stopping{}}
	for slot, answered := range map[string]bool{"": false, "interaction": true} {
		out, err := a.stop(t.Context(), command.Request{Call: command.Call{In: &core.Inbound{Slot: slot}}})
		if err != nil || (out.Text != "") != answered {
			t.Errorf("in the place %q: %q, %v", slot, out.Text, err)
		}
	}
}

func TestCommandAllow(t *testing.T) {
	owner, admin, guest := command.Request{User: 1, Role: "owner"}, command.Request{User: 2, Role: "admin"}, command.Request{User: 3, Role: "guest", Call: command.Call{Trust: core.Sandboxed}}
	trusted := command.Request{User: 4, Role: "guest", Call: command.Call{Trust: core.Vault}}
	direct, group := core.Address{Bot: "b", Chat: "1"}, core.Address{Bot: "b", Chat: "2", Place: "2"}
	for _, c := range []struct {
		name string
		cmd  command.Command
		r    command.Request
		at   core.Address
		args string
		want core.Kind
	}{
		{"anyone", command.Command{}, guest, group, "", core.Other},
		{"an owner's command by a guest", command.Command{Managers: true}, guest, direct, "", core.Denied},
		{"an owner's command by an admin", command.Command{Managers: true}, admin, direct, "", core.Other},
		{"a direct command in a group", command.Command{Where: command.DirectOnly, Elsewhere: "no"}, owner, group, "", core.Invalid},
		{"a group command in a direct chat", command.Command{Where: command.GroupOnly, Elsewhere: "no"}, owner, direct, "", core.Invalid},
		{"a guest changes a direct chat", command.Command{Where: command.ManagedGroup}, guest, direct, "", core.Other},
		{"a guest changes a group", command.Command{Where: command.ManagedGroup}, guest, group, "", core.Denied},
		{"the owner changes a group", command.Command{Where: command.ManagedGroup}, owner, group, "", core.Other},
		{"a guest reads a group's setting", command.Command{Where: command.ManagedGroupArgs}, guest, group, " ", core.Other},
		{"a guest sets a group's setting", command.Command{Where: command.ManagedGroupArgs}, guest, group, "x", core.Denied},
		{"a command that guests cannot use, by a guest", command.Command{Guests: func() error { return core.Errorf(core.Denied, "no") }}, guest, direct, "", core.Denied},
		{"a command that guests cannot use, by the owner", command.Command{Guests: func() error { return core.Errorf(core.Denied, "no") }}, owner, direct, "", core.Other},
		{"a command that guests cannot use, at trust vault", command.Command{Guests: func() error { return core.Errorf(core.Denied, "no") }}, trusted, direct, "", core.Other},
		{"a command that guests can use now", command.Command{Guests: func() error { return nil }}, guest, direct, "", core.Other},
		{"who may comes before where", command.Command{Managers: true, Where: command.DirectOnly, Elsewhere: "no"}, guest, group, "", core.Denied},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.r.In = &core.Inbound{Address: c.at, Text: c.args}
			err := allow(c.cmd, c.r)
			if got := core.KindOf(err); err == nil && c.want != core.Other || err != nil && got != c.want {
				t.Errorf("got %v, want kind %v", err, c.want)
			}
		})
	}
}

func TestSharedIdentityIsNeverOwner(t *testing.T) {
	r := command.Request{Role: "owner"}
	r.In = &core.Inbound{From: core.Peer{Shared: true}}
	if r.Manages() {
		t.Error("an identity that several users share manages the bot")
	}
}

func TestParseGroup(t *testing.T) {
	s := places.Settings{Mention: places.MentionAll}
	level, err := parseGroup("vault 20/60s", &s)
	if err != nil || level != core.Vault || s.Mention != places.MentionAll || s.RateN != 20 || s.RatePer != time.Minute {
		t.Errorf("got %v, %+v, %v", level, s, err)
	}
	if _, err := parseGroup("mention unlimited", &s); err != nil || s.Mention != places.MentionOnly || s.RateN != 0 {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, args := range []string{"0/60s", "x/60s", "5/soon", "everything"} {
		if _, err := parseGroup(args, &s); core.KindOf(err) != core.Invalid {
			t.Errorf("%q: got %v, want an error of kind invalid", args, err)
		}
	}
}

func TestMatching(t *testing.T) {
	names := []string{"openai/small", "openai/smaller", "local/quote"}
	for word, want := range map[string]int{"openai/small": 1, "OPENAI/SMALL": 1, "quote": 1, "small": 2, "x": 0} {
		if got := matching(names, word); len(got) != want {
			t.Errorf("matching(%q) = %q, want %d names", word, got, want)
		}
	}
}

func TestDocumentName(t *testing.T) {
	for title, want := range map[string]string{"Plans": "Plans.md", "a/b\\c": "a-b-c.md", " . ": documentName(""), "../x": "-x.md"} {
		if got := documentName(title); got != want {
			t.Errorf("documentName(%q) = %q, want %q", title, got, want)
		}
	}
}

// Commands that only show something do not wait for an answer that is made, and have not the
// rate of /stop; one that changes something, or that asks a model, waits for its turn.
func TestCommandsThatOnlyShowDoNotWaitForAnAnswer(t *testing.T) {
	c := New(Options{Agents: &agent.Agents{}, Saved: saved.Command{Contexts: struct{ saved.Contexts }{}}})
	for text, want := range map[string]string{
		"help": "shows", "start": "shows", "whoami": "shows", "usage": "shows", "sessions": "shows", "pairing": "shows",
		"model": "shows", "agent ": "shows", "busy": "shows", "trust": "shows", "context": "shows", "activity": "shows", "timezone": "shows",
		"stop": "control", "status": "control", "approve K7M2Q9XT vault": "control", "deny K7M2Q9XT": "control",
		"model tea": "", "agent tea": "", "busy queue": "", "trust vault": "", "context tea": "",
		"activity off": "", "timezone Asia/Tokyo": "", "new": "", "compact": "", "resume": "", "journal": "",
		"invite": "", "enable": "", "disable": "", "link": "", "nonsense": "", "search tea": "", "search": "",
	} {
		name, args, _ := strings.Cut(text, " ")
		got := ""
		switch control, shows := c.Passes(&core.Inbound{Kind: core.KindCommand, Command: name, Text: args}); {
		case control:
			got = "control"
		case shows:
			got = "shows"
		}
		if got != want {
			t.Errorf("/%s is %q, want %q", text, got, want)
		}
	}
	if control, shows := c.Passes(&core.Inbound{Kind: core.KindMessage, Command: "help"}); control || shows {
		t.Error("a message is handled beside an answer")
	}
}
