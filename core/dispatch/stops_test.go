package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"gatehouse/core"
	"gatehouse/core/command"
)

// by is a /stop behind everything in a chat.
func by(user int64, from string, at core.Address) command.Request {
	return command.Request{User: user, Call: command.Call{In: &core.Inbound{Address: at, From: core.Peer{ID: from}}, Lane: "b|" + at.Chat, Seq: math.MaxInt64}}
}

// fillsDisk has the disk be full when the first end of a run is stored, and counts the tries.
func (h *hall) fillsDisk() (tries *atomic.Int32) {
	tries = new(atomic.Int32)
	h.write = func() error {
		if tries.Add(1) == 1 {
			return errors.New("disk full")
		}
		return nil
	}
	return tries
}

// The disk is full when a stopped run ends: it is not asked of the model again.
func TestAStoppedRunWhoseEndCannotBeStoredIsNotAnswered(t *testing.T) {
	h := open(t)
	var asked atomic.Int32
	tries := h.fillsDisk()
	h.streams(func(ctx context.Context, yield func(string) bool) {
		asked.Add(1)
		yield("as far as I got")
		<-ctx.Done()
	})
	h.put(core.Inbound{Address: chat("a"), Text: "delete it all"})
	h.until("the model is asked", func() bool { return asked.Load() == 1 })
	if stopped, _, err := h.stops.Stop(t.Context(), by(2, "a", chat("a"))); err != nil || !stopped {
		t.Fatal(stopped, err)
	}
	h.until("the chat is told", func() bool { return len(h.heard("a")) == 1 })
	if n := asked.Load(); n != 1 || tries.Load() != 1 || h.heard("a")[0] != "Stopped." {
		t.Errorf("a model was asked %d times, the end stored in %d tries; the chat reads %q", n, tries.Load(), h.heard("a"))
	}
}

// Who writes on has not stopped anything: the chat is not told so because the disk was full meanwhile.
func TestAnInterruptedRunWhoseEndCannotBeStoredSaysNothing(t *testing.T) {
	h := open(t)
	var asked atomic.Int32
	tries := h.fillsDisk()
	h.model = func(ctx context.Context, text string) (string, error) {
		if text != "one" {
			return "re: " + text, nil
		}
		asked.Add(1)
		<-ctx.Done()
		return "", ctx.Err()
	}
	h.put(core.Inbound{Address: chat("a"), Text: "one"})
	h.until("the model is asked", func() bool { return asked.Load() == 1 })
	h.put(core.Inbound{Address: chat("a"), Text: "two"})
	if !h.running.Interrupt("b", "b|a", 2) {
		t.Fatal("there is no run")
	}
	h.until("the second message is answered", func() bool { return slices.Contains(h.heard("a"), "re: two") })
	if got := h.heard("a"); len(got) != 1 || asked.Load() != 1 || tries.Load() < 2 {
		t.Errorf("a model was asked %d times for the first, ends were stored in %d tries; the chat reads %q", asked.Load(), tries.Load(), got)
	}
}

// A button shows progress until its press is acknowledged: one that is refused is, too, and runs nothing.
func TestAPressAboveTheRateIsAcknowledgedAndRunsNothing(t *testing.T) {
	h := open(t)
	h.rate.Store(1)
	var ran atomic.Int32
	h.cmd = func(context.Context, command.Call) (command.Outcome, error) {
		ran.Add(1)
		return command.Outcome{Text: "done"}, nil
	}
	for n := range 14 {
		h.put(core.Inbound{Address: chat("a"), Kind: core.KindCallback, Callback: &core.Callback{ID: fmt.Sprint(n), Data: "x"}})
	}
	h.until("all are acknowledged", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return len(h.acked) >= 14 })
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.Sort(h.acked)
	if n := ran.Load(); n != 12 || len(h.acked) != 14 || h.acked[1] != "" || h.acked[2] != "done" {
		t.Errorf("%d have run; acknowledged with %q", n, h.acked)
	}
}

// A turn that has failed, and waits for its next attempt, is stopped too.
func TestATurnThatWaitsForItsNextAttemptIsStopped(t *testing.T) {
	for name, button := range map[string]bool{"/stop": false, "button": true} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			var asked atomic.Int32
			h.model = func(context.Context, string) (string, error) {
				asked.Add(1)
				h.still.Store(true)
				panic("boom")
			}
			group := core.Address{Bot: "b", Chat: "g", Place: "g"}
			h.put(core.Inbound{Address: group, Text: "do it"})
			var run string
			h.until("it has failed", func() bool {
				err := h.db.Get(t.Context(), &run, `SELECT run FROM inbox WHERE attempts > 0 AND EXISTS (SELECT 1 FROM lane WHERE owner = '' AND not_before > '')`)
				return err == nil && h.queue.Running() == 0 && asked.Load() == 1
			})
			stop := func(r command.Request) (stopped, others bool) {
				t.Helper()
				stopped, others, err := h.stops.Stop(t.Context(), r)
				if button {
					stopped, others, err = h.stops.StopRun(t.Context(), r, run)
				}
				if err != nil {
					t.Fatal(err)
				}
				return stopped, others
			}
			if stopped, others := stop(by(9, "someone", group)); stopped || !others {
				t.Errorf("a member who did not ask: stopped %v, another's %v", stopped, others)
			}
			if stopped, others := stop(by(2, "g", chat("elsewhere"))); stopped || others {
				t.Errorf("in another chat: stopped %v, another's %v", stopped, others)
			}
			if stopped, _ := stop(by(2, "g", group)); !stopped {
				t.Error("its sender finds nothing to stop")
			}
			h.still.Store(false)
			h.until("the chat is told", func() bool { return len(h.heard("g")) == 1 })
			if got := h.heard("g"); asked.Load() != 1 || !slices.Equal(got, []string{"Stopped."}) {
				t.Errorf("a model was asked %d times; the chat reads %q", asked.Load(), got)
			}
			if stopped, others := stop(by(2, "g", group)); stopped || others {
				t.Errorf("behind its end: stopped %v, another's %v", stopped, others)
			}
		})
	}
}

// Each attempt copies the files that its answer shows; those of one that is not stored do not stay.
func TestTheFilesOfAnAnswerThatIsNotStoredAreRemoved(t *testing.T) {
	h := open(t)
	copies := 0
	h.fillsDisk()
	h.shows = func() []core.Part { // in one lane
		copies++
		return []core.Part{{File: &core.File{Path: fmt.Sprint("copy ", copies)}}}
	}
	h.put(core.Inbound{Address: chat("a"), Text: "show it"})
	h.until("all is sent", func() bool { return len(h.heard("a")) == 2 })
	if copies != 2 || len(h.removed) != 1 || h.removed[0].Path != "copy 1" {
		t.Errorf("of %d copies are removed: %+v", copies, h.removed)
	}
}
