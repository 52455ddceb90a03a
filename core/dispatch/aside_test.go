package dispatch_test

import (
	"context"
	"testing"

	"gatehouse/core"
	"gatehouse/core/command"
)

// The answer to what was asked in private says with each of its parts that it
// is; it is told to the platform with the part, not remembered beside it.
func TestEveryPartOfAPrivateAnswerReportsThatItIs(t *testing.T) {
	h := open(t)
	sent := make(chan core.Outgoing, 10)
	h.sending = func(out core.Outgoing) { sent <- out }
	h.cmd = func(context.Context, command.Call) (command.Outcome, error) {
		return command.Outcome{Text: "one two"}, nil
	}
	group := core.Address{Bot: "b", Chat: "1", Place: "1"}
	for _, aside := range []string{"slot", ""} {
		h.put(core.Inbound{Address: group, Kind: core.KindCommand, Command: "do", Aside: aside})
		for _, text := range []string{"one", "two"} {
			if out := <-sent; out.Text != text || out.Aside != aside {
				t.Errorf("asked with %q: sent %+v", aside, out)
			}
		}
	}
}
