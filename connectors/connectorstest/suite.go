package connectorstest

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/connectors"
	"gatehouse/core"
)

// A Platform is a simulated platform with one bot and one user. Every field is
// required. Addresses have the connector's form; the suite sets Bot.
type Platform struct {
	// Connect makes a connector for the bot, named "bot", over store and log. The
	// suite calls it again for a restart.
	Connect func(t *testing.T, store *Store, log *slog.Logger) connectors.Connector
	Secret  string // the bot's token, which must appear nowhere

	Say      func(text string)           // the user writes to the bot in private
	SayThere func(text string)           // and in a thread of a group, addressed to the bot
	Garbage  func()                      // the platform sends an update that can't be decoded
	DM       core.Address                // of the private chat
	Thread   core.Address                // of that thread
	Seen     func(core.Address) []string // texts of the bot's messages there, in order
	Typing   func(core.Address) bool     // whether the bot shows there that it writes
	Pending  func() int                  // updates the platform holds unconfirmed

	Flood      func(wait time.Duration) // the next send is refused for pace
	LoseAnswer func()                   // the next send is done, its answer lost
	Down       func()                   // connections are refused from now on
	Up         func()
	Revoke     func() // the token is refused from now on
	Shut       func() // the user blocks the bot in private
	Open       func() // the user unblocks the bot
	Pace       bool   // whether the connector holds the platform's pace (then sends are slow)
	// Live: the platform keeps messages only for a bot that was online before.
	// The suite then runs the bot once before the first message.
	Live bool
}

// Suite runs every test on a fresh Platform.
func Suite(t *testing.T, open func(t *testing.T) *Platform) {
	for _, c := range []struct {
		name string
		test func(*bench)
	}{
		{"what is not stored is not confirmed", unstored},
		{"what was not confirmed comes again after a crash", crash},
		{"messages keep their order and come once", order},
		{"the thread is part of the address", thread},
		{"a long answer arrives whole and in order", long},
		{"a refusal for pace is obeyed", flood},
		{"a lost answer is unknown, not repeated", lost},
		{"a refused connection is not sent", refused},
		{"what cannot be recorded is not sent", unrecorded},
		{"who shuts the bot out is told apart", shut},
		{"many choices can be shown", choices},
		{"a preview gives way to the final", preview},
		{"typing shows", typing},
		{"an update that can't be decoded does not block", garbage},
		{"a refused token ends Run and says so", revoked},
		{"the secret is seen nowhere", secret},
		{"Run ends with its context", ends},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t)
			b := &bench{T: t, p: p, store: &Store{}, states: make(chan core.BotState, 10_000)}
			b.conn = p.Connect(t, b.store, slog.New(slog.NewTextHandler(&b.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
			b.dm, b.thread = p.DM, p.Thread
			b.dm.Bot, b.thread.Bot = b.conn.Name(), b.conn.Name()
			if p.Live {
				b.start()
				b.await(core.Running)
				b.cancel()
				<-b.ended
				b.cancel = nil
				b.states = make(chan core.BotState, 10_000)
			}
			c.test(b)
			b.stop()
			if text := b.log.String(); strings.Contains(text, p.Secret) {
				t.Errorf("the log holds the token: %s", text)
			}
		})
	}
}

func unstored(b *bench) {
	b.p.Say("zero") // stored: from here on the connector has a cursor
	b.start()
	b.store.Await(b, 1)
	b.await(core.Running)
	b.store.Break(true)
	puts := b.store.Puts()
	b.p.Say("one")
	b.store.AwaitPuts(b, puts+2)
	if b.p.Pending() == 0 {
		b.Error("the platform let go of a message before it was stored")
	}
	if s := b.await(core.Degraded); s.Reason == "" {
		b.Error("a store that fails is not told")
	}
	b.store.Break(false)
	if got := b.store.Await(b, 2); len(got) != 2 || got[1].Text != "one" {
		b.Errorf("stored %+v", got)
	}
}

