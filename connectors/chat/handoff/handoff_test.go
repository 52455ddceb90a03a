package handoff_test

import (
	"context"
	"testing"

	"gatehouse/connectors/chat/handoff"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/session"
	"gatehouse/core/store"
)

// one is the session of any chat. Of an old one it is not known that it is a group's.
type one struct{}

func (one) Current(context.Context, store.Queryer, core.Address) (session.Session, bool, error) {
	return session.Session{ID: "s", User: core.Operator}, true, nil
}

func TestInAGroupAHandoffIsWrittenForNoReaderAlone(t *testing.T) {
	for place, want := range map[string]int64{"": core.Operator, "g": 0} {
		c := handoff.Command{Sessions: one{}, Markdown: func(_ context.Context, _ session.Session, reader int64) (string, error) {
			if reader != want {
				t.Errorf("in %q it is for %d, want %d", place, reader, want)
			}
			return "note", nil
		}}
		r := command.Request{User: core.Operator, Call: command.Call{In: &core.Inbound{Address: core.Address{Bot: "b", Chat: "c", Place: place}}}}
		if out, err := c.Run(t.Context(), r); err != nil || out.Text != "note" {
			t.Errorf("%+v, %v", out, err)
		}
	}
}
