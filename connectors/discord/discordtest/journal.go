package discordtest

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// A Request is one logged request of a bot.
type Request struct {
	Seq       uint64                     `json:"seq"` // ascends from 1
	At        time.Time                  `json:"at"`
	Took      time.Duration              `json:"took"` // until the answer was ready, without faults after it
	Bot       ID                         `json:"bot,omitzero"`
	Method    string                     `json:"method"` // the route's name, such as "createMessage"; "" for an unknown one, "file", "gateway"
	Verb      string                     `json:"verb"`
	Path      string                     `json:"path"` // after /api/vN/, without the query
	Params    map[string]json.RawMessage `json:"params,omitempty"`
	Status    int                        `json:"status"` // of the answer that was made, even if a fault kept it back
	Error     string                     `json:"error,omitempty"`
	MessageID ID                         `json:"message_id,omitzero"` // of the message that was made, edited or deleted
	// Outcome is logged before the client can see it: answered, or the fault:
	// broken, flooded, banned, reset, hang (nothing was done), half, "broken
	// after", "reset after", "hang after" (done).
	Outcome string `json:"outcome"`
}

// OK reports whether the request was processed successfully, answered or not.
func (r Request) OK() bool { return r.Status >= 200 && r.Status < 300 }

// Text is a parameter that is a string.
func (r Request) Text(key string) string {
	var s string
	json.Unmarshal(r.Params[key], &s)
	return s
}

// A journal is a ring of requests with counts that never forget.
type journal struct {
	limit  int
	ring   []Request
	seq    uint64
	counts map[string]int
	bell   chan struct{} // closed at the next entry
}

// Bounds of the logs: requests, bytes kept of one parameter or path, gateway events.
const (
	defaultLog = 20_000
	maxLogged  = 16 << 10
	maxEvents  = 20_000
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
		if len(v) > maxLogged || len(r.Params) > 100 {
			delete(r.Params, k)
		}
	}
	r.Path, r.Error = cutText(r.Path, maxLogged), cutText(r.Error, maxLogged)
	j.seq++
	r.Seq = j.seq
	j.counts[r.Method]++ // routes, "file", "gateway" and "": bounded
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
	return s.journal.since(after, method)
}

func (j *journal) since(after uint64, method string) []Request {
	var out []Request
	first := j.seq - uint64(len(j.ring)) + 1
	for seq := max(after+1, first); seq <= j.seq; seq++ {
		r := j.ring[(seq-1)%uint64(max(j.limit, 1))]
		if method == "" || strings.EqualFold(r.Method, method) {
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
	n := 0
	for name, times := range s.journal.counts {
		if strings.EqualFold(name, method) {
			n += times
		}
	}
	return n
}

// AwaitRequest waits for a finished request to method after seq that match
// (nil is any) accepts. It is how a test waits without sleeping.
func (s *Server) AwaitRequest(ctx context.Context, after uint64, method string, match func(Request) bool) (Request, error) {
	for {
		s.mu.Lock()
		rs := s.journal.since(after, method)
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

// A GatewayEvent is one thing that happened on a websocket.
type GatewayEvent struct {
	Seq      uint64    `json:"seq"` // ascends from 1
	At       time.Time `json:"at"`
	Conn     int       `json:"conn"`
	Bot      ID        `json:"bot,omitzero"`
	Kind     string    `json:"kind"` // connect, identify, ready, resume, resumed, invalid (op 9), reconnect (op 7), heartbeat, close (by us), drop (by us), left (by the bot)
	Session  string    `json:"session,omitempty"`
	Intents  int       `json:"intents,omitempty"`
	SeqNo    int64     `json:"seq_no,omitempty"`   // resume, heartbeat: what the bot had
	Replayed int       `json:"replayed,omitempty"` // resumed: events sent again
	Code     int       `json:"code,omitempty"`     // close, left; 0: no close code
	Text     string    `json:"text,omitempty"`
	Resuming bool      `json:"resuming,omitempty"` // it came by the resume_gateway_url
}

// A gatewayLog keeps the last 20,000 events; heartbeats are among them.
type gatewayLog struct {
	list []GatewayEvent
	seq  uint64
	bell chan struct{}
}

func (c *conn) log(e GatewayEvent) {
	g := &c.s.gateway
	g.seq++
	e.Seq, e.At, e.Conn = g.seq, c.s.clock.Now(), c.id
	if c.bot != nil {
		e.Bot = c.bot.account.ID
	}
	if len(g.list) >= maxEvents {
		g.list = append([]GatewayEvent(nil), g.list[maxEvents/2:]...)
	}
	g.list = append(g.list, e)
	if g.bell != nil {
		close(g.bell)
		g.bell = nil
	}
}

// GatewayLog is what happened on websockets after seq, oldest first; kind "" is all.
func (s *Server) GatewayLog(after uint64, kind string) []GatewayEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gateway.since(after, kind)
}

func (g *gatewayLog) since(after uint64, kind string) []GatewayEvent {
	var out []GatewayEvent
	for _, e := range g.list {
		if e.Seq > after && (kind == "" || e.Kind == kind) {
			out = append(out, e)
		}
	}
	return out
}

// AwaitGateway waits for a gateway event of a kind after seq.
func (s *Server) AwaitGateway(ctx context.Context, after uint64, kind string) (GatewayEvent, error) {
	for {
		s.mu.Lock()
		list := s.gateway.since(after, kind)
		if s.gateway.bell == nil {
			s.gateway.bell = make(chan struct{})
		}
		bell := s.gateway.bell
		s.mu.Unlock()
		if len(list) > 0 {
			return list[0], nil
		}
		select {
		case <-bell:
		case <-ctx.Done():
			return GatewayEvent{}, ctx.Err()
		}
	}
}
