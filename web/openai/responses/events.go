package responses

import (
	"context"
	"net/http"

	"gatehouse/web"
	"gatehouse/web/openai/answer"
	"gatehouse/web/openai/refusal"
)

type (
	// An event is one of a stream, in which the only item of the output has the
	// only part, which is the text.
	event struct {
		Type     string        `json:"type"`
		Number   int           `json:"sequence_number"`
		Response *wireResponse `json:"response,omitempty"`
		Output   *int          `json:"output_index,omitempty"`
		Content  *int          `json:"content_index,omitempty"`
		ItemID   string        `json:"item_id,omitempty"`
		Item     *item         `json:"item,omitempty"`
		Part     *part         `json:"part,omitempty"`
		Delta    *string       `json:"delta,omitempty"`
		Text     *string       `json:"text,omitempty"`
		Logprobs *[]string     `json:"logprobs,omitempty"`
	}
	// An errorEvent has the error twice: as OpenAI documents it, and as it sends it,
	// which is what some clients look for.
	errorEvent struct {
		Type    string        `json:"type"`
		Number  int           `json:"sequence_number"`
		Code    *string       `json:"code"`
		Message string        `json:"message"`
		Param   *string       `json:"param"`
		Error   refusal.Error `json:"error"`
	}
)

// events answers with a stream: the response as it begins, its one message as it
// grows, and the response as it ended. They are the same, with the same numbers,
// however often a run's stream is read.
type events struct {
	keeper
	live  *answer.Live
	n     int  // the number of the next event
	after int  // the last number that the client has
	item  bool // the message has begun
	// replayed: the client reads what a response was, so its failure is an event.
	replayed bool
}

func newEvents(ctx context.Context, c *call, w http.ResponseWriter, after int) *events {
	e := &events{keeper: keeper{c: c, ctx: ctx}, after: after}
	e.live = c.Live(ctx, w, e.first)
	e.live.Wait()
	return e
}

// send sends an event, unless the client has it.
func (e *events) send(ev event) {
	ev.Number = e.n
	if e.n++; ev.Number > e.after {
		e.live.Send(ev.Type, ev)
	}
}

func (e *events) response(kind string, o outcome) {
	e.send(event{Type: kind, Response: object(e.c.row, &e.c.q, o)})
}

func (e *events) first() {
	begun := inProgress
	if e.c.q.Background {
		begun = queued
	}
	e.response("response.created", outcome{Status: begun})
	if e.c.q.Background {
		e.response("response.queued", outcome{Status: queued})
	}
	e.response("response.in_progress", outcome{Status: inProgress})
}

// begin announces the message, once.
func (e *events) begin() {
	if e.item {
		return
	}
	e.item = true
	zero, nothing := 0, outputText("")
	id := outputID(e.c.row.ID)
	e.send(event{Type: "response.output_item.added", Output: &zero, Item: &item{ID: id, Type: "message", Status: inProgress, Role: "assistant", Content: []part{}}})
	e.send(event{Type: "response.content_part.added", Output: &zero, Content: &zero, ItemID: id, Part: &nothing})
}

func (e *events) Open() { e.live.Do(func() {}) }

func (e *events) Text(s string) {
	e.live.Do(func() {
		e.begin()
		e.said.WriteString(s)
		zero := 0
		e.send(event{Type: "response.output_text.delta", Output: &zero, Content: &zero, ItemID: outputID(e.c.row.ID), Delta: &s, Logprobs: &[]string{}})
	})
}

// Finish stores the outcome first: who has read it may go on from the response.
func (e *events) Finish(end answer.End) error {
	o, err := e.keep(end)
	if err != nil {
		return err
	}
	return e.live.Finish(func() {
		e.begin()
		zero, id, text := 0, outputID(e.c.row.ID), outputText(o.Text)
		it := message(e.c.row.ID, o)
		e.send(event{Type: "response.output_text.done", Output: &zero, Content: &zero, ItemID: id, Text: &o.Text, Logprobs: &[]string{}})
		e.send(event{Type: "response.content_part.done", Output: &zero, Content: &zero, ItemID: id, Part: &text})
		e.send(event{Type: "response.output_item.done", Output: &zero, Item: &it})
		e.response("response."+o.Status, o)
	})
}

// Fail answers with a status where nothing was sent and this is the request that
// asked, else with an error and the response as it failed.
func (e *events) Fail(p *web.Problem) error {
	o, err := e.keepFailure(p)
	if err != nil {
		return err
	}
	if e.replayed && !refusal.IsLost(p) {
		e.Open()
	}
	return e.live.Fail(p, func() {
		what := refusal.Of(p)
		if e.n > e.after {
			e.live.Send("error", errorEvent{Type: "error", Number: e.n, Code: what.Code, Message: what.Message, Param: what.Param, Error: what})
		}
		if e.n++; e.c.q.lasting() && e.unsure(p) { // the stream ends, and the response goes on
			return
		}
		e.response("response.failed", o)
	})
}

func (e *events) Close() { e.live.Close() }
