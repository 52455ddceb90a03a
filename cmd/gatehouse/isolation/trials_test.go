package isolation

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/core/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main() // this program is the stage
	os.Exit(m.Run())
}

// What is offered is what was seen to work, also where it is tried beside other work.
func TestTrialsReturnWhatTryingOneByOneReturns(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tried := Begin(sandbox.Auto, self)
	want, wantText := sandbox.Open(sandbox.Auto, self)
	got, text := tried.Box()
	if (got == nil) != (want == nil) || text != wantText {
		t.Errorf("%v, %q; one by one %v, %q", got, text, want, wantText)
	}
	cover := func() sandbox.Cover { return sandbox.Cover{} }
	wantVeil, wantText := sandbox.TryVeil(sandbox.Auto).Open(cover)
	if veil, text := tried.Veil().Open(cover); (veil == nil) != (wantVeil == nil) || text != wantText {
		t.Errorf("the veil: %q; one by one %q", text, wantText)
	}
}

func TestNothingIsTriedWhereNoIsolationIsWanted(t *testing.T) {
	tried := Begin(sandbox.None, "/does/not/exist")
	if box, text := tried.Box(); box != nil || !strings.Contains(text, "switched off") {
		t.Errorf("%v, %q", box, text)
	}
	if veil, text := tried.Veil().Open(nil); veil != nil || !strings.Contains(text, "switched off") {
		t.Errorf("the veil: %q", text)
	}
}

// The start of the gateway does not wait for a slow machine to try the sandbox; who needs a
// box does.
func TestOpenDoesNotWaitForTheTrials(t *testing.T) {
	trials, done := &Trials{}, make(chan struct{})
	trials.running.Go(func() { <-done; trials.noBox = "nothing works here" })
	s := trials.Open(&configs.Config{Sandbox: sandbox.Auto}, t.TempDir(), "", slog.New(slog.DiscardHandler))
	asked := make(chan string)
	go func() { _, why := s.Box(); asked <- why }()
	select {
	case why := <-asked:
		t.Errorf("it is known before it was tried: %q", why)
	default:
	}
	close(done)
	if why := <-asked; why != "nothing works here" {
		t.Errorf("why there is none: %q", why)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
