package openai

import (
	"context"
	"iter"
	"net/http"

	"gatehouse/core/llm"
	"gatehouse/core/llm/provider"
)

// Reply asks the model. Before the first piece of the answer it tries again up
// to three times, at most 30 s of waiting in all, after connection errors, 429
// and 5xx, and waits what Retry-After states; a longer wait is left to the
// caller as Fault.After. After the first piece it never repeats: a break is a
// Fault cut_off. The deltas are: notices, one with Model, the answer's pieces,
// whole tool calls, and the last with Stop and, where the server states it, Usage.
//
// How long a silent server is waited for is ctx's business; its end is
// yielded as an error that wraps context.Cause.
func (c *Client) Reply(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		r := &reply{Reply: provider.Reply{Link: c.link, Yield: yield}, c: c, req: req}
		r.Run(ctx, r)
	}
}

// A reply is one call of Reply.
type reply struct {
	provider.Reply
	c     *Client
	req   *llm.Request
	blind bool // pictures and documents are left out: the server refused one
}

// Attempt asks once; nil means the answer was yielded to its end.
func (r *reply) Attempt() *provider.Failure {
	model, bad := r.c.link.Resolve(r.Ctx)
	if bad != nil {
		return bad
	}
	r.Model = r.c.link.Name + "/" + model
	body, err := r.c.request(model, r.req, r.media())
	if err != nil {
		return r.c.link.Detail(r.c.link.Words.Judge(http.StatusBadRequest, ""), "encoding the request", err.Error())
	}
	resp, bad := r.c.do(r.Ctx, http.MethodPost, "/chat/completions", body)
	if bad != nil {
		if bad.Fault.Status == http.StatusNotFound {
			r.c.link.Gone()
		}
		return bad
	}
	defer resp.Body.Close()
	return r.read(resp)
}
