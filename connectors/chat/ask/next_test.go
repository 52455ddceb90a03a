package ask

import (
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/command"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// A message that was stored before an update, and is handled after it, is what the command waited
// for, once: the next one is the agent's.
func TestAMessageThatWasStoredUnassignedIsWhatTheCommandAwaits(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	db := storetest.Open(t, clock)
	asks := ask.New(db, clock)
	b := NewButtons(ButtonOptions{Clock: clock, DB: db, Asks: asks, Questions: asks})
	request := func(id string, at time.Time) command.Request {
		return command.Request{Call: command.Call{In: &core.Inbound{Address: core.Address{Bot: "tg", Chat: "c"}, Kind: core.KindAnswer, MessageID: id, At: at, Text: "tea"}}, User: 7}
	}
	next := func(r command.Request) string {
		t.Helper()
		name, err := b.Next(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	clock.Advance(300 * time.Millisecond)
	before := clock.Now().Add(-2 * time.Second)
	out, err := b.AwaitNext(request("1", clock.Now()), "journal", "What?", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return out.Write(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
	if got := next(request("2", before)); got != "" {
		t.Errorf("a message from before the command is handed to %q", got)
	}
	sent := request("3", clock.Now().Truncate(time.Second))
	for range 2 { // also when it is handled again
		if got := next(sent); got != "journal" {
			t.Errorf("the message is handed to %q", got)
		}
	}
	if got := next(request("4", clock.Now().Add(time.Minute))); got != "" {
		t.Errorf("a second message is handed to %q", got)
	}
}
