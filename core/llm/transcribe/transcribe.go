// Package transcribe has voice messages written down by a server that speaks
// OpenAI's /v1/audio/transcriptions (OpenAI, whisper.cpp, faster-whisper, vLLM).
package transcribe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	api "github.com/sashabaranov/go-openai"
)

// Model is the name that New asks for; servers with one model ignore it.
const Model = api.Whisper1

const (
	timeout   = 2 * time.Minute
	maxAnswer = 1 << 20 // bytes that are read of an answer
	maxText   = 100_000 // bytes of a text that are taken: more is no voice message
)

// A Client asks one server. It is safe for concurrent use.
type Client struct {
	// Model is the name that is asked for; New sets the constant Model.
	Model string

	// One method of the library's client: a field with the whole client keeps each of
	// its 190 methods in the program, since templates may call any by its name.
	ask  func(context.Context, api.AudioRequest) (api.AudioResponse, error)
	http *http.Client
	key  string
}

// New makes a client of the server at base, "http://host/v1" or the whole
// address of the endpoint. It does not connect. key may be empty.
func New(base, key string) (*Client, error) {
	u, err := url.Parse(strings.TrimSuffix(strings.TrimRight(base, "/"), "/audio/transcriptions"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the address for voice messages is not like http://127.0.0.1:9000/v1")
	}
	if u.Path == "" {
		u.Path = "/v1"
	}
	h := &http.Client{
		Timeout: timeout, Transport: limited{&http.Transport{
			Proxy:               nil, // never from the environment
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second, MaxIdleConns: 4, IdleConnTimeout: 30 * time.Second,
		}},
		// A redirect would carry key and voice to another place.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c := api.DefaultConfig(key)
	c.BaseURL, c.HTTPClient = u.String(), h
	return &Client{Model: Model, ask: api.NewClientWithConfig(c).CreateTranscription, http: h, key: key}, nil
}

// limited bounds what is read of an answer.
type limited struct{ *http.Transport }

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.Transport.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// Text returns the text of the recording r, which a user's app called name;
// the ending of the name gives the server its format. "" is silence. Errors
// hold neither key nor recording.
func (c *Client) Text(ctx context.Context, name string, r io.Reader) (string, error) {
	resp, err := c.ask(ctx, api.AudioRequest{Model: c.Model, FilePath: name, Reader: r, Format: api.AudioResponseFormatJSON})
	if err != nil {
		text := err.Error()
		if c.key != "" {
			text = strings.ReplaceAll(text, c.key, "[key]")
		}
		if len(text) > 300 {
			text = text[:300]
		}
		return "", fmt.Errorf("transcribe: %s", strings.ToValidUTF8(text, ""))
	}
	if len(resp.Text) > maxText {
		return "", errors.New("transcribe: the text is too long for a voice message")
	}
	return strings.TrimSpace(resp.Text), nil
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}
