package orchestrator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gatehouse/core/memory/handoff"
	"gatehouse/core/orchestrator"
	"gatehouse/core/session"
	"gatehouse/core/store"
)

// notes are the stored notes of one conversation.
type notes struct {
	newest *handoff.Note
	kept   []handoff.Note
}

func (n *notes) Note(context.Context, string, string) (handoff.Note, bool, error) {
	if n.newest == nil {
		return handoff.Note{}, false, nil
	}
	return *n.newest, true, nil
}

func (n *notes) Keep(_ context.Context, _ *session.Session, _ string, note handoff.Note) error {
	n.kept = append(n.kept, note)
	return nil
}

func (n *notes) Count(context.Context, *store.Tx, handoff.Turn) error { return nil }

// wholeNote is a note with its six sections.
const wholeNote = "## GOAL\nA harbour for herons.\n\n## DECISIONS MADE\nNone.\n\n## CURRENT STATUS\nDrawn.\n\n## ACTIVE FILE\nNone.\n\n## PREFERENCES\nNone.\n\n## RESUME INSTRUCTION\nGo on."

// talked returns a house whose conversation is too long, and the id of the last message of
// each turn.
func talked(t *testing.T) (*house, *notes, []string) {
	h, n := open(t, orchestrator.Limits{}), &notes{}
	h.options.Backups = n
	h.Orchestrator = orchestrator.New(h.options)
	var ends []string
	for i := range 4 {
		h.model.reply = says(strings.Repeat(fmt.Sprintf("Part %d of the story. ", i), 2500)) // about 13,000 tokens
		turn := h.turn(fmt.Sprint("r", i), 1, "tell me more")
		h.watched(t.Context(), turn)
		c, err := h.sessions.Open(t.Context(), turn.Session)
		if err != nil {
			t.Fatal(err)
		}
		past, _, err := c.History(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, past[len(past)-1].Line())
	}
	return h, n, ends
}

// given returns the texts of a request.
func (h *house) given(call int) string {
	var b strings.Builder
	for _, m := range h.model.calls[call].Messages {
		for _, block := range m.Blocks {
			b.WriteString(block.Text + "\n")
		}
	}
	return b.String()
}

func TestACompactionUsesTheNewestStoredNoteInsteadOfASummaryOfItsOwn(t *testing.T) {
	h, n, ends := talked(t)
	n.newest = &handoff.Note{Text: wholeNote, Covers: ends[2]}
	h.model.reply = says("The end.")
	before := len(h.model.calls)
	if res, _ := h.watched(t.Context(), h.turn("r9", 1, "and the end?")); res.Response != "The end." || len(h.model.calls) != before+1 {
		t.Fatalf("%+v after %d calls: no summary is to be written", res, len(h.model.calls)-before)
	}
	got := h.given(before)
	for text, want := range map[string]bool{"A harbour for herons.": true, "Part 0 of": false, "Part 2 of": false, "Part 3 of": true, "and the end?": true} {
		if strings.Contains(got, text) != want {
			t.Errorf("the request has %q: %v", text, !want)
		}
	}
	if len(n.kept) != 0 {
		t.Errorf("%d further notes are stored", len(n.kept))
	}
}

// A note with too much behind it leaves too little room: the model writes another one, which
// is stored.
func TestACompactionWritesAndStoresANoteWhereTheNewestIsTooOld(t *testing.T) {
	for name, covers := range map[string]func(ends []string) string{
		"too much was written since": func(ends []string) string { return ends[0] },
		"it covers no message here":  func([]string) string { return "another" },
	} {
		t.Run(name, func(t *testing.T) {
			h, n, ends := talked(t)
			n.newest = &handoff.Note{Text: strings.Replace(wholeNote, "herons", "gulls", 1), Covers: covers(ends)}
			h.model.reply = replies(says(wholeNote), says("The end."))
			before := len(h.model.calls)
			h.watched(t.Context(), h.turn("r9", 1, "and the end?"))
			if len(h.model.calls) != before+2 {
				t.Fatalf("%d calls", len(h.model.calls)-before)
			}
			if got := h.given(before + 1); !strings.Contains(got, "herons") || strings.Contains(got, "gulls") {
				t.Errorf("the answer was asked with %q", got[:200])
			}
			if len(n.kept) != 1 || !strings.Contains(n.kept[0].Text, "herons") || n.kept[0].Covers == "" {
				t.Errorf("stored are %+v", n.kept)
			}
		})
	}
}
