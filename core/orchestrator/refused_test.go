package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
	"gatehouse/core/tool"
)

// fails is an answer that the provider refuses.
func fails(f llm.Fault) func(context.Context, func(llm.Delta, error) bool) {
	return func(_ context.Context, yield func(llm.Delta, error) bool) { yield(llm.Delta{}, &f) }
}

// sent returns the texts of the n-th request's messages.
func (h *house) sent(n int) (out []string) {
	for _, m := range h.model.calls[n].Messages {
		for _, b := range m.Blocks {
			out = append(out, m.Role+": "+b.Text)
		}
	}
	return out
}

var tooLong = llm.Fault{Code: llm.CodeTooLong, Text: "too long", Status: 400, Window: 40_000}

func TestAConversationThatTheProviderFindsTooLongIsSummedUpAndSentOnceMore(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = says(strings.Repeat("So many words about it. ", 2500)) // about 15,000 tokens
	for i := range 2 {
		h.watched(t.Context(), h.turn(fmt.Sprint("r", i), 1, "tell me more"))
	}
	n := len(h.model.calls)
	h.model.reply = replies(fails(tooLong), says("SUMMARY"), says("Here it is."))
	res, _ := h.watched(t.Context(), h.turn("r9", 1, "and the end?"))
	if res.Response != "Here it is." || res.State != "done" || len(h.model.calls) != n+3 {
		t.Fatalf("%+v after %d calls", res, len(h.model.calls)-n)
	}
	if got := h.sent(n + 2); len(got) != 2 || !strings.Contains(got[0], "SUMMARY") || got[1] != "user: and the end?" {
		t.Errorf("the second request holds %d messages: %.300q", len(got), got)
	}
	if got := h.model.calls[n+2].MaxTokens; got != 10_000 {
		t.Errorf("an answer of %d tokens is asked for of a window of 40,000", got)
	}
	// One retry, not more.
	h.model.reply = fails(tooLong)
	n = len(h.model.calls)
	if res, _ := h.watched(t.Context(), h.turn("r10", 1, "hm?")); res.State != "error" || len(h.model.calls) > n+3 {
		t.Errorf("%+v after %d calls", res, len(h.model.calls)-n)
	}
}

func TestALongAnswerThatLeavesNoRoomIsAskedForShorter(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = replies(fails(llm.Fault{Code: llm.CodeTooLong, Text: "too long", Window: 8192}), says("Yes."))
	res, _ := h.watched(t.Context(), h.turn("r1", 1, "well?"))
	if res.Response != "Yes." || len(h.model.calls) != 2 || h.model.calls[0].MaxTokens != 16_000 || h.model.calls[1].MaxTokens != 2048 {
		t.Errorf("%+v after %d calls", res, len(h.model.calls))
	}
}

// Twenty turns with a window of 8,192 tokens: each request fits, none is refused.
func TestAConversationInASmallWindowGoesOn(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.tools = []tool.Tool{{Name: "Look", About: strings.Repeat("about it ", 1800), Schema: json.RawMessage(`{"type":"object"}`), Kind: tool.Inner,
		Run: func(context.Context, *tool.Call) (tool.Result, error) {
			return tool.Result{Text: strings.Repeat("found ", 5000)}, nil
		}}}
	h.model.window = 8192
	largest, summaries, result := 0, 0, 0
	step := 0
	h.model.reply = func(ctx context.Context, yield func(llm.Delta, error) bool) {
		req := h.model.calls[len(h.model.calls)-1]
		size, sums := len(req.System), strings.HasPrefix(req.Messages[len(req.Messages)-1].Blocks[0].Text, "Write a handoff note")
		for _, x := range req.Tools {
			size += len(x.About) + len(x.Schema) + len(x.Name)
		}
		for _, m := range req.Messages {
			for _, b := range m.Blocks {
				size += len(b.Text) + len(b.Input)
				if b.Type == "tool_result" && !sums {
					result = max(result, len(b.Text))
				}
			}
		}
		largest = max(largest, size/4+req.MaxTokens)
		if sums {
			summaries++
			says("SUMMARY")(ctx, yield)
			return
		}
		if step++; step%3 == 1 {
			uses("", fmt.Sprintf(`Look {"n":%d}`, step))(ctx, yield)
			return
		}
		says(strings.Repeat("So many words. ", 100))(ctx, yield)
	}
	for i := range 20 {
		if res, _ := h.watched(t.Context(), h.turn(fmt.Sprint("r", i), 1, strings.Repeat("and then? ", 40))); res.State != "done" {
			t.Fatalf("turn %d: %+v", i, res)
		}
	}
	if result < 1000 {
		t.Errorf("only %d bytes of a result reach the model", result)
	}
	if largest > 8192 || summaries == 0 || summaries > 25 {
		t.Errorf("the largest request takes %d tokens with its answer, of 8,192; %d summaries", largest, summaries)
	}
}

