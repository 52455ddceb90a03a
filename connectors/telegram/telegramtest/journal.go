package telegramtest

import "time"

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
	// Outcome is logged before the client can see it: answered, or the fault: broken,
	// flooded, reset, hang (nothing was done), half, "broken after", "reset after",
	// "hang after" (done).
	Outcome string `json:"outcome"`
}

// OK reports whether the request was processed successfully, answered or not.
func (r Request) OK() bool { return r.Status == 200 }

func (r *Request) parts() (seq *uint64, kind string) { return &r.Seq, r.Method }

// maxLogged bounds the bytes kept of one parameter.
const maxLogged = 8 << 10

func (s *Server) record(r Request) {
	for k, v := range r.Params {
		if len(v) > maxLogged {
			r.Params[k] = v[:maxLogged]
		}
	}
	s.Record(r)
}
