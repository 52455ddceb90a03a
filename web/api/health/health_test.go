package health

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/coretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type noBots struct{}

func (noBots) States() []core.BotState { return nil }

func TestACheckThatDoesNotAnswerIsNotWaitedForAndNotBegunTwice(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	answer, begun := make(chan error), make(chan bool, 5)
	c := &readiness{clock: clock, bots: noBots{}, ended: map[string]chan error{}, checks: []Check{{Name: "database", Func: func(context.Context) error {
		begun <- true
		return <-answer
	}}}}
	for range 2 {
		ok, results := c.state(t.Context())
		if ok || len(results) != 1 || !strings.Contains(results[0].Detail, "no answer") {
			t.Errorf("%t %+v", ok, results)
		}
		clock.Advance(time.Minute)
	}
	answer <- nil
	if ok, results := c.state(t.Context()); !ok {
		t.Errorf("when it has answered: %+v", results)
	}
	if len(begun) != 1 {
		t.Errorf("it was begun %d times", len(begun))
	}
}
