package turns

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/web"
)

// A chatReply is the answer to POST /api/chat as one object.
type chatReply struct {
	SessionID     string              `json:"session_id"`
	RunID         string              `json:"run_id"`
	Response      string              `json:"response"`
	Model         string              `json:"model"`
	Usage         core.Usage          `json:"usage"`
	DurationMS    int64               `json:"duration_ms"`
	ToolCalls     int                 `json:"tool_calls"`
	Warnings      []core.Warning      `json:"warnings"`
	SessionResume *core.SessionResume `json:"session_resume"`
	StopReason    string              `json:"stop_reason,omitempty"`
	*core.Council
}

// object waits for the run and answers with one JSON object.
func (a *API) object(w http.ResponseWriter, r *http.Request, events entries, t *turn) (over bool, err error) {
	if err := web.LongLived(w); err != nil {
		return false, fmt.Errorf("wait for run: %w", err)
	}
	reply := chatReply{SessionID: t.session, RunID: t.run, Warnings: []core.Warning{}}
	var failure error
	answered, lost := false, false
	for e, err := range events {
		if err != nil {
			return false, &web.Problem{Fault: web.Unavailable, Detail: "the events of the run were lost on the way; follow it by its id", Extra: t.extra(), Err: err}
		}
		switch e.Type {
		case "done":
			var d core.Done
			if err := json.Unmarshal(e.Data, &d); err != nil {
				return true, fmt.Errorf("event %s: %w", e.ID(), err)
			}
			reply.SessionID, reply.Response, reply.Model, reply.Usage = d.SessionID, d.Response, d.Model, d.Usage
			reply.DurationMS, reply.ToolCalls, reply.SessionResume, reply.StopReason = d.DurationMS, d.ToolCalls, d.SessionResume, d.StopReason
			reply.Council, answered = d.Council, true
		case "warning":
			var n core.Warning
			if json.Unmarshal(e.Data, &n) == nil {
				reply.Warnings = append(reply.Warnings, n)
			}
		case "aborted", "error":
			failure = runProblem(e, t)
		case "gap": // voids what was before; the answer is in done
			lost, reply.Warnings = true, []core.Warning{}
		case "message_stop":
			over = true
		}
	}
	if err := web.Hurry(w); err != nil {
		return over, fmt.Errorf("answer: %w", err)
	}
	switch {
	case failure != nil:
		return over, failure
	case !over:
		return false, &web.Problem{Fault: web.Unavailable, RetryAfter: web.RetrySoon, Detail: "the events ended before the run was over; follow it by its id", Extra: t.extra()}
	case lost && !answered:
		return true, &web.Problem{Fault: web.Conflict, Detail: "the answer of this run is no longer stored; read the transcript", Extra: t.extra()}
	}
	return true, web.WriteJSON(w, http.StatusOK, reply)
}

func (t *turn) extra() map[string]any {
	return map[string]any{"run_id": t.run, "session_id": t.session}
}

// runFaults are the answers for a run's error codes; others are the model's.
var runFaults = map[string]web.Fault{
	"timeout": web.RunTimeout, "silence": web.RunTimeout, "shutdown": web.Unavailable, "interrupted": web.Unavailable,
	"busy": web.Unavailable, "rate_limited": web.Unavailable, "overloaded": web.Unavailable, "internal": web.Internal,
	"refused": web.Forbidden, "invalid": web.Invalid, "budget": web.TooManyRequests,
}

// runProblem turns a run's bad end into an answer.
func runProblem(e bus.Entry, t *turn) error {
	extra := t.extra()
	if e.Type == "aborted" {
		var ev core.Aborted
		_ = json.Unmarshal(e.Data, &ev) // our own JSON; at worst fields are missing
		extra["partial_response"] = ev.PartialResponse
		return &web.Problem{Fault: web.RunAborted, Detail: ev.Message, Extra: extra}
	}
	var ev core.Failed
	_ = json.Unmarshal(e.Data, &ev)
	extra["code"], extra["can_retry"] = ev.Code, ev.CanRetry
	fault, ok := runFaults[ev.Code]
	if !ok {
		fault = web.ModelFailed
	}
	return &web.Problem{Fault: fault, Detail: ev.Message, RetryAfter: time.Duration(ev.RetryAfterMS) * time.Millisecond, Extra: extra}
}
