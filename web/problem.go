package web

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"gatehouse/core"
)

// A Fault is one kind of refusal that HTTP answers can carry. Slug never
// changes once published: it is the problem's type for programs.
type Fault struct {
	Slug   string
	Status int
	Title  string
	About  string // what it means, in one or two sentences; its text has the rest
}

// Type returns the problem's stable type (RFC 9457), also the address of the text
// that explains it.
func (f Fault) Type() string { return "/docs/problems/" + f.Slug }

// The faults this program answers with.
var (
	Invalid            = Fault{"invalid-request", 400, "Invalid request", "The request does not make sense as it is. The detail names the field or parameter; correct it and send again."}
	UnsupportedField   = Fault{"unsupported-field", 400, "Unsupported field", "The body holds a field that cannot be set here. It is refused instead of being ignored, because ignoring it would change what you asked for."}
	Unauthorized       = Fault{"unauthorized", 401, "Sign in or send a key", "No valid API key (Authorization: Bearer, or X-API-Key) and no admin session came with the request."}
	Forbidden          = Fault{"forbidden", 403, "Not allowed", "You are known, but your key or session may not do this: a scope is missing, the trust level asked for is above the key's, or the CSRF token is missing."}
	ForeignOrigin      = Fault{"foreign-origin", 403, "Request from another web site", "A web page of another origin made this request. Origins that may use the API are listed in GATEHOUSE_CORS_ORIGINS."}
	PasswordChange     = Fault{"password-change-required", 403, "Choose a password first", "The account still has its one-time password. Change it in the panel; then everything else opens."}
	NotFound           = Fault{"not-found", 404, "Not found", "The resource does not exist, or belongs to another user."}
	MethodNotAllowed   = Fault{"method-not-allowed", 405, "Method not allowed", "The address exists, but not with this method. The Allow header lists the methods."}
	NotAcceptable      = Fault{"not-acceptable", 406, "Not acceptable", "None of the media types in Accept can be produced here."}
	RequestTimeout     = Fault{"request-timeout", 408, "The request came too slowly", "The body of the request did not arrive in the time that there is for it."}
	Conflict           = Fault{"conflict", 409, "Conflict", "Another request was first, or the resource is in another state than the request needs. See the detail."}
	PreconditionFailed = Fault{"precondition-failed", 412, "Changed meanwhile", "The resource has changed since the version that If-Match names. Read it again and retry."}
	TooLarge           = Fault{"too-large", 413, "Too large", "A limit on size was passed. The detail names it."}
	StorageFull        = Fault{"storage-full", 507, "No room for more files", "The quota for uploaded files, your own or the total, is used up. See the detail."}
	UnsupportedMedia   = Fault{"unsupported-media-type", 415, "Unsupported media type", "Send the body as application/json."}
	Misdirected        = Fault{"host-not-allowed", 421, "Unknown host name", "The Host header names a host that this server does not answer for. Names other than the loopback ones are listed in GATEHOUSE_ALLOWED_HOSTS."}
	MatchRequired      = Fault{"precondition-required", 428, "If-Match is missing", "A change names in If-Match the version that it applies to: the ETag that was read, or * for any."}
	TooManyRequests    = Fault{"too-many-requests", 429, "Too many requests", "Wait for the number of seconds in Retry-After, then try again."}
	Internal           = Fault{"internal", 500, "Internal error", "A fault on our side. The log holds it under the request id of this answer."}
	ModelFailed        = Fault{"model-failed", 502, "The model did not answer", "The model's provider refused the request or broke off. The member code gives the reason; can_retry is true if a retry may succeed."}
	Unavailable        = Fault{"unavailable", 503, "Unavailable", "A part that this request needs is not ready or is overloaded. Retry later; Retry-After gives the time, if it is known."}
	RunTimeout         = Fault{"run-timeout", 504, "The run took too long", "The run was cut off by a time limit. What had been answered until then is in the transcript."}
	RunAborted         = Fault{"run-aborted", 409, "The run was stopped", "The run was stopped before it finished. partial_response holds what had been answered."}
)

// Faults lists all of them in the order of their status, for the documentation.
func Faults() []Fault {
	return []Fault{
		Invalid, UnsupportedField, Unauthorized, Forbidden, ForeignOrigin, PasswordChange, NotFound, MethodNotAllowed,
		NotAcceptable, RequestTimeout, Conflict, RunAborted, PreconditionFailed, TooLarge, UnsupportedMedia, Misdirected, MatchRequired, TooManyRequests, Internal,
		ModelFailed, Unavailable, RunTimeout, StorageFull,
	}
}

