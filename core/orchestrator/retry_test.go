package orchestrator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/tool"
)

// A repeat that had to wait behind other words, or behind the end of the
// conversation, is refused; one that had begun goes on.
func TestARepeatThatOtherWordsHaveOvertakenIsRefused(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = says("first")
	h.watched(t.Context(), h.turn("r1", 1, "add milk to the list"))
	h.clock.Advance(time.Second)
	prepare := func(run, of string) (err error) {
		row := core.Inbound{Address: core.Address{Bot: "b", Chat: "c"}, Kind: core.KindMessage, Text: "add milk to the list", Again: of, At: h.clock.Now()}
		turn := &orchestrator.Turn{Run: run, Rows: []core.Inbound{row}}
		h.tx(func(ctx context.Context, tx *store.Tx) error {
			err = h.Prepare(ctx, tx, turn, session.Ref{Address: row.Address, User: 2, Trust: core.Sandboxed})
			return nil
		})
		return err
	}
	if err := prepare("r2", "r1"); err != nil {
		t.Errorf("right after its answer: %v", err)
	}
	h.clock.Advance(time.Second)
	if err := prepare("r3", "r1"); core.KindOf(err) != core.Conflict {
		t.Errorf("behind another turn: %v", err)
	}
	if err := prepare("r2", "r1"); err != nil {
		t.Errorf("begun before: %v", err)
	}
}

// A message that is answered once more reaches the model as it was said, in a
// group with the one mark of who said it, and without its first answer; where
// tools were at work the model knows what they did.
func TestAMessageIsAnsweredAgainAsItWasSaid(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.tools = []tool.Tool{echo("Do", true)}
	again := func(run, of, text string) *orchestrator.Turn {
		turn := h.turn(run, 1, text)
		turn.Rows[0].Again = of
		return turn
	}
	read := func() (out []string) {
		for _, m := range h.model.calls[len(h.model.calls)-1].Messages {
			for _, b := range m.Blocks {
				out = append(out, m.Role[:1]+":"+b.Type+":"+b.Text)
			}
		}
		return out
	}
	h.model.reply = says("first")
	group := h.turn("r1", 1, "how long?")
	group.Rows[0].Place = "g"
	h.watched(t.Context(), group)
	marked := read()
	if len(marked) != 1 || !strings.Contains(marked[0], "Ada") || !strings.Contains(marked[0], "how long?") {
		t.Fatalf("the model read %q", marked)
	}
	h.model.reply = says("second")
	repeat := again("r2", "r1", strings.TrimPrefix(marked[0], "u:text:"))
	repeat.Rows[0].Place = "g"
	h.watched(t.Context(), repeat)
	if got := read(); !slices.Equal(got, marked) {
		t.Errorf("again the model read %q, first %q", got, marked)
	}
	h.model.reply = says("third")
	h.watched(t.Context(), h.turn("r3", 1, "and?"))
	want := []string{marked[0], "a:text:first", marked[0], "a:text:second", "u:text:and?"}
	if got := read(); !slices.Equal(got, want) {
		t.Errorf("then the model read %q", got)
	}

	h.model.reply = replies(uses("", `Do {"b":2}`), says("done"))
	h.watched(t.Context(), h.turn("r4", 1, "do it"))
	h.model.reply = says("it is done already")
	h.watched(t.Context(), again("r5", "r4", "do it"))
	if got := fmt.Sprint(read()); !strings.Contains(got, `Do got {"b":2}`) || strings.Count(got, "u:text:do it") != 2 {
		t.Errorf("the model is not told what was done: %s", got)
	}

	h.model.reply = says("again")
	res, _ := h.watched(t.Context(), again("r6", "no-such-run", "as it was"))
	if _, ok := res.Terminal.(core.Done); !ok || !strings.Contains(read()[len(read())-1], "as it was") {
		t.Errorf("%+v, read %q", res, read())
	}
}
