package telegramtest

import (
	"context"
	"strings"
	"time"
)

// A Request is one logged request of a bot.
type Request struct {
	Seq         uint64            `json:"seq"` // ascends from 1
	At          time.Time         `json:"at"`
	Took        time.Duration     `json:"took"` // until the answer was ready, without faults after it
	Token       string            `json:"-"`
	Method      string            `json:"method"` // in lower case; "file" for a download
	Params      map[string]string `json:"params,omitempty"`
	Status      int               `json:"status"` // of the answer that was made, even if a fault kept it back
	Description string            `json:"description,omitempty"`
	MessageID   int               `json:"message_id,omitempty"` // of the message that was made or edited
	// Outcome is logged before the client can see it: answered, or the fault: broken, flooded, reset, hang (nothing
	// was done), half, "broken after", "reset after", "hang after" (done).
	Outcome string `json:"outcome"`
}

// OK reports whether the request was processed successfully, answered or not.
func (r Request) OK() bool { return r.Status == 200 }

// A journal is a ring of requests with counts that never forget.
type journal struct {
	limit  int
	ring   []Request
	seq    uint64
	counts map[string]int
	bell   chan struct{} // closed at the next entry
}

// Bounds of the log: entries, and bytes kept of one parameter.
const (
	defaultLog = 20_000
	maxLogged  = 8 << 10
)

func (s *Server) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := &s.journal
	if j.limit <= 0 {
		j.limit = defaultLog
	}
	if j.counts == nil {
		j.counts = map[string]int{}
	}
	for k, v := range r.Params {
		if len(v) > maxLogged {
			r.Params[k] = v[:maxLogged]
		}
	}
	j.seq++
	r.Seq = j.seq
	if _, known := methods[r.Method]; known || r.Method == "getupdates" || r.Method == "file" || len(j.counts) < 100 {
		j.counts[r.Method]++
	}
	if len(j.ring) < j.limit {
		j.ring = append(j.ring, r)
	} else {
		j.ring[(j.seq-1)%uint64(j.limit)] = r
	}
	if j.bell != nil {
		close(j.bell)
		j.bell = nil
	}
}

// Requests are the logged requests after seq, oldest first; method "" is all.
// At most Options.LogSize are kept.
func (s *Server) Requests(after uint64, method string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.since(after, strings.ToLower(method))
}

func (j *journal) since(after uint64, method string) []Request {
	var out []Request
	first := j.seq - uint64(len(j.ring)) + 1
	for seq := max(after+1, first); seq <= j.seq; seq++ {
		r := j.ring[(seq-1)%uint64(max(j.limit, 1))]
		if method == "" || r.Method == method {
			out = append(out, r)
		}
	}
	return out
}

// Count is how often a method was called since the start ("" is all methods).
func (s *Server) Count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if method == "" {
		return int(s.journal.seq)
	}
	return s.journal.counts[strings.ToLower(method)]
}

// AwaitRequest waits for a finished request to method after seq that match
// (nil is any) accepts. It is how a test waits without sleeping. A getUpdates
// counts when it is answered.
func (s *Server) AwaitRequest(ctx context.Context, after uint64, method string, match func(Request) bool) (Request, error) {
	for {
		s.mu.Lock()
		rs := s.journal.since(after, strings.ToLower(method))
		if s.journal.bell == nil {
			s.journal.bell = make(chan struct{})
		}
		bell := s.journal.bell
		after = max(after, s.journal.seq)
		s.mu.Unlock()
		for _, r := range rs {
			if match == nil || match(r) {
				return r, nil
			}
		}
		select {
		case <-bell:
		case <-ctx.Done():
			return Request{}, ctx.Err()
		}
	}
}
