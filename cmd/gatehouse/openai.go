package main

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"gatehouse/cmd/gatehouse/library"
	"gatehouse/cmd/gatehouse/speech"
	"gatehouse/core"
	"gatehouse/core/llm/embed"
	"gatehouse/core/response"
	"gatehouse/core/store"
	"gatehouse/core/usage"
	"gatehouse/web/auth"
	"gatehouse/web/openai"
	"gatehouse/web/openai/answer"
	"gatehouse/web/openai/embeddings"
	"gatehouse/web/openai/responses"
	"gatehouse/web/openai/transcriptions"
)

// openai registers what programs that speak OpenAI's API use.
func (a *app) openai(mux *http.ServeMux, o answer.Options) {
	desk := answer.New(o)
	openai.New(desk).Register(mux)
	api := responses.New(responses.Options{Desk: desk, Rows: a.responses.Store, Runs: openaiRuns{a}, Sessions: openaiSessions{a}, Registry: a.reg})
	api.Register(mux)
	a.responses.tidy = api.Tidy
	vectors := embeddings.Options{Desk: desk, Model: a.cfg.EmbedModel, Dimensions: a.cfg.EmbedDimensions}
	if a.library.Embedder != nil {
		vectors.Embed = embedder{a.library, a.clock}.embed
	}
	embeddings.New(vectors).Register(mux)
	recordings := transcriptions.Options{Desk: desk, Model: speech.Model(a.cfg)}
	if a.voice.On() {
		recordings.Hear = a.voice.HearData
	}
	transcriptions.New(recordings).Register(mux)
}

// embedder returns vectors of the library, or why there are none, as embeddings answers it.
type embedder struct {
	*library.Library
	clock core.Clock
}

func (e embedder) embed(ctx context.Context, user int64, texts []string) ([][]float32, int64, error) {
	vectors, tokens, err := e.Vectors(ctx, user, texts)
	if fault, ok := errors.AsType[*embed.Fault](err); ok {
		return nil, 0, &embeddings.Error{Text: fault.Text, Refused: fault.Refused(), Limited: fault.Status == http.StatusTooManyRequests, After: fault.After}
	}
	if refused, ok := errors.AsType[*usage.Refusal](err); ok {
		return nil, 0, &embeddings.Error{Text: refused.Error(), Budget: true, After: refused.Until.Sub(e.clock.Now())}
	}
	return vectors, tokens, err
}

// storedResponses are those of the Responses API.
type storedResponses struct {
	*response.Store
	tidy func(context.Context) (int, error) // nil until they are served
}

func newResponses(db *store.DB, clock core.Clock) *storedResponses {
	return &storedResponses{Store: response.New(db, clock)}
}

// finish does what requests have left to do.
func (s *storedResponses) finish(ctx context.Context) (int, error) {
	if s.tidy == nil {
		return 0, nil
	}
	return s.tidy(ctx)
}

// openaiRuns are runs as responses know them.
type openaiRuns struct{ a *app }

func (v openaiRuns) Run(ctx context.Context, id string) (begun, ended bool, err error) {
	r, err := v.a.events.ByRun(ctx, id)
	if core.KindOf(err) == core.NotFound {
		return false, false, nil
	}
	return err == nil, err == nil && r.State != "running", err
}

func (v openaiRuns) Queued(ctx context.Context, update string) (bool, error) {
	_, _, found, err := v.a.inspect.Stored(ctx, core.APIBot, update)
	return found, err
}

func (v openaiRuns) Latest(ctx context.Context, session string) (run string, of int, err error) {
	r, err := v.a.events.LatestOf(ctx, session)
	if core.KindOf(err) == core.NotFound {
		return "", 0, nil
	}
	if err == nil {
		of, err = v.a.events.CountOf(ctx, session)
	}
	return r.ID, of, err
}

// openaiSessions are the sessions of responses, with their files.
type openaiSessions struct{ a *app }

func (v openaiSessions) Trust(ctx context.Context, id string) (core.Trust, error) {
	s, err := v.a.sessions.ByID(ctx, v.a.db, id)
	return s.TrustLevel, err
}

func (v openaiSessions) Delete(ctx context.Context, id string) error {
	if err := v.a.conversations.Delete(ctx, id, nil, core.Actor{Via: "api"}); err != nil {
		return err
	}
	return v.a.sessions.Erase(id)
}

// modelsView are the agents and the configured models, as programs that speak
// OpenAI's API name them. An agent with a model's name is reached as that model
// only. Guests with a model of their own are shown that one, and agents only who
// may choose them.
type modelsView struct{ a *app }

func (v modelsView) Models(p auth.Principal) []answer.Model {
	var out []answer.Model
	m := v.a.models.Now()
	names := m.Names
	switch guest := p.User != core.Operator && p.Trust <= core.Sandboxed; {
	case guest && m.Guest != nil:
		names = []string{m.Guest.About().Name}
	case guest:
		names = m.Open(true)
	}
	taken := map[string]bool{} // one per name
	for _, name := range names {
		owner, _, _ := strings.Cut(name, "/")
		out = append(out, answer.Model{ID: name, Owner: owner, Model: name})
		taken[name] = true
	}
	if !p.Governs() {
		return out
	}
	for _, x := range v.a.agents.List() {
		if !taken[x.Name] {
			out = append(out, answer.Model{ID: x.Name, Owner: "agent", Agent: x.Name})
		}
	}
	return out
}
