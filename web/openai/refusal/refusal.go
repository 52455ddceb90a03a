// Package refusal has errors in OpenAI's form: the object, codes and types
// (https://platform.openai.com/docs/guides/error-codes).
package refusal

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/web"
)

// An Error is OpenAI's error object; null where nothing is known.
type Error struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// Members of a Problem's Extra that Show reads.
const (
	extraCode  = "code"
	extraParam = "param"
	extraFinal = "final" // true: clients, which retry automatically, must not
	extraLost  = "lost"  // true: the run's outcome is unknown
)

// New returns a Problem of fault f with OpenAI's code and param; "" for none.
func New(f web.Fault, code, param, detail string) *web.Problem {
	extra := map[string]any{}
	if code != "" {
		extra[extraCode] = code
	}
	if param != "" {
		extra[extraParam] = param
	}
	return &web.Problem{Fault: f, Detail: detail, Extra: extra}
}

// codes are those of faults that name none themselves.
var codes = map[string]string{
	web.Unauthorized.Slug: "invalid_api_key", web.Forbidden.Slug: "insufficient_permissions",
	web.TooManyRequests.Slug: "rate_limit_exceeded", web.TooLarge.Slug: "request_too_large",
	web.UnsupportedMedia.Slug: "unsupported_media_type", web.PasswordChange.Slug: "insufficient_permissions",
}

// Of returns p in OpenAI's format.
func Of(p *web.Problem) Error {
	e := Error{Message: p.Detail, Type: "invalid_request_error"}
	if e.Message == "" {
		e.Message = p.Fault.Title
	}
	code, _ := p.Extra[extraCode].(string)
	if code == "" {
		code = codes[p.Fault.Slug]
	}
	switch {
	case code == codeQuota:
		e.Type = codeQuota
	case p.Fault.Status == http.StatusTooManyRequests:
		e.Type = "requests"
	case p.Fault.Status >= 500:
		e.Type = "server_error"
	}
	if code != "" {
		e.Code = &code
	}
	if param, _ := p.Extra[extraParam].(string); param != "" {
		e.Param = &param
	}
	return e
}

// codeQuota is OpenAI's code for a budget that is used up.
const codeQuota = "insufficient_quota"

// Show answers a failed request in OpenAI's form. The clients of OpenAI try
// 408, 409, 429 and 5xx again on their own, unless x-should-retry states false.
func Show(w http.ResponseWriter, _ *http.Request, p *web.Problem) {
	body, err := json.Marshal(map[string]Error{"error": Of(p)})
	if err != nil { // strings only: cannot happen
		body = []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":null}}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if p.Fault.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="gatehouse"`)
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(p.RetryAfter.Seconds())), 10))
	}
	if final, _ := p.Extra[extraFinal].(bool); final {
		h.Set("X-Should-Retry", "false")
	}
	w.WriteHeader(p.Fault.Status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}

// A runFault is how a run's error code is answered.
type runFault struct {
	fault web.Fault
	code  string
}

// runFaults are those of known codes; any other is the model's failure.
var runFaults = map[string]runFault{
	"timeout": {web.RunTimeout, "timeout"}, "silence": {web.RunTimeout, "timeout"},
	"shutdown": {web.Unavailable, "shutdown"}, "interrupted": {web.Unavailable, "interrupted"},
	"busy": {web.Unavailable, "busy"}, "overloaded": {web.Unavailable, "overloaded"},
	"rate_limited": {web.TooManyRequests, "rate_limit_exceeded"}, "budget": {web.TooManyRequests, codeQuota},
	"internal": {web.Internal, ""}, "refused": {web.Forbidden, ""}, "invalid": {web.Invalid, ""},
	"too_long": {web.Invalid, "context_length_exceeded"},
}

// Failed returns the answer to a run that failed. One that has used tools is not to
// be tried again unseen: what they did would be done twice. param is the field that
// holds the conversation.
func Failed(ev core.Failed, usedTools bool, param string) *web.Problem {
	f, ok := runFaults[ev.Code]
	if !ok {
		f = runFault{web.ModelFailed, ev.Code}
	}
	p := New(f.fault, f.code, "", ev.Message)
	p.RetryAfter = time.Duration(ev.RetryAfterMS) * time.Millisecond
	if ev.Code == "too_long" {
		p.Extra[extraParam] = param
	}
	p.Extra[extraFinal] = usedTools || !ev.CanRetry
	return p
}

// Lost returns the answer to a run with an unknown outcome.
func Lost(err error) *web.Problem {
	p := New(web.Unavailable, "interrupted", "", "the answer was lost on the way")
	p.Extra[extraFinal], p.Extra[extraLost], p.Err = true, true, err
	return p
}

// BadType refuses a value of param that is not what is wanted.
func BadType(param, want string) error {
	return New(web.Invalid, "invalid_type", param, fmt.Sprintf("Invalid type for '%s': expected %s.", param, want))
}

// Unsupported refuses param; format reports why, with the name for its %s.
func Unsupported(param, format string) error {
	return New(web.UnsupportedField, "unsupported_parameter", param, "Unsupported parameter: "+fmt.Sprintf(format, param)+".")
}

// Missing refuses a request without param.
func Missing(param string) error {
	return New(web.Invalid, "missing_required_parameter", param, "Missing required parameter: '"+param+"'.")
}

// Final marks p: clients must not try again on their own.
func Final(p *web.Problem) *web.Problem {
	p.Extra[extraFinal] = true
	return p
}

// IsLost reports whether p is that of a run whose outcome is unknown.
func IsLost(p *web.Problem) bool {
	lost, _ := p.Extra[extraLost].(bool)
	return lost
}
