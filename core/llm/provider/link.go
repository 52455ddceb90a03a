// Package provider is what the clients of model providers share: how a server
// is reached, how its model is chosen, what its failures mean to users,
// when it is asked again, and how the pieces of its answer become deltas. The wire
// format is in each provider's client.
package provider

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/texts"
)

const (
	dialTimeout   = 10 * time.Second
	maxIdle       = 128               // connections of HTTP/1 that are kept for the next requests, until 90 s or a rest
	headerTimeout = 120 * time.Second // a local server may load its model first
	pingAfter     = 15 * time.Second  // of silence on a connection, and for the answer

	// WaitBuffer is the size of each buffer that a reply holds while the model
	// thinks: hundreds may wait at once, each for a few small events.
	WaitBuffer = 2 << 10
)

// Options configure a link to a server. Name, Clock, Words, List and Pick are required.
type Options struct {
	Name    string       // the provider's name in front of model names
	Model   string       // the provider's name of the model; "" = chosen from List at the first reply
	Key     string       // "" sends none
	Secrets []string     // what no error may show in addition to
	HTTP    *http.Client // nil: own transport with time-outs for dialling (10 s), TLS (10 s) and the answer's header (120 s)
	Clock   core.Clock
	Log     *slog.Logger   // nil: silent
	Rand    func() float64 // jitter in [0, 1); nil: math/rand
	Words   Words

	List func(context.Context) ([]string, *Failure) // the names of the server's models, in its order
	Pick func(ids []string) string                  // the one to use of at least one
}

// A Link is one model of one server as its client reaches it. It is safe for
// use by many goroutines.
type Link struct {
	Options
	mu     sync.Mutex
	chosen string // from List, where no model is configured

	window atomic.Int64 // of the model, as a refusal named it; 0 unknown
}

// New checks o and makes the link; it does not connect.
func New(o Options) (*Link, error) {
	if o.Clock == nil {
		return nil, fmt.Errorf("%s: no clock", o.Name)
	}
	o.Key = strings.TrimSpace(o.Key)
	if strings.ContainsFunc(o.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, core.Errorf(core.Invalid, "the model key holds a blank or a character that no HTTP header can carry")
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	own := http.Client{Transport: transport()}
	if o.HTTP != nil {
		own = *o.HTTP
	}
	// A redirect would carry key and conversation to another place.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o.HTTP = &own
	return &Link{Options: o}, nil
}

func transport() *http.Transport {
	return &http.Transport{
		Proxy:                  nil, // never from the environment
		DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdle,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // small events, and no bombs
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter}, // a lost path is noticed before the next request
		ReadBufferSize:         WaitBuffer,
		WriteBufferSize:        WaitBuffer,
	}
}

// String returns the model as users write it: "openai/gpt-4o-mini"; only "openai"
// until one was chosen from the server's list. Printing a link shows no key.
func (l *Link) String() string {
	if m := l.Present(); m != "" {
		return l.Name + "/" + m
	}
	return l.Name
}

// Present returns the provider's name of the model, as far as it is known.
func (l *Link) Present() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Model + l.chosen
}

// Resolve returns the configured model or the one chosen from the server's list.
func (l *Link) Resolve(ctx context.Context) (string, *Failure) {
	if m := l.Present(); m != "" {
		return m, nil
	}
	ids, bad := l.List(ctx)
	if bad != nil {
		return "", bad
	}
	if len(ids) == 0 {
		return "", Final(llm.CodeUnavailable, texts.Text("provider_no_models")).check(settingModel)
	}
	id := l.Pick(ids)
	l.choose(id)
	return id, nil
}

// Gone forgets a model chosen from the list, so that the list is asked again.
func (l *Link) Gone() { l.choose("") }

func (l *Link) choose(id string) {
	l.mu.Lock()
	if l.Model == "" {
		l.chosen = id
	}
	l.mu.Unlock()
}

// Models is List with its failure as the error to return.
func (l *Link) Models(ctx context.Context) ([]string, error) {
	ids, bad := l.List(ctx)
	if bad != nil {
		return nil, l.finish(ctx, bad)
	}
	return ids, nil
}

// finish returns the error to yield for a failure, and logs it. If ctx has ended, the
// error is its cause.
func (l *Link) finish(ctx context.Context, f *Failure) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", l.Name, context.Cause(ctx))
	}
	if w := f.Fault.Window; w > 0 {
		l.window.Store(int64(w))
	}
	level := slog.LevelWarn
	if !f.Fault.CanRetry {
		level = slog.LevelError
	}
	l.Log.Log(ctx, level, "model provider fault", "provider", l.Name, "code", f.Fault.Code,
		"status", f.Fault.Status, "err", f.Fault.Error())
	fault := f.Fault
	return &fault
}
