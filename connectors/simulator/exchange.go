package simulator

import (
	"context"
	"net/http"
	"time"
)

// An Exchange is one request and what goes wrong in it.
type Exchange[S Seconds] struct {
	ctx    context.Context
	w      http.ResponseWriter
	faults *Faults[S]
	hit    []Fault[S]
	note   func(outcome string)
}

// Begin decides what goes wrong in a request to method and plays what comes
// before it is processed; false: the exchange has ended. note is called with
// the outcome before the client can know it: "answered", or the fault's kind, with
// " after" once the request was processed.
func (s *Faults[S]) Begin(w http.ResponseWriter, r *http.Request, method string, note func(outcome string)) (*Exchange[S], bool) {
	e := &Exchange[S]{r.Context(), w, s, s.pick(method), note}
	for _, f := range e.hit {
		if f.After || f.Kind == Half {
			continue
		}
		if f.Kind == Slow {
			s.site.Pause(e.ctx, f.Delay)
			continue
		}
		note(string(f.Kind))
		e.play(f)
		return nil, false
	}
	return e, true
}

// End plays the faults that come once the request was processed; with none
// the answer is written.
func (e *Exchange[S]) End(a Answer) {
	for i, f := range e.hit {
		if f.Kind == Slow || !f.After && f.Kind != Half {
			continue
		}
		if f.Kind == Half {
			e.note(string(Half))
			e.delay(e.hit[:i])
			a.writeHalf(e.w)
		} else {
			e.note(string(f.Kind) + " after")
			e.delay(e.hit[:i])
			e.play(f)
		}
		return
	}
	e.note("answered")
	e.delay(e.hit)
	a.Write(e.w)
}

// delay is for the slow ones among faults, between processing and answer.
func (e *Exchange[S]) delay(faults []Fault[S]) {
	for _, f := range faults {
		if f.Kind == Slow && f.After {
			e.faults.site.Pause(e.ctx, f.Delay)
		}
	}
}

// play ends the exchange with the fault f.
func (e *Exchange[S]) play(f Fault[S]) {
	if answer := e.faults.answers[f.Kind]; answer != nil {
		answer(f).Write(e.w)
		return
	}
	if f.Kind == Hang {
		e.hang(f.Delay)
	}
	cut(e.w)
}

func (e *Exchange[S]) hang(d time.Duration) {
	if d > 0 {
		e.faults.site.Pause(e.ctx, d)
		return
	}
	select {
	case <-e.ctx.Done():
	case <-e.faults.site.Closing():
	}
}
