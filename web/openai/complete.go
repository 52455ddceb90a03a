package openai

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/openai/answer"
)

// A call is one completion on its way to its answer.
type call struct {
	*answer.Call
	q       request
	created int64
}

// complete serves POST /v1/chat/completions.
func (a *API) complete(w http.ResponseWriter, r *http.Request) error {
	p, _ := auth.From(r.Context())
	release, err := a.Wait(p)
	if err != nil {
		return err
	}
	defer release()
	raw, err := web.ReadJSON(w, r, answer.MaxBody)
	if err != nil {
		return err
	}
	q, ignored, err := parse(raw)
	if err != nil {
		return err
	}
	m, err := a.Model(p, q.Model)
	if err != nil {
		return err
	}
	web.WarnIgnored(w, ignored)
	c := &call{&answer.Call{Desk: a.Desk, R: r, Run: uuid.NewString(), Session: uuid.NewString(), Param: "messages"}, q, a.Clock.Now().Unix()}
	w.Header().Set("X-Run-Id", c.Run)
	in := a.Inbound(p, m, q.Last.Text, core.Options{
		Session: c.Session, Run: c.Run, SystemPrompt: q.System, Before: q.Before, Media: q.Last.Media,
		Temperature: q.Temperature, MaxTokens: q.MaxTokens, Stop: q.Stop,
	})
	return c.Answer(in, func(ctx context.Context) (answer.Writer, error) { return c.writer(ctx, w) })
}

// writer returns the writer of the answer: a stream, or a JSON body.
func (c *call) writer(ctx context.Context, w http.ResponseWriter) (answer.Writer, error) {
	if c.q.Stream {
		o := &stream{c: c}
		o.Live = c.Live(ctx, w, o.first)
		o.Wait()
		return o, nil
	}
	if err := answer.Patient(w); err != nil {
		return nil, err
	}
	return &whole{c: c, w: w}, nil
}

func (c *call) id() string { return "chatcmpl-" + strings.ReplaceAll(c.Run, "-", "") }
