// Package embedtest has an embedding model for tests, without a network: a vector states
// which groups of characters a text has, so that texts with similar words are near.
package embedtest

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"gatehouse/core/transcript/words"
)

// Vector returns the vector of a text: hashed groups of three and four characters of its
// words, with random signs. It is the same in every process.
func Vector(text string, dimensions int) []float32 {
	counts := map[string]float64{}
	for t := range words.Tokens(text) {
		word := []rune("^" + t.Text + "$")
		for n := 3; n <= 4; n++ {
			for i := 0; i+n <= len(word); i++ {
				counts[string(word[i:i+n])]++
			}
		}
	}
	sums := make([]float64, dimensions)
	for gram, n := range counts {
		h := fnv.New64a()
		_, _ = h.Write([]byte(gram))
		sum := h.Sum64()
		sign := 1.0
		if sum>>63 == 1 {
			sign = -1
		}
		sums[(sum^sum>>32)%uint64(dimensions)] += sign * (1 + math.Log(n)) // order does not matter: few grams share a place, and rounding hides it
	}
	v := make([]float32, dimensions)
	empty := true
	for i, s := range sums {
		v[i] = float32(math.Round(s*1e4) / 1e4)
		empty = empty && v[i] == 0
	}
	if empty {
		v[0] = 1
	}
	return v
}

// A Model is Vector as embed.Client asks a model. It is safe for concurrent use.
type Model struct{ Dimensions int }

// Embed returns the vectors of texts.
func (m Model) Embed(_ context.Context, texts []string) (vectors [][]float32, tokens int64, err error) {
	for _, t := range texts {
		vectors = append(vectors, Vector(t, m.Dimensions))
		tokens += int64(len(t)/4 + 1)
	}
	return vectors, tokens, nil
}

// A Server is Vector behind OpenAI's /v1/embeddings.
type Server struct {
	URL string

	mu         sync.Mutex
	dimensions int
	fail       func(texts []string) int
	asked      []string
}

// New starts a server of vectors with these dimensions, until the test ends.
func New(t testing.TB, dimensions int) *Server {
	s := &Server{dimensions: dimensions}
	h := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(h.Close)
	s.URL = h.URL + "/v1"
	return s
}

// Fail has requests answered with the status that f returns, unless it is 0.
func (s *Server) Fail(f func(texts []string) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// SetDimensions changes the vectors, as another model does.
func (s *Server) SetDimensions(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dimensions = n
}

// Asked returns the texts that were embedded since the last call.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.asked
	s.asked = nil
	return out
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model string   `json:"model"`
		Input []string `json:"input"`
	}
	if r.URL.Path != "/v1/embeddings" || json.NewDecoder(http.MaxBytesReader(w, r.Body, 8<<20)).Decode(&in) != nil || in.Model == "" || len(in.Input) == 0 {
		http.Error(w, `{"error":{"message":"bad request"}}`, http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		if status := s.fail(in.Input); status != 0 {
			http.Error(w, `{"error":{"message":"not now"}}`, status)
			return
		}
	}
	type data struct {
		Index  int       `json:"index"`
		Vector []float32 `json:"embedding"`
	}
	var out struct {
		Data  []data `json:"data"`
		Usage struct {
			Tokens int `json:"prompt_tokens"`
		} `json:"usage"`
	}
	for i, text := range in.Input {
		out.Data = append(out.Data, data{i, Vector(text, s.dimensions)})
		out.Usage.Tokens += len(text)/4 + 1
	}
	s.asked = append(s.asked, in.Input...)
	_ = json.NewEncoder(w).Encode(out)
}