func crash(b *bench) {
	b.p.Say("one")
	inPut, let := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b.store.OnPut = func(page []core.Inbound) {
		if len(Said(page)) > 0 {
			once.Do(func() { close(inPut); <-let })
		}
	}
	b.start()
	<-inPut
	b.cancel() // killed between taking and storing
	close(let)
	<-b.ended
	b.cancel = nil
	if n := len(Said(b.store.Rows())); n != 0 {
		b.Fatalf("%d rows stored by a Put whose context had ended", n)
	}
	b.conn = b.p.Connect(b.T, b.store, slog.New(slog.NewTextHandler(&b.log, nil)))
	b.start()
	b.p.Say("two")
	got := b.store.Await(b, 2)
	if got[0].Text != "one" || got[1].Text != "two" {
		b.Errorf("after the restart: %+v", got)
	}
	b.stop()
	b.conn = b.p.Connect(b.T, b.store, slog.New(slog.NewTextHandler(&b.log, nil)))
	b.start()
	b.p.Say("three")
	if got := b.store.Await(b, 3); len(got) != 3 || got[2].Text != "three" {
		b.Errorf("after the second restart: %+v", got)
	}
}

func order(b *bench) {
	const n = 250
	for i := range n / 2 {
		b.p.Say(fmt.Sprint(i))
	}
	b.start()
	for i := n / 2; i < n; i++ {
		b.p.Say(fmt.Sprint(i))
	}
	ids := map[string]bool{}
	for i, in := range b.store.Await(b, n) {
		if in.Text != fmt.Sprint(i) || in.Kind != core.KindMessage || !in.Addressed || in.Chat != b.dm.Chat || in.Group() || in.From.IsZero() || in.MessageID == "" || in.At.IsZero() {
			b.Fatalf("message %d is %+v", i, in)
		}
		if in.UpdateID == "" || ids[in.UpdateID] {
			b.Fatalf("update id %q is empty or not unique", in.UpdateID)
		}
		ids[in.UpdateID] = true
	}
}

func thread(b *bench) {
	b.start()
	b.await(core.Running)
	b.p.SayThere("psst")
	got := b.store.Await(b, 1)[0]
	if got.Address != b.thread || got.Thread == "" || got.Place == "" || !got.Addressed {
		b.Errorf("address %+v, want %+v", got.Address, b.thread)
	}
	if d := b.send(got.Address, "", core.Part{Text: "there"}); d.Outcome != core.Sent || d.MessageID == "" {
		b.Fatalf("delivery %+v", d)
	}
	b.seen(b.thread, "there")
}

func long(b *bench) {
	b.meet()
	r, ok := b.conn.(connectors.Renderer)
	if !ok {
		b.Skip("renders nothing")
	}
	var source strings.Builder
	for i := range 400 {
		fmt.Fprintf(&source, "Paragraph %d with **bold** words 😀 and `code`.\n\n", i)
	}
	parts := r.Render(source.String())
	if len(parts) < 2 {
		b.Fatalf("%d parts", len(parts))
	}
	var want strings.Builder
	for i := range 400 {
		fmt.Fprintf(&want, "Paragraph %d with bold words 😀 and code.\n\n", i)
	}
	for _, p := range parts {
		if d := b.send(b.dm, "", p); d.Outcome != core.Sent {
			b.Fatalf("delivery %+v", d)
		}
	}
	if got := strings.Join(b.p.Seen(b.dm), "\n\n"); got != strings.TrimSpace(want.String()) {
		b.Errorf("arrived as %q", got)
	}
}

func flood(b *bench) {
	b.meet()
	b.p.Flood(33 * time.Second)
	d := b.send(b.dm, "", core.Part{Text: "x"})
	if d.Outcome != core.RetryAfter || d.After != 33*time.Second {
		b.Errorf("delivery %+v", d)
	}
	if p, ok := b.conn.(connectors.Pacer); ok && p.Wait(b.dm) < 30*time.Second {
		b.Errorf("the next send would wait %v", p.Wait(b.dm))
	}
	if p, ok := b.conn.(connectors.Previewer); ok {
		if _, err := p.Preview(b.Context(), b.dm, "", core.Part{Text: "x"}); core.KindOf(err) != core.Busy {
			b.Errorf("a preview in the pause: %v", err)
		}
	}
	b.seen(b.dm)
}

func lost(b *bench) {
	b.meet()
	b.p.LoseAnswer()
	if d := b.send(b.dm, "", core.Part{Text: "once"}); d.Outcome != core.Unknown || d.Reason == "" {
		b.Errorf("delivery %+v", d)
	}
	b.seen(b.dm, "once")
}

