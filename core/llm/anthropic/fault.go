package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"gatehouse/core/llm/provider"
	"gatehouse/core/texts"
)

// words are the API's error texts (https://platform.claude.com/docs/en/api/errors),
// which reports "overloaded" by a status or a type alone.
var words = provider.Words{
	Credit:     []string{"credit balance"},
	TooLong:    []string{"prompt is too long", "exceed context limit", "context window"},
	Overloaded: []string{"overloaded_error"},
	Filtered:   []string{"content filtering"},

	Setting: "GATEHOUSE_ANTHROPIC_API_KEY",
	Stopped: func() string { return texts.Text("model_declined") },
}

// An apiError is the API's error object
// (https://platform.claude.com/docs/en/api/errors).
type apiError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func (e apiError) isZero() bool { return e == apiError{} }

// parseError reads {"type":"error","error":{"type":…,"message":…}}. Other
// bodies (a proxy's HTML) give the zero apiError.
func parseError(body []byte) apiError {
	var outer struct {
		Error apiError `json:"error"`
	}
	if json.Unmarshal(body, &outer) != nil {
		return apiError{}
	}
	return outer.Error
}

// text returns the texts of e.
func (e apiError) text() string { return e.Type + " " + e.Message }

// statusFailure judges an HTTP status other than 200.
func (c *Client) statusFailure(status int, h http.Header, e apiError) *provider.Failure {
	f := c.link.Words.Judge(status, e.text())
	f.Fault.Status = status
	f.Fault.After = c.retryAfter(h)
	if h.Get("X-Should-Retry") == "false" {
		f.Again = false
	}
	detail := fmt.Sprintf("status %d", status)
	if id := h.Get("Request-Id"); id != "" {
		detail += ", request " + id
	}
	return c.detailed(f, detail, e)
}

// types are the API's error types and the statuses that they go with; in
// mid-stream there is no other.
var types = map[string]int{
	"invalid_request_error": http.StatusBadRequest,
	"authentication_error":  http.StatusUnauthorized,
	"billing_error":         http.StatusPaymentRequired,
	"permission_error":      http.StatusForbidden,
	"not_found_error":       http.StatusNotFound,
	"request_too_large":     http.StatusRequestEntityTooLarge,
	"rate_limit_error":      http.StatusTooManyRequests,
	"api_error":             http.StatusInternalServerError,
	"timeout_error":         http.StatusGatewayTimeout,
	"overloaded_error":      529,
}

// streamFailure judges an error event in mid-stream.
func (c *Client) streamFailure(e apiError) *provider.Failure {
	status, ok := types[e.Type]
	if !ok {
		status = http.StatusInternalServerError
	}
	return c.detailed(c.link.Words.Judge(status, e.text()), "an error in the stream", e)
}

// detailed sets f's detail for the log.
func (c *Client) detailed(f *provider.Failure, detail string, e apiError) *provider.Failure {
	if e.Type != "" {
		detail += fmt.Sprintf(", type %q", e.Type)
	}
	return c.link.Detail(f, detail, e.Message)
}

// limits are the parts of the headers anthropic-ratelimit-…-remaining and
// -reset (https://platform.claude.com/docs/en/api/rate-limits).
var limits = []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"}

// retryAfter returns Retry-After or, if it is missing, when the used-up limits are
// reset; 0 if neither is valid.
func (c *Client) retryAfter(h http.Header) time.Duration {
	wait, said := c.link.RetryAfter(h)
	if said {
		return wait
	}
	for _, limit := range limits {
		if h.Get("Anthropic-Ratelimit-"+limit+"-Remaining") != "0" {
			continue
		}
		at, err := time.Parse(time.RFC3339, h.Get("Anthropic-Ratelimit-"+limit+"-Reset"))
		if err == nil {
			wait = max(wait, at.Sub(c.link.Clock.Now()))
		}
	}
	return wait
}
