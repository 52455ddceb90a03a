package discordtest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
)

// A FaultKind is how an exchange goes wrong.
type FaultKind string

const (
	// Slow waits Delay, before the request is processed, or with After
	// between the processing and the answer.
	Slow FaultKind = "slow"
	// Broken answers with Status (502 when 0) and an HTML page, as a proxy in
	// front of the platform would; with After the request was processed.
	Broken FaultKind = "broken"
	// Flooded answers 429 with RetryAfter seconds (1 when 0), as the limit of
	// the route, or with Global as that of the bot.
	Flooded FaultKind = "flooded"
	// Banned answers 429 without JSON, as the proxy in front does ([limits]
	// "Cloudflare bans"): RetryAfter seconds (1 when 0) in the header only.
	Banned FaultKind = "banned"
	// Reset cuts the connection: before the body is read and anything is
	// done, or with After once the request was processed, so that a message
	// is delivered and its answer lost.
	Reset FaultKind = "reset"
	// Half processes the request, then sends half an answer and cuts.
	Half FaultKind = "half"
	// Hang never answers: until the client leaves, Delay (when not 0) has
	// passed, or the server closes. With After the request was processed.
	Hang FaultKind = "hang"
)

// A Fault is something to go wrong in requests to come.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Method is a route's name in any case, such as "createMessage"; "" is every
	// one, "file" a download, "gateway" the opening of a connection.
	Method      string        `json:"method,omitempty"`
	After       bool          `json:"after,omitempty"`
	Delay       time.Duration `json:"delay,omitempty"` // nanoseconds in JSON
	Status      int           `json:"status,omitempty"`
	RetryAfter  float64       `json:"retry_after,omitempty"` // seconds
	Global      bool          `json:"global,omitempty"`
	Skip        int           `json:"skip,omitempty"`        // let so many matching requests pass first
	Count       int           `json:"count,omitempty"`       // then hit so many; 0 is without end
	Probability float64       `json:"probability,omitempty"` // of hitting at all, by Options.Seed; 0 is always
}

type activeFault struct {
	Fault
	id int
}

// maxFaults bounds the faults waiting at once.
const maxFaults = 1000

// Inject lets f happen to requests to come; the first fault in order of
// injection wins, Slow ones add up. remove takes it back. An unknown kind, or
// the 1001st fault at once, is a core.Invalid error.
func (s *Server) Inject(f Fault) (remove func(), err error) {
	switch f.Kind {
	case Slow, Broken, Flooded, Banned, Reset, Half, Hang:
	default:
		return nil, core.Errorf(core.Invalid, "no fault is called %q", f.Kind)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) >= maxFaults {
		return nil, core.Errorf(core.Invalid, "more than %d faults", maxFaults)
	}
	s.faultID++
	id := s.faultID
	s.faults = append(s.faults, &activeFault{f, id})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = slices.DeleteFunc(s.faults, func(a *activeFault) bool { return a.id == id })
	}, nil
}

// ClearFaults takes back every fault.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// pickFaults decides what will go wrong in one request.
func (s *Server) pickFaults(method string) []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hit []Fault
	spent := false
	for _, f := range s.faults {
		if f.Method != "" && !strings.EqualFold(f.Method, method) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if f.Probability > 0 && s.rand.Float64() >= f.Probability {
			continue
		}
		hit = append(hit, f.Fault)
		if f.Count > 0 {
			if f.Count--; f.Count == 0 {
				f.Count, spent = -1, true
			}
		}
		if f.Kind != Slow {
			break
		}
	}
	if spent {
		s.faults = slices.DeleteFunc(s.faults, func(a *activeFault) bool { return a.Count < 0 })
	}
	return hit
}

// before plays the faults that come before the processing and reports whether
// the exchange is over. note logs its outcome, before the client can know it.
func (s *Server) before(ctx context.Context, w http.ResponseWriter, faults []Fault, note func(outcome string)) (over bool) {
	for _, f := range faults {
		if f.After || f.Kind == Half {
			continue
		}
		if f.Kind == Slow {
			s.pause(ctx, f.Delay)
			continue
		}
		note(string(f.Kind))
		s.play(ctx, w, f)
		return true
	}
	return false
}

// after plays the faults that come once the request was processed; with none
// the answer is written.
func (s *Server) after(ctx context.Context, w http.ResponseWriter, faults []Fault, a answer, note func(outcome string)) {
	for i, f := range faults {
		if f.Kind != Slow && (f.After || f.Kind == Half) {
			note(string(f.Kind) + map[bool]string{true: " after"}[f.After && f.Kind != Half])
			for _, slow := range faults[:i] {
				if slow.After {
					s.pause(ctx, slow.Delay)
				}
			}
			if f.Kind == Half {
				a.writeHalf(w)
			} else {
				s.play(ctx, w, f)
			}
			return
		}
	}
	note("answered")
	for _, f := range faults {
		if f.Kind == Slow && f.After {
			s.pause(ctx, f.Delay)
		}
	}
	a.write(w)
}

// play ends an exchange the way f says.
func (s *Server) play(ctx context.Context, w http.ResponseWriter, f Fault) {
	switch f.Kind {
	case Broken:
		f.page().write(w)
	case Flooded:
		e := &apiError{status: 429, wait: f.wait(), global: f.Global, scope: map[bool]string{false: "user", true: "global"}[f.Global]}
		failed(e).write(w)
	case Banned:
		banned(f.wait()).write(w)
	case Hang:
		s.hang(ctx, f.Delay)
		cut(w)
	default:
		cut(w)
	}
}

func (f Fault) wait() time.Duration {
	if f.RetryAfter <= 0 {
		return time.Second
	}
	return time.Duration(f.RetryAfter * float64(time.Second))
}

func (f Fault) page() answer {
	status := f.Status
	if status == 0 {
		status = http.StatusBadGateway
	}
	return page(status, http.StatusText(status))
}

func (s *Server) hang(ctx context.Context, d time.Duration) {
	if d > 0 {
		s.pause(ctx, d)
		return
	}
	select {
	case <-ctx.Done():
	case <-s.closing:
	}
}
