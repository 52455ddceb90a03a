package orchestrator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
)

// spoken is a turn whose message is a recording.
func (h *house) spoken(run string, attempt int) *orchestrator.Turn {
	x := h.turn(run, attempt, "")
	x.Rows[0].Files = []core.File{{Name: "voice.ogg", Type: "audio/ogg", Voice: true, Path: "Chat/assets/" + run + "/voice.ogg"}}
	return x
}

// hears is the orchestrator with this transcription.
func (h *house) hears(hear func(ctx context.Context) (string, error)) *orchestrator.Orchestrator {
	h.options.Incoming.Hear = func(ctx context.Context, _ int64, _ core.File, _ func(string)) (string, error) { return hear(ctx) }
	return orchestrator.New(h.options)
}

// What comes before the first request is not the model's silence, and counts for the time of the run.
func TestATranscriptionThatTakesLongIsNotTheModelsSilence(t *testing.T) {
	h := open(t, orchestrator.Limits{Silence: 5 * time.Minute, RunTime: 10 * time.Minute})
	h.model.reply = says("I listened.")
	slow := func(takes time.Duration) *orchestrator.Orchestrator {
		return h.hears(func(ctx context.Context) (string, error) {
			if h.clock.Advance(takes); takes < h.options.Limits.RunTime {
				return "Hello there.", nil
			}
			within(t, ctx.Done())
			return "", ctx.Err()
		})
	}
	res, err := slow(6*time.Minute).Run(t.Context(), h.spoken("r1", 1), func(core.Event) {})
	if d, ok := res.Terminal.(core.Done); err != nil || !ok || d.Response != "I listened." {
		t.Errorf("heard in six minutes: %+v, %v", res.Terminal, err)
	}
	calls := len(h.model.calls)
	res, err = slow(10*time.Minute).Run(t.Context(), h.spoken("r2", 1), func(core.Event) {})
	if f, ok := res.Terminal.(core.Failed); err != nil || !ok || f.Code != "timeout" || len(h.model.calls) != calls {
		t.Errorf("heard in more than the time of a run: %+v, %v; %d further requests", res.Terminal, err, len(h.model.calls)-calls)
	}
}

// A turn that is claimed, and waits for other runs of its guest, has its whole time.
func TestTheTimeOfARunBeginsWithTheRun(t *testing.T) {
	h := open(t, orchestrator.Limits{Silence: 5 * time.Minute, RunTime: 10 * time.Minute})
	h.model.reply = func(ctx context.Context, yield func(llm.Delta, error) bool) {
		select {
		case <-h.clock.Waiting(1): // the watchdog has looked
		case <-ctx.Done():
		}
		says("Here I am.")(ctx, yield)
	}
	turn := h.turn("r1", 1, "hello")
	h.clock.Advance(11 * time.Minute)
	res, err := h.Run(t.Context(), turn, func(core.Event) {})
	if d, ok := res.Terminal.(core.Done); err != nil || !ok || d.Response != "Here I am." {
		t.Errorf("%+v, %v", res.Terminal, err)
	}
}

// A gateway that stops in the middle of a transcription has not found out that there is no text.
func TestARecordingWhoseTranscriptionIsCutIsTranscribedByTheNextAttempt(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = says("I listened.")
	stop := errors.New("the gateway stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	cut := h.hears(func(ctx context.Context) (string, error) {
		cancel(stop)
		return "", ctx.Err()
	})
	if _, err := cut.Run(ctx, h.spoken("r1", 1), func(core.Event) {}); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	o := h.hears(func(context.Context) (string, error) { return "Open the door.", nil })
	if _, err := o.Run(t.Context(), h.spoken("r1", 2), func(core.Event) {}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Join(h.transcript(), "\n"); !strings.Contains(lines, "Open the door.") || strings.Contains(lines, "could not be transcribed") {
		t.Errorf("the transcript has %s", lines)
	}
}
