package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/tool"
)

// wishing remembers two wishes of each person.
type wishing struct{}

func (wishing) Remember(_ context.Context, t *orchestrator.Turn, _ orchestrator.Said) (orchestrator.Remembered, error) {
	return orchestrator.Remembered{Standing: fmt.Sprintf("STANDING of %d\n", t.User), Relevant: fmt.Sprintf("RELEVANT of %d\n", t.User), IDs: []string{"c"}}, nil
}

// remembering is an orchestrator that remembers, of a house and its notes.
func remembering(h *house) *notes {
	n := &notes{}
	h.options.Backups, h.options.Memory = n, wishing{}
	h.options.Overheard = func(core.Address) []agent.Quoted { return []agent.Quoted{{Name: "Bea", Text: "OVERHEARD words"}} }
	h.Orchestrator = orchestrator.New(h.options)
	return n
}

// member prepares a turn of a user in a group.
func (h *house) member(run string, attempt int, user int64, text string) *orchestrator.Turn {
	h.t.Helper()
	at := core.Address{Bot: "b", Chat: "g", Place: "g"}
	row := core.Inbound{Address: at, Kind: core.KindMessage, From: core.Peer{Platform: "p", ID: fmt.Sprint(user), Name: "Ada"}, Text: text, At: h.clock.Now()}
	t := &orchestrator.Turn{Run: run, Attempt: attempt, Rows: []core.Inbound{row}}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		return h.Prepare(ctx, tx, t, session.Ref{Address: at, User: user, Trust: core.Sandboxed})
	})
	return t
}

// personal returns which texts about one person a request has, and where the block in front
// of a message is.
func (h *house) personal(call int) (found []string, behind string) {
	req := h.model.calls[call]
	for _, mark := range []string{"STANDING", "RELEVANT", "OVERHEARD"} {
		if n := strings.Count(req.System, mark) + strings.Count(h.given(call), mark); n > 0 {
			found = append(found, fmt.Sprintf("%s %d", mark, n))
		}
	}
	for _, m := range req.Messages {
		if strings.Contains(m.Blocks[0].Text, "RELEVANT") {
			behind = m.Blocks[len(m.Blocks)-1].Text
		}
	}
	return found, behind
}

// Others read the note of a group, and later turns that of a direct chat, after a wish was
// forgotten.
func TestANoteIsWrittenWithoutTheMemoryOfAPersonAndWhatWasOverheard(t *testing.T) {
	for name, turn := range map[string]func(h *house, run string, user int64, text string) *orchestrator.Turn{
		"in a group": func(h *house, run string, user int64, text string) *orchestrator.Turn {
			return h.member(run, 1, user, text)
		},
		"in a direct chat": func(h *house, run string, _ int64, text string) *orchestrator.Turn { return h.turn(run, 1, text) },
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, orchestrator.Limits{})
			n := remembering(h)
			long := says(strings.Repeat("So many words about it. ", 2500)) // about 15,000 tokens
			run := 0
			for round := range 2 { // the second has the note of the first
				h.model.reply = long
				for range 3 {
					run++
					h.watched(t.Context(), turn(h, fmt.Sprint("r", run), 2, "tell me more"))
				}
				run++
				h.model.reply = replies(says(wholeNote), says("The end."))
				before := len(h.model.calls)
				h.watched(t.Context(), turn(h, fmt.Sprint("r", run), 3, "and the end?"))
				if len(h.model.calls) != before+2 {
					t.Fatalf("%d calls", len(h.model.calls)-before)
				}
				if found, behind := h.personal(before + 1); len(found) < 2 || !strings.Contains(behind, "and the end?") {
					t.Errorf("round %d: the answer was asked for with %q, in front of %.80q", round, found, behind)
				}
			}
			asked := 0
			for i, req := range h.model.calls {
				if last := req.Messages[len(req.Messages)-1].Blocks; !strings.Contains(last[len(last)-1].Text, "handoff note") {
					continue
				}
				asked++
				if found, _ := h.personal(i); len(found) != 0 || req.System == "" {
					t.Errorf("note %d was asked for with %q", asked, found)
				}
			}
			if asked < 2 || len(n.kept) != asked {
				t.Errorf("%d notes were asked for, %d are stored", asked, len(n.kept))
			}
		})
	}
}

// All of the turn is in the note then, in front of which its sender's wishes are.
func TestMemoryIsInThePromptAfterACompactionWithinATurn(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	remembering(h)
	h.model.window = 40_000
	h.tools = []tool.Tool{echo("Look", false)}
	h.tools[0].Run = func(context.Context, *tool.Call) (tool.Result, error) {
		return tool.Result{Text: strings.Repeat("Results of a search. ", 2000)}, nil // about 10,000 tokens
	}
	h.model.reply = replies(uses("", `Look {"n":1}`), uses("", `Look {"n":2}`), says(wholeNote), says("Found."))
	res, _ := h.watched(t.Context(), h.member("r1", 1, 2, "look everywhere"))
	last := len(h.model.calls) - 1
	if res.Response != "Found." || last != 3 {
		t.Fatalf("%.100q after %d calls", res.Response, last+1)
	}
	if found, _ := h.personal(last - 1); len(found) != 0 {
		t.Errorf("the note was asked for with %q", found)
	}
	if found, behind := h.personal(last); len(found) < 2 || !strings.Contains(behind, "A harbour for herons.") {
		t.Errorf("the answer was asked for with %q, in front of %.80q", found, behind)
	}
}

