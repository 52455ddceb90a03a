package orchestrator_test

import (
	"context"
	"errors"
	"testing"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/orchestrator"
	"gatehouse/core/store"
	"gatehouse/core/vault"
)

// A stop while the run is prepared, as while it asks for tools, ends as a stop,
// whatever error comes of it.
func TestAStopDuringPreparationIsReturnedAsItsCause(t *testing.T) {
	stop := errors.New("the gateway is stopping")
	for name, err := range map[string]error{"its context": context.Canceled, "a busy server": core.Errorf(core.Busy, "not now"), "another": errors.New("broken")} {
		t.Run(name, func(t *testing.T) {
			for _, cause := range []error{stop, orchestrator.ErrAborted} {
				h := open(t, orchestrator.Limits{})
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				h.options.Equip = func(context.Context, *orchestrator.Turn, vault.Dir, agent.Agent) (*orchestrator.Kit, error) {
					cancel(cause)
					return nil, err
				}
				res, err := orchestrator.New(h.options).Run(ctx, h.turn("r", 1, "hello"), func(core.Event) {})
				if cause == stop {
					if !errors.Is(err, stop) {
						t.Errorf("%v, %+v", err, res.Terminal)
					}
					continue
				}
				if _, ok := res.Terminal.(core.Aborted); err != nil || !ok {
					t.Errorf("%v, %+v", err, res.Terminal)
				}
			}
		})
	}
}

// A shown is a council that is stopped while its answer is shown.
type shown struct{ stop, kept func() }

func (shown) Level(string) string { return "high" }

func (c shown) Answer(context.Context, *orchestrator.Sitting) (orchestrator.Verdict, error) {
	c.stop()
	return orchestrator.Verdict{Text: "Tea, at four.", Model: "test/model", Buttons: []core.Button{{Label: "Pick"}},
		Write: func(context.Context, *store.Tx) error { c.kept(); return nil }}, nil
}

func TestACouncilThatIsStoppedWhileItsAnswerIsShownKeepsItsRecord(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	kept := 0
	h.options.Council = shown{func() { cancel(orchestrator.ErrAborted) }, func() { kept++ }}
	res, err := orchestrator.New(h.options).Run(ctx, h.turn("r", 1, "When is tea?"), func(core.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	h.tx(res.Write)
	if a, ok := res.Terminal.(core.Aborted); !ok || a.PartialResponse != "Tea, at four." || kept != 1 || len(res.Buttons) != 0 {
		t.Errorf("%+v with %d buttons; the record was stored %d times", res.Terminal, len(res.Buttons), kept)
	}
}
