package responses

import (
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/core/response"
	"gatehouse/web"
	"gatehouse/web/openai/answer"
	"gatehouse/web/openai/refusal"
)

// Statuses of a response.
const (
	queued     = "queued"
	inProgress = "in_progress"
	completed  = "completed"
	incomplete = "incomplete"
	failed     = "failed"
	cancelled  = "cancelled"
)

type (
	// wireUsage are tokens as OpenAI counts them: those read from a cache and written to it are
	// among the input's.
	wireUsage struct {
		Input         int64         `json:"input_tokens"`
		InputDetails  inputDetails  `json:"input_tokens_details"`
		Output        int64         `json:"output_tokens"`
		OutputDetails outputDetails `json:"output_tokens_details"`
		Total         int64         `json:"total_tokens"`
	}
	inputDetails struct {
		Cached  int64 `json:"cached_tokens"`
		Written int64 `json:"cache_write_tokens"`
	}
	outputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"` // not known
	}
	wireFault struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	wireReason struct {
		Reason string `json:"reason"`
	}
	wireResponse struct {
		ID           string            `json:"id"`
		Object       string            `json:"object"`
		Created      int64             `json:"created_at"`
		Status       string            `json:"status"`
		Background   bool              `json:"background"`
		Completed    *int64            `json:"completed_at"`
		Error        *wireFault        `json:"error"`
		Incomplete   *wireReason       `json:"incomplete_details"`
		Instructions *string           `json:"instructions"`
		MaxTokens    *int              `json:"max_output_tokens"`
		Metadata     map[string]string `json:"metadata"`
		Model        string            `json:"model"`
		Output       []item            `json:"output"`
		Parallel     bool              `json:"parallel_tool_calls"`
		Previous     *string           `json:"previous_response_id"`
		Reasoning    json.RawMessage   `json:"reasoning"`
		Tier         string            `json:"service_tier"`
		Store        bool              `json:"store"`
		Temperature  *float64          `json:"temperature"`
		Text         json.RawMessage   `json:"text"`
		ToolChoice   string            `json:"tool_choice"`
		Tools        []string          `json:"tools"`
		TopP         float64           `json:"top_p"`
		Truncation   string            `json:"truncation"`
		Usage        *wireUsage        `json:"usage"`
		User         *string           `json:"user"`
	}
)

// An outcome is what is stored of an answer.
type outcome struct {
	Status string     `json:"status"`
	Text   string     `json:"text,omitempty"`
	Reason string     `json:"reason,omitempty"` // why it is incomplete
	Error  *wireFault `json:"error,omitempty"`
	Usage  *wireUsage `json:"usage,omitempty"`
	At     int64      `json:"at"`
}

func usageOf(u core.Usage) *wireUsage {
	in := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens
	return &wireUsage{Input: in, InputDetails: inputDetails{Cached: u.CacheReadTokens, Written: u.CacheWriteTokens}, Output: u.OutputTokens, Total: in + u.OutputTokens}
}

// ended returns the outcome of a run that gave an answer.
func ended(end answer.End, text string, at int64) outcome {
	o := outcome{Status: completed, Text: text, Usage: usageOf(end.Usage), At: at}
	switch end.Reason {
	case "length":
		o.Status, o.Reason = incomplete, "max_output_tokens"
	case "content_filter":
		o.Status, o.Reason = incomplete, "content_filter"
	}
	return o
}

// broken returns the outcome of a run that failed.
func broken(p *web.Problem, text string, at int64) outcome {
	e := refusal.Of(p)
	o := outcome{Status: failed, Text: text, Error: &wireFault{"server_error", e.Message}, At: at}
	if e.Code != nil {
		o.Error.Code = *e.Code
	}
	if o.Error.Code == "run_aborted" {
		o.Status, o.Error = cancelled, nil
	}
	return o
}

// object returns the response as clients read it.
func object(row response.Row, q *request, o outcome) *wireResponse {
	w := &wireResponse{ID: row.ID, Object: "response", Created: row.Created.Unix(), Status: o.Status, Background: q.Background, Error: o.Error, Metadata: q.Metadata,
		Model: q.Model, Output: []item{}, Parallel: true, Reasoning: json.RawMessage(`{"effort":null,"summary":null}`), Tier: "default", Store: q.Store, Temperature: q.Temperature,
		Text: json.RawMessage(`{"format":{"type":"text"}}`), ToolChoice: "auto", Tools: []string{}, TopP: 1, Truncation: q.Truncation, Usage: o.Usage}
	if w.Metadata == nil {
		w.Metadata = map[string]string{}
	}
	if q.Instructions != "" {
		w.Instructions = &q.Instructions
	}
	if q.MaxTokens > 0 {
		w.MaxTokens = &q.MaxTokens
	}
	if row.Previous != "" {
		w.Previous = &row.Previous
	}
	if o.Reason != "" {
		w.Incomplete = &wireReason{o.Reason}
	}
	if o.Status == completed {
		w.Completed = &o.At
	}
	if o.Text != "" || o.Status == completed || o.Status == incomplete {
		w.Output = []item{message(row.ID, o)}
	}
	return w
}

// message returns the output of a response with an answer.
func message(response string, o outcome) item {
	it := item{ID: outputID(response), Type: "message", Status: completed, Role: "assistant", Content: []part{outputText(o.Text)}}
	if o.Status != completed {
		it.Status = incomplete
	}
	return it
}

const (
	responsePrefix = "resp_"
	itemPrefix     = "msg_"
)

func responseID(run string) string { return responsePrefix + strings.ReplaceAll(run, "-", "") }

// isID reports whether an id can be that of a response: others may hold what no
// database compares.
func isID(id string) bool {
	rest, ok := strings.CutPrefix(id, responsePrefix)
	return ok && strings.Trim(rest, "0123456789abcdef") == ""
}

// outputID returns the id of a response's message, inputID of an item of its input.
func outputID(response string) string {
	return itemPrefix + strings.TrimPrefix(response, responsePrefix)
}

func inputID(response string, i int) string { return fmt.Sprintf("%si%d", outputID(response), i) }

// ofItem returns the response that an item's id is of, and the index of the item in
// its input; -1 is the output.
func ofItem(id string) (response string, i int) {
	rest := strings.TrimPrefix(id, itemPrefix)
	i = -1
	if of, index, ok := strings.Cut(rest, "i"); ok {
		if _, err := fmt.Sscanf(index, "%d", &i); err == nil {
			rest = of
		}
	}
	return responsePrefix + rest, i
}
