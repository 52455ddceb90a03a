package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/web"
	"gatehouse/web/openai/refusal"
)

// A Reader makes one answer of a run's events.
type Reader struct {
	Out   Writer
	Param string // the field that holds the conversation, for errors

	words bool // there was text
	tools bool // a tool was used
	apart bool // since the last words: the next ones begin a paragraph
	end   End
	over  bool // the run ended
	bad   *web.Problem
}

// Take adds one event; true when it was the last.
func (res *Reader) Take(e bus.Entry) (last bool) {
	switch e.Type {
	case "text":
		var ev core.TextDelta
		if res.read(e, &ev) {
			res.say(ev.Content)
		}
	case "thinking":
		res.Out.Open()
	case "tool_use_start":
		res.tools, res.apart = true, res.words
		res.Out.Open()
	case "done":
		var ev core.Done
		if res.read(e, &ev) {
			if !res.words {
				res.say(ev.Response)
			}
			res.end = End{"stop", ev.Usage}
			if ev.StopReason == "max_tokens" {
				res.end.Reason = "length"
			}
		}
	case "aborted":
		var ev core.Aborted
		if res.read(e, &ev) {
			res.bad = refusal.Final(refusal.New(web.RunAborted, "run_aborted", "", "The answer was stopped before it was finished."))
		}
	case "error":
		var ev core.Failed
		if res.read(e, &ev) {
			res.fail(ev)
		}
	case "gap":
		res.bad, res.over = refusal.Lost(errors.New("what was said is void, or no longer kept")), true
	case "message_stop":
		res.over = true
	}
	return res.over
}

// read decodes an event of our own; what cannot be read ends the answer.
func (res *Reader) read(e bus.Entry, into any) bool {
	if err := json.Unmarshal(e.Data, into); err != nil {
		res.bad = refusal.Lost(fmt.Errorf("event %s: %w", e.ID(), err))
		return false
	}
	return true
}

func (res *Reader) say(text string) {
	if text == "" {
		return
	}
	if res.apart && !strings.HasPrefix(text, "\n\n") { // kept from before the runs did it
		text = "\n\n" + text
	}
	res.words, res.apart = true, false
	res.Out.Text(text)
}

func (res *Reader) fail(ev core.Failed) {
	if ev.Code == "filtered" {
		res.end.Reason = "content_filter"
		return
	}
	res.bad = refusal.Failed(ev, res.tools, res.Param)
}

// End gives what there is to give: an answer, or why there is none.
func (res *Reader) End() error {
	if res.bad == nil && (!res.over || res.end.Reason == "") {
		res.bad = refusal.Lost(nil)
	}
	if res.bad != nil {
		return res.Out.Fail(res.bad)
	}
	return res.Out.Finish(res.end)
}