func refused(b *bench) {
	b.meet()
	if d := b.send(b.dm, "", core.Part{Text: "first"}); d.Outcome != core.Sent {
		b.Fatalf("delivery %+v", d)
	}
	b.p.Down()
	d := b.send(b.dm, "", core.Part{Text: "x"})
	if d.Outcome == core.Unknown { // an idle connection was closed
		d = b.send(b.dm, "", core.Part{Text: "x"})
	}
	if d.Outcome != core.NotSent || d.Reason == "" {
		b.Errorf("delivery %+v", d)
	}
	b.p.Up()
	if d := b.send(b.dm, "", core.Part{Text: "second"}); d.Outcome != core.Sent {
		b.Errorf("once it is back: %+v", d)
	}
	b.seen(b.dm, "first", "second")
}

func shut(b *bench) {
	b.meet()
	b.p.Shut()
	if d := b.send(b.dm, "", core.Part{Text: "x"}); d.Outcome != core.Refused || !d.Closed || len(d.Reason) < 20 {
		b.Errorf("to who shuts the bot out: %+v", d)
	}
	b.p.Open()
	if d := b.send(b.dm, "", core.Part{Text: "again"}); d.Outcome != core.Sent {
		b.Errorf("to who lets it in again: %+v", d)
	}
	b.seen(b.dm, "again")
}

func garbage(b *bench) {
	b.p.Say("before")
	b.p.Garbage()
	b.p.Say("after")
	b.start()
	got := b.store.Await(b, 3)
	if got[0].Text != "before" || got[1].Malformed == "" || got[1].UpdateID == "" || got[2].Text != "after" {
		b.Errorf("stored %+v", got)
	}
}

func revoked(b *bench) {
	b.start()
	b.await(core.Running)
	b.p.Revoke()
	select {
	case err := <-b.ended:
		if core.KindOf(err) != core.Denied || len(core.TextOf(err)) < 40 || strings.Contains(err.Error(), b.p.Secret) {
			b.Errorf("Run ended with %v", err)
		}
		b.cancel()
		b.cancel = nil
	case <-time.After(5 * time.Minute):
		b.Error("Run goes on")
	}
	if t, ok := b.conn.(connectors.Tester); ok {
		if _, err := t.Test(b.Context()); core.KindOf(err) != core.Denied {
			b.Errorf("Test: %v", err)
		}
	}
}

func secret(b *bench) {
	b.meet()
	var told strings.Builder
	note := func(v ...any) { fmt.Fprintf(&told, "%+v %#v\n", v, v) }
	b.start()
	note(b.await(core.Running))
	b.p.Down()
	note(b.await(core.Reconnecting))
	for range 2 {
		note(b.send(b.dm, "", core.Part{Text: "x"}))
	}
	if p, ok := b.conn.(connectors.Previewer); ok {
		_, err := p.Preview(b.Context(), b.dm, "", core.Part{Text: "x"})
		note(err, fmt.Sprint(err))
	}
	if ty, ok := b.conn.(connectors.Typer); ok {
		err := ty.Typing(b.Context(), b.dm)
		note(err, fmt.Sprint(err))
	}
	if a, ok := b.conn.(connectors.Acknowledger); ok {
		err := a.Acknowledge(b.Context(), b.dm, "1", "x")
		note(err, fmt.Sprint(err))
	}
	if t, ok := b.conn.(connectors.Tester); ok {
		_, err := t.Test(b.Context())
		note(err, fmt.Sprint(err))
	}
	b.cancel()
	err := <-b.ended
	b.cancel = nil
	note(err, fmt.Sprint(err))
	if _, secret, _ := strings.Cut(b.p.Secret, ":"); strings.Contains(told.String(), b.p.Secret) || secret != "" && strings.Contains(told.String(), secret) {
		b.Errorf("the token is told: %s", told.String())
	}
}

func ends(b *bench) {
	b.start()
	b.await(core.Running)
	b.cancel()
	select {
	case <-b.ended:
		b.cancel = nil
	case <-time.After(5 * time.Minute):
		b.Fatal("Run goes on after its context")
	}
	b.meet()
	if d := b.send(b.dm, "", core.Part{Text: "still"}); d.Outcome != core.Sent {
		b.Errorf("sending after Run: %+v", d)
	}
}
