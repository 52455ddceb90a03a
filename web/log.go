package web

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"time"

	"gatehouse/core"
)

// RequestID returns the id this request has in the log and in the header
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
	line   *requestLine
	taken  bool // another party writes the line
}

func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
func (w *recorder) began() bool                 { return w.status != 0 || w.taken }

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
		c := From(r.Context())
		rec := &recorder{ResponseWriter: w, line: &requestLine{logger: log, clock: clock, began: clock.Now(),
			id: c.ID, method: r.Method, path: r.URL.Path, from: c.Addr}}
		defer func() {
			if !rec.taken {
				rec.line.log(rec.status, rec.bytes)
			}
		}()
		next.ServeHTTP(rec, r)
	})
}

// A requestLine is the log line of a request that has ended. It holds
// nothing else of it.
type requestLine struct {
	logger           *slog.Logger
	clock            core.Clock
	began            time.Time
	id, method, path string
	from             netip.Addr
}

// log writes the line; a nil requestLine has none.
func (l *requestLine) log(status int, bytes int64) {
	if l != nil {
		l.logger.Info("request", "request", l.id, "method", l.method, "path", l.path,
			"status", status, "bytes", bytes, "took", l.clock.Now().Sub(l.began).String(), "from", l.from.String())
	}
}

// name returns the request's id; "" of nil.
func (l *requestLine) name() string {
	if l == nil {
		return ""
	}
	return l.id
}

// lineOf takes the line of the request that w answers, to be logged later; nil
// when there is none.
func lineOf(w http.ResponseWriter) *requestLine {
	for {
		switch x := w.(type) {
		case *recorder:
			x.taken = true
			return x.line
		case interface{ Unwrap() http.ResponseWriter }:
			w = x.Unwrap()
		default:
			return nil
		}
	}
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
