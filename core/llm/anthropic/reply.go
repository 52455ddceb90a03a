package anthropic

import (
	"context"
	"errors"
	"io"
	"iter"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"gatehouse/core/llm"
	"gatehouse/core/llm/provider"
)

// Reply asks the model. Before the first piece of the answer it tries again up
// to three times, at most 30 s of waiting in all, after connection errors, 429,
// 529 and 5xx, and waits what the server's headers say; a longer wait is left
// to the caller as Fault.After. After the first piece it never repeats: a break
// is a Fault cut_off. The deltas are: notices, one with Model, the answer's
// pieces, a Signature after each piece of thinking that has one, whole tool
// calls, and the last with Stop and Usage.
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
	c        *Client
	req      *llm.Request
	unsigned bool // earlier thinking is left out: the server refused it
	direct   bool // no thinking in this reply: the server wants the earlier one back
	blind    bool // pictures and documents are left out: the server refused one
}

// mostTokens parses the limit in "max_tokens: 64000 > 8192, which is the maximum allowed
// number of output tokens for …".
var mostTokens = regexp.MustCompile(`max_tokens: \d+ > (\d+)`)

// What a refusal reports that is about the thinking in the history, not about the parameter:
// "Invalid `signature` in `thinking` block", "`thinking` or `redacted_thinking` blocks in
// the latest assistant message cannot be modified", "Expected `thinking` or
// `redacted_thinking`, but found `tool_use`".
var refusedThinking = []string{"`signature`", "`thinking` block", "thinking blocks", "redacted_thinking", "cannot be modified"}

// Learn checks whether a refusal concerns a part of the request that can be omitted or
// changed, and records that; true means: repeat the request.
func (r *reply) Learn(f *provider.Failure) bool {
	if f.Fault.Status != http.StatusBadRequest || f.Fault.Err == nil {
		return false
	}
	said, d := f.Fault.Err.Error(), &r.c.dialect
	if m := mostTokens.FindStringSubmatch(said); m != nil {
		most, err := strconv.ParseInt(m[1], 10, 64)
		old := d.maxTokens.Load()
		return err == nil && most > 0 && (old == 0 || most < old) && d.maxTokens.CompareAndSwap(old, most)
	}
	about := strings.ReplaceAll(strings.ToLower(said), "documentation", "") // "consult our documentation" is about no document
	if provider.Says(about, refusedThinking...) {
		before := r.direct
		r.direct, r.unsigned = r.unsigned, true // a second time: this reply goes without
		return !before
	}
	switch {
	case r.req.Format != nil && provider.Says(about, "output_config", "output_format", "json_schema", "structured output"):
		return d.noFormat.CompareAndSwap(false, true)
	case !r.blind && r.req.HasMedia() && provider.Says(about, "image", "pdf", "document"):
		// "image dimensions exceed max allowed size: 8000 pixels", "The PDF specified is
		// password protected.", …
		r.blind = true
		r.Refused(r.req, true, true)
		return true
	case provider.Says(said, "temperature") && r.req.Temperature != nil:
		return d.noTemperature.CompareAndSwap(false, true)
	case provider.Says(said, "thinking"):
		return d.noThinking.CompareAndSwap(false, true)
	case provider.Says(said, "cache_control"):
		return d.noCache.CompareAndSwap(false, true)
	}
	return false
}

// Attempt asks once; nil means the answer was yielded to its end. A turn that
// the provider pauses in the middle of its search is gone on with.
func (r *reply) Attempt() *provider.Failure {
	model, bad := r.c.link.Resolve(r.Ctx)
	if bad != nil {
		return bad
	}
	r.Model = r.c.link.Name + "/" + model
	p, before := r.params(model), &answer{}
	for pauses := 0; ; pauses++ {
		a, bad := r.stream(&p)
		if bad != nil || r.Stopped {
			return r.noSearch(bad)
		}
		a.join(before)
		if a.stop != stopPause || r.req.Search == nil || pauses >= maxPauses {
			return r.end(a)
		}
		if bad := a.goOn(&p); bad != nil {
			return r.Broken(bad)
		}
		before = a
	}
}

// stream takes one streamed message to its end.
func (r *reply) stream(p *request) (*answer, *provider.Failure) {
	body, err := r.c.body(p, r.req.Tools)
	if err != nil {
		return nil, r.c.link.Detail(r.c.link.Words.Judge(http.StatusBadRequest, ""), "encoding the request", err.Error())
	}
	resp, bad := r.c.do(r.Ctx, http.MethodPost, "v1/messages", body)
	if bad != nil {
		if bad.Fault.Status == http.StatusNotFound {
			r.c.link.Gone() // a model chosen from the list is gone
		}
		return nil, r.Broken(bad)
	}
	defer resp.Body.Close()
	if bad := r.c.noStream(resp); bad != nil {
		return nil, r.Broken(bad)
	}
	a, events := &answer{}, provider.NewEvents(resp.Body)
	for !a.over && !r.Stopped {
		data, err := events.Next()
		if err != nil {
			return a, r.broke(a, err)
		}
		if bad := r.take(a, events.Name, data); bad != nil {
			return a, r.Broken(bad)
		}
	}
	return a, nil
}

// noStream returns what is wrong with an answer that is no stream of events; nil where it is one.
func (c *Client) noStream(resp *http.Response) *provider.Failure {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if e := parseError(body); strings.HasSuffix(kind, "json") && !e.isZero() {
		return c.streamFailure(e)
	}
	return provider.Garbage("the answer is no stream of events")
}

// broke judges a stream that has ended before its message.
func (r *reply) broke(a *answer, err error) *provider.Failure {
	switch {
	case errors.Is(err, provider.ErrEventTooLong), errors.Is(err, provider.ErrStreamTooLong):
		return r.Broken(provider.Garbage(err.Error()))
	case !errors.Is(err, io.EOF):
		return r.Broken(r.c.link.Lost(err))
	case !a.begun:
		return provider.Garbage("no event in the stream")
	}
	return provider.CutOff(errors.New("the stream ended without message_stop"))
}
