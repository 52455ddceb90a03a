package orchestrator_test

import (
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/anthropic"
	"gatehouse/core/llm/anthropictest"
	"gatehouse/core/orchestrator"
	"gatehouse/core/tool"
)

// The API refuses a result whose call does not stand among its thinking as it was given,
// with the thinking that only the provider can read. The same is in the transcript.
func TestThinkingGoesBackCompleteAndInItsOrder(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	api := anthropictest.New(t, anthropictest.Options{})
	client, err := anthropic.New(anthropic.Options{BaseURL: api.URL(), Model: "claude-fake-5", Clock: h.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	h.tools = []tool.Tool{echo("Look", false)}
	o := h.with(func(o *orchestrator.Options) {
		o.Model = func(string, bool) (llm.Model, error) { return client, nil }
	})
	call := func(id string) []anthropictest.Call {
		return []anthropictest.Call{{ID: id, Name: "Look", Fragments: []string{`{"at":"` + id + `"}`}}}
	}
	api.Script(
		anthropictest.Reply{Thinking: []string{"First ", "a."}, Signature: anthropictest.Signed + "1", Text: []string{"A moment."}, Calls: call("a"),
			Then: &anthropictest.Reply{Redacted: "opaque1", Calls: call("b"),
				Then: &anthropictest.Reply{Thinking: []string{"Then c."}, Signature: anthropictest.Signed + "2", Redacted: "opaque2", Calls: call("c")}}},
		anthropictest.Reply{Redacted: "opaque3", Calls: call("d")},
		anthropictest.Say("Done."), anthropictest.Say("You are welcome."))
	for run, want := range []string{"Done.", "You are welcome."} {
		res, err := o.Run(t.Context(), h.turn([]string{"r1", "r2"}[run], 1, "please"), func(core.Event) {})
		if err != nil || res.Response != want {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	if n := api.Total(); n != 4 {
		t.Errorf("%d requests: some were refused", n)
	}
	const first = "First a./fake-signature-1|A moment.|Look a|opaque1|Look b|Then c./fake-signature-2|opaque2|Look c"
	for i, want := range []string{1: first, 2: first + "|opaque3|Look d", 3: first + "|opaque3|Look d|Done."} {
		var got []string
		for _, m := range api.Requests()[i].Message.Messages {
			for _, b := range m.Content {
				switch b.Type {
				case "thinking":
					got = append(got, b.Thinking+"/"+b.Signature)
				case "redacted_thinking":
					got = append(got, b.Data)
				case "tool_use":
					got = append(got, b.Name+" "+b.ID)
				case "text":
					if m.Role == "assistant" {
						got = append(got, b.Text)
					}
				}
			}
		}
		if i > 0 && !slices.Equal(got, strings.Split(want, "|")) {
			t.Errorf("request %d has %q", i, got)
		}
	}
}
