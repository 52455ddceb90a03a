package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	api "github.com/anthropics/anthropic-sdk-go"

	"gatehouse/core/llm"
	"gatehouse/core/texts"
)

// A failure is a Fault, and whether this client should try again by itself.
type failure struct {
	fault llm.Fault
	again bool
}

// The operator's settings that people are told of.
const (
	settingKey   = "GATEHOUSE_ANTHROPIC_API_KEY"
	settingModel = "GATEHOUSE_MODEL"
)

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

// says reports whether the error mentions one of the given words.
func (e apiError) says(words ...string) bool {
	all := strings.ToLower(e.Type + " " + e.Message)
	for _, w := range words {
		if strings.Contains(all, w) {
			return true
		}
	}
	return false
}

// failure judges what the SDK returned as an error; garbled says what it means
// when the answer could not be read.
func (c *Client) failure(err error, garbled string) *failure {
	var refused *refusal
	var inStream *api.Error
	var outer *url.Error
	var cut *broken
	switch {
	case errors.As(err, &refused) && refused.status == http.StatusOK:
		return c.streamFailure(refused.said)
	case errors.As(err, &refused):
		return c.statusFailure(refused.status, refused.header, refused.said)
	case errors.As(err, &inStream):
		return c.streamFailure(parseError([]byte(inStream.RawJSON())))
	case errors.As(err, &outer):
		return c.transportFailure(outer.Err)
	case errors.As(err, &cut):
		return c.transportFailure(cut.err)
	case errors.Is(err, errNoStream), errors.Is(err, errEventTooLong), errors.Is(err, errStreamTooLong):
		return garbage(err.Error())
	}
	return garbage(garbled)
}

// statusFailure judges an HTTP status other than 200.
func (c *Client) statusFailure(status int, h http.Header, e apiError) *failure {
	f := judge(status, e)
	f.fault.Status = status
	f.fault.After = c.retryAfter(h)
	if h.Get("X-Should-Retry") == "false" {
		f.again = false
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
func (c *Client) streamFailure(e apiError) *failure {
	status, ok := types[e.Type]
	if !ok {
		status = http.StatusInternalServerError
	}
	return c.detailed(judge(status, e), "an error in the stream", e)
}

// detailed gives f its words for the log. What a provider says of a refused
// key may repeat parts of it, so that is left out.
func (c *Client) detailed(f *failure, detail string, e apiError) *failure {
	if e.Type != "" {
		detail += fmt.Sprintf(", type %q", e.Type)
	}
	if e.Message != "" && f.fault.Code != llm.CodeAuth {
		detail += ": " + e.Message
	}
	f.fault.Err = c.hide(detail, nil)
	return f
}

func judge(status int, e apiError) *failure {
	switch {
	case status == http.StatusUnauthorized:
		return final(llm.CodeAuth, texts.Text("provider_key", texts.With{"Setting": settingKey}))
	case status == http.StatusPaymentRequired || e.says("credit balance"):
		return final(llm.CodeUnavailable, texts.Text("provider_credit"))
	case status == http.StatusForbidden:
		return final(llm.CodeAuth, texts.Text("provider_forbidden"))
	case status == http.StatusRequestEntityTooLarge || e.says("prompt is too long", "exceed context limit", "context window"):
		return final(llm.CodeTooLong, texts.Text("provider_too_long"))
	case status == http.StatusTooManyRequests:
		return passing(llm.CodeRateLimited, texts.Text("provider_limited"))
	case status == 529 || status == http.StatusServiceUnavailable || e.Type == "overloaded_error":
		return passing(llm.CodeOverloaded, texts.Text("provider_overloaded"))
	case status >= 500 || status == http.StatusRequestTimeout:
		return passing(llm.CodeUnavailable, texts.Text("provider_unavailable"))
	case status == http.StatusNotFound:
		return final(llm.CodeUnavailable, texts.Text("provider_no_model", texts.With{"Setting": settingModel}))
	case e.says("content filtering"):
		return final(llm.CodeFiltered, texts.Text("model_declined"))
	case status < 400:
		return final(llm.CodeUnavailable, texts.Text("provider_unavailable"))
	}
	return final(llm.CodeBadRequest, texts.Text("provider_bad_request"))
}

// transportFailure judges an error of the connection.
func (c *Client) transportFailure(err error) *failure {
	var op *net.OpError
	dialled := !errors.As(err, &op) || op.Op != "dial"
	var timeout net.Error
	f := passing(llm.CodeUnavailable, texts.Text("provider_unavailable"))
	if dialled && errors.As(err, &timeout) && timeout.Timeout() {
		f = passing(llm.CodeSilence, texts.Text("provider_silence"))
		f.again = false // it may be working on it; another two minutes help nobody
	}
	f.fault.Err = c.hide(err.Error(), err)
	return f
}

func final(code, text string) *failure {
	return &failure{fault: llm.Fault{Code: code, Text: text}}
}

func passing(code, text string) *failure {
	return &failure{fault: llm.Fault{Code: code, Text: text, CanRetry: true}, again: true}
}

func cutOff(err error) *failure {
	f := passing(llm.CodeCutOff, texts.Text("provider_cut_off"))
	f.fault.Err = err
	return f
}

func garbage(what string) *failure {
	f := passing(llm.CodeGarbage, texts.Text("provider_garbage"))
	f.again = false
	f.fault.Err = errors.New(what)
	return f
}

// hidden is an error whose text was cleaned of secrets; the chain stays.
type hidden struct {
	text string
	err  error
}

func (h *hidden) Error() string { return h.text }
func (h *hidden) Unwrap() error { return h.err }

// minSecret is the length from which a key is taken for a secret: local
// servers are given words like "none".
const minSecret = 5

// hide makes an error of text without key and control characters, at most 500 bytes.
func (c *Client) hide(text string, err error) error {
	if len(c.key) >= minSecret {
		text = strings.ReplaceAll(text, c.key, "[hidden]")
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + "…"
	}
	return &hidden{text, err}
}

// limits are the parts of the headers anthropic-ratelimit-…-remaining and
// -reset (https://platform.claude.com/docs/en/api/rate-limits).
var limits = []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"}

// retryAfter reads Retry-After (RFC 9110 §10.2.3: seconds or a date) and,
// where it is missing, when the limits that are used up are filled again; 0
// when nothing is said or makes sense.
func (c *Client) retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(c.clock.Now()))
	}
	var wait time.Duration
	for _, limit := range limits {
		if h.Get("Anthropic-Ratelimit-"+limit+"-Remaining") != "0" {
			continue
		}
		at, err := time.Parse(time.RFC3339, h.Get("Anthropic-Ratelimit-"+limit+"-Reset"))
		if err == nil {
			wait = max(wait, at.Sub(c.clock.Now()))
		}
	}
	return wait
}
