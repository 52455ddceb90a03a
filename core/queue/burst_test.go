package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue"
)

// answering is a queue in mode queue (one message, one turn) that answers.
func answering(t *testing.T, change func(*options)) *fixture {
	f := newFixture(t, change)
	f.serve(func(_ context.Context, turn *queue.Turn) {
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
	return f
}

func part(n int, text string, after time.Duration) core.Inbound {
	m := msg(n, "dm", "ann", text)
	m.At = epoch.Add(after)
	return m
}

// silent waits until the queue sleeps with nothing sent.
func (f *fixture) silent(why string) {
	f.t.Helper()
	<-f.clock.Waiting(1)
	select {
	case out := <-f.plat.seen:
		f.t.Fatalf("%s: %q was sent", why, out.Text)
	default:
	}
}

func TestATextCutByItsSendersAppIsOneTurnAsSoonAsItsEndIsThere(t *testing.T) {
	f := answering(t, nil)
	for n, text := range []string{"first", "second"} {
		m := part(n, text, time.Duration(n)*time.Second/2)
		m.Long = true
		f.put(m)
		f.silent("the rest may follow")
	}
	f.put(part(2, "end", time.Second))
	if got := f.reply(); got != "re: first+second+end" { // no clock has moved
		t.Errorf("answered with %q", got)
	}
	f.put(part(3, "another", 1100*time.Millisecond))
	if got := f.reply(); got != "re: another" {
		t.Errorf("what was written behind it was answered with %q", got)
	}
}

func TestPicturesOfAnAlbumAndForwardsAreOneTurnAMomentAfterTheLast(t *testing.T) {
	f := answering(t, nil)
	for name, mark := range map[string]func(*core.Inbound){
		"album":   func(m *core.Inbound) { m.Album = "a1" },
		"forward": func(m *core.Inbound) { m.Quote = &core.Quote{Name: "Bob", Forwarded: true} },
	} {
		for n := range 3 {
			m := part(0, fmt.Sprint(n), 0)
			m.UpdateID, m.MessageID = name+fmt.Sprint(n), name+fmt.Sprint(n)
			mark(&m)
			f.put(m)
			f.silent("the rest may follow")
		}
		hold := f.timePasses()
		if got := f.reply(); got != "re: 0+1+2" {
			t.Errorf("%s: answered with %q", name, got)
		}
		hold()
	}
}

func TestPartsThatLieApartAreNotOneTurnAndASingleMessageWaitsForNothing(t *testing.T) {
	f := answering(t, nil)
	f.put(part(1, "short", 0))
	if got := f.reply(); got != "re: short" { // no clock has moved
		t.Errorf("answered with %q", got)
	}
	long := part(2, "long", 0)
	long.Long = true
	other := part(3, "of somebody else", 0)
	other.From.ID = "bob"
	f.put(long, other, part(4, "much later", 5*time.Second))
	hold := f.timePasses()
	defer hold()
	for _, want := range []string{"re: long", "re: of somebody else", "re: much later"} {
		if got := f.reply(); got != want {
			t.Errorf("answered with %q, want %q", got, want)
		}
	}
}

func TestATextMuchLaterIsNotTheRestOfALongOne(t *testing.T) {
	f := answering(t, nil)
	long := part(1, "long", 0)
	long.Long = true
	f.put(long, part(2, "much later", 5*time.Second))
	hold := f.timePasses()
	defer hold()
	for _, want := range []string{"re: long", "re: much later"} {
		if got := f.reply(); got != want {
			t.Errorf("answered with %q, want %q", got, want)
		}
	}
}

// A sender over the rate cannot avoid it by sending parts.
func TestPartsDoNotBringARateLimitForward(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Rate = func() queue.Rate { return queue.Rate{N: 1, Per: time.Hour} } })
	long := part(2, "long", 0)
	long.Long = true
	f.put(part(1, "one", 0), long, part(3, "end", 0))
	var due string
	if err := f.db.Get(t.Context(), &due, `SELECT due FROM inbox WHERE update_id = '2'`); err != nil {
		t.Fatal(err)
	}
	if at, err := core.ParseStamp(due); err != nil || at.Before(epoch.Add(time.Hour)) {
		t.Errorf("what is over the rate may run at %s", due)
	}
}

// The handler is notified of messages that wait behind a running turn, and of no
// others.
func TestOnlyWhatHasToWaitIsSaidToWait(t *testing.T) {
	var behind []string
	f := newFixture(t, func(o *options) {
		o.Behind = func(in *core.Inbound, lane string) { behind = append(behind, lane+" "+in.Text) }
	})
	begun, end := f.serveHeld()
	f.put(msg(1, "a", "ann", "one"))
	<-begun
	f.put(msg(2, "a", "ann", "two"), msg(3, "b", "bob", "elsewhere"))
	close(end)
	for range 3 {
		f.reply()
	}
	if fmt.Sprint(behind) != "[bot|a two]" {
		t.Errorf("told to wait: %q", behind)
	}
}

// In a group only the first part of a long text mentions the bot.
func TestInAGroupALongTextIsHeardAsAWhole(t *testing.T) {
	f := answering(t, nil)
	f.gate.strict = true
	write := func(n int, text, from string, after time.Duration, change func(*core.Inbound)) core.Inbound {
		m := part(n, text, after)
		m.Place, m.From.ID, m.Addressed = "g", from, false
		if change != nil {
			change(&m)
		}
		return m
	}
	long := func(m *core.Inbound) { m.Long = true }
	f.put(write(1, "first", "ann", 0, func(m *core.Inbound) { m.Long, m.Addressed = true, true }),
		write(2, "other", "bob", 0, nil),
		write(3, "forward", "ann", 0, func(m *core.Inbound) { m.Quote = &core.Quote{Forwarded: true} }),
		write(4, "second", "ann", time.Second, long),
		write(5, "end", "ann", 2*time.Second, nil),
		write(6, "later", "ann", 4*time.Second, nil))
	if got := f.reply(); got != "re: first+second+end" { // no clock has moved
		t.Errorf("answered with %q", got)
	}
	f.put(write(7, "alone", "ann", 5*time.Second, long))
	hold := f.timePasses()
	defer hold()
	if got := f.states(); got != "1:done 2:done 3:done 4:done 5:done 6:done 7:done" || len(f.plat.seen) != 0 {
		t.Errorf("inbox %s, %d more replies", got, len(f.plat.seen))
	}
}

// In a group only one picture of an album has the caption that addresses the bot.
func TestInAGroupAnAlbumIsHeardAsAWhole(t *testing.T) {
	f := answering(t, nil)
	f.gate.strict = true
	picture := func(n int, album, from string, addressed bool) core.Inbound {
		m := part(n, fmt.Sprint(n), 0)
		m.Place, m.Album, m.From.ID, m.Addressed = "g", album, from, addressed
		return m
	}
	f.put(picture(1, "a1", "ann", true), picture(2, "a1", "ann", false), picture(3, "a2", "ann", false), picture(4, "a1", "bob", false))
	hold := f.timePasses()
	defer hold()
	if got := f.reply(); got != "re: 1+2" {
		t.Errorf("answered with %q", got)
	}
	if got := f.states(); got != "1:done 2:done 3:done 4:done" || len(f.plat.seen) != 0 {
		t.Errorf("inbox %s, %d more replies", got, len(f.plat.seen))
	}
}
