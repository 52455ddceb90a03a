package wiretest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"gatehouse/core"
)

// A Manner is how a reply is sent, whatever it states.
type Manner struct {
	// Status other than 0 and 200 answers with Body and Header instead of a stream.
	Status int
	Header map[string]string
	Body   string

	Reset    bool // close the connection without any answer
	HangHead bool // hang before the header
	Hang     bool // hang in the middle of the stream, until the client goes
	Cut      bool // break the connection there

	Split int           // bytes per write; 0 = one event per write
	Pause time.Duration // between writes
	Burst bool          // everything in one write
}

// Answers returns the HTTP status that is answered, 0 for a connection without answer.
func (m Manner) Answers() int {
	switch {
	case m.Reset:
		return 0
	case m.Status == 0:
		return http.StatusOK
	}
	return m.Status
}

// Head does what comes before an answer; false where there is none.
func (s *Server[Reply, Request]) Head(w http.ResponseWriter, r *http.Request, m Manner) bool {
	if m.Reset {
		panic(http.ErrAbortHandler) // net/http's way to close without an answer
	}
	if m.HangHead {
		s.hang(r.Context())
		panic(http.ErrAbortHandler)
	}
	for k, v := range m.Header {
		w.Header().Set(k, v)
	}
	if m.Answers() != http.StatusOK {
		w.WriteHeader(m.Status)
		io.WriteString(w, m.Body)
		return false
	}
	return true
}

// Stream sends an answer's events: those up to where it may hang or break, and the end.
func (s *Server[Reply, Request]) Stream(w http.ResponseWriter, r *http.Request, m Manner, before, after [][]byte) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	w.WriteHeader(http.StatusOK)
	if s.send(r.Context(), w, m, before) != nil {
		return
	}
	if m.Hang && s.hang(r.Context()) != nil {
		return
	}
	if m.Cut {
		panic(http.ErrAbortHandler)
	}
	s.send(r.Context(), w, m, after)
}

// send writes events as m states: whole, cut at byte boundaries, slowly, or at once.
func (s *Server[Reply, Request]) send(ctx context.Context, w http.ResponseWriter, m Manner, events [][]byte) error {
	if m.Split > 0 || m.Burst {
		events = [][]byte{bytes.Join(events, nil)}
	}
	out := http.NewResponseController(w)
	for _, e := range events {
		for len(e) > 0 {
			n := len(e)
			if m.Split > 0 {
				n = min(n, m.Split)
			}
			if m.Pause > 0 && !core.Sleep(ctx, s.clock, m.Pause) {
				return ctx.Err()
			}
			if _, err := w.Write(e[:n]); err != nil {
				return err
			}
			if err := out.Flush(); err != nil {
				return err
			}
			e = e[n:]
		}
	}
	return nil
}