func TestAMessageThatTheProviderRefusesDoesNotSpoilTheSession(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = says("Hello.")
	h.watched(t.Context(), h.turn("r1", 1, "hi"))
	h.model.reply = fails(llm.Fault{Code: llm.CodeBadRequest, Text: "could not handle", Status: 400})
	res, _ := h.watched(t.Context(), h.turn("r2", 1, "look at *this* strange thing"))
	failed, ok := res.Terminal.(core.Failed)
	if !ok || !strings.Contains(failed.Message, "“look at this strange thing”") || !strings.Contains(failed.Message, "refused") {
		t.Errorf("its sender reads %+v", res.Terminal)
	}
	h.tx(res.Write)
	marked := false
	for _, line := range h.transcript() {
		var l struct {
			Refused []string `json:"refused"`
			API     bool     `json:"isApiErrorMessage"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		marked = marked || l.API && len(l.Refused) == 1
	}
	if !marked || !strings.Contains(strings.Join(h.transcript(), ""), "look at *this* strange thing") {
		t.Errorf("the transcript has no mark, or not the message: %q", h.transcript())
	}
	h.model.reply = says("Still here.")
	want := []string{"user: hi", "assistant: Hello.", "user: are you there?"}
	if res, _ := h.watched(t.Context(), h.turn("r3", 1, "are you there?")); res.Response != "Still here." || !slices.Equal(h.sent(len(h.model.calls)-1), want) {
		t.Errorf("%+v, sent %q", res, h.sent(len(h.model.calls)-1))
	}
	h.sessions.Uncache(h.turn("r4", 1, "x").Session.ID) // read from the file
	h.model.reply = says("Yes.")
	want = append(want, "assistant: Still here.", "user: really?")
	if h.watched(t.Context(), h.turn("r5", 1, "really?")); !slices.Equal(h.sent(len(h.model.calls)-1), want) {
		t.Errorf("from the file: sent %q", h.sent(len(h.model.calls)-1))
	}
}

// A run that was refused and did not store its end is not sent again.
func TestARefusedMessageIsNotSentAgainAfterACrash(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = fails(llm.Fault{Code: llm.CodeBadRequest, Text: "could not handle", Status: 400})
	h.watched(t.Context(), h.turn("r1", 1, "look"))
	n := len(h.model.calls)
	if res, _ := h.watched(t.Context(), h.turn("r1", 2, "look")); res.State != "error" || len(h.model.calls) != n {
		t.Errorf("%+v after %d calls more", res, len(h.model.calls)-n)
	}
}

func TestARefusedResultOfAToolIsLeftOutAndItsCallStays(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.tools = []tool.Tool{echo("Look", false)}
	h.model.reply = replies(uses("", `Look {"a":1}`), fails(llm.Fault{Code: llm.CodeBadRequest, Text: "could not handle", Status: 400}))
	res, _ := h.watched(t.Context(), h.turn("r1", 1, "look"))
	if failed, ok := res.Terminal.(core.Failed); !ok || !strings.Contains(failed.Message, "tools returned") {
		t.Errorf("its sender reads %+v", res.Terminal)
	}
	h.model.reply = says("Fine.")
	h.watched(t.Context(), h.turn("r2", 1, "go on"))
	got := h.results(len(h.model.calls) - 1)
	if len(got) != 1 || !strings.HasPrefix(got[0], "call0 true (left out") {
		t.Errorf("the model is told %q", got)
	}
}

// Without a file descriptor the provider was not asked: the turn goes back to the queue.
func TestAModelThatCannotBeReachedForLackOfFileDescriptorsIsNoAnswer(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	dial := &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
	h.model.reply = fails(llm.Fault{Code: llm.CodeUnavailable, Text: "out of reach", Err: fmt.Errorf("x: %w", dial)})
	if res, err := h.Run(t.Context(), h.turn("r1", 1, "hi"), func(core.Event) {}); !core.OutOfFiles(err) {
		t.Errorf("%+v, %v", res, err)
	}
}

// A message that is longer than the window is refused, told, and not sent again.
func TestAMessageLongerThanTheWindowIsLeftOutOfLaterTurns(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = fails(llm.Fault{Code: llm.CodeTooLong, Text: "too long", Status: 400, Window: 4096})
	res, _ := h.watched(t.Context(), h.turn("r1", 1, strings.Repeat("words ", 6000)))
	if failed, ok := res.Terminal.(core.Failed); !ok || !strings.Contains(failed.Message, "too long for the model") {
		t.Errorf("its sender reads %+v", res.Terminal)
	}
	h.model.reply = says("Fine.")
	if h.watched(t.Context(), h.turn("r2", 1, "hi")); !slices.Equal(h.sent(len(h.model.calls)-1), []string{"user: hi"}) {
		t.Errorf("sent %.200q", h.sent(len(h.model.calls)-1))
	}
}
