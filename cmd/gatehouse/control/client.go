// Package control is how the command line reaches the gateway: plain HTTP over
// a Unix socket in the runtime directory, which only the gateway's own user may
// enter, or the same handler in this process when no gateway runs.
package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/web"
)

// ErrNotServing means that no gateway listens on the socket.
var ErrNotServing = errors.New("no gateway serves this vault")

// timeout limits one request; patience is how long the answer to a reading one may take to
// begin.
const (
	timeout  = time.Minute
	patience = 15 * time.Second
)

// errSilent is the cause of a request that ended without an answer.
var errSilent = core.Errorf(core.Busy, "the gateway runs but does not answer: its process is stopped (SIGSTOP, a debugger) or overloaded. Continue it (kill -CONT), or restart it; 'serve' logs what it does")

// maxAnswer limits what is read of an answer, such as an exported conversation.
const maxAnswer = 256 << 20

// A Client makes requests of one gateway. It is safe for concurrent use.
type Client struct {
	http  *http.Client
	clock core.Clock
	check func() error // before each request
}

// Dial returns a client of the gateway with this runtime directory. It connects
// for each request.
func Dial(dir string) *Client { return DialWith(dir, core.System{}) }

// DialWith is Dial with another clock.
func DialWith(dir string, clock core.Clock) *Client {
	return &Client{
		clock: clock,
		http:  &http.Client{Timeout: timeout, CheckRedirect: noRedirect, Transport: socket(dir)},
		check: func() error { return check(dir) },
	}
}

// check returns an error when no gateway can be reached in dir.
func check(dir string) error {
	err := checkDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return ErrNotServing
	}
	return err // another user who made the directory would get the request
}

// socket returns a transport that connects to the socket in dir for each request.
func socket(dir string) *http.Transport {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, "socket"))
	}
	return &http.Transport{DialContext: dial, DisableKeepAlives: true}
}

// Streams returns an HTTP client of the gateway with this runtime directory, for answers that
// may last.
func Streams(dir string) *http.Client {
	return &http.Client{CheckRedirect: noRedirect, Transport: checked{dir, socket(dir)}}
}

// checked is a transport that checks its directory before each request.
type checked struct {
	dir string
	*http.Transport
}

func (c checked) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := check(c.dir); err != nil {
		return nil, err
	}
	return c.Transport.RoundTrip(r)
}

// KeyFile returns the file with the key for local tools.
func KeyFile(dir string) string { return filepath.Join(dir, "key") }

// Local returns a client of h.
func Local(h http.Handler) *Client {
	return &Client{clock: core.System{}, http: &http.Client{CheckRedirect: noRedirect, Transport: inProcess{h}}, check: func() error { return nil }}
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Path returns the path of these segments, escaped. An empty segment, "." and
// ".." cannot be sent: Do refuses them.
func Path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(s))
	}
	return b.String()
}

// Get reads at, a path with or without a query, into out.
func (c *Client) Get(ctx context.Context, at string, out any) error {
	return c.Do(ctx, http.MethodGet, at, nil, out)
}

// Do makes a request with in as its JSON body, if it is not nil, and decodes the
// answer into out: JSON or, for a *string, the text as it is. An error of the
// gateway is a core.Error; without a gateway it is ErrNotServing.
func (c *Client) Do(ctx context.Context, method, at string, in, out any) error {
	if err := c.check(); err != nil {
		return err
	}
	req, err := request(ctx, method, at, in)
	if err != nil {
		return err
	}
	resp, err := c.ask(req)
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return ErrNotServing
	}
	var late net.Error
	if errors.Is(err, errSilent) || errors.As(err, &late) && late.Timeout() {
		return errSilent
	}
	if err != nil {
		return fmt.Errorf("ask the running gateway: %w", err)
	}
	defer resp.Body.Close()
	body := io.LimitReader(resp.Body, maxAnswer)
	if resp.StatusCode >= http.StatusMultipleChoices {
		return errorOf(resp.StatusCode, body)
	}
	switch to := out.(type) {
	case nil:
		return nil
	case *string:
		var b strings.Builder
		_, err = io.Copy(&b, body)
		*to = b.String()
	default:
		err = json.NewDecoder(body).Decode(out)
	}
	if err != nil {
		return fmt.Errorf("ask the running gateway: %w", err)
	}
	return nil
}

// ask sends req. One that only reads is given up when no answer begins in time.
func (c *Client) ask(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		return c.http.Do(req)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	answered := make(chan struct{})
	go func() {
		select {
		case <-answered:
		case <-ctx.Done():
		case <-c.clock.After(patience):
			cancel(errSilent)
		}
	}()
	resp, err := c.http.Do(req.WithContext(ctx))
	close(answered)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	resp.Body = &body{resp.Body, cancel}
	return resp, nil
}

// A body ends its request's context when it is closed.
type body struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

func request(ctx context.Context, method, at string, in any) (*http.Request, error) {
	u, err := url.Parse("http://gatehouse" + at)
	if err != nil {
		return nil, err
	}
	if path.Clean(u.Path) != u.Path {
		return nil, core.Errorf(core.NotFound, "there is nothing of this name")
	}
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err == nil && in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, err
}

// errorOf returns the error that a problem (RFC 9457) describes.
func errorOf(status int, body io.Reader) error {
	var p struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
	}
	if err := json.NewDecoder(body).Decode(&p); err != nil {
		return fmt.Errorf("ask the running gateway: its answer has status %d", status)
	}
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	return &core.Error{Kind: web.KindOf(status), Text: text}
}

// inProcess is a transport to a handler in this process. An answer is returned
// as a whole.
type inProcess struct{ http.Handler }

func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := &answer{header: http.Header{}, status: http.StatusOK}
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.RequestURI = r.URL.RequestURI()
	t.ServeHTTP(w, in)
	if err := context.Cause(r.Context()); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: w.status, Header: w.header, Body: io.NopCloser(&w.body), Request: r}, nil
}

// An answer is a ResponseWriter that keeps everything.
type answer struct {
	header http.Header
	status int
	began  bool
	body   bytes.Buffer
}

func (w *answer) Header() http.Header { return w.header }

func (w *answer) WriteHeader(status int) {
	if !w.began {
		w.status, w.began = status, true
	}
}

func (w *answer) Write(b []byte) (int, error) {
	w.began = true
	return w.body.Write(b)
}
