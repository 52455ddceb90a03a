// Package model is a fake language model for measurements: a server that streams
// OpenAI's chat completions, calls a tool and delays its output as configured, and
// records when it was called.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Name is the model's name at the server.
const Name = "load"

// answer is the final text: 20 words, each an event of its own.
const answer = "There is nothing more to say about that now, and what comes next is up to you, as it always was."

// maxRequest bounds what is read of one request, in bytes.
const maxRequest = 16 << 20

// A Plan is how the next conversations go.
type Plan struct {
	// Delay is how long the model takes until its first word.
	Delay time.Duration
	// Tool is called Rounds times in each conversation, once in each answer; the
	// n-th call, from 0, has Input(n), a JSON object.
	Tool   string
	Rounds int
	Input  func(n int) string
	// Slow, when set, adds a token to the final answer at this interval, until
	// Release. The first comes immediately.
	Slow time.Duration
	// Words, when set, returns how often a slow answer repeats Word before its number,
	// by which Ended identifies it.
	Words func() int
	Word  string
}

// A Server is the model. It is safe for concurrent use.
type Server struct {
	http *http.Server
	url  string

	mu      sync.Mutex
	plan    Plan
	release chan struct{} // closed by Release
	begun   int           // slow answers with their first token sent
	open    int           // answers that are being given
	ended   time.Time     // when the last call was complete
	gaps    []time.Duration
	last    []time.Time // when the last token of a bounded answer was sent, by number
}

// Open starts a model on loopback. Close it.
func Open() (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{url: "http://" + l.Addr().String() + "/v1", release: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.reply)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model"}]}`, Name)
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(l) }()
	return s, nil
}

// URL returns the base URL of the API.
func (s *Server) URL() string { return s.url }

// Close ends every answer and the server.
func (s *Server) Close() error {
	s.Release()
	return s.http.Close()
}

// Set makes the conversations that begin from now on go by p, and forgets the gaps.
func (s *Server) Set(p Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan, s.gaps, s.ended, s.last = p, nil, time.Time{}, nil
}

// Gaps returns the times from the end of an answer that calls a tool to the request
// that brings the result, as the server sees them: all that the loop does for
// one call, with the tool's work and the way of the request. They mean something
// while one conversation goes on at a time.
func (s *Server) Gaps() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Duration(nil), s.gaps...)
}

// Waiting returns how many slow answers have begun.
func (s *Server) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// Busy returns how many answers are being given.
func (s *Server) Busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Release brings all slow answers to their end, now and from now on.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.release:
	default:
		close(s.release)
	}
}

type request struct {
	Messages []struct {
		Role string `json:"role"`
	} `json:"messages"`
}

// results returns the tool results since the user's last message.
func (r *request) results() (n int) {
	for _, m := range r.Messages {
		switch m.Role {
		case "tool":
			n++
		case "user":
			n = 0
		}
	}
	return n
}

func (s *Server) reply(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	s.mu.Lock()
	p := s.plan
	s.open++
	if !s.ended.IsZero() {
		s.gaps, s.ended = append(s.gaps, at.Sub(s.ended)), time.Time{}
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.open--
		s.mu.Unlock()
	}()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	var req request
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		http.Error(w, `{"error":{"message":"not a request","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	if !pause(r.Context(), p.Delay) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	n := req.results()
	switch {
	case p.Words != nil:
		s.bounded(r.Context(), w, p)
	case n < p.Rounds:
		s.call(w, p, n)
	case p.Slow > 0 && s.slowly(r.Context(), w, p.Slow) != nil:
	default:
		for _, word := range strings.SplitAfter(answer, " ") {
			say(w, word)
		}
		finish(w, "stop")
	}
}

// pause waits for d; false: the client went.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// call writes the n-th tool call.
func (s *Server) call(w http.ResponseWriter, p Plan, n int) {
	id, _ := json.Marshal(fmt.Sprintf("call_%d_%d", time.Now().UnixNano(), n))
	in, _ := json.Marshal(p.Input(n))
	event(w, fmt.Sprintf(`{"tool_calls":[{"index":0,"id":%s,"type":"function","function":{"name":%q,"arguments":%s}}]}`, id, p.Tool, in), "null")
	s.mu.Lock()
	s.ended = time.Now() // the next request can be here before finish returns
	s.mu.Unlock()
	finish(w, "tool_calls")
}

// Ended returns when the bounded answers ended, by number, counted from Set.
func (s *Server) Ended() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.last...)
}

// bounded writes a limited number of tokens at the interval.
func (s *Server) bounded(ctx context.Context, w http.ResponseWriter, p Plan) {
	tick := time.NewTicker(p.Slow)
	defer tick.Stop()
	for n := p.Words(); n > 0; n-- {
		say(w, p.Word)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	s.mu.Lock()
	number := len(s.last)
	s.last = append(s.last, time.Now())
	s.mu.Unlock()
	say(w, fmt.Sprintf("End %d.", number))
	finish(w, "stop")
}

// slowly writes a token at the interval until Release.
func (s *Server) slowly(ctx context.Context, w http.ResponseWriter, every time.Duration) error {
	s.mu.Lock()
	release := s.release
	s.mu.Unlock()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for first := true; ; first = false {
		say(w, "Wait. ")
		if first {
			s.mu.Lock()
			s.begun++
			s.mu.Unlock()
		}
		select {
		case <-tick.C:
		case <-release:
			return nil
		case <-ctx.Done():
			return errors.New("the client went")
		}
	}
}

func say(w http.ResponseWriter, text string) {
	b, _ := json.Marshal(text)
	event(w, `{"content":`+string(b)+`}`, "null")
}

func finish(w http.ResponseWriter, reason string) {
	event(w, `{}`, `"`+reason+`"`)
	fmt.Fprint(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\""+Name+"\",\"choices\":[],\"usage\":{\"prompt_tokens\":50,\"completion_tokens\":10,\"total_tokens\":60}}\n\ndata: [DONE]\n\n")
	flush(w)
}

// event is one chunk of the answer.
func event(w http.ResponseWriter, delta, reason string) {
	fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1767323045,\"model\":%q,\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", Name, delta, reason)
	flush(w)
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}
