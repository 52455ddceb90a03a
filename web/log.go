package web

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"log/slog"
	"net/http"
	"runtime/debug"

	"gatehouse/core"
)

// RequestID is the id this request has in the log and in the header
// X-Request-Id; "" outside a Site.
func RequestID(ctx context.Context) string {
	return From(ctx).ID
}

func newRequestID() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// recorder sees status and size of an answer. ResponseController reaches the
// connection through Unwrap.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
func (w *recorder) began() bool                 { return w.status != 0 }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Flush implements http.Flusher for callers that ask by type assertion.
func (w *recorder) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// logged writes one line per request: method, path without query, status,
// bytes, duration, address. Headers, queries and bodies are never logged.
func logged(log *slog.Logger, clock core.Clock, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := clock.Now()
		rec := &recorder{ResponseWriter: w}
		defer func() {
			c := From(r.Context())
			log.InfoContext(r.Context(), "request", "request", c.ID, "method", r.Method, "path", r.URL.Path,
				"status", rec.status, "bytes", rec.bytes, "took", clock.Now().Sub(began).String(), "from", c.Addr.String())
		}()
		next.ServeHTTP(rec, r)
	})
}

// recovered turns a panic into a logged 500, or into a cut connection when the
// answer has already begun.
func recovered(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p)
			}
			log.ErrorContext(r.Context(), "panic in a handler", "request", RequestID(r.Context()), "path", r.URL.Path,
				"panic", p, "stack", string(debug.Stack()))
			if rec, ok := w.(*recorder); ok && rec.began() {
				panic(http.ErrAbortHandler)
			}
			WriteProblem(w, r, Refuse(Internal, "internal error"))
		}()
		next.ServeHTTP(w, r)
	})
}
