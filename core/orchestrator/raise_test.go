package orchestrator_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/tool"
)

// levels notes at which trust calls are decided and made.
type levels struct {
	*house
	decided []core.Trust
}

func (l *levels) Allow(_ context.Context, p permission.Profile, _ tool.Tool, _ *tool.Call, _ func(core.Event), _ func(bool)) (permission.Decision, error) {
	l.decided = append(l.decided, p.Trust)
	return permission.Decision{Verdict: permission.Allow}, nil
}

// raisedTurn is one of the owner's, at full until end.
func raisedTurn(h *house, o *orchestrator.Orchestrator, run string) *orchestrator.Turn {
	t := &orchestrator.Turn{Run: run, Rows: []core.Inbound{{Address: core.Address{Bot: "b", Chat: "c"}, Kind: core.KindMessage, Text: "please", At: h.clock.Now()}}}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		return o.Prepare(ctx, tx, t, session.Ref{Address: core.Address{Bot: "b", Chat: "c"}, User: core.Operator, Admin: true, Trust: core.Vault})
	})
	return t
}

// The call after the end of a raise is at the level from before, whether the
// time came or the trust was taken back; the run goes on.
func TestARunContinuesAtTheOldLevelWhenItsRaiseIsOver(t *testing.T) {
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprint("taken back ", taken), func(t *testing.T) {
			h := open(t, orchestrator.Limits{})
			l := &levels{house: h}
			has := core.Full
			o := h.with(func(o *orchestrator.Options) {
				o.Guard = l
				o.Raise = func(context.Context, *store.Tx, *orchestrator.Turn, session.Ref) (orchestrator.Raise, error) {
					return orchestrator.Raise{Trust: core.Full, Until: h.clock.Now().Add(10 * time.Minute)}, nil
				}
				o.Still = func(context.Context, *orchestrator.Turn) (core.Trust, error) { return has, nil }
			})
			var made []core.Trust
			x := echo("Do", true)
			x.Run = func(_ context.Context, c *tool.Call) (tool.Result, error) {
				made = append(made, c.Turn.Trust)
				if len(made) == 2 && taken {
					has = core.Vault
					h.clock.Advance(2 * time.Second)
				} else if len(made) == 2 {
					h.clock.Advance(10 * time.Minute)
				}
				return tool.Result{Text: fmt.Sprint("done ", len(made))}, nil
			}
			h.tools = []tool.Tool{x}
			h.model.reply = replies(uses("", `Do {"n":1}`), uses("", `Do {"n":2}`), uses("", `Do {"n":3}`), says("ok"))
			turn := raisedTurn(h, o, "r1")
			if turn.Trust != core.Full || turn.Base != core.Vault || turn.Session.TrustLevel != core.Vault {
				t.Fatalf("trust %s, base %s, session %s", turn.Trust, turn.Base, turn.Session.TrustLevel)
			}
			res, err := o.Run(t.Context(), turn, func(core.Event) {})
			want := []core.Trust{core.Full, core.Full, core.Vault}
			if err != nil || res.Response != "ok" || !slices.Equal(made, want) || !slices.Equal(l.decided, want) {
				t.Errorf("%+v %v: decided at %v, made at %v", res, err, l.decided, made)
			}
			if turn.Trust != core.Vault {
				t.Errorf("its end is at trust %s", turn.Trust)
			}
			if last := h.model.calls[len(h.model.calls)-1].Sender.Trust; last != core.Vault {
				t.Errorf("the model is asked at trust %s", last)
			}
		})
	}
}
