package health

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/web"
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
		ok, _, results := c.state(t.Context())
		if ok || len(results) != 1 || !strings.Contains(results[0].Detail, "no answer") {
			t.Errorf("%t %+v", ok, results)
		}
		clock.Advance(time.Minute)
	}
	answer <- nil
	if ok, _, results := c.state(t.Context()); !ok {
		t.Errorf("when it has answered: %+v", results)
	}
	if len(begun) != 1 {
		t.Errorf("it was begun %d times", len(begun))
	}
}

type failedBots struct{}

func (failedBots) States() []core.BotState {
	return []core.BotState{{Bot: "telegram", State: core.FailedPhase, Reason: "the token is refused"}}
}

// A load balancer that took the gateway away would take the panel with it, where the token is replaced.
func TestBotsThatHaveFailedDoNotCountForWhoAsksWithoutThem(t *testing.T) {
	var fault error
	a := New([]Check{{Name: "database", Func: func(context.Context) error { return fault }}}, failedBots{}, core.System{}, nil)
	status := func(query string) int {
		a.ready.at = time.Time{}
		w := httptest.NewRecorder()
		err := a.readyz(w, httptest.NewRequest(http.MethodGet, "/readyz"+query, nil))
		var p *web.Problem
		if errors.As(err, &p) {
			return p.Fault.Status
		}
		return w.Code
	}
	for query, want := range map[string]int{"": 503, "?bots=true": 503, "?bots=false": 200, "?bots=maybe": 400} {
		if got := status(query); got != want {
			t.Errorf("%s is answered %d", query, got)
		}
	}
	if fault = errors.New("no"); status("?bots=false") != 503 {
		t.Error("without a database it is ready")
	}
}
