package openai

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
	settingKey   = "GATEHOUSE_OPENAI_API_KEY"
	settingModel = "GATEHOUSE_MODEL"
)

// An apiError is what servers say of an error, in any of their spellings.
type apiError struct {
	Message, Type, Code string
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
	return apiError{Message: loose(fields["message"]), Type: loose(fields["type"]), Code: loose(fields["code"])}
}

// loose is a JSON value as text: strings plain, null and nothing "", the rest as JSON.
func loose(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// says reports whether the error mentions one of the given words.
func (e apiError) says(words ...string) bool {
	all := strings.ToLower(e.Message + " " + e.Type + " " + e.Code)
	for _, w := range words {
		if strings.Contains(all, w) {
			return true
		}
	}
	return false
}

// statusFailure judges an HTTP status (or the status that a mid-stream error
// stands for; see https://platform.openai.com/docs/guides/error-codes).
func (c *Client) statusFailure(status int, h http.Header, e apiError) *failure {
	f := c.judge(status, e)
	f.fault.Status = status
	f.fault.After = c.retryAfter(h)
	detail := fmt.Sprintf("status %d", status)
	if e.Type != "" || e.Code != "" {
		detail += fmt.Sprintf(", type %q, code %q", e.Type, e.Code)
	}
	// What a provider says of a refused key repeats parts of it.
	if e.Message != "" && f.fault.Code != llm.CodeAuth {
		detail += ": " + e.Message
	}
	f.fault.Err = c.hide(detail, nil)
	return f
}

func (c *Client) judge(status int, e apiError) *failure {
	switch {
	case status == http.StatusUnauthorized:
		return final(llm.CodeAuth, texts.Text("provider_key", texts.With{"Setting": settingKey}))
	case status == http.StatusPaymentRequired || e.says("insufficient_quota"):
		return final(llm.CodeUnavailable, texts.Text("provider_credit"))
	case status == http.StatusForbidden:
		return final(llm.CodeAuth, texts.Text("provider_forbidden"))
	case status == http.StatusRequestEntityTooLarge || e.says("context_length", "context length", "exceed_context_size",
		"context size", "context window", "maximum context"):
		return final(llm.CodeTooLong, texts.Text("provider_too_long"))
	case status == http.StatusTooManyRequests:
		return passing(llm.CodeRateLimited, texts.Text("provider_limited"))
	case status == http.StatusServiceUnavailable || status == 529 || e.says("overloaded"):
		return passing(llm.CodeOverloaded, texts.Text("provider_overloaded"))
	case status >= 500 || status == http.StatusRequestTimeout:
		return passing(llm.CodeUnavailable, texts.Text("provider_unavailable"))
	case status == http.StatusNotFound:
		return final(llm.CodeUnavailable, texts.Text("provider_no_model", texts.With{"Setting": settingModel}))
	case e.says("content_filter", "content_policy"):
		return final(llm.CodeFiltered, texts.Text("provider_filtered"))
	case status >= 300 && status < 400:
		return final(llm.CodeUnavailable, texts.Text("provider_unavailable"))
	}
	return final(llm.CodeBadRequest, texts.Text("provider_bad_request"))
}

// streamFailure judges an error object in mid-stream, which has no status of
// its own; some servers put one into "code".
func (c *Client) streamFailure(e apiError) *failure {
	status, err := strconv.Atoi(e.Code)
	if err != nil || status < 400 || status > 599 {
		status = http.StatusInternalServerError
		if e.says("rate_limit", "rate limit") {
			status = http.StatusTooManyRequests
		}
		if e.says("invalid_request") {
			status = http.StatusBadRequest
		}
	}
	f := c.statusFailure(status, nil, e)
	f.fault.Status = 0
	return f
}

// transportFailure judges an error of the connection. Its text never holds the
// URL, for that may hold credentials.
func (c *Client) transportFailure(err error) *failure {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
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

func garbage(what string, err error) *failure {
	f := passing(llm.CodeGarbage, texts.Text("provider_garbage"))
	f.again = false
	f.fault.Err = errors.New(what)
	if err != nil {
		f.fault.Err = fmt.Errorf("%s: %w", what, err)
	}
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

// hide makes an error of text without key, password and control characters, at most 500 bytes.
func (c *Client) hide(text string, err error) error {
	password, _ := c.base.User.Password()
	for _, s := range []string{c.key, password} {
		if len(s) >= minSecret {
			text = strings.ReplaceAll(text, s, "[hidden]")
		}
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

// retryAfter reads retry-after-ms (OpenAI) and Retry-After (RFC 9110 §10.2.3:
// seconds or a date); 0 when there is none or it makes no sense.
func (c *Client) retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(c.clock.Now()))
	}
	return 0
}
