package telegram

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

// maxAnswer bounds what is read of one answer: 100 updates of the largest kind stay far below.
const maxAnswer = 64 << 20

// A line is one transport: polling and sending have their own, so that a
// stuck poll never takes a connection from a reply. HTTP/1.1 with keep-alive;
// nothing is read from the environment, no redirect is followed (it would
// carry the token elsewhere).
type line struct {
	idle int
	t    atomic.Pointer[http.Transport]
}

func newLine(idle int) *line {
	l := &line{idle: idle}
	l.rebuild()
	return l
}

// rebuild replaces the transport; requests under way keep the old one.
func (l *line) rebuild() {
	dial := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	old := l.t.Swap(&http.Transport{
		DialContext:           dial.DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		MaxIdleConns:          l.idle,
		MaxIdleConnsPerHost:   l.idle,
		IdleConnTimeout:       30 * time.Second, // below the usual 75 s of servers: they should not close first
		TLSNextProto:          map[string]func(string, *tls.Conn) http.RoundTripper{},
		DisableCompression:    l.idle > 1, // answers to sends are short
	})
	if old != nil {
		old.CloseIdleConnections()
	}
}

func (l *line) close() { l.t.Load().CloseIdleConnections() }

// progress is how far a request got, which decides whether it may be repeated.
type progress = int32

const (
	notConnected progress = iota // no connection: the platform knows nothing of it
	connected                    // a connection was there; some of it may have been written
	torn                         // writing failed: the platform can't have it whole
	written                      // all of it was handed over
)

// An exchange carries one request: it is the library's HTTP client. It
// records status and progress, and no error that leaves it holds the token.
type exchange struct {
	ctx    context.Context
	bot    *Bot
	line   *line
	far    atomic.Int32
	status int // 0 without an answer
	after  time.Duration
}

func (e *exchange) Do(req *http.Request) (*http.Response, error) {
	ctx := httptrace.WithClientTrace(e.ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { e.far.Store(connected) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err != nil {
				e.far.Store(torn)
			} else {
				e.far.Store(written)
			}
		},
	})
	resp, err := e.line.t.Load().RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, e.bot.safe(err)
	}
	e.status = resp.StatusCode
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		e.after = time.Duration(s) * time.Second
	}
	resp.Body = &answer{Reader: io.LimitReader(resp.Body, maxAnswer), body: resp.Body}
	return resp, nil
}

// An answer drains what little is left when it is closed, so that the
// connection can be used again.
type answer struct {
	io.Reader
	body io.ReadCloser
}

func (a *answer) Close() error {
	io.CopyN(io.Discard, a.body, 4096)
	return a.body.Close()
}

// safeError is an error's text without the token. The cause is kept only as
// far as it is a context's, for errors.Is: others hold the URL.
type safeError struct {
	text  string
	cause error
}

func (e *safeError) Error() string { return e.text }
func (e *safeError) Unwrap() error { return e.cause }

func (b *Bot) safe(err error) error {
	s := &safeError{text: b.redact.Replace(err.Error())}
	for _, c := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, c) {
			s.cause = c
		}
	}
	return s
}

// A failure is a call that did not end in ok. It is safe to show.
type failure struct {
	far     progress
	status  int           // HTTP status; 0 when no answer came
	code    int           // the platform's error_code; 0 when the answer was not the platform's JSON
	text    string        // description, or what went wrong; no token
	after   time.Duration // retry_after
	migrate int64         // migrate_to_chat_id
	cause   error
}

func (f *failure) Error() string {
	switch {
	case f.code != 0:
		return fmt.Sprintf("%d %s", f.code, f.text)
	case f.status != 0:
		return fmt.Sprintf("HTTP status %d: %s", f.status, f.text)
	}
	return f.text
}

func (f *failure) Unwrap() error { return f.cause }

// refusesToken reports whether the platform itself says that it knows no such
// token. A proxy's 401 or 404 page says nothing of the kind.
func (f *failure) refusesToken() bool { return f.code == 401 || f.code == 404 }

// call makes one request by the library's MakeRequest, which passes any
// method and parameter, and gives the result as raw JSON.
func (b *Bot) call(ctx context.Context, l *line, timeout time.Duration, method string, params tgbotapi.Params) (json.RawMessage, *failure) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	e := &exchange{ctx: ctx, bot: b, line: l}
	api := tgbotapi.BotAPI{Token: b.o.Token, Client: e}
	api.SetAPIEndpoint(b.endpoint)
	resp, err := api.MakeRequest(method, params)
	if err == nil {
		return resp.Result, nil
	}
	return nil, b.failed(e, err)
}

// failed says what went wrong.
func (b *Bot) failed(e *exchange, err error) *failure {
	f := &failure{far: e.far.Load(), status: e.status, after: e.after}
	var told *tgbotapi.Error
	if errors.As(err, &told) && told.Code == 0 && told.Message != "" {
		told.Code = e.status // the library leaves it out for uploads
	}
	if errors.As(err, &told) && (told.Code != 0 || told.RetryAfter != 0) {
		f.code, f.text = told.Code, b.redact.Replace(told.Message)
		f.migrate = told.MigrateToChatID
		if told.RetryAfter > 0 {
			f.code, f.after = 429, time.Duration(told.RetryAfter)*time.Second
		}
		return f
	}
	safe := b.safe(err)
	f.text, f.cause = safe.Error(), errors.Unwrap(safe)
	if f.status != 0 {
		f.text = "the answer is not Telegram's: " + f.text
	}
	return f
}

// getMe asks who we are, over the given line.
func (b *Bot) getMe(ctx context.Context, l *line) (string, *failure) {
	raw, f := b.call(ctx, l, b.o.SendTimeout, "getMe", nil)
	if f != nil {
		return "", f
	}
	var me struct {
		ID       int64  `json:"id"`
		Username string `json:"username"`
	}
	if err := json.Unmarshal(raw, &me); err != nil || me.ID == 0 {
		return "", &failure{status: 200, far: written, text: "the answer to getMe names no bot"}
	}
	b.username.Store(&me.Username)
	return me.Username, nil
}
