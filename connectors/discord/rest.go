package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"gatehouse/connectors"
	"gatehouse/core"
)

// maxAnswer bounds what is read of one answer: 100 messages stay far below.
const maxAnswer = 16 << 20

// An exchange carries one request: it is the transport of discordgo's HTTP
// client. It reads the answer itself, and keeps from the library what the
// library would trip over or wait for: limits are ours to hold, bounded by ctx.
type exchange struct {
	bot *Bot
	connectors.Progress
	status int // 0 without an answer
	header http.Header
	body   []byte
}

func (e *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := e.bot.line.RoundTrip(e.Follow(req))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	io.CopyN(io.Discard, resp.Body, 4096) // so that the connection can be used again
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	e.status, e.body, e.header = resp.StatusCode, body, resp.Header
	resp.Header = http.Header{}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// A failure is a call that did not end well. It is safe to show.
type failure struct {
	unsent bool          // no connection, or it broke before all was written
	status int           // HTTP status; 0 when no answer came
	code   int           // the platform's JSON error code; 0 for none
	told   bool          // the answer was the platform's own JSON
	text   string        // message, or what went wrong; no token
	after  time.Duration // retry_after
	global bool          // the 429 is for the whole bot
	cause  error
}

func (f *failure) Error() string {
	switch {
	case f.code != 0:
		return fmt.Sprintf("%d %s (code %d)", f.status, f.text, f.code)
	case f.status != 0:
		return fmt.Sprintf("HTTP status %d: %s", f.status, f.text)
	}
	return f.text
}

func (f *failure) Unwrap() error { return f.cause }

// refusesToken reports whether the platform itself says that it knows no such
// token. A proxy's 401 page says nothing of the kind.
func (f *failure) refusesToken() bool { return f.status == 401 && f.told }

// call makes one request by the library's session and reads the answer into
// out, when given. It never waits for a limit and never repeats.
func (b *Bot) call(ctx context.Context, method, path string, in, out any) *failure {
	_, f := b.exchange(ctx, method, path, in, out)
	return f
}

func (b *Bot) exchange(ctx context.Context, method, path string, in, out any) (*exchange, *failure) {
	timeout := b.o.SendTimeout
	file, sending := in.(*upload)
	if sending {
		timeout = uploadTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	e := &exchange{bot: b}
	s := &discordgo.Session{
		Token: "Bot " + b.o.Token, Ratelimiter: discordgo.NewRatelimiter(),
		UserAgent: "DiscordBot (https://github.com/bwmarrin/discordgo, v" + discordgo.VERSION + ")",
		Client: &http.Client{Transport: e, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}
	if strings.HasPrefix(path, "/interactions/") || strings.HasPrefix(path, "/webhooks/") {
		s.Token = "" // their address is their credential
	}
	options := []discordgo.RequestOption{discordgo.WithContext(ctx), discordgo.WithRetryOnRatelimit(false), discordgo.WithRestRetries(0)}
	var raw []byte
	var err error
	if sending {
		var kind string
		var body []byte
		if kind, body, err = file.multipart(); err == nil {
			raw, err = s.RequestRaw(method, b.base+path, kind, body, "", 0, options...)
		}
	} else {
		raw, err = s.RequestWithBucketID(method, b.base+path, in, "", options...)
	}
	if err == nil && out != nil {
		if err = json.Unmarshal(raw, out); err != nil {
			err = errors.New("the answer can't be read")
		}
	}
	if err == nil {
		return e, nil
	}
	return e, e.failed(err)
}

// failed says what went wrong.
func (e *exchange) failed(err error) *failure {
	f := &failure{unsent: e.Unsent(), status: e.status}
	if e.status == 0 {
		f.text, f.cause = e.bot.redact.Replace(err.Error()), connectors.Interruption(err)
		return f
	}
	var told struct {
		Code       int             `json:"code"`
		Message    string          `json:"message"`
		Errors     json.RawMessage `json:"errors"`
		RetryAfter float64         `json:"retry_after"`
		Global     bool            `json:"global"`
	}
	f.told = json.Unmarshal(e.body, &told) == nil && told.Message != ""
	switch {
	case f.told:
		f.code, f.text, f.global = told.Code, told.Message, told.Global
		if len(told.Errors) > 0 {
			f.text += " " + core.CutRunes(string(told.Errors), 300)
		}
	case e.status < 300:
		f.text = err.Error()
	default:
		f.text = "the answer is not Discord's"
	}
	f.text = e.bot.redact.Replace(core.CutRunes(f.text, 500))
	if e.status == http.StatusTooManyRequests {
		f.after = seconds(told.RetryAfter)
		if f.after <= 0 {
			f.after = headerSeconds(e.header, "Retry-After")
		}
		// A 429 that is not the platform's JSON comes from what stands before
		// it, and is about our address: everything waits.
		f.global = f.global || !f.told || e.header.Get("X-RateLimit-Global") == "true"
	}
	return f
}

// seconds is a number of seconds from the platform, rounded up to a
// millisecond; 0 for what is no such number. A day is the longest believed.
func seconds(s float64) time.Duration {
	if math.IsNaN(s) || s <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(min(s, 86400)*1000)) * time.Millisecond
}

func headerSeconds(h http.Header, name string) time.Duration {
	s, err := strconv.ParseFloat(h.Get(name), 64)
	if err != nil {
		return 0
	}
	return seconds(s)
}

// spent is how long the platform wants the bucket of this call left alone,
// because this call took the last of it; 0 for not at all.
func (e *exchange) spent() time.Duration {
	if e == nil || e.header.Get("X-RateLimit-Remaining") != "0" {
		return 0
	}
	return headerSeconds(e.header, "X-RateLimit-Reset-After")
}

// asError is a failure for callers who only want to know that it was none;
// nil stays nil.
func asError(f *failure) error {
	if f == nil {
		return nil
	}
	return f
}
