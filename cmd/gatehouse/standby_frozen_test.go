package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/core/coretest"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/store/storetest"
)

// froze takes over from a gateway that is frozen while it answers, and has it wake. meanwhile is
// called in between.
func froze(t *testing.T, meanwhile func(h *home, second *proc)) {
	storetest.PostgresOnly(t, "SQLite's locks cannot be taken from a process")
	t.Parallel()
	sim := newSim(t)
	clock := coretest.NewClock(time.Time{})
	model := llmtest.New(t, llmtest.Options{Clock: clock})
	h := newHome(t, sim)
	h.env["GATEHOUSE_DATABASE_URL"] = storetest.Fresh(t)
	h.env["GATEHOUSE_TELEGRAM_DM_POLICY"], h.env["GATEHOUSE_OPENAI_BASE_URL"], h.env["GATEHOUSE_MODEL"] = "open", model.URL(), fakeModel
	first := h.serve(nil)
	second, _ := h.standby()
	model.Script(llmtest.Say("One."), llmtest.Reply{Text: []string{"It comes", " late."}, Pause: time.Minute})
	olga := sim.NewUser("Olga")
	olga.Send("count")
	hear(t, sim, olga.DM(), 0, "One.")
	olga.Send("go on")
	first.sees(func() bool { return len(model.Requests()) == 2 })
	model.Script(llmtest.Say("Two."), llmtest.Say("Three."), llmtest.Say("Four."))
	if err := first.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	frozen := time.Now()
	olga.Send("and again")
	second.says("the gateway that serves is not heard of")
	second.says("msg=serving")
	hear(t, sim, olga.DM(), 0, "Three.")
	t.Logf("taken over after %.1f s", time.Since(frozen).Seconds())
	meanwhile(h, second)
	for range 5 { // the answer is there when the gateway wakes
		clock.Advance(time.Minute)
	}
	if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	woke := time.Now()
	if code := first.end(); code != exitFailure || !strings.Contains(first.err.String(), "another gateway has ") {
		t.Errorf("the one that was frozen ends with %d:\n%s", code, first.err.String())
	}
	if took := time.Since(woke); took > 5*time.Second {
		t.Errorf("it took %v to end\n%s", took, first.err.String())
	}
	if !second.ended() {
		olga.Send("once more")
		hear(t, sim, olga.DM(), 0, "Four.")
		if got := strings.Join(said(sim, olga.DM()), " "); got != "One. Two. Three. Four." {
			t.Errorf("the bot said %q", got)
		}
		asked := model.Requests()
		if got := string(asked[len(asked)-1].Body); !strings.Contains(got, "Two.") || !strings.Contains(got, "Three.") || strings.Contains(got, "It comes") {
			t.Errorf("the model was asked with this conversation: %s", got)
		}
		if code, out, errs := h.run("pairing", "list"); code != exitClean {
			t.Errorf("the command line does not reach the gateway that serves: %d %s%s", code, out, errs)
		}
	}
}

func TestPostgres_AFrozenGatewayIsReplacedAndEndsWhenItWakes(t *testing.T) {
	froze(t, func(*home, *proc) {})
}

func TestPostgres_AFrozenGatewayThatWakesAfterItsReplacementHasEndedWritesNothing(t *testing.T) {
	froze(t, func(_ *home, second *proc) {
		_ = second.cmd.Process.Signal(syscall.SIGTERM)
		if code := second.end(); code != exitClean {
			t.Errorf("the replacement ends with %d", code)
		}
	})
}
