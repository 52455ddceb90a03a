package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/llm"
)

// hanging makes the platform's previews hang until release, and tells of the first.
func hanging(h *hall) (began chan struct{}, release func()) {
	began, free := make(chan struct{}), make(chan struct{})
	var once, open sync.Once
	h.preview = func(_ core.Address, id string, part core.Part) (string, error) {
		once.Do(func() { close(began) })
		<-free
		return "late", nil
	}
	return began, func() { open.Do(func() { close(free) }) }
}

// streams has the model speak word by word.
func (h *hall) streams(speak func(ctx context.Context, yield func(string) bool)) {
	h.speak = func(ctx context.Context, _ string) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			speak(ctx, func(text string) bool { return yield(llm.Delta{Text: text}, nil) })
		}
	}
}

// A final goes out while the call that shows its preview hangs, and the preview
// that this makes afterwards is taken away.
func TestAFinalGoesOutWhileItsPreviewHangs(t *testing.T) {
	h := open(t)
	began, release := hanging(h)
	t.Cleanup(release)
	var mu sync.Mutex
	taken := []string{}
	hang := h.preview
	h.preview = func(to core.Address, id string, part core.Part) (string, error) {
		if part.Text == "" {
			mu.Lock()
			defer mu.Unlock()
			taken = append(taken, id)
			return "", nil
		}
		return hang(to, id, part)
	}
	h.streams(func(ctx context.Context, yield func(string) bool) {
		if yield("The answer ") {
			<-began
			yield("is out.")
		}
	})
	h.put(core.Inbound{Address: chat("a"), Text: "x"})
	h.until("the final is sent while the preview hangs", func() bool { return slices.Equal(h.heard("a"), []string{"The answer is out."}) })
	release()
	h.until("the late preview is taken away", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Equal(taken, []string{"late"})
	})
}

// An edit of the preview that takes long does not come after the final, which it would
// overwrite.
func TestAFinalWaitsForAnEditOfItsPreview(t *testing.T) {
	h := open(t)
	var mu sync.Mutex
	order := []string{}
	did := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	editing := make(chan struct{})
	var once sync.Once
	h.preview = func(_ core.Address, id string, part core.Part) (string, error) {
		if id == "" {
			return "p", nil
		}
		once.Do(func() { close(editing) })
		<-h.clock.After(2 * time.Second)
		did("edit")
		return id, nil
	}
	h.sending = func(out core.Outgoing) {
		if !out.Deletes() {
			did("final")
		}
	}
	h.streams(func(ctx context.Context, yield func(string) bool) {
		for {
			select {
			case <-editing:
				yield("That is all.")
				return
			default:
			}
			if !yield(strings.Repeat("a word ", 30)) || !core.Sleep(ctx, h.clock, 100*time.Millisecond) {
				return
			}
		}
	})
	h.put(core.Inbound{Address: chat("a"), Text: "x"})
	h.until("the answer is sent", func() bool { return len(h.heard("a")) == 1 })
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(order, []string{"edit", "final"}) {
		t.Errorf("in the order %v", order)
	}
}

// An edit of a preview notifies nobody: after ten seconds the readers may have left.
func TestTheAnswerOfALongRunIsANewMessageAndItsPreviewIsDeleted(t *testing.T) {
	for slot, want := range map[string][]string{
		"":  {":done", "p:"},
		"p": {"p:done"}, // a slash command has its place
		"s": {"p:done"}, // also where the place has another id now
	} {
		h := open(t)
		var mu sync.Mutex
		var sent []string
		h.preview = func(core.Address, string, core.Part) (string, error) { return "p", nil }
		h.sending = func(out core.Outgoing) {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, out.Replaces+":"+out.Text[max(0, len(out.Text)-4):])
		}
		h.streams(func(ctx context.Context, yield func(string) bool) {
			yield(strings.Repeat("a word ", 30))
			h.until("the preview is stored", func() bool {
				var id string
				_ = h.db.Get(ctx, &id, `SELECT preview FROM lane`)
				return id == "p"
			})
			core.Sleep(ctx, h.clock, 15*time.Second)
			yield("done")
		})
		h.put(core.Inbound{Address: chat("a"), Text: "x", Slot: slot})
		h.until("the answer is sent", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(sent) >= len(want)
		})
		mu.Lock()
		if !slices.Equal(sent, want) {
			t.Errorf("with slot %q: sent %q, want %q", slot, sent, want)
		}
		mu.Unlock()
	}
}

