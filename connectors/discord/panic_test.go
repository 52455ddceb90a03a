package discord

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"gatehouse/connectors"
	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core"
)

// What answers a press or a completion runs beside the connection, for strangers too: a panic
// of it costs that answer alone.
func TestAPanicInAFormOrACompletionCostsThatAnswerAlone(t *testing.T) {
	var asked atomic.Int32
	c := newClubWith(t, func(o *Options) {
		o.Menu = []connectors.Command{{Name: "model", Description: "Choose the model", Args: "NAME", Completes: true}}
		o.Form = func(context.Context, *core.Inbound) (connectors.Form, error) { asked.Add(1); panic("a form") }
		o.Complete = func(context.Context, core.Peer, string, string) []string { asked.Add(1); panic("a completion") }
	})
	o := out(inChannel(c.talk), 1, "which?")
	o.Buttons = [][]core.Button{{{Label: "Other…", Data: "aaaabbbbccccdddd:form", Form: true}}}
	d := c.bot.Send(t.Context(), o)
	message, _ := discordtest.ParseID(d.MessageID)
	eventually(t, "the command is registered", func() bool { return len(c.Server.Bot().Commands(0)) == 2 })
	for n := range int32(2) {
		if _, err := c.ada.Press(c.talk, message, "form:aaaabbbbccccdddd:form"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.ada.HalfType(c.ada.DM(), "model", "words", "x"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "both are asked", func() bool { return asked.Load() == 2*(n+1) })
		say(t, c.ada, c.talk, "hello")
		if in := c.next(); in.Text != "hello" {
			t.Errorf("then came %+v", in)
		}
	}
	if !c.Server.Bot().Online() {
		t.Error("the connection ended")
	}
}

// A panic while events are processed ends the connection, and what was not stored comes again.
func TestAPanicWhileEventsAreStoredEndsTheConnectionAlone(t *testing.T) {
	s := platform(t, discordtest.Options{FloodOff: true})
	store := &connectorstest.Store{}
	ada := s.NewUser("Ada")
	var puts atomic.Int32
	store.Watch(func(page []core.Inbound) {
		if page[0].Text == "boom" && puts.Add(1) <= 2 {
			panic("a fault")
		}
	})
	b := connect(t, s, store, func(o *Options) { o.Clock = hurried{began: core.System{}.Now()} })
	r := run(t, b, store)
	r.await(core.Running)
	ada.Send("boom")
	if state := r.await(core.Reconnecting); !strings.Contains(state.LastError, "panicked: a fault") {
		t.Errorf("reported: %+v", state)
	}
	ada.Send("after it")
	if rows := store.Await(t, 2); rows[0].Text != "boom" || rows[1].Text != "after it" {
		t.Errorf("stored %+v", rows)
	}
	r.await(core.Running)
	if n := puts.Load(); n < 3 {
		t.Errorf("%d tries", n)
	}
}
