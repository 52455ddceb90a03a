package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"gatehouse/core/llm"
	"gatehouse/core/llm/provider"
	"gatehouse/core/texts"
)

// words are those of OpenAI and of the servers that speak its protocol
// (https://platform.openai.com/docs/guides/error-codes).
var words = provider.Words{
	Credit: []string{"insufficient_quota"},
	TooLong: []string{"context_length", "context length", "exceed_context_size", "context size", "context window", "maximum context",
		"maximum prompt length", "maximum number of tokens allowed", "request too large for", "`inputs` tokens + `max_new_tokens`", "prompt too long"},
	Overloaded: []string{"overloaded"},
	Filtered:   []string{"content_filter", "content_policy"},

	Setting: "GATEHOUSE_OPENAI_API_KEY",
	Stopped: func() string { return texts.Text("provider_filtered") },
}

// An apiError is what servers say of an error, in any of their spellings.
type apiError struct {
	Message, Type, Code string
	Window              int // llama.cpp's n_ctx
}

func (e apiError) isZero() bool { return e == apiError{} }

// parseError reads OpenAI's {"error":{message,type,code}}, vLLM's flat object,
// Ollama's {"error":"text"} and FastAPI's {"detail":…}. Other bodies (HTML)
// give the zero apiError.
func parseError(body []byte) apiError {
	var outer map[string]json.RawMessage
	if json.Unmarshal(body, &outer) != nil {
		return apiError{}
	}
	inner, ok := outer["error"]
	if !ok {
		if d, ok := outer["detail"]; ok {
			return apiError{Message: loose(d)}
		}
		inner = body
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(inner, &fields) != nil {
		return apiError{Message: loose(inner)}
	}
	window, _ := strconv.Atoi(string(fields["n_ctx"])) // missing: 0
	return apiError{Message: loose(fields["message"]), Type: loose(fields["type"]), Code: loose(fields["code"]), Window: window}
}

// loose returns a JSON value as text: strings plain, null and nothing "", the rest as JSON.
func loose(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// text returns all that e states.
func (e apiError) text() string { return e.Message + " " + e.Type + " " + e.Code }

// statusFailure judges an HTTP status other than 200, or the status that a
// mid-stream error represents.
func (c *Client) statusFailure(status int, h http.Header, e apiError) *provider.Failure {
	f := c.link.Words.Judge(status, e.text())
	f.Fault.Status = status
	f.Fault.After = c.retryAfter(h)
	if f.Fault.Code == llm.CodeTooLong && e.Window > 0 {
		f.Fault.Window = e.Window
	}
	detail := fmt.Sprintf("status %d", status)
	if e.Type != "" || e.Code != "" {
		detail += fmt.Sprintf(", type %q, code %q", e.Type, e.Code)
	}
	return c.link.Detail(f, detail, e.Message)
}

// streamFailure judges an error object in mid-stream, which has no status of
// its own; some servers put one into "code".
func (c *Client) streamFailure(e apiError) *provider.Failure {
	status, err := strconv.Atoi(e.Code)
	if err != nil || status < 400 || status > 599 {
		status = http.StatusInternalServerError
		if provider.Says(e.text(), "rate_limit", "rate limit") {
			status = http.StatusTooManyRequests
		}
		if provider.Says(e.text(), "invalid_request") {
			status = http.StatusBadRequest
		}
	}
	f := c.statusFailure(status, nil, e)
	f.Fault.Status = 0
	return f
}

// retryAfter reads retry-after-ms (OpenAI) and Retry-After; 0 when there is
// none or it makes no sense.
func (c *Client) retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	wait, _ := c.link.RetryAfter(h)
	return wait
}