// However fast a model writes, a chat sees at most one preview a second.
func TestAChatSeesAtMostOnePreviewASecond(t *testing.T) {
	h := open(t)
	var mu sync.Mutex
	var at []time.Time
	h.preview = func(_ core.Address, _ string, part core.Part) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		at = append(at, h.clock.Now())
		return "p", nil
	}
	h.streams(func(ctx context.Context, yield func(string) bool) {
		for range 200 {
			if !yield(strings.Repeat("a word ", 30)) || !core.Sleep(ctx, h.clock, 100*time.Millisecond) {
				return
			}
		}
	})
	h.put(core.Inbound{Address: chat("a"), Text: "x"})
	h.until("the answer is sent", func() bool { return len(h.heard("a")) == 1 })
	mu.Lock()
	defer mu.Unlock()
	if len(at) < 2 {
		t.Errorf("%d previews", len(at))
	}
	for i := 1; i < len(at); i++ {
		if gap := at[i].Sub(at[i-1]); gap < time.Second {
			t.Errorf("preview %d came %v after the one before", i, gap)
		}
	}
}

// A preview whose id got lost stays in the chat, and is the only one that does:
// no other is made for that answer. One that was refused is tried again.
func TestAPreviewThatGotLostIsNotFollowedByAnother(t *testing.T) {
	for _, c := range []struct {
		slot  string // where the answer's place stood, too long ago
		err   error
		again bool
	}{{"", fmt.Errorf("a time-out: %w", core.ErrInDoubt), false}, {"slot:old", fmt.Errorf("a time-out: %w", core.ErrInDoubt), false}, {"", errors.New("not now"), true}} {
		h := open(t)
		var mu sync.Mutex
		tries := 0
		h.preview = func(core.Address, string, core.Part) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			tries++
			return "", c.err
		}
		h.streams(func(ctx context.Context, yield func(string) bool) {
			for range 200 {
				if !yield(strings.Repeat("a word ", 30)) || !core.Sleep(ctx, h.clock, 100*time.Millisecond) {
					return
				}
			}
		})
		h.put(core.Inbound{Address: chat("a"), Text: "x", Slot: c.slot})
		h.until("the answer is sent", func() bool { return len(h.heard("a")) == 1 })
		mu.Lock()
		if (tries > 1) != c.again || tries == 0 {
			t.Errorf("%q, %v: %d previews", c.slot, c.err, tries)
		}
		mu.Unlock()
	}
}

// /stop waits for nothing: an answer is stopped while its preview hangs, and
// while a message that goes to the chat before it hangs.
func TestStopIsActedOnWhateverHangs(t *testing.T) {
	for _, stuck := range []string{"preview", "send"} {
		t.Run(stuck, func(t *testing.T) {
			h := open(t)
			began, release := hanging(h)
			free := make(chan struct{})
			var once sync.Once
			let := func() { once.Do(func() { close(free) }) }
			t.Cleanup(func() { release(); let() })
			if stuck == "send" {
				began = make(chan struct{})
				h.preview = nil
				h.sending = func(out core.Outgoing) {
					if out.Text == "first" {
						close(began)
						<-free
					}
				}
				h.streams(func(_ context.Context, yield func(string) bool) { yield("first") })
				h.put(core.Inbound{Address: chat("a"), Text: "one"})
				<-began
			}
			asked, stopped := make(chan struct{}), make(chan struct{})
			h.streams(func(ctx context.Context, yield func(string) bool) {
				close(asked)
				yield("as far as I got")
				<-ctx.Done()
				close(stopped)
			})
			h.put(core.Inbound{Address: chat("a"), Text: "two"})
			if stuck == "preview" {
				<-began
			}
			h.until("the model is asked", func() bool { // before, a stop ends the run without it
				select {
				case <-asked:
					return true
				default:
					return false
				}
			})
			h.until("/stop finds the answer", func() bool {
				stopped, _ := h.running.Stop(command.Request{Call: command.Call{In: &core.Inbound{Address: chat("a")}, Lane: "b|a", Seq: 1 << 40}})
				return stopped
			})
			<-stopped
			h.until("the run has ended", func() bool {
				var n int
				err := h.db.Get(t.Context(), &n, `SELECT count(*) FROM runs WHERE state = 'aborted'`)
				return err == nil && n == 1
			})
			if stuck == "preview" {
				h.until("the chat is told", func() bool { return len(h.heard("a")) == 1 })
			}
			let()
			h.until("all is sent", func() bool {
				all := h.heard("a")
				return len(all) > 0 && strings.Contains(all[len(all)-1], "Stopped.")
			})
		})
	}
}
