package simulator

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
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
	// Flooded answers 429 with RetryAfter seconds (1 when 0).
	Flooded FaultKind = "flooded"
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

// Seconds is how a platform returns how long to wait: whole, or with decimals.
type Seconds interface{ int | float64 }

// A Fault is something to go wrong in requests to come.
type Fault[S Seconds] struct {
	Kind FaultKind `json:"kind"`
	// Method is a method's name in any case; "" is every one, "file" a download.
	Method      string        `json:"method,omitempty"`
	After       bool          `json:"after,omitempty"`
	Delay       time.Duration `json:"delay,omitempty"` // nanoseconds in JSON
	Status      int           `json:"status,omitempty"`
	RetryAfter  S             `json:"retry_after,omitempty"`
	Global      bool          `json:"global,omitempty"`      // Flooded: all that the bot does, where the platform distinguishes that
	Skip        int           `json:"skip,omitempty"`        // let that many matching requests pass first
	Count       int           `json:"count,omitempty"`       // then hit that many; 0 is without end
	Probability float64       `json:"probability,omitempty"` // of hitting at all, by the seed; 0 is always
}

// Wait is RetryAfter, 1 second when it is 0.
func (f Fault[S]) Wait() time.Duration {
	if f.RetryAfter <= 0 {
		return time.Second
	}
	return time.Duration(float64(f.RetryAfter) * float64(time.Second))
}

// Page returns what Broken answers where proxy is in front of the platform.
func (f Fault[S]) Page(kind, proxy string) Answer {
	status := f.Status
	if status == 0 {
		status = http.StatusBadGateway
	}
	return Page(status, kind, http.StatusText(status), proxy)
}

// Answers are the faults that are answers in the platform's own format.
type Answers[S Seconds] map[FaultKind]func(Fault[S]) Answer

type waiting[S Seconds] struct {
	Fault[S]
	id int
}

// Faults are what will go wrong. Its methods may be called from any goroutine.
type Faults[S Seconds] struct {
	site    *Site
	answers Answers[S]

	mu   sync.Mutex
	rand *rand.Rand
	list []*waiting[S]
	last int // id given
}

// NewFaults returns none yet; seed decides what those with a probability hit.
func NewFaults[S Seconds](site *Site, seed uint64, answers Answers[S]) *Faults[S] {
	return &Faults[S]{site: site, answers: answers, rand: rand.New(rand.NewPCG(seed, seed))}
}

// maxFaults bounds the faults waiting at once.
const maxFaults = 1000

// Inject lets f happen to requests to come; the first fault in order of
// injection wins, Slow ones add up. remove takes it back. An unknown kind, or
// the 1001st fault at once, is a core.Invalid error.
func (s *Faults[S]) Inject(f Fault[S]) (remove func(), err error) {
	switch f.Kind {
	case Slow, Reset, Half, Hang:
	default:
		if s.answers[f.Kind] == nil {
			return nil, core.Errorf(core.Invalid, "no fault is called %q", f.Kind)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) >= maxFaults {
		return nil, core.Errorf(core.Invalid, "more than %d faults", maxFaults)
	}
	s.last++
	id := s.last
	s.list = append(s.list, &waiting[S]{f, id})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.list = slices.DeleteFunc(s.list, func(a *waiting[S]) bool { return a.id == id })
	}, nil
}

// ClearFaults takes back every fault.
func (s *Faults[S]) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = nil
}

// pick decides what will go wrong in one request.
func (s *Faults[S]) pick(method string) []Fault[S] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hit []Fault[S]
	spent := false
	for _, f := range s.list {
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
		s.list = slices.DeleteFunc(s.list, func(a *waiting[S]) bool { return a.Count < 0 })
	}
	return hit
}
