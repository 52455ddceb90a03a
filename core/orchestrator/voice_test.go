package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
	"gatehouse/core/runs"
	"gatehouse/core/store"
	"gatehouse/core/voice"
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

// A later is the list of the recordings that are transcribed later.
type later struct{ added []string }

func (*later) Room(context.Context, int64, int) bool { return true }

func (l *later) AddMessage(_ context.Context, _ *store.Tx, _ int64, _ *core.Inbound, f core.File) error {
	l.added = append(l.added, f.Path)
	return nil
}

// What an attempt has transcribed, or could not, is what the next one answers: the transcript has it.
func TestARecordingIsTranscribedByOneAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		first, then error
		notices     int
	}{
		"heard":     {then: &voice.Fault{Code: voice.FaultEngine}},
		"not heard": {first: &voice.Fault{Code: voice.FaultEngine}, notices: 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, orchestrator.Limits{})
			l := &later{}
			h.options.Later = l
			heard := 0
			o := h.hears(func(context.Context) (string, error) {
				if heard++; heard == 1 {
					return "Open the door.", c.first
				}
				return "Open the door.", c.then
			})
			broken := errors.New("the gateway stops")
			ctx, cancel := context.WithCancelCause(t.Context())
			h.model.reply = func(ctx context.Context, yield func(llm.Delta, error) bool) {
				cancel(broken)
				<-ctx.Done()
				yield(llm.Delta{}, ctx.Err())
			}
			picture := core.File{Name: "a.txt", Path: "Chat/assets/a.txt"}
			if err := h.vault.WriteFile(picture.Path, []byte("some text")); err != nil {
				t.Fatal(err)
			}
			turn := func(attempt int) *orchestrator.Turn {
				x := h.spoken("r1", attempt)
				x.Rows[0].Text = "about this:"
				x.Rows[0].Files = append([]core.File{picture}, x.Rows[0].Files...)
				return x
			}
			if _, err := o.Run(ctx, turn(1), func(core.Event) {}); !errors.Is(err, broken) {
				t.Fatal(err)
			}
			h.model.reply = says("It is open.")
			var notices []string
			second := turn(2)
			res, err := o.Run(t.Context(), second, func(e core.Event) {
				if w, ok := e.(core.Warning); ok {
					notices = append(notices, w.Message)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			h.tx(func(ctx context.Context, tx *store.Tx) error {
				_, err := runs.Begin(ctx, tx, runs.Start{ID: "r1", Session: second.Session.ID, User: second.User})
				return errors.Join(err, res.Write(ctx, tx))
			})
			if len(notices) != c.notices || len(l.added) != c.notices || heard != 1 {
				t.Errorf("transcribed %d times; its sender reads %q, and %q are to be transcribed later", heard, notices, l.added)
			}
		})
	}
}

// A platform that cannot be reached for some seconds after a restart still has the file.
func TestAFileThatCannotBeFetchedIsFetchedByTheNextAttempt(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = says("I read it.")
	asked := 0
	h.options.Incoming.Fetch = func(_ context.Context, _ int64, run, _ string, f core.File) (core.File, error) {
		if asked++; asked <= 4 {
			return f, errors.New("no route to host")
		}
		f.Path = "Chat/assets/" + run
		return f, h.vault.WriteFile(f.Path, []byte("the plan"))
	}
	o := orchestrator.New(h.options)
	turn := func(attempt int) *orchestrator.Turn {
		x := h.turn("r1", attempt, "read")
		x.Rows[0].Files = []core.File{{Name: "a.txt", Ref: "ref"}}
		return x
	}
	try := func(x *orchestrator.Turn) (res orchestrator.Result, err error) {
		done := make(chan struct{})
		go func() { defer close(done); res, err = o.Run(t.Context(), x, func(core.Event) {}) }()
		for {
			select {
			case <-done:
				return res, err
			case <-h.clock.Waiting(2): // beside the watchdog
				h.clock.Advance(time.Second)
			}
		}
	}
	if res, err := try(turn(1)); err == nil || core.KindOf(err) != core.Other || len(h.model.calls) != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	res, err := try(turn(2))
	if err != nil || res.Response != "I read it." || !strings.Contains(fmt.Sprint(h.model.calls[0].Messages), "the plan") {
		t.Errorf("%+v, %v", res, err)
	}
	// The last attempt answers without the file.
	asked = 0
	last := turn(1)
	last.Run, last.Last = "r2", true
	res, err = try(last)
	if err != nil || res.Response != "I read it." || asked != 3 || !strings.Contains(fmt.Sprint(h.model.calls[1].Messages), "could not be fetched") {
		t.Errorf("%+v, %v after %d tries", res, err, asked)
	}
}
