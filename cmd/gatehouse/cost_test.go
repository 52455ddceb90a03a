package main

import (
	"testing"

	"gatehouse/configs"
	"gatehouse/connectors/telegram/telegramtest"
)

// unguarded lets everybody talk, each message being a turn of its own.
func unguarded(c *configs.Config) {
	c.TelegramDMPolicy, c.BusyMode, c.RateLimit = "open", "queue", configs.Rate{}
	c.LimitRuns = 2000
}

// ask sends a message and waits for what the bot says after it.
func (w *world) ask(u *telegramtest.User) {
	w.t.Helper()
	sent := u.Send("where do we stand with this?")
	w.hears(u.DM(), func(m telegramtest.Message) bool { return m.ID > sent.ID })
}

// Stored and claimed, answered, sent: a message alone costs three commits.
func TestAMessageAloneCostsThreeCommits(t *testing.T) {
	w := newWorld(t, unguarded)
	u := w.sim.NewUser("Ada")
	const warm, n = 3, 20
	for range warm {
		w.ask(u)
	}
	before := w.app.db.Commits()
	for range n {
		w.ask(u)
	}
	w.stop() // the last send is settled
	// One for the last warm message's send, three for what a stop or a clock may write.
	if got := w.app.db.Commits() - before; got > 3*n+4 {
		t.Errorf("%d messages took %d commits, want %d", n, got, 3*n)
	}
}
