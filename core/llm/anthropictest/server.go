// Package anthropictest is a strict fake of Anthropic's streaming Messages API
// on loopback: it refuses malformed requests with the real API's status, text
// and error object, and sends scripted answers, whole or broken in the ways
// that networks and servers break them.
//
// Its rules follow the API reference (https://platform.claude.com/docs/en/api/messages,
// …/api/errors, …/build-with-claude/streaming, …/thinking and …/prompt-caching)
// and the error texts that the real service is seen to send.
package anthropictest

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm/wiretest"
)

const maxBody = 32 << 20 // bytes of a request; more is request_too_large

// Options say how the fake behaves. The zero value takes any key, has the
// models "claude-fake-5" and "claude-old-4-5" and answers "Hello from the fake model."
type Options struct {
	Key       string     // the x-api-key it wants; "" takes any, and none
	Models    []string   // what /v1/models lists and what requests may name
	MaxTokens int        // the most that max_tokens may be; 0 = 128,000
	NoImages  bool       // refuses pictures and documents, as models before Claude 3 do
	NoThought bool       // refuses the parameter "thinking", as older models refuse adaptive thinking
	NoFormat  bool       // refuses output_config.format, as older models do
	NoSearch  bool       // refuses the provider's web search, as where an administrator has not allowed it
	Default   Reply      // sent when the script is empty; zero: one sentence
	Clock     core.Clock // for Reply.Pause; the system's clock
}

// A Server is one fake on a loopback port. All methods are safe for use by
// many goroutines.
type Server struct {
	wire
	memory
	o Options
}

type wire = wiretest.Server[Reply, Request]

// A Request is one request as it came in.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         []byte
	Message      Message // parsed; zero where that failed
	Status       int     // what was answered; 0 for a connection that was closed
}

// New starts a fake that t's cleanup closes.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start starts a fake on a free port of 127.0.0.1; Close ends it.
func Start(o Options) (*Server, error) {
	o = o.defaults()
	s := &Server{o: o}
	if err := s.Listen("anthropictest", s, o.Clock); err != nil {
		return nil, err
	}
	return s, nil
}

func (o Options) defaults() Options {
	if len(o.Models) == 0 {
		o.Models = []string{"claude-fake-5", "claude-old-4-5"}
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = 128_000
	}
	if o.Default.isZero() {
		o.Default = Say("Hello ", "from the ", "fake model.")
	}
	return o
}

// record keeps r; the answer's request id is made of its number.
func (s *Server) record(r Request) string { return "req_fake" + strconv.Itoa(s.Record(r)) }

// ServeHTTP checks the request as the real API does, then plays a reply.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := Request{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone()}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return
	}
	rec.Body = body
	bad := s.door(r, len(body))
	listing := bad == nil && r.URL.Path == "/v1/models"
	if bad == nil && !listing {
		bad = s.check(r.Header.Get("Content-Type"), body, &rec.Message)
	}
	switch {
	case bad != nil:
		rec.Status = bad.status
		bad.write(w, s.record(rec))
	case listing:
		s.list(w, r, rec)
	default:
		reply := s.Next(s.o.Default, Reply.isZero)
		rec.Status = reply.manner().Answers()
		s.keep(reply)
		w.Header().Set("Request-Id", s.record(rec))
		s.play(w, r, &rec.Message, reply)
	}
}

// door checks what all endpoints have in common.
func (s *Server) door(r *http.Request, size int) *refusal {
	want := map[string]string{"/v1/messages": http.MethodPost, "/v1/models": http.MethodGet}[r.URL.Path]
	key := r.Header.Get("X-Api-Key")
	version := r.Header.Get("Anthropic-Version")
	switch {
	case want == "":
		return &refusal{404, "not_found_error", "Not found"}
	case r.Method != want:
		return &refusal{405, "invalid_request_error", "Method Not Allowed"}
	case s.o.Key != "" && key == "":
		return &refusal{401, "authentication_error", "x-api-key header is required"}
	case s.o.Key != "" && subtle.ConstantTimeCompare([]byte(key), []byte(s.o.Key)) != 1:
		return &refusal{401, "authentication_error", "invalid x-api-key"}
	case version == "":
		return invalid("anthropic-version: header is required")
	case version != "2023-06-01":
		return invalid("anthropic-version: %q is not a valid version", version)
	case size > maxBody:
		return &refusal{413, "request_too_large", "Request exceeds the maximum size"}
	}
	return nil
}

// list is the page of models that limit and after_id ask for.
func (s *Server) list(w http.ResponseWriter, r *http.Request, rec Request) {
	limit := 20
	if q := r.URL.Query().Get("limit"); q != "" {
		n, err := strconv.Atoi(q)
		if err != nil || n < 1 || n > 1000 {
			rec.Status = http.StatusBadRequest
			invalid("limit: Input should be between 1 and 1000").write(w, s.record(rec))
			return
		}
		limit = n
	}
	ids := s.o.Models
	if i := slices.Index(ids, r.URL.Query().Get("after_id")); i >= 0 {
		ids = ids[i+1:]
	}
	more := len(ids) > limit
	ids = ids[:min(limit, len(ids))]
	data := []any{}
	for _, id := range ids {
		data = append(data, map[string]any{"type": "model", "id": id, "display_name": id, "created_at": "2026-01-02T00:00:00Z"})
	}
	page := map[string]any{"data": data, "has_more": more, "first_id": nil, "last_id": nil}
	if len(ids) > 0 {
		page["first_id"], page["last_id"] = ids[0], ids[len(ids)-1]
	}
	rec.Status = http.StatusOK
	w.Header().Set("Request-Id", s.record(rec))
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(page)
}

// A refusal is an error answer.
type refusal struct {
	status        int
	kind, message string
}

func invalid(format string, args ...any) *refusal {
	return &refusal{400, "invalid_request_error", fmt.Sprintf(format, args...)}
}

func (r *refusal) write(w http.ResponseWriter, id string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", id)
	w.WriteHeader(r.status)
	io.WriteString(w, errorBody(r.kind, r.message, id))
}

func errorBody(kind, message, id string) string {
	body := map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}}
	if id != "" {
		body["request_id"] = id
	}
	b, _ := json.Marshal(body) // strings only: cannot fail
	return string(b)
}
