package provider

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"gatehouse/core/llm"
	"gatehouse/core/texts"
)

// A Failure is a Fault, and whether the client should ask again on its own.
type Failure struct {
	Fault llm.Fault
	Again bool
}

// Words are a provider's error texts, in lower case, for errors that the status alone
// does not identify, and texts shown for this provider only.
type Words struct {
	Credit, TooLong, Overloaded, Filtered []string

	Setting string        // of the operator, that holds the key
	Stopped func() string // the text for an answer that was stopped for its content
}

// settingModel is the operator's setting of the model.
const settingModel = "GATEHOUSE_MODEL"

// Says reports whether text contains one of words, which are lower case.
func Says(text string, words ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// Judge classifies an HTTP status other than 200 with the provider's error.
func (w *Words) Judge(status int, said string) *Failure {
	switch {
	case status == http.StatusUnauthorized:
		return Final(llm.CodeAuth, texts.Text("provider_key")).check(w.Setting)
	case status == http.StatusPaymentRequired || Says(said, w.Credit...):
		return Final(llm.CodeCredit, texts.Text("provider_credit"))
	case status == http.StatusForbidden:
		return Final(llm.CodeAuth, texts.Text("provider_forbidden"))
	case status == http.StatusRequestEntityTooLarge || Says(said, w.TooLong...):
		f := Final(llm.CodeTooLong, texts.Text("provider_too_long"))
		f.Fault.Window = windowIn(said)
		return f
	case status == http.StatusTooManyRequests:
		return passing(llm.CodeRateLimited, texts.Text("provider_limited"))
	case status == 529 || status == http.StatusServiceUnavailable || Says(said, w.Overloaded...):
		return passing(llm.CodeOverloaded, texts.Text("provider_overloaded"))
	case status >= 500 || status == http.StatusRequestTimeout:
		return passing(llm.CodeUnavailable, texts.Text("provider_unavailable"))
	case status == http.StatusNotFound:
		return Final(llm.CodeUnavailable, texts.Text("provider_no_model")).check(settingModel)
	case Says(said, w.Filtered...):
		return w.Filter()
	case status < 400:
		return Final(llm.CodeUnavailable, texts.Text("provider_unavailable"))
	}
	return Final(llm.CodeBadRequest, texts.Text("provider_bad_request"))
}

// Filter returns the fault of an answer that was stopped for its content.
func (w *Words) Filter() *Failure { return Final(llm.CodeFiltered, w.Stopped()) }

// Lost judges an error of the connection. Its text never holds the URL, for
// that may hold credentials.
func (l *Link) Lost(err error) *Failure {
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
		f.Again = false // it may be working on it; another two minutes help no one
	}
	f.Fault.Err = l.hide(err.Error(), err)
	return f
}

// Final returns a failure that asking again does not fix.
func Final(code, text string) *Failure {
	return &Failure{Fault: llm.Fault{Code: code, Text: text}}
}

// check names the setting that the operator should check.
func (f *Failure) check(setting string) *Failure {
	f.Fault.Setting = setting
	return f
}

func passing(code, text string) *Failure {
	return &Failure{Fault: llm.Fault{Code: code, Text: text, CanRetry: true}, Again: true}
}

// CutOff returns an answer that ended in its middle.
func CutOff(err error) *Failure {
	f := passing(llm.CodeCutOff, texts.Text("provider_cut_off"))
	f.Fault.Err = err
	return f
}

// Garbage returns an answer that makes no sense.
func Garbage(what string) *Failure {
	f := passing(llm.CodeGarbage, texts.Text("provider_garbage"))
	f.Again = false
	f.Fault.Err = errors.New(what)
	return f
}

// Detail sets f's text for the log: detail, and the provider's error. For a refused key
// the latter is omitted, because it may contain parts of the key.
func (l *Link) Detail(f *Failure, detail, said string) *Failure {
	if said != "" && f.Fault.Code != llm.CodeAuth {
		detail += ": " + said
	}
	f.Fault.Err = l.hide(detail, nil)
	return f
}

// hidden is an error with secrets removed from its text; it unwraps to the original.
type hidden struct {
	text string
	err  error
}

func (h *hidden) Error() string { return h.text }
func (h *hidden) Unwrap() error { return h.err }

// minSecret is the length from which a key is treated as a secret: local servers get
// values such as "none".
const minSecret = 5

// hide makes an error of text without secrets and control characters, at most 500 bytes.
func (l *Link) hide(text string, err error) error {
	for _, s := range append([]string{l.Key}, l.Secrets...) {
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

// RetryAfter returns Retry-After (RFC 9110 §10.2.3: seconds or a date); said is false if
// it is missing or invalid.
func (l *Link) RetryAfter(h http.Header) (wait time.Duration, said bool) {
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second)), true
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(l.Clock.Now())), true
	}
	return 0, false
}
