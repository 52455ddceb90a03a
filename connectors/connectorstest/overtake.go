package connectorstest

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"gatehouse/core"
)

// A Previewed is a chat on one platform whose previews Overtaking delays or blocks.
// Every field is required.
type Previewed struct {
	Bot interface {
		Preview(ctx context.Context, to core.Address, id string, part core.Part) (string, error)
		Send(ctx context.Context, out core.Outgoing) core.Delivery
	}
	To       core.Address    // where a preview is a message
	Slow     func(made bool) // the next preview is late: the message is made, or edited
	Hang     func()          // making a message hangs from now on, until its caller leaves
	UnderWay func() bool     // whether a preview to the chat is running
	Seen     func() []string // texts of the bot's messages there
	Edits    func() []string // to which texts the bot had messages edited
}

func (p *Previewed) final(seq int64, text, replaces string) core.Outgoing {
	return core.Outgoing{Address: p.To, Seq: seq, Part: core.Part{Text: text}, Replaces: replaces}
}

// preview begins a preview, and waits until it is running.
func (p *Previewed) preview(ctx context.Context, id, text string) (shown chan string) {
	shown = make(chan string, 1)
	go func() {
		got, _ := p.Bot.Preview(ctx, p.To, id, core.Part{Text: text})
		shown <- got
	}()
	for !p.UnderWay() {
		runtime.Gosched()
	}
	return shown
}

// Overtaking checks that no preview delays or replaces a final: the final waits
// for a late preview and overtakes one that hangs.
func Overtaking(t *testing.T, open func(t *testing.T) *Previewed) {
	for name, made := range map[string]bool{"a late message": true, "a late edit": false} {
		t.Run(name, func(t *testing.T) {
			p := open(t)
			id := ""
			if !made {
				var err error
				if id, err = p.Bot.Preview(t.Context(), p.To, "", core.Part{Text: "h"}); err != nil {
					t.Fatal(err)
				}
			}
			p.Slow(made)
			shown := p.preview(t.Context(), id, "half")
			if d := p.Bot.Send(t.Context(), p.final(1, "whole", id)); d.Outcome != core.Sent {
				t.Errorf("final: %+v", d)
			}
			if got := <-shown; got != id {
				t.Errorf("the preview stands as %q", got)
			}
			if got := p.Seen(); !slices.Equal(got, []string{"whole"}) {
				t.Errorf("the chat shows %q", got)
			}
		})
	}
	// A preview that hangs delays no final. When it has ended the finals are shown
	// again, because their order is unknown.
	t.Run("one that hangs", func(t *testing.T) {
		p := open(t)
		id, err := p.Bot.Preview(t.Context(), p.To, "", core.Part{Text: "h"})
		if err != nil {
			t.Fatal(err)
		}
		p.Hang()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		shown := p.preview(ctx, "", "half")
		for i, text := range []string{"whole", "and more"} {
			if d := p.Bot.Send(t.Context(), p.final(int64(i+1), text, id)); d.Outcome != core.Sent {
				t.Errorf("%s: %+v", text, d)
			}
		}
		select {
		case <-shown:
			t.Fatal("the finals waited for the preview")
		default:
		}
		cancel()
		<-shown
		if got, want := p.Edits(), []string{"whole", "and more", "whole", "and more"}; !slices.Equal(got, want) {
			t.Errorf("edited to %q", got)
		}
	})
}
