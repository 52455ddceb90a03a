package telegramtest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"gatehouse/connectors/simulator"
)

// An apiError is an unsuccessful answer: {"ok":false,"error_code":…,
// "description":…,"parameters":…} with the code as HTTP status too
// ([api] "Making requests"; [server] HttpConnection.cpp).
type apiError struct {
	code       int
	text       string
	retryAfter int   // [api] ResponseParameters, seconds
	migrateTo  int64 // [api] ResponseParameters
	late       time.Duration
}

func (e *apiError) Error() string { return strconv.Itoa(e.code) + " " + e.text }

func bad(text string) *apiError      { return &apiError{code: 400, text: "Bad Request: " + text} }
func denied(text string) *apiError   { return &apiError{code: 403, text: "Forbidden: " + text} }
func conflict(text string) *apiError { return &apiError{code: 409, text: "Conflict: " + text} }

var (
	errNotFound     = &apiError{code: 404, text: "Not Found"}
	errNoMethod     = &apiError{code: 404, text: "Not Found: method not found"}
	errUnauthorized = &apiError{code: 401, text: "Unauthorized"}
	errRestart      = &apiError{code: 500, text: "Internal Server Error: restart"}
)

// tooMany rounds up to whole seconds ([server] Query::set_retry_after_error).
func tooMany(wait time.Duration) *apiError {
	secs := max(int((wait+time.Second-1)/time.Second), 1)
	return &apiError{code: 429, text: "Too Many Requests: retry after " + strconv.Itoa(secs), retryAfter: secs}
}

func (e *apiError) body() []byte {
	type parameters struct {
		MigrateTo  int64 `json:"migrate_to_chat_id,omitempty"`
		RetryAfter int   `json:"retry_after,omitempty"`
	}
	v := struct {
		OK         bool        `json:"ok"`
		Code       int         `json:"error_code"`
		Text       string      `json:"description"`
		Parameters *parameters `json:"parameters,omitempty"`
	}{Code: e.code, Text: e.text}
	if e.retryAfter > 0 || e.migrateTo != 0 {
		v.Parameters = &parameters{e.migrateTo, e.retryAfter}
	}
	b, _ := json.Marshal(v) // plain fields: can't fail
	return b
}

// An answer is what goes back over HTTP, unless a fault states otherwise.
type answer = simulator.Answer

func failed(e *apiError) answer {
	a := answer{Status: e.code, Kind: "application/json", Body: e.body()}
	if e.retryAfter > 0 {
		a.Header = http.Header{"Retry-After": {strconv.Itoa(e.retryAfter)}}
	}
	return a
}

func succeeded(result json.RawMessage) answer {
	body := make([]byte, 0, len(result)+24)
	body = append(body, `{"ok":true,"result":`...)
	body = append(body, result...)
	return answer{Status: 200, Kind: "application/json", Body: append(body, '}')}
}
