package readback

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"gatehouse/connectors/discord/rest"
	"gatehouse/core"
	"gatehouse/core/coretest"
)

// A bench is a Reader whose requests are counted instead of made.
type bench struct {
	*Reader
	clock *coretest.Clock
	marks map[string]*Mark
	asked int
}

func newBench(t *testing.T, channels ...string) *bench {
	b := &bench{marks: map[string]*Mark{}, clock: coretest.NewClock(time.Time{})}
	b.Reader = New(Options{
		Clock: b.clock, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Random: func(int64) int64 { return 0 },
		Beside: func(string, func()) { b.asked++ },
	})
	for _, id := range channels {
		m := &Mark{Channel: id, Message: "1"}
		b.marks[id] = m
		b.Owe(m)
	}
	return b
}

// ask returns which channels are asked for.
func (b *bench) ask(t *testing.T) (out []string) {
	before := map[string]bool{}
	for id, o := range b.owed {
		before[id] = o.asking
	}
	b.Ask(t.Context(), "s")
	for id, o := range b.owed {
		if o.asking && !before[id] {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func (b *bench) say(t *testing.T, channel string, seq int64) {
	t.Helper()
	if !b.Hold(core.Inbound{Address: core.Address{Chat: channel}, Kind: core.KindMessage, UpdateID: fmt.Sprint("message:", seq), Text: fmt.Sprint(seq)}, seq) {
		t.Fatalf("%d is not held", seq)
	}
}

func TestReadingBackWaitsAsLongAsDiscordAsks(t *testing.T) {
	for _, global := range []bool{false, true} {
		b := newBench(t, "11", "22", "33", "44", "55")
		if got := b.ask(t); !slices.Equal(got, []string{"11", "22", "33", "44"}) {
			t.Fatalf("asked for %v", got)
		}
		b.say(t, "11", 7) // a message does not make it ask before
		b.Take(Page{channel: "11", Err: &rest.Failure{Status: 429, After: 2 * time.Minute, Global: global}})
		want := []string{"55"} // has a limit of its own
		if global {
			want = nil
		}
		if got := b.ask(t); !slices.Equal(got, want) {
			t.Errorf("global %v: asked for %v", global, got)
		}
		b.clock.Advance(2*time.Minute - time.Second)
		if got := b.ask(t); len(got) != 0 {
			t.Errorf("global %v: asked for %v too early", global, got)
		}
		b.clock.Advance(time.Second)
		if got := b.ask(t); !slices.Contains(got, "11") {
			t.Errorf("global %v: asked for %v", global, got)
		}
	}
}

func TestAChannelInWhichSomebodyWritesIsReadBackBeforeOthers(t *testing.T) {
	b := newBench(t, "11", "22", "33", "44", "55", "66")
	b.ask(t) // and none of them gets a response
	b.say(t, "66", 7)
	if got := b.ask(t); !slices.Equal(got, []string{"66"}) {
		t.Errorf("asked for %v", got)
	}
}

func TestEventsOfAChannelAreHeldForAWhileAndNotBeyond(t *testing.T) {
	b := newBench(t, "11", "22")
	b.say(t, "11", 7)
	if b.Hold(core.Inbound{Address: core.Address{Chat: "33"}}, 8) || b.Hold(core.Inbound{Address: core.Address{Chat: "11"}, Kind: core.KindCallback}, 9) {
		t.Error("another channel, or a button, is held")
	}
	if got := b.Storable(9); got != 6 {
		t.Errorf("%d counts as stored", got)
	}
	b.clock.Advance(holdFor - time.Second)
	if _, late := b.Late(); len(late) != 0 {
		t.Errorf("too early: %v", late)
	}
	b.clock.Advance(time.Second)
	if _, late := b.Late(); len(late) != 1 || late[0].Text != "7" || b.Storable(9) != 9 {
		t.Errorf("then %v", late)
	}
	if b.Hold(core.Inbound{Address: core.Address{Chat: "11"}, Kind: core.KindMessage}, 10) {
		t.Error("it is held still")
	}
	for seq := range int64(maxHeld + 1) {
		b.say(t, "22", 100+seq)
	}
	if _, late := b.Late(); len(late) != maxHeld+1 {
		t.Errorf("%d come when there is no room", len(late))
	}
}

func TestAChannelThatCannotBeReadBackIsGivenUpWhenWhatWasMissedIsTooOld(t *testing.T) {
	b := newBench(t, "11")
	for range 3 {
		b.ask(t)
		b.Take(Page{channel: "11", Err: &rest.Failure{Status: 500}})
		if over, _ := b.Late(); len(over) != 0 {
			t.Error("given up too early")
		}
		b.clock.Advance(maxAge / 3)
	}
	b.clock.Advance(time.Second)
	if over, _ := b.Late(); len(over) != 1 || b.Finish(over[0]) == nil || over[0].Owed {
		t.Errorf("over: %v", over)
	}
}

func TestWhatIsHeldOfAChannelThatIsGoneIsStored(t *testing.T) {
	b := newBench(t, "11")
	b.say(t, "11", 7)
	b.marks["11"].Gone = true
	over, _ := b.Late()
	if len(over) != 1 {
		t.Fatalf("over: %v", over)
	}
	if held := b.Finish(over[0]); len(held) != 1 || !b.Done() {
		t.Errorf("held: %v", held)
	}
}

// What no history contains is lost when it is held and the session ends.
func TestWhatNoHistoryContainsIsNotHeld(t *testing.T) {
	b := newBench(t, "11")
	at := core.Address{Chat: "11"}
	b.say(t, "11", 7)
	for _, in := range []core.Inbound{
		{Address: at, UpdateID: "interaction:8", Kind: core.KindCommand}, {Address: at, UpdateID: "interaction:8", Kind: core.KindMessage},
		{Address: at, UpdateID: "event:s:8", Kind: core.KindReaction}, {Address: at, UpdateID: "event:s:8", Kind: core.KindService},
	} {
		if b.Hold(in, 8) {
			t.Errorf("%+v is held", in)
		}
	}
	if held := b.Pass(core.Inbound{Address: at, UpdateID: "interaction:8", Kind: core.KindCommand}); len(held) != 1 || held[0].Text != "7" {
		t.Errorf("before the command: %v", held)
	}
	b.say(t, "11", 9) // and what follows waits again
}

// A link that breaks again and again, with and without RESUME, does not have a message wait longer.
func TestTheTimeOfHoldingDoesNotBeginAgainWithAConnection(t *testing.T) {
	for name, again := range map[string]func(b *bench){
		"resumed": func(b *bench) { b.Begin(); b.say(t, "11", 7) }, // repeated
		"renewed": func(b *bench) { b.Renew(); b.Owe(b.marks["11"]) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "11")
			b.say(t, "11", 7)
			for range 2 {
				b.clock.Advance(holdFor / 2)
				again(b)
			}
			if want := map[string]int64{"resumed": 6, "renewed": 9}[name]; b.Storable(9) != want {
				t.Errorf("%d counts as stored, want %d", b.Storable(9), want)
			}
			if _, late := b.Late(); len(late) != 1 {
				t.Errorf("after %v: %v", holdFor, late)
			}
		})
	}
}

// What is new in a channel that is late comes at once, until a session begins: then something may have been missed again.
func TestANewSessionHasWhatComesHeldAgain(t *testing.T) {
	b := newBench(t, "11")
	b.say(t, "11", 7)
	b.clock.Advance(holdFor)
	b.Late()
	next := core.Inbound{Address: core.Address{Chat: "11"}, Kind: core.KindMessage, UpdateID: "message:8"}
	if b.Begin(); b.Hold(next, 8) {
		t.Error("it is held when the session goes on")
	}
	b.Renew()
	b.Owe(b.marks["11"])
	b.say(t, "11", 9)
	b.clock.Advance(holdFor - time.Second)
	if _, late := b.Late(); len(late) != 0 {
		t.Errorf("too early: %v", late)
	}
}

// New sessions during an outage that lasts do not let the owed channels grow without end.
func TestOwedChannelsHaveALimit(t *testing.T) {
	b := newBench(t)
	for n := range maxOwed + 3 {
		b.Owe(&Mark{Channel: fmt.Sprint(100 + n), Message: "1"})
	}
	over, _ := b.Late()
	if len(over) != 3 || over[0].Channel != fmt.Sprint(100+maxOwed) {
		t.Errorf("over: %v", over)
	}
}

// A session that begins after an outage has the channel read: what was missed in the outage is young
// enough, however old the error before it is.
func TestAnOutageBetweenTwoErrorsIsNoDayOfErrors(t *testing.T) {
	b := newBench(t, "11")
	b.ask(t)
	b.Take(Page{channel: "11", Err: &rest.Failure{Status: 500}})
	b.clock.Advance(25 * time.Hour)
	b.Renew()
	b.Owe(b.marks["11"])
	for range 2 {
		if over, _ := b.Late(); len(over) != 0 {
			t.Fatal("given up")
		}
		if got := b.ask(t); !slices.Equal(got, []string{"11"}) {
			t.Fatalf("asked for %v", got)
		}
		b.Take(Page{channel: "11", Err: &rest.Failure{Status: 500}})
		b.clock.Advance(time.Minute)
	}
}

// Requests that get no response take long, and must not take all the places again and again.
func TestChannelsThatGetNoResponseHaveOthersReadBack(t *testing.T) {
	var ids []string
	for n := range 3*readers + 1 {
		ids = append(ids, fmt.Sprint(11+n))
	}
	b := newBench(t, ids...)
	for n := range 3 {
		if got := b.ask(t); !slices.Equal(got, ids[n*readers:(n+1)*readers]) {
			t.Fatalf("asked for %v", got)
		}
		b.clock.Advance(30 * time.Second) // the first ones may be asked for again
		for id, o := range b.owed {
			if o.asking {
				b.Take(Page{channel: id, Err: &rest.Failure{Text: "no response"}})
			}
		}
		b.clock.Advance(time.Millisecond)
	}
	if got := b.ask(t); !slices.Contains(got, ids[3*readers]) {
		t.Errorf("asked for %v", got)
	}
}
