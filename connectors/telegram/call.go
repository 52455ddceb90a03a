package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"gatehouse/connectors"
)

// maxAnswer bounds what is read of one answer: 100 updates of the largest kind stay far
// below.
const maxAnswer = 64 << 20

// A line is one transport: polling and sending have their own, so that a
// stuck poll never takes a connection from a reply.
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
	t := connectors.NewTransport(l.idle)
	t.DisableCompression = l.idle > 1 // answers to sends are short
	if old := l.t.Swap(t); old != nil {
		old.CloseIdleConnections()
	}
}

func (l *line) close() { l.t.Load().CloseIdleConnections() }

// An exchange carries one request: it is the library's HTTP client. It
// records status and progress, and no error that leaves it holds the token.
type exchange struct {
	ctx  context.Context
	bot  *Bot
	line *line
	connectors.Progress
	status int // 0 without an answer
	after  time.Duration
}

func (e *exchange) Do(req *http.Request) (*http.Response, error) {
	resp, err := e.line.t.Load().RoundTrip(e.Follow(req.WithContext(e.ctx)))
	if err != nil {
		return nil, e.bot.safe(err)
	}
	e.status = resp.StatusCode
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 { // of anyone on the way: the platform says it in its JSON
		e.after = time.Duration(min(s, int(connectors.BackoffMax/time.Second))) * time.Second
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

// safeError is an error's text without the token. The cause is a context's, for
// errors.Is.
type safeError struct {
	text  string
	cause error
}

func (e *safeError) Error() string { return e.text }
func (e *safeError) Unwrap() error { return e.cause }

func (b *Bot) safe(err error) error {
	return &safeError{b.redact.Replace(err.Error()), connectors.Interruption(err)}
}

// A failure is a call that did not end in ok. It is safe to show.
type failure struct {
	unsent  bool          // no connection, or it broke before all was written
	offline bool          // no connection was made
	slow    bool          // its time ended while it was written
	status  int           // HTTP status; 0 when no answer came
	code    int           // the platform's error_code; 0 when the answer was not the platform's JSON
	text    string        // description, or what went wrong; no token
	after   time.Duration // retry_after; else the header Retry-After, at most connectors.BackoffMax
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

// refusesToken reports whether the platform itself rejected the token. A proxy's 401 or
// 404 page is not such a response.
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

// failed reports what went wrong.
func (b *Bot) failed(e *exchange, err error) *failure {
	f := &failure{unsent: e.Unsent(), offline: !e.Connected(), slow: e.status == 0 && e.TooSlow(e.ctx), status: e.status, after: e.after}
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
		return "", &failure{status: 200, text: "the answer to getMe names no bot"}
	}
	b.decoder.SetUsername(me.Username)
	return me.Username, nil
}
