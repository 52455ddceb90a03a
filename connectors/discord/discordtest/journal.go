package discordtest

import (
	"context"
	"encoding/json"
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

// Text returns a parameter that is a string.
func (r Request) Text(key string) string {
	var s string
	json.Unmarshal(r.Params[key], &s)
	return s
}

func (r *Request) parts() (seq *uint64, kind string) { return &r.Seq, r.Method }

// Bounds of the logs: bytes kept of one parameter or path, gateway events.
const (
	maxLogged = 16 << 10
	maxEvents = 20_000
)

func (s *Server) record(r Request) {
	for k, v := range r.Params {
		if len(v) > maxLogged || len(r.Params) > 100 {
			delete(r.Params, k)
		}
	}
	r.Path, r.Error = cutText(r.Path, maxLogged), cutText(r.Error, maxLogged)
	s.Record(r)
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

func (e *GatewayEvent) parts() (seq *uint64, kind string) { return &e.Seq, e.Kind }

func (c *conn) log(e GatewayEvent) {
	e.At, e.Conn = c.s.clock.Now(), c.id
	if c.bot != nil {
		e.Bot = c.bot.account.ID
	}
	c.s.gateway.Add(e)
}

// GatewayLog returns what happened on websockets after seq, oldest first; kind "" is
// all. The last 20,000 events are kept, heartbeats among them.
func (s *Server) GatewayLog(after uint64, kind string) []GatewayEvent {
	return s.gateway.Since(after, kind)
}

// AwaitGateway waits for a gateway event of a kind after seq.
func (s *Server) AwaitGateway(ctx context.Context, after uint64, kind string) (GatewayEvent, error) {
	return s.gateway.Await(ctx, after, kind, nil)
}
