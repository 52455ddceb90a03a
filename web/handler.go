package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"strings"

	"gatehouse/core"
)

// A Handler answers a request or returns an error; it never writes an error itself.
type Handler func(http.ResponseWriter, *http.Request) error

// A Show writes the answer to a failed request: WriteProblem for programs,
// WriteText or an own page.
type Show func(http.ResponseWriter, *http.Request, *Problem)

// Serve makes h an http.Handler. It is the one place where an error becomes an
// answer and a log line: internal faults are logged with their cause, refusals
// on debug level. An error after the answer has begun can only be logged.
func Serve(log *slog.Logger, show Show, h Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		p := ProblemOf(err)
		level := slog.LevelDebug
		gone := r.Context().Err() != nil || errors.Is(err, ErrSlowReader) || errors.Is(err, ErrStopping)
		if p.Fault.Status >= 500 && !gone {
			level = slog.LevelError
		}
		log.Log(r.Context(), level, "request failed", "request", RequestID(r.Context()), "path", r.URL.Path,
			"status", p.Fault.Status, "err", err)
		if rec, ok := w.(*recorder); ok && rec.began() {
			return
		}
		show(w, r, p)
	})
}

// MaxJSON bounds a JSON body unless a route sets its own limit.
const MaxJSON = 64 << 10

// ReadJSON reads r's body, at most limit bytes of application/json, into a raw
// value. Wrong media types, bodies over the limit and anything that is not
// exactly one JSON value are refused with a Problem.
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64) (json.RawMessage, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || (media != "application/json" && !(strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"))) {
		return nil, Refuse(UnsupportedMedia, "the body must be application/json")
	}
	if r.ContentLength > limit {
		return nil, Refuse(TooLarge, fmt.Sprintf("the body is over %d bytes", limit))
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit))
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return nil, bodyError(err)
	}
	var more json.RawMessage
	switch err := dec.Decode(&more); {
	case errors.Is(err, io.EOF):
		return raw, nil
	case err == nil:
		return nil, core.Errorf(core.Invalid, "the body holds more than one JSON value")
	default:
		return nil, bodyError(err)
	}
}

func bodyError(err error) error { return BodyFault(err, "the body is not valid JSON") }

// BodyFault returns the problem of an error in reading or parsing a request's
// body: too large, too slow, or else invalid, with detail.
func BodyFault(err error, detail string) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &Problem{Fault: RequestTimeout, Detail: "the body did not arrive in time", Err: err}
	}
	return &Problem{Fault: Invalid, Detail: detail, Err: err}
}

// Body lets h read at most limit bytes of the request's body; more is refused
// with 413 by its reader.
func Body(limit int64, h Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if r.ContentLength > limit {
			return Refuse(TooLarge, fmt.Sprintf("the body is over %d bytes", limit))
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		return h(w, r)
	}
}

// WriteJSON answers with v. Answers of the API are never cached.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
	return nil
}