// A second attempt reads the message from the transcript.
func TestMemoryIsInFrontOfTheMessageOfTheRunInEachAttempt(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	remembering(h)
	h.model.reply = says("Yes.")
	first := h.member("r1", 1, 2, "first")
	h.watched(t.Context(), first)
	c, err := h.sessions.Open(t.Context(), first.Session)
	if err == nil {
		err = errors.Join(c.Compact(wholeNote, 0), c.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for attempt := 1; attempt <= 2; attempt++ {
		ctx, cancel := context.WithCancel(t.Context())
		h.model.reply = func(_ context.Context, yield func(llm.Delta, error) bool) { cancel() }
		if _, err := h.Run(ctx, h.member("r2", attempt, 2, "second"), func(core.Event) {}); err == nil {
			t.Fatal("the run was not cut")
		}
		cancel()
		if found, behind := h.personal(len(h.model.calls) - 1); !strings.Contains(behind, "second") || len(found) < 2 {
			t.Errorf("attempt %d: %q in front of %q", attempt, found, behind)
		}
	}
}

// Claude Code keeps the message in its transcript, which the next model of a group reads.
func TestARuntimesTranscriptOfAGroupHasNoMemory(t *testing.T) {
	h, o := elsewhere(t, orchestrator.Limits{})
	h.options.Memory, h.options.Runtime = wishing{}, o
	h.Orchestrator = orchestrator.New(h.options)
	o.answer = o.well("Yes.")
	turn := h.member("r1", 1, 2, "is it?")
	turn.Role.Model = "other/x"
	h.watched(t.Context(), turn)
	if len(o.works) != 1 {
		t.Fatalf("%d turns", len(o.works))
	}
	if w := o.works[0]; strings.Contains(heard(w), "of 2") || !strings.Contains(w.System, "STANDING of 2") || !strings.Contains(w.System, "RELEVANT of 2") {
		t.Errorf("it was told %q, with the prompt %q", heard(w), w.System)
	}
}

// A model that quotes files gives a group none of the sender's own folder.
func TestTheAnswerToAGroupIsSearchedForInNoOnesOwnFiles(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = says("Yes.")
	h.watched(t.Context(), h.turn("r1", 1, "is it?"))
	h.watched(t.Context(), h.member("r2", 1, 2, "is it?"))
	for i, want := range []llm.Sender{{User: 2, Trust: core.Sandboxed}, {Trust: core.Sandboxed}} {
		if got := h.model.calls[i].Sender; got != want {
			t.Errorf("call %d is made for %+v, want %+v", i, got, want)
		}
	}
}

func TestATurnOverTheAPIInAChatThatMayBeAGroupsIsShared(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.options.Chats = []string{"telegram"}
	h.Orchestrator = orchestrator.New(h.options)
	h.model.reply = says("Yes.")
	in := h.member("r1", 1, 2, "is it?")
	h.watched(t.Context(), in)
	for i, c := range []struct {
		scope, source string
		shared        bool
	}{{"", "telegram", true}, {"dm", "telegram", false}, {"", "api", false}} {
		h.tx(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE sessions SET scope = $1, source = $2 WHERE id = $3`, c.scope, c.source, in.Session.ID)
			return err
		})
		turn := h.owners(fmt.Sprintf("o%d", i), in.Session.ID, "", "and now?")
		if h.ended(turn); turn.Shared() != c.shared {
			t.Errorf("scope %q of %s: shared is %v", c.scope, c.source, turn.Shared())
		}
	}
}

// The operator may write into the conversation of a group over the API and the panel.
func TestATurnOverTheAPIInAGroupsConversationIsShared(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	remembering(h)
	h.model.reply = says("Yes.")
	in := h.member("r1", 1, 2, "is it?")
	h.watched(t.Context(), in)
	turn := h.owners("r2", in.Session.ID, "", "and now?")
	h.ended(turn)
	if !turn.Shared() || turn.Rows[0].Group() {
		t.Fatalf("scope %q", turn.Session.Scope)
	}
	if req := h.model.calls[1]; req.Sender.User != 0 || strings.Contains(req.System, "STANDING") || !strings.Contains(h.given(1), "STANDING of 1\nRELEVANT of 1") {
		t.Errorf("for %+v, with the prompt %q and %q", req.Sender, req.System, h.given(1))
	}
}
