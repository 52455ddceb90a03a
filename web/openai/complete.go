package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// wait counts one more answer that caller waits for; call release once when it
// ends.
func (a *API) wait(caller string) (release func(), err error) {
	release, ok := a.slots.Take(caller)
	if !ok {
		p := refuse(web.TooManyRequests, "rate_limit_exceeded", "", fmt.Sprintf("At most %d requests may be open at once per key.", a.slots.Most()))
		p.RetryAfter = 5 * time.Second
		return nil, p
	}
	return release, nil
}

// caller names who is limited: the key, or the user of an admin session.
func caller(p auth.Principal) string {
	if p.Key != "" {
		return p.Key
	}
	return "user" + strconv.FormatInt(p.User, 10)
}

// A call is one request on its way to its answer.
type call struct {
	a       *API
	r       *http.Request
	q       request
	run     string
	session string
	created int64
	gone    atomic.Bool // the client has disconnected
	revoked atomic.Bool // the key, or the session, holds no more
}

// complete serves POST /v1/chat/completions.
func (a *API) complete(w http.ResponseWriter, r *http.Request) error {
	p, _ := auth.From(r.Context())
	release, err := a.wait(caller(p))
	if err != nil {
		return err
	}
	defer release()
	raw, err := web.ReadJSON(w, r, MaxBody)
	if err != nil {
		return err
	}
	q, ignored, err := parse(raw)
	if err != nil {
		return err
	}
	m, err := a.find(p, q.Model)
	if err != nil {
		return err
	}
	web.WarnIgnored(w, ignored)
	c := &call{a: a, r: r, q: q, run: uuid.NewString(), session: uuid.NewString(), created: a.Clock.Now().Unix()}
	w.Header().Set("X-Run-Id", c.run)
	return c.answer(w, p, m)
}

// inbound makes the turn out of the request, in a session of its own.
// Everything the client may not decide comes from the principal.
func (c *call) inbound(p auth.Principal, m Model) core.Inbound {
	q := &c.q
	return core.Inbound{
		UpdateID:  "openai:" + c.run,
		Address:   core.Address{Bot: core.APIBot, Chat: c.session},
		Kind:      core.KindMessage,
		From:      core.Peer{Platform: core.APIBot, ID: "user:" + strconv.FormatInt(p.User, 10)},
		At:        c.a.Clock.Now().UTC(),
		Text:      q.Last.Text,
		Addressed: true,
		Turn: &core.Options{
			Session: c.session, Run: c.run, User: p.User, Key: p.Key, Alone: true, Agent: m.Agent, Model: m.Model, Module: Module,
			SystemPrompt: q.System, Before: q.Before, Media: q.Last.Media,
			Temperature: q.Temperature, MaxTokens: q.MaxTokens, Stop: q.Stop,
		},
	}
}

// answer stores the turn and gives its run's answer. It follows the run to its
// end also when the client has gone: it is stopped then, as no one could come
// back for it, and counts against the caller's limit until it has ended.
func (c *call) answer(w http.ResponseWriter, p auth.Principal, m Model) error {
	ctx, stop := context.WithCancel(context.WithoutCancel(c.r.Context()))
	defer stop()
	defer c.a.Door.Watch(c.r, func() { c.revoke(stop) })()
	events := c.a.Follower.Follow(ctx, bus.Follow{Session: c.session})
	if err := c.a.Inbox.Put(c.r.Context(), []core.Inbound{c.inbound(p, m)}, nil); err != nil {
		stop()
		for range events { // the bus forgets a reader when its iteration ends
			break
		}
		return fmt.Errorf("put turn: %w", err)
	}
	defer context.AfterFunc(c.r.Context(), func() { c.leave(ctx, stop) })()
	out, err := c.writer(ctx, w)
	if err != nil {
		return err
	}
	defer out.close()
	res := result{out: out}
	for e, err := range events {
		if err != nil {
			res.bad = lost(err)
			break
		}
		if c.gone.Load() {
			c.a.Runs.Abort(c.session)
		}
		if e.Run == c.run && c.take(&res, e) {
			break
		}
	}
	return c.end(&res)
}

// writer returns the writer of the answer: a stream, or a JSON body.
func (c *call) writer(ctx context.Context, w http.ResponseWriter) (writer, error) {
	if c.q.Stream {
		return c.stream(ctx, w), nil
	}
	if err := web.LongLived(w); err != nil {
		return nil, fmt.Errorf("wait for run: %w", err)
	}
	return &whole{c: c, w: w}, nil
}

// leave stops the run whose client has gone; one that has not begun is stopped
// at its first event. A stop of the server ends the wait for it.
func (c *call) leave(ctx context.Context, stop func()) {
	c.gone.Store(true)
	c.a.Runs.Abort(c.session)
	if errors.Is(context.Cause(c.r.Context()), web.ErrStopping) {
		stop()
	}
	select {
	case <-web.Stopping(ctx):
		stop()
	case <-ctx.Done():
	}
}

// revoke stops the run whose caller's key or session is gone.
func (c *call) revoke(stop func()) {
	c.revoked.Store(true)
	c.a.Runs.Abort(c.session)
	stop()
}

// A result is the run's text so far.
type result struct {
	out    writer
	words  bool // there was text
	tools  bool // a tool was used
	apart  bool // since the last words: the next ones begin a paragraph
	finish string
	usage  core.Usage
	over   bool // the run ended
	bad    *web.Problem
}

// take adds one event; true when it was the last.
func (c *call) take(res *result, e bus.Entry) (last bool) {
	switch e.Type {
	case "text":
		var ev core.TextDelta
		if res.read(e, &ev) {
			c.say(res, ev.Content)
		}
	case "thinking":
		res.out.open()
	case "tool_use_start":
		res.tools, res.apart = true, res.words
		res.out.open()
	case "done":
		var ev core.Done
		if res.read(e, &ev) {
			if !res.words {
				c.say(res, ev.Response)
			}
			res.finish, res.usage = "stop", ev.Usage
			if ev.StopReason == "max_tokens" {
				res.finish = "length"
			}
		}
	case "aborted":
		var ev core.Aborted
		if res.read(e, &ev) {
			res.bad = refuse(web.RunAborted, "run_aborted", "", "The answer was stopped before it was finished.")
			res.bad.Extra[extraFinal] = true
		}
	case "error":
		var ev core.Failed
		if res.read(e, &ev) {
			c.fail(res, ev)
		}
	case "gap":
		res.bad = lost(errors.New("events are no longer kept"))
	case "message_stop":
		res.over = true
	}
	return res.over
}

func (c *call) say(res *result, text string) {
	if text == "" {
		return
	}
	if res.apart && !strings.HasPrefix(text, "\n\n") { // kept from before the runs did it
		text = "\n\n" + text
	}
	res.words, res.apart = true, false
	res.out.text(text)
}

func (c *call) fail(res *result, ev core.Failed) {
	if ev.Code == "filtered" {
		res.finish = "content_filter"
		return
	}
	res.bad = failed(ev, res.tools, c.a.Clock.Now())
}

// end gives what there is to give.
func (c *call) end(res *result) error {
	if res.bad == nil && (!res.over || res.finish == "") {
		res.bad = lost(nil)
	}
	if c.revoked.Load() {
		res.bad = refuse(web.Unauthorized, "", "", "The API key is no longer valid.")
	}
	if res.bad != nil {
		return res.out.fail(res.bad)
	}
	return res.out.finish(res.finish, res.usage)
}

func (c *call) id() string { return "chatcmpl-" + strings.ReplaceAll(c.run, "-", "") }
