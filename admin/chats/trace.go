package chats

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/admin/chats/messages"
	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/runs"
	"gatehouse/core/transcript"
)

const tracePath = "/admin/chats/trace"

// A traceBody is what became of one message: from its update to its reply.
type traceBody struct {
	Bots    []string
	Bot, ID string
	Asked   bool
	Missing string // why there is nothing to show
	Updates page.Part[[]stepView]
	Run     *runView
	RunGone bool
	Calls   page.Part[[]saidPart]
	Far     bool // further back in the conversation than tool calls are read
	Unread  bool // what it used could not be read
	Session string
	Replies page.Part[[]sentView]
	Verdict string
	Tone    string
}

type stepView struct {
	inspect.Step
	Tone, Word string
}

type sentView struct {
	inspect.Sent
	Tone, Word string
}

// sendState returns the colour and the label of the state of a part of a reply.
func sendState(s string) (tone, word string) {
	switch s {
	case "ready":
		return "note", "Waiting to be sent"
	case "sending":
		return "note", "Being sent"
	case "sent":
		return "good", "Arrived"
	case "unknown":
		return "warn", "May have arrived"
	}
	return "bad", "Failed"
}

func (p *Pages) tracePage(w http.ResponseWriter, r *http.Request) error {
	ctx, q := r.Context(), r.URL.Query()
	b, run := traceBody{Bot: q.Get("bot"), ID: strings.TrimSpace(q.Get("id"))}, q.Get("run")
	for _, s := range p.links.Bots() {
		b.Bots = append(b.Bots, s.Bot)
	}
	if b.ID != "" {
		b.Asked = true
		step, err := p.o.Traces.Update(ctx, b.Bot, b.ID)
		switch {
		case core.KindOf(err) == core.NotFound:
			b.Missing = page.Sentence(core.TextOf(err))
		case err != nil:
			b.Updates.Broken = page.Load(ctx, p.frame, "The update", func(context.Context) (int, error) { return 0, err }).Broken
		default:
			if run = step.Run; run == "" {
				b.Updates.Value = []stepView{p.stepView(step)}
			}
		}
	}
	if run != "" {
		b.Asked = true
		p.traceRun(ctx, &b, run)
	}
	if b.ID == "" && len(b.Updates.Value) > 0 { // the form shows the update
		b.Bot, b.ID = b.Updates.Value[0].Bot, b.Updates.Value[0].UpdateID
	}
	b.Tone, b.Verdict = b.verdict()
	every := 5
	if b.Run != nil && !b.Run.Ended.IsZero() && p.frame.Clock.Now().Sub(b.Run.Ended) > time.Minute { // reading its messages is much work, and they stay the same
		every = 60
	}
	return p.frame.Show(w, r, http.StatusOK, "trace", page.View{Title: "What happened to a message", In: "chats", Every: every, Body: b})
}

func (p *Pages) stepView(s inspect.Step) stepView {
	v := stepView{Step: s}
	v.Tone, v.Word = page.Step(s.State)
	return v
}

// traceRun reads what is known of a run.
func (p *Pages) traceRun(ctx context.Context, b *traceBody, run string) {
	b.Updates = page.Load(ctx, p.frame, "The message", func(ctx context.Context) (out []stepView, err error) {
		steps, err := p.o.Traces.UpdatesOf(ctx, run)
		for _, s := range steps {
			out = append(out, p.stepView(s))
		}
		return out, err
	})
	line, err := p.o.Runs.Line(ctx, run)
	switch {
	case core.KindOf(err) == core.NotFound:
		b.RunGone = true
	case err != nil:
		b.Missing = page.Load(ctx, p.frame, "The run", func(context.Context) (int, error) { return 0, err }).Broken
	default:
		runs, err := p.runViews(ctx, p.frame.Clock.Now(), line)
		if err != nil {
			p.frame.Log.ErrorContext(ctx, "panel section", "section", "usage of a run", "err", err)
		}
		b.Run, b.Session, b.Unread = &runs[0], line.Session, err != nil
		b.Calls = page.Load(ctx, p.frame, "The tool calls", func(ctx context.Context) (calls []saidPart, err error) {
			calls, b.Far, err = p.callsOf(ctx, line)
			return calls, err
		})
	}
	b.Replies = page.Load(ctx, p.frame, "The replies", func(ctx context.Context) (out []sentView, err error) {
		replies, err := p.o.Traces.RepliesOf(ctx, "run:"+run)
		for _, s := range replies {
			v := sentView{Sent: s}
			v.Tone, v.Word = sendState(s.State)
			out = append(out, v)
		}
		return out, err
	})
}

// callsOf returns the tool calls of a run, and whether it is further back than they are read.
func (p *Pages) callsOf(ctx context.Context, run runs.Line) (calls []saidPart, far bool, err error) {
	d, err := p.o.Chats.Detail(ctx, run.Session)
	if core.KindOf(err) == core.NotFound { // deleted since: the run's row outlives it
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	found, err := messages.OfRun(ctx, func(ctx context.Context, q transcript.PageQuery) (transcript.Page, error) {
		return p.o.Chats.Page(ctx, d.Session, q)
	}, run.ID, run.Started)
	list, first := p.talk(found.Messages, &chatBody{Detail: d}, found.Next)
	for _, s := range list {
		calls = append(calls, slices.DeleteFunc(s.Parts, func(x saidPart) bool { return x.Kind != "call" })...)
	}
	return calls, found.Far || first > 0, err
}

// verdict returns the outcome in one sentence.
func (b *traceBody) verdict() (tone, text string) {
	if !b.Asked || b.Missing != "" {
		return "", ""
	}
	state := map[string]bool{}
	for _, s := range b.Replies.Value {
		state[s.State] = true
	}
	tone, what, reply := "good", "It was answered", "the reply"
	switch {
	case b.Run == nil:
	case b.Run.State == "error":
		tone, what, reply = "bad", "It was not answered: "+why(b.Run.Line), "the message that says so"
	case b.Run.State == "aborted":
		tone, what, reply = "idle", "Its answer was stopped", "what there was of it"
	case b.Run.State == "running":
		tone, what, reply = "note", "It is being answered right now", "what there is of it"
	}
	switch {
	case state["failed"]:
		return "bad", what + "; the platform refused " + reply + "."
	case state["unknown"]:
		return worse(tone, "warn"), what + "; whether " + reply + " arrived is unknown."
	case state["ready"] || state["sending"]:
		return worse(tone, "note"), what + "; " + reply + " is being sent."
	case b.Replies.Broken != "" && b.Run != nil:
		return worse(tone, "warn"), what + "; what became of " + reply + " can’t be read right now."
	case len(b.Replies.Value) > 0:
		return tone, what + ", and " + reply + " arrived."
	case b.Run != nil && b.Run.State == "running":
		return tone, what + "."
	case b.Run != nil:
		return tone, what + ". Replies are kept for 48 hours."
	case len(b.Updates.Value) > 0:
		return b.Updates.Value[0].Tone, b.Updates.Value[0].Word + "."
	case b.Updates.Broken != "" || b.Replies.Broken != "":
		return "warn", "Its record can’t be read right now."
	}
	return "idle", "Its record was deleted."
}

// worse returns the tone that needs more attention.
func worse(a, b string) string {
	if a == "bad" || a == "warn" {
		return a
	}
	return b
}
