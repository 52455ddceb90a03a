package anthropic

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/option"
)

const (
	maxEvent     = 4 << 20  // bytes of one event of a stream
	maxStream    = 64 << 20 // bytes of one whole answer on the wire
	maxListBody  = 8 << 20  // bytes of a list of models
	maxErrorBody = 64 << 10 // bytes of an error answer that are read
)

var (
	errEventTooLong  = errors.New("an event of the stream is longer than 4 MiB")
	errStreamTooLong = errors.New("the answer is longer than allowed")
	errNoStream      = errors.New("the answer is no stream of events")
)

// A refusal is an answer with another status than 200.
type refusal struct {
	status int
	header http.Header
	said   apiError
}

func (r *refusal) Error() string { return http.StatusText(r.status) }

// guard is between the SDK and the network: it turns every status but 200 into a
// refusal and limits what is read, which the SDK does not.
func (c *Client) guard(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	resp, err := next(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		return nil, &refusal{resp.StatusCode, resp.Header, parseError(body)}
	}
	if req.Method == http.MethodGet {
		resp.Body = &bounded{r: resp.Body, left: maxListBody}
		return resp, nil
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		if e := parseError(body); strings.HasSuffix(kind, "json") && !e.isZero() {
			return nil, &refusal{http.StatusOK, resp.Header, e}
		}
		return nil, errNoStream
	}
	resp.Body = &bounded{r: resp.Body, left: maxStream, event: maxEvent}
	return resp, nil
}

// A broken is an error of the connection in the middle of an answer.
type broken struct{ err error }

func (b *broken) Error() string { return b.err.Error() }
func (b *broken) Unwrap() error { return b.err }

// bounded ends a body with an error when it, or one event in it, is too long.
type bounded struct {
	r     io.ReadCloser
	left  int64 // bytes that may still come
	event int   // bytes that one event may have; 0 any number
	since int   // bytes since the last blank line
	line  int   // bytes of the present line
	bad   error
}

func (b *bounded) Close() error { return b.r.Close() }

func (b *bounded) Read(p []byte) (int, error) {
	if b.bad != nil {
		return 0, b.bad
	}
	n, err := b.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &broken{err}
	}
	if b.left -= int64(n); b.left < 0 {
		b.bad = errStreamTooLong
		return 0, b.bad
	}
	if b.event > 0 && !b.measure(p[:n]) {
		b.bad = errEventTooLong
		return 0, b.bad
	}
	return n, err
}

// measure follows lines and events through the body; false: one is too long.
func (b *bounded) measure(p []byte) bool {
	for _, ch := range p {
		b.since++
		switch ch {
		case '\n':
			if b.line == 0 {
				b.since = 0
			}
			b.line = 0
		case '\r':
		default:
			b.line++
		}
		if b.since > b.event {
			return false
		}
	}
	return true
}
