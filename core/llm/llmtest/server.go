// Package llmtest is a strict fake of OpenAI's streaming chat completions API
// on loopback: it refuses malformed requests with the real API's status, text
// and error object, and sends scripted answers, whole or broken in the ways
// that networks and servers break them. For tests, the load tool and the demo
// of failures.
//
// Its rules follow the API reference
// (https://platform.openai.com/docs/api-reference/chat) and the error texts
// that the real service is seen to send.
package llmtest

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm/wiretest"
)

const maxBody = 64 << 20 // bytes of a request

// Options say how the fake behaves. The zero value needs no key, has the
// model "fake-1" and answers "Hello from the fake model."
type Options struct {
	Key     string     // the bearer token it wants; "" takes any
	Models  []string   // what /v1/models lists and what requests may name
	Default Reply      // sent when the script is empty; zero: one sentence
	Clock   core.Clock // for Reply.Pause; the system's clock

	NoImages bool // refuses pictures, as models without vision do
	NoFiles  bool // refuses file parts
	// Choose returns the answer to a request where the script is empty; the zero Reply is
	// Default. Nil: always Default.
	Choose func(Request) Reply

	NoFormat bool // knows no response_format of a schema, as older servers
}

// A Server is one fake on a loopback port. All methods are safe for use by
// many goroutines.
type Server struct {
	wire
	o Options
}

type wire = wiretest.Server[Reply, Request]

// A Request is one request as it came in.
type Request struct {
	Method, Path string
	Auth         string // the Authorization header
	Body         []byte
	Model        string
	Messages     []Message
	Tools        []string // names
	Usage        bool     // stream_options.include_usage
	Format       string   // the name of response_format's schema; "" without one
	Status       int      // what was answered; 0 for a connection that was closed
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
	if len(o.Models) == 0 {
		o.Models = []string{"fake-1"}
	}
	if o.Default.isZero() {
		o.Default = Say("Hello ", "from the ", "fake model.")
	}
	s := &Server{o: o}
	if err := s.Listen("llmtest", s, o.Clock); err != nil {
		return nil, err
	}
	return s, nil
}

// URL returns the base URL, with /v1.
func (s *Server) URL() string { return s.wire.URL() + "/v1" }

// ServeHTTP checks the request as the real API does, then plays a reply.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := Request{Method: r.Method, Path: r.URL.Path, Auth: r.Header.Get("Authorization")}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return
	}
	rec.Body = body
	scripted := s.Scripted()
	reply, parsed, refusal := s.judge(r, body)
	if parsed != nil {
		rec.Model, rec.Messages, rec.Usage = parsed.Model, parsed.Messages, parsed.StreamOptions.usage()
		if parsed.Format != nil {
			rec.Format = parsed.Format.JSONSchema.Name
		}
		for _, t := range parsed.Tools {
			rec.Tools = append(rec.Tools, t.Function.Name)
		}
	}
	switch {
	case refusal != nil:
		rec.Status = refusal.status
		s.Record(rec)
		refusal.write(w)
	case parsed == nil:
		rec.Status = http.StatusOK
		s.Record(rec)
		s.list(w)
	default:
		if s.o.Choose != nil && !scripted {
			if chosen := s.o.Choose(rec); !chosen.isZero() {
				reply = chosen
			}
		}
		rec.Status = reply.manner().Answers()
		s.Record(rec)
		s.play(w, r, parsed, reply)
	}
}

// judge routes and checks. Without refusal it gives either the chat request
// with its reply, or neither: the list of models.
func (s *Server) judge(r *http.Request, body []byte) (Reply, *chatRequest, *refusal) {
	path := r.URL.Path
	if path != "/v1/models" && path != "/v1/chat/completions" {
		return Reply{}, nil, invalid(404, fmt.Sprintf("Invalid URL (%s %s)", r.Method, path), "", "")
	}
	if bad := s.authorise(r.Header.Get("Authorization")); bad != nil {
		return Reply{}, nil, bad
	}
	want := http.MethodPost
	if path == "/v1/models" {
		want = http.MethodGet
	}
	if r.Method != want {
		return Reply{}, nil, invalid(405, fmt.Sprintf("Not allowed to %s on %s.", r.Method, path), "", "method_not_supported")
	}
	if path == "/v1/models" {
		return Reply{}, nil, nil
	}
	parsed, bad := s.check(r.Header.Get("Content-Type"), body)
	if bad != nil {
		return Reply{}, parsed, bad
	}
	return s.Next(s.o.Default, Reply.isZero), parsed, nil
}

func (s *Server) authorise(header string) *refusal {
	if s.o.Key == "" {
		return nil
	}
	key, ok := strings.CutPrefix(header, "Bearer ")
	if !ok || key == "" {
		return invalid(401, "You didn't provide an API key. You need to provide your API key in an Authorization header "+
			"using Bearer auth (i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank username) if "+
			"you're accessing the API from your browser and are prompted for a username and password. You can obtain an "+
			"API key from https://platform.openai.com/account/api-keys.", "", "")
	}
	if subtle.ConstantTimeCompare([]byte(key), []byte(s.o.Key)) != 1 {
		return invalid(401, "Incorrect API key provided: "+masked(key)+". You can find your API key at "+
			"https://platform.openai.com/account/api-keys.", "", "invalid_api_key")
	}
	return nil
}

// masked shows both ends of a key, as the real API does.
func masked(key string) string {
	if len(key) < 9 {
		return strings.Repeat("*", len(key))
	}
	return key[:4] + strings.Repeat("*", len(key)-8) + key[len(key)-4:]
}

func (s *Server) list(w http.ResponseWriter) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	data := []model{}
	for _, id := range s.o.Models {
		data = append(data, model{ID: id, Object: "model", Created: created, OwnedBy: "llmtest"})
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
}
