// Package embeddings is OpenAI's /v1/embeddings, by the server that embeds the
// vault's documents (https://platform.openai.com/docs/api-reference/embeddings).
package embeddings

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/openai/answer"
	"gatehouse/web/openai/params"
	"gatehouse/web/openai/refusal"
)

// Limits of a request.
const (
	maxBody  = 4 << 20
	maxTexts = 256
	maxText  = 32 << 10 // bytes of one
	maxName  = 1 << 10  // bytes of a model's name
)

// Embed returns a vector for each text of a user's, and the tokens that were counted. An
// Error has the answer of a server that refuses.
type Embed func(ctx context.Context, user int64, texts []string) (vectors [][]float32, tokens int64, err error)

// An Error is why there are no vectors, without keys and texts.
type Error struct {
	Text    string
	Refused bool // these texts: others may be embedded
	Limited bool // too many requests
	Budget  bool // one is used up
	After   time.Duration
}

func (e *Error) Error() string { return e.Text }

// Options for New. Desk is needed.
type Options struct {
	Desk       *answer.Desk
	Model      string // its name; "" where nothing is embedded
	Dimensions int    // that are configured; 0: the model's
	Embed      Embed  // nil where nothing is embedded
}

// An API serves /v1/embeddings.
type API struct{ Options }

// New returns an API.
func New(o Options) *API { return &API{o} }

// Register adds the route to mux.
func (a *API) Register(mux *http.ServeMux) { a.Desk.Register(mux, a.routes()) }

func (a *API) routes() map[string]web.Handler {
	return map[string]web.Handler{"POST /v1/embeddings": a.create}
}

// Routes returns the patterns that are served, for the test that all are documented.
func (a *API) Routes() []string { return slices.Collect(maps.Keys(a.routes())) }

type request struct {
	Model      string
	Input      []string
	Format     string
	Dimensions int
}

func parse(raw []byte) (q request, ignored []string, err error) {
	fields, ignored, err := params.Spec{
		Readers: map[string]func(json.RawMessage) error{
			"model": params.String("model", maxName, &q.Model), "input": q.readInput, "dimensions": params.Count("dimensions", &q.Dimensions),
			"encoding_format": q.readFormat,
		},
		Labels: map[string]bool{"user": true},
	}.Read(raw)
	switch {
	case err != nil:
	case q.Model == "":
		err = refusal.Missing("model")
	case fields["input"] == nil:
		err = refusal.Missing("input")
	}
	return q, ignored, err
}

func (q *request) readFormat(v json.RawMessage) error {
	if json.Unmarshal(v, &q.Format) != nil || q.Format != "float" && q.Format != "base64" {
		return refusal.New(web.Invalid, "invalid_value", "encoding_format", "Invalid value for 'encoding_format': supported are 'float' and 'base64'.")
	}
	return nil
}

func (q *request) readInput(v json.RawMessage) error {
	var one string
	if json.Unmarshal(v, &one) == nil {
		q.Input = []string{one}
	} else if json.Unmarshal(v, &q.Input) != nil {
		return refusal.BadType("input", "a string or an array of strings; arrays of tokens are not supported here")
	}
	if n := len(q.Input); n == 0 || n > maxTexts {
		return refusal.New(web.Invalid, "invalid_value", "input", fmt.Sprintf("Invalid 'input': expected 1 to %d texts.", maxTexts))
	}
	for i, text := range q.Input {
		if text == "" || len(text) > maxText {
			at := fmt.Sprintf("input[%d]", i)
			return refusal.New(web.Invalid, "invalid_value", at, fmt.Sprintf("Invalid '%s': expected 1 to %d bytes.", at, maxText))
		}
	}
	return nil
}

type (
	wireVector struct {
		Object string `json:"object"`
		Index  int    `json:"index"`
		Vector any    `json:"embedding"`
	}
	wireUsage struct {
		Prompt int64 `json:"prompt_tokens"`
		Total  int64 `json:"total_tokens"`
	}
	wireList struct {
		Object string       `json:"object"`
		Data   []wireVector `json:"data"`
		Model  string       `json:"model"`
		Usage  wireUsage    `json:"usage"`
	}
)

// create serves POST /v1/embeddings.
func (a *API) create(w http.ResponseWriter, r *http.Request) error {
	p, _ := auth.From(r.Context())
	release, err := a.Desk.Wait(p)
	if err != nil {
		return err
	}
	defer release()
	raw, err := web.ReadJSON(w, r, maxBody)
	if err != nil {
		return err
	}
	q, ignored, err := parse(raw)
	if err != nil {
		return err
	}
	if err := a.check(&q); err != nil {
		return err
	}
	web.WarnIgnored(w, ignored)
	if err := answer.Patient(w); err != nil {
		return err
	}
	vectors, tokens, err := a.Embed(r.Context(), p.User, q.Input)
	if hurry := web.Hurry(w); hurry != nil {
		return hurry
	}
	if err != nil {
		return problem(err)
	}
	list := wireList{Object: "list", Data: make([]wireVector, len(vectors)), Model: a.Model, Usage: wireUsage{tokens, tokens}}
	for i, v := range vectors {
		list.Data[i] = wireVector{"embedding", i, v}
		if q.Format == "base64" {
			list.Data[i].Vector = encoded(v)
		}
	}
	return web.WriteJSON(w, http.StatusOK, list)
}

// check refuses a model, and a length of vectors, that there is not.
func (a *API) check(q *request) error {
	if a.Embed == nil {
		return refusal.New(web.NotFound, "model_not_found", "model", "No embedding model is configured here (GATEHOUSE_EMBED_URL).")
	}
	if q.Model != a.Model {
		return refusal.New(web.NotFound, "model_not_found", "model", fmt.Sprintf("The model `%s` does not exist: the embedding model is `%s`.", core.CutRunes(core.CleanName(q.Model), 200), a.Model))
	}
	if q.Dimensions != 0 && q.Dimensions != a.Dimensions {
		return refusal.Unsupported("dimensions", "'%s' is not supported here: vectors are as long as GATEHOUSE_EMBED_DIMENSIONS says")
	}
	return nil
}

// problem returns the answer to a request without vectors.
func problem(err error) error {
	e, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		return err
	case e.Budget:
		return refusal.Failed(core.Failed{Code: "budget", Message: e.Text, RetryAfterMS: e.After.Milliseconds()}, false, "input")
	case e.Refused:
		return refusal.New(web.Invalid, "invalid_value", "input", "The embedding server refuses the input: "+e.Text)
	}
	p := refusal.New(web.ModelFailed, "embedding_failed", "", "The embedding server does not answer: "+e.Text)
	if e.Limited {
		p = refusal.New(web.TooManyRequests, "rate_limit_exceeded", "", "The embedding server is busy.")
	}
	p.RetryAfter = e.After
	return p
}

// encoded returns a vector as OpenAI writes it in base64: float32, little-endian.
func encoded(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}
