package orchestrator_test

import (
	"context"
	"errors"
	"testing"
	"time"

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

func (c shown) Answer(context.Context, *orchestrator.CouncilTurn) (orchestrator.Verdict, error) {
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

// A waiting council waits for longer than models may be silent, with a limit of its own, and
// then without one for as long as its function does.
type waiting struct {
	h    *house
	then func(ctx context.Context)
}

func (waiting) Level(string) string { return "high" }

func (c waiting) Answer(ctx context.Context, s *orchestrator.CouncilTurn) (orchestrator.Verdict, error) {
	s.Bounded(1)
	for range 5 {
		select {
		case <-c.h.clock.Waiting(1):
			c.h.clock.Advance(time.Minute)
		case <-ctx.Done():
		}
	}
	s.Bounded(-1)
	c.then(ctx)
	return orchestrator.Verdict{Text: "Tea, at four.", Model: "test/model"}, nil
}

func TestACouncilThatWaitsWithALimitIsNotEndedForTheSilenceOfItsModels(t *testing.T) {
	h := open(t, orchestrator.Limits{Silence: time.Minute})
	h.options.Council = waiting{h, func(context.Context) {}}
	res, err := orchestrator.New(h.options).Run(t.Context(), h.turn("r", 1, "When is tea?"), func(core.Event) {})
	if d, ok := res.Terminal.(core.Done); err != nil || !ok || d.Response != "Tea, at four." {
		t.Errorf("%v, %+v", err, res.Terminal)
	}
}

func TestACouncilThatWaitsWithoutALimitIsEndedForTheSilenceOfItsModels(t *testing.T) {
	h := open(t, orchestrator.Limits{Silence: time.Minute})
	h.options.Council = waiting{h, func(ctx context.Context) {
		<-h.clock.Waiting(1)
		h.clock.Advance(time.Minute)
		<-ctx.Done()
	}}
	res, err := orchestrator.New(h.options).Run(t.Context(), h.turn("r", 1, "When is tea?"), func(core.Event) {})
	if e, ok := res.Terminal.(core.Failed); err != nil || !ok || e.Code != "silence" {
		t.Errorf("%v, %+v", err, res.Terminal)
	}
}

// A changing council gives another answer in each attempt.
type changing struct{ answers []string }

func (changing) Level(string) string { return "high" }

func (c *changing) Answer(context.Context, *orchestrator.CouncilTurn) (orchestrator.Verdict, error) {
	text := c.answers[0]
	c.answers = c.answers[1:]
	return orchestrator.Verdict{Text: text, Model: "test/" + text[:3], Stop: "end_turn", Followed: map[string]bool{"w": true}}, nil
}

// The gateway ends between the transcript and the end of the run: the answer that is kept is
// given, and there is one.
func TestALaterAttemptGivesTheAnswerOfTheCouncilThatIsKept(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.options.Council = &changing{[]string{"Tea, at four.", "Cake, at five."}}
	o := orchestrator.New(h.options)
	if _, err := o.Run(t.Context(), h.turn("r", 1, "When is tea?"), func(core.Event) {}); err != nil {
		t.Fatal(err)
	}
	turn := h.turn("r", 2, "When is tea?")
	res, err := o.Run(t.Context(), turn, func(core.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	if d, ok := res.Terminal.(core.Done); !ok || d.Response != "Tea, at four." {
		t.Errorf("%+v", res.Terminal)
	}
	if got := h.answers(turn); len(got) != 1 || got[0] != "Tea, at four." {
		t.Errorf("kept are %q", got)
	}
}

// answers returns the messages of models that a turn's transcript keeps.
func (h *house) answers(turn *orchestrator.Turn) (list []string) {
	h.t.Helper()
	c, err := h.sessions.Open(h.t.Context(), turn.Session)
	if err != nil {
		h.t.Fatal(err)
	}
	past, _, err := c.History(1 << 20)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, m := range past {
		if m.Role == "assistant" {
			list = append(list, m.Blocks[0].Text)
		}
	}
	return list
}
