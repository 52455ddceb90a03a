// Package rest makes requests to Discord's HTTP API with discordgo's session, and
// classifies what may go wrong.
package rest

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

// maxAnswer limits how much of a response is read, in bytes. A page of 100 messages is
// much smaller.
const maxAnswer = 16 << 20

// Options configure a Client. All are required but Redact and UploadTimeout.
type Options struct {
	Token     string // without "Bot "
	Base      string // scheme://host/api/v10
	Transport http.RoundTripper
	Timeout   time.Duration // per request
	// UploadTimeout is that of a request with so many bytes of a file. Optional: two minutes, and
	// what they take at 64 KiB per second.
	UploadTimeout func(size int) time.Duration
	Redact        *strings.Replacer // applied to the text of every failure
}

// A Client makes requests. It is safe for concurrent use.
type Client struct{ o Options }

// New returns a Client.
func New(o Options) *Client {
	if o.Redact == nil {
		o.Redact = strings.NewReplacer()
	}
	if o.UploadTimeout == nil {
		o.UploadTimeout = func(size int) time.Duration { return 2*time.Minute + time.Duration(size>>16)*time.Second }
	}
	return &Client{o}
}

// An Upload is a message with a file, as Create Message takes it.
type Upload struct {
	Message any
	Name    string
	Data    []byte
}

// multipart returns the request's body (Reference, Uploading Files).
func (u *Upload) multipart() (kind string, body []byte, err error) {
	return discordgo.MultipartBodyWithJSON(u.Message, []*discordgo.File{{Name: u.Name, Reader: bytes.NewReader(u.Data)}})
}

// An Exchange is one request and its response. It is the transport of discordgo's
// HTTP client: it reads the response itself and hides rate limit headers from the
// library, which would wait for them.
type Exchange struct {
	client *Client
	connectors.Progress
	status int // 0 without an answer
	header http.Header
	body   []byte
}

// RoundTrip implements http.RoundTripper.
func (e *Exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := e.client.o.Transport.RoundTrip(e.Follow(req))
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

// A Failure is a request that failed. Its text contains no token.
type Failure struct {
	Unsent   bool          // no connection, or it broke before the request was written
	Status   int           // HTTP status; 0 without a response
	Code     int           // the platform's JSON error code; 0 for none
	Platform bool          // the response was the platform's own JSON
	Text     string        // the platform's message, or the error
	After    time.Duration // retry_after
	Global   bool          // a 429 for the whole bot
	offline  bool          // no connection was made
	slow     bool
	cause    error
}

// Error implements error.
func (f *Failure) Error() string {
	switch {
	case f.Code != 0:
		return fmt.Sprintf("%d %s (code %d)", f.Status, f.Text, f.Code)
	case f.Status != 0:
		return fmt.Sprintf("HTTP status %d: %s", f.Status, f.Text)
	}
	return f.Text
}

// Unwrap returns what interrupted the request, if anything did.
func (f *Failure) Unwrap() error { return f.cause }

// RefusesToken reports whether the platform itself rejected the token. A proxy's 401
// page is not such a response.
func (f *Failure) RefusesToken() bool { return f.Status == 401 && f.Platform }

// Call makes one request with the body in, which may be nil, and decodes the response
// into out unless that is nil. It never waits for a rate limit and never retries. It
// returns nil on success.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) *Failure {
	_, f := c.Exchange(ctx, method, path, in, out)
	return f
}

// Exchange is Call, and returns the exchange too.
func (c *Client) Exchange(ctx context.Context, method, path string, in, out any) (*Exchange, *Failure) {
	timeout := c.o.Timeout
	file, sending := in.(*Upload)
	if sending {
		timeout = c.o.UploadTimeout(len(file.Data))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	e := &Exchange{client: c}
	s := &discordgo.Session{
		Token: "Bot " + c.o.Token, Ratelimiter: discordgo.NewRatelimiter(),
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
			raw, err = s.RequestRaw(method, c.o.Base+path, kind, body, "", 0, options...)
		}
	} else {
		raw, err = s.RequestWithBucketID(method, c.o.Base+path, in, "", options...)
	}
	if err == nil && out != nil {
		if err = json.Unmarshal(raw, out); err != nil {
			err = errors.New("the response cannot be decoded")
		}
	}
	if err == nil {
		return e, nil
	}
	f := e.failed(err)
	f.offline, f.slow = !e.Connected(), e.status == 0 && e.TooSlow(ctx)
	return e, f
}

// failed returns the failure of an exchange that ended with err.
func (e *Exchange) failed(err error) *Failure {
	f := &Failure{Unsent: e.Unsent(), Status: e.status}
	if e.status == 0 {
		f.Text, f.cause = e.client.o.Redact.Replace(err.Error()), connectors.Interruption(err)
		return f
	}
	var told struct {
		Code       int             `json:"code"`
		Message    string          `json:"message"`
		Errors     json.RawMessage `json:"errors"`
		RetryAfter float64         `json:"retry_after"`
		Global     bool            `json:"global"`
	}
	f.Platform = json.Unmarshal(e.body, &told) == nil && told.Message != ""
	switch {
	case f.Platform:
		f.Code, f.Text, f.Global = told.Code, told.Message, told.Global
		if len(told.Errors) > 0 {
			f.Text += " " + core.CutRunes(string(told.Errors), 300)
		}
	case e.status < 300:
		f.Text = err.Error()
	default:
		f.Text = "the response is not Discord's"
	}
	f.Text = e.client.o.Redact.Replace(core.CutRunes(f.Text, 500))
	if e.status == http.StatusTooManyRequests {
		f.After = seconds(told.RetryAfter)
		if f.After <= 0 {
			f.After = headerSeconds(e.header, "Retry-After")
		}
		// A 429 that is not the platform's JSON comes from a proxy in front of it
		// and applies to our address: everything waits.
		f.Global = f.Global || !f.Platform || e.header.Get("X-RateLimit-Global") == "true"
	}
	return f
}

// seconds converts a number of seconds to a duration, rounded up to a millisecond and
// limited to a day. It returns 0 for a value that is not positive.
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

// Spent returns how long the rate limit bucket of this request is used up; 0 if it is
// not.
func (e *Exchange) Spent() time.Duration {
	if e == nil || e.header.Get("X-RateLimit-Remaining") != "0" {
		return 0
	}
	return headerSeconds(e.header, "X-RateLimit-Reset-After")
}

// AsError returns f as an error; a nil f is a nil error.
func AsError(f *Failure) error {
	if f == nil {
		return nil
	}
	return f
}
