package discordtest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"gatehouse/connectors/simulator"
)

// An apiError is an unsuccessful answer: {"message", "code", "errors"} with an
// HTTP status ([codes] "JSON"; [reference] "Error Messages").
type apiError struct {
	status int
	code   int
	text   string
	form   map[string]any // nested by field, leaves are _errors
	wait   time.Duration  // 429
	global bool
	scope  string
}

func (e *apiError) Error() string {
	return strconv.Itoa(e.status) + " " + strconv.Itoa(e.code) + " " + e.text
}

// The platform's own words ([practice]: the documentation's table paraphrases them).
var (
	errUnauthorized   = &apiError{status: 401, text: "401: Unauthorized"}
	errNotFound       = &apiError{status: 404, text: "404: Not Found"}
	errMethod         = &apiError{status: 405, text: "405: Method Not Allowed"}
	errInternal       = &apiError{status: 500, text: "500: Internal Server Error"}
	errUserAgent      = &apiError{status: 403, code: 40333, text: "internal network error"} // [docs#6473]
	errVersion        = &apiError{status: 400, code: 50041, text: "Invalid API version"}
	errUnknownChannel = &apiError{status: 404, code: 10003, text: "Unknown Channel"}
	errUnknownGuild   = &apiError{status: 404, code: 10004, text: "Unknown Guild"}
	errUnknownMessage = &apiError{status: 404, code: 10008, text: "Unknown Message"}
	errUnknownUser    = &apiError{status: 404, code: 10013, text: "Unknown User"}
	errUnknownEmoji   = &apiError{status: 400, code: 10014, text: "Unknown Emoji"}
	errUnknownWebhook = &apiError{status: 404, code: 10015, text: "Unknown Webhook"}
	errUnknownApp     = &apiError{status: 404, code: 10002, text: "Unknown Application"}
	errInteraction    = &apiError{status: 404, code: 10062, text: "Unknown interaction"}
	errNotYourApp     = &apiError{status: 403, code: 20012, text: "You are not authorized to perform this action on this application"}
	errTooManyCreates = &apiError{status: 400, code: 30034, text: "Max number of daily application command creates has been reached (200)"}
	errTooLarge       = &apiError{status: 413, code: 40005, text: "Request entity too large"}
	errAcknowledged   = &apiError{status: 400, code: 40060, text: "Interaction has already been acknowledged."}
	errMissingAccess  = &apiError{status: 403, code: 50001, text: "Missing Access"}
	errOnDM           = &apiError{status: 403, code: 50003, text: "Cannot execute action on a DM channel"}
	errNotAuthor      = &apiError{status: 403, code: 50005, text: "Cannot edit a message authored by another user"}
	errEmpty          = &apiError{status: 400, code: 50006, text: "Cannot send an empty message"}
	errCannotSend     = &apiError{status: 403, code: 50007, text: "Cannot send messages to this user"}
	errNonText        = &apiError{status: 400, code: 50008, text: "Cannot send messages in a non-text channel"}
	errPermissions    = &apiError{status: 403, code: 50013, text: "Missing Permissions"}
	errSystemMessage  = &apiError{status: 403, code: 50021, text: "Cannot execute action on a system message"}
	errChannelType    = &apiError{status: 400, code: 50024, text: "Cannot execute action on this channel type"}
	errWebhookToken   = &apiError{status: 401, code: 50027, text: "Invalid Webhook Token"}
	errRecipient      = &apiError{status: 400, code: 50033, text: "Invalid Recipient(s)"}
	errArchived       = &apiError{status: 400, code: 50083, text: "Thread is archived"}
	errBadJSON        = &apiError{status: 400, code: 50109, text: "The request body contains invalid JSON."}
	errNoMutual       = &apiError{status: 403, code: 50278, text: "Cannot send messages to this user due to having no mutual guilds"}
	errNoHistory      = &apiError{status: 403, code: 160002, text: "Cannot reply without permission to read message history"}
	errHasThread      = &apiError{status: 400, code: 160004, text: "A thread has already been created for this message"}
	errLocked         = &apiError{status: 400, code: 160005, text: "Thread is locked"}
)

// An answer is what goes back over HTTP, unless a fault states otherwise.
type answer = simulator.Answer

func failed(e *apiError) answer {
	if e.status == http.StatusTooManyRequests {
		return limited(e)
	}
	v := struct {
		Message string         `json:"message"`
		Code    int            `json:"code"`
		Errors  map[string]any `json:"errors,omitempty"`
	}{e.text, e.code, e.form}
	b, _ := json.Marshal(v) // strings and numbers: can't fail
	return answer{Status: e.status, Kind: "application/json", Body: b}
}

// limited returns a 429 ([limits] "Exceeding A Rate Limit"): retry_after with
// decimals in the body, whole seconds in the header.
func limited(e *apiError) answer {
	v := struct {
		Message string  `json:"message"`
		Retry   float64 `json:"retry_after"`
		Global  bool    `json:"global"`
	}{"You are being rate limited.", float64(e.wait.Milliseconds()) / 1000, e.global}
	if e.scope == "shared" {
		v.Message = "The resource is being rate limited."
	}
	b, _ := json.Marshal(v)
	h := http.Header{"Retry-After": {wholeSeconds(e.wait)}, "X-Ratelimit-Scope": {e.scope}}
	if e.global {
		h.Set("X-RateLimit-Global", "true")
	}
	return answer{Status: 429, Kind: "application/json", Header: h, Body: b}
}

func wholeSeconds(d time.Duration) string {
	return strconv.Itoa(max(int((d+time.Second-1)/time.Second), 1))
}

// succeeded returns 204 without a result, else its JSON.
func succeeded(status int, result any) answer {
	if result == nil {
		return answer{Status: http.StatusNoContent}
	}
	b, err := json.Marshal(result)
	if err != nil {
		return failed(errInternal)
	}
	return answer{Status: status, Kind: "application/json", Body: b}
}

// The proxy in front of the platform, and what its pages are.
const (
	proxy    = "cloudflare"
	htmlPage = "text/html; charset=UTF-8"
)

// banned returns the proxy's own 429: no JSON, seconds in the header ([limits]
// "Invalid Request Limit aka Cloudflare bans"; [docs#7040] for the words).
func banned(wait time.Duration) answer {
	return answer{Status: 429, Kind: "text/plain; charset=UTF-8", Header: http.Header{"Retry-After": {wholeSeconds(wait)}}, Body: []byte("error code: 1015")}
}