// RetrySoon is the Retry-After of a request over a limit that ends when another one of its caller does: no one
// knows when.
const RetrySoon = 5 * time.Second

// A Problem is an error that knows its HTTP answer. Detail is shown to the
// client; Err is for the log only.
type Problem struct {
	Fault      Fault
	Detail     string
	RetryAfter time.Duration  // sent as Retry-After, in whole seconds rounded up; 0 none
	Extra      map[string]any // further members of the JSON body
	Err        error
}

// Error returns the detail, or the title without one, and the cause.
func (p *Problem) Error() string {
	text := p.Fault.Title
	if p.Detail != "" {
		text = p.Detail
	}
	if p.Err != nil {
		text += ": " + p.Err.Error()
	}
	return text
}

func (p *Problem) Unwrap() error { return p.Err }

// Refuse returns a Problem of fault f with a sentence for the client.
func Refuse(f Fault, detail string) *Problem { return &Problem{Fault: f, Detail: detail} }

// A chooser is an error of a package below that names its fault by slug.
type chooser interface {
	error
	Problem() (slug string, retryAfter time.Duration)
}

var byKind = map[core.Kind]Fault{
	core.Invalid: Invalid, core.Denied: Forbidden, core.NotFound: NotFound, core.Conflict: Conflict,
	core.Busy: Unavailable, core.TooLarge: TooLarge, core.Other: Internal,
}

// KindOf returns the kind of the error that a gateway answered with an HTTP status.
func KindOf(status int) core.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return core.Denied
	case http.StatusNotFound, http.StatusMethodNotAllowed: // a gateway of an older version lacks the route
		return core.NotFound
	case http.StatusConflict:
		return core.Conflict
	case http.StatusRequestEntityTooLarge, http.StatusInsufficientStorage:
		return core.TooLarge
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return core.Busy
	}
	if status >= http.StatusBadRequest && status < http.StatusInternalServerError {
		return core.Invalid
	}
	return core.Other
}

// ProblemOf returns how an error is answered: a Problem as it is, an error that
// names its fault by that, any other by its core.Kind. An error that is not meant
// to be shown becomes "internal error". No other code decides this.
func ProblemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if c, ok := errors.AsType[chooser](err); ok {
		slug, retry := c.Problem()
		return &Problem{Fault: bySlug(slug), Detail: core.TextOf(c), RetryAfter: retry, Err: err}
	}
	if m, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Problem{Fault: TooLarge, Detail: "the body is over " + strconv.FormatInt(m.Limit, 10) + " bytes", Err: err}
	}
	f, ok := byKind[core.KindOf(err)]
	if !ok {
		f = Internal
	}
	return &Problem{Fault: f, Detail: core.TextOf(err), Err: err}
}

func bySlug(slug string) Fault {
	for _, f := range Faults() {
		if f.Slug == slug {
			return f
		}
	}
	return Internal
}

// WriteProblem answers with application/problem+json (RFC 9457).
func WriteProblem(w http.ResponseWriter, r *http.Request, p *Problem) {
	body := map[string]any{}
	for k, v := range p.Extra {
		body[k] = v
	}
	body["type"], body["title"], body["status"] = p.Fault.Type(), p.Fault.Title, p.Fault.Status
	if p.Detail != "" {
		body["detail"] = p.Detail
	}
	if id := RequestID(r.Context()); id != "" {
		body["request_id"] = id
	}
	problemHeaders(w, p)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Fault.Status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone; there is nothing left to say
}

// WriteText answers a Problem as plain text, for pages without a better one.
func WriteText(w http.ResponseWriter, _ *http.Request, p *Problem) {
	problemHeaders(w, p)
	text := p.Fault.Title
	if p.Detail != "" {
		text += "\n" + p.Detail
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(p.Fault.Status)
	_, _ = w.Write([]byte(text + "\n"))
}

func problemHeaders(w http.ResponseWriter, p *Problem) {
	h := w.Header()
	h.Del("Content-Length")
	h.Del("ETag")
	h.Set("Cache-Control", "no-store")
	if p.Fault.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="gatehouse"`)
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(p.RetryAfter.Seconds())), 10))
	}
}
