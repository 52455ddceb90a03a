// Package stream opens the event streams of the API and bounds how many of them
// one caller has.
package stream

import (
	"fmt"
	"net/http"

	"gatehouse/core"
	"gatehouse/web"
)

// A Watcher calls gone once when the caller of r loses access, until forget is
// called (*auth.Authenticator).
type Watcher interface {
	Watch(r *http.Request, gone func()) (forget func())
}

// Streams opens event streams. It is safe for concurrent use.
type Streams struct {
	Watcher
	slots   *web.Slots
	pulse   *web.Pulse
	metrics *web.Metrics
}

// New returns Streams of at most most for each caller; metrics may be nil.
func New(watcher Watcher, clock core.Clock, metrics *web.Metrics, most int) *Streams {
	return &Streams{Watcher: watcher, slots: web.NewSlots(most), pulse: web.NewPulse(clock), metrics: metrics}
}

// Take counts one more open stream of caller; release is called once when it
// ends. Above the limit it returns a problem.
func (s *Streams) Take(caller string) (release func(), err error) {
	release, ok := s.slots.Take(caller)
	if !ok {
		return nil, &web.Problem{Fault: web.TooManyRequests, RetryAfter: web.RetrySoon,
			Detail: fmt.Sprintf("at most %d streams may be open per key", s.slots.Most())}
	}
	return release, nil
}

// Open returns how many streams are open.
func (s *Streams) Open() int { return s.slots.Open() }

// Start answers r with a stream; the caller closes it. An endless one does not
// end with a run.
func (s *Streams) Start(w http.ResponseWriter, r *http.Request, endless bool) (*web.Stream, error) {
	return web.OpenStream(w, r, s.options(endless))
}

// Run answers r with a stream for f, which may run after Run has returned, as
// web.RunStream does.
func (s *Streams) Run(w http.ResponseWriter, r *http.Request, endless bool, f func(*web.Stream)) error {
	return web.RunStream(w, r, s.options(endless), f)
}

func (s *Streams) options(endless bool) web.StreamOptions {
	return web.StreamOptions{Pulse: s.pulse, Metrics: s.metrics, Endless: endless}
}
