// Package openai is an llm.Model over the streaming chat completions API that
// OpenAI defined and that Ollama, vLLM, llama.cpp's server and OpenRouter
// speak too (https://platform.openai.com/docs/api-reference/chat/create).
//
// It uses the request and response types of sashabaranov/go-openai, but not
// its client: that one's stream reader ends both at [DONE] and at a broken
// connection with io.EOF, so a half answer looks whole; it reads lines
// without a bound; it keeps comment lines (OpenRouter's keep-alives) as parts
// of an error message and gives up after 300 of them; and it knows neither
// Retry-After nor retries. The small reader in sse.go does what is needed.
//
// Nothing is taken from the environment: base URL, key and HTTP client are
// given, and the package's own transport uses no proxy.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	api "github.com/sashabaranov/go-openai"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/texts"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1"

const (
	dialTimeout   = 10 * time.Second
	headerTimeout = 120 * time.Second // a local server may load its model first
	maxModels     = 2000              // names Models returns
	maxModelsBody = 8 << 20           // bytes; OpenRouter's list has about 1 MB
	maxErrorBody  = 64 << 10          // bytes of an error answer that are read
)

// Options say which server to talk to. Clock is needed; everything else has a
// default.
type Options struct {
	Name    string // the provider's name in front of model names; "openai"
	Model   string // the provider's name of the model; "" = chosen from /v1/models at the first reply
	BaseURL string // with version path; DefaultBaseURL. An URL without path gets /v1
	Key     string // sent as bearer token; "" sends none
	Window  int    // tokens of context, 0 unknown
	// Documents: the server takes PDF as file parts. OpenAI and OpenRouter are
	// known to; elsewhere a document is left out with a line of text.
	Documents bool
	HTTP      *http.Client // nil: own transport with time-outs for dialling (10 s), TLS (10 s) and the answer's header (120 s)
	Clock     core.Clock
	Log       *slog.Logger   // nil: silent
	Rand      func() float64 // jitter in [0, 1); nil: math/rand
}

// A Client is one model of one server. It is safe for use by many goroutines.
type Client struct {
	name      string
	window    int
	documents bool
	base      *url.URL
	key       string
	http      *http.Client
	clock     core.Clock
	log       *slog.Logger
	rand      func() float64
	dialect   dialect

	configured string
	mu         sync.Mutex
	chosen     string // from /v1/models, where none is configured
}

// dialect is what was learnt about a server from its refusals. It is kept for
// the life of the client.
type dialect struct {
	noUsage          atomic.Bool // stream_options is refused
	completionTokens atomic.Bool // max_completion_tokens instead of max_tokens
	noTools          atomic.Bool // the model takes no tools
	noImages         atomic.Bool // the model takes no pictures
	noFiles          atomic.Bool // the model takes no documents
	noTemperature    atomic.Bool // the model takes no temperature
	noStop           atomic.Bool // the model takes no stop sequences
}

// New checks o and makes the client; it does not connect.
func New(o Options) (*Client, error) {
	if o.Clock == nil {
		return nil, errors.New("openai: no clock")
	}
	base, err := parseBase(o.BaseURL)
	if err != nil {
		return nil, err
	}
	key := strings.TrimSpace(o.Key)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, core.Errorf(core.Invalid, "the model key holds a blank or a character that no HTTP header can carry")
	}
	c := &Client{
		name: o.Name, window: o.Window, documents: o.Documents, base: base, key: key, clock: o.Clock,
		log: o.Log, rand: o.Rand, configured: o.Model, http: ownClient(),
	}
	if c.name == "" {
		c.name = "openai"
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.rand == nil {
		c.rand = rand.Float64
	}
	if o.HTTP != nil {
		copied := *o.HTTP
		c.http = &copied
	}
	// A redirect would carry key and conversation to another place.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.dialect.completionTokens.Store(c.atOpenAI())
	return c, nil
}

// parseBase reads a base URL; its errors never show it, for it may hold a password.
func parseBase(s string) (*url.URL, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		s = DefaultBaseURL
	}
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, core.Errorf(core.Invalid, "the model base URL is not like http://127.0.0.1:11434/v1")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if u.Path == "" {
		u.Path = "/v1"
	}
	u.RawPath, u.RawQuery, u.Fragment = "", "", ""
	return u, nil
}

// waitBuffer is the size of each buffer that a reply holds while the model
// thinks: hundreds may wait at once, each for a few small events.
const waitBuffer = 2 << 10

func ownClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                  nil, // never from the environment
		DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConns:           32,
		MaxIdleConnsPerHost:    32,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // small events, and no bombs
		ForceAttemptHTTP2:      true,
		ReadBufferSize:         waitBuffer,
		WriteBufferSize:        waitBuffer,
	}}
}

// Close closes idle connections. Replies under way go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// String is the model's name, so that printing a client never shows its key.
func (c *Client) String() string { return c.About().Name }

// About names the model as "openai/gpt-4o-mini"; only "openai" until one was
// chosen from the server's list.
func (c *Client) About() llm.About {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := c.name
	if m := c.configured + c.chosen; m != "" {
		name += "/" + m
	}
	return llm.About{Name: name, Window: c.window, Tools: !c.dialect.noTools.Load(), Images: !c.dialect.noImages.Load(), Documents: c.media().Documents}
}

func (c *Client) atOpenAI() bool { return c.base.Hostname() == "api.openai.com" }

// Models lists the server's models in its own order, at most 2,000. Errors are Faults.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	ids, bad := c.models(ctx)
	if bad != nil {
		return nil, c.finish(ctx, bad)
	}
	return ids, nil
}

func (c *Client) models(ctx context.Context) ([]string, *failure) {
	resp, bad := c.do(ctx, http.MethodGet, "/models", nil)
	if bad != nil {
		return nil, bad
	}
	defer resp.Body.Close()
	var list api.ModelsList
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxModelsBody+1))
	if err != nil {
		return nil, c.transportFailure(err)
	}
	if len(body) > maxModelsBody {
		return nil, garbage("the list of models is too long", nil)
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, garbage("the list of models is no JSON", nil)
	}
	var ids []string
	for _, m := range list.Models {
		if m.ID != "" && len(ids) < maxModels {
			ids = append(ids, m.ID)
		}
	}
	return ids, nil
}

// preferred are chosen, in this order, where OpenAI itself is asked without a
// model: the first name of its long list may be a model that cannot chat.
var preferred = []string{"gpt-5.4-mini", "gpt-5-mini", "gpt-4.1-mini", "gpt-4o-mini"}

// model is the configured model or the one chosen from the server's list.
func (c *Client) model(ctx context.Context) (string, *failure) {
	if c.configured != "" {
		return c.configured, nil
	}
	c.mu.Lock()
	chosen := c.chosen
	c.mu.Unlock()
	if chosen != "" {
		return chosen, nil
	}
	ids, bad := c.models(ctx)
	if bad != nil {
		return "", bad
	}
	if chosen = c.pick(ids); chosen == "" {
		return "", &failure{fault: llm.Fault{Code: llm.CodeUnavailable,
			Text: texts.Text("provider_no_models", texts.With{"Setting": settingModel})}}
	}
	c.choose(chosen)
	return chosen, nil
}

func (c *Client) pick(ids []string) string {
	if c.atOpenAI() {
		for _, p := range preferred {
			if slices.Contains(ids, p) {
				return p
			}
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}

// choose remembers id; "" forgets it, so that the list is asked again.
func (c *Client) choose(id string) {
	c.mu.Lock()
	c.chosen = id
	c.mu.Unlock()
}

// do sends one request and returns its 200 response; everything else is a failure.
func (c *Client) do(ctx context.Context, method, path string, body []byte) (*http.Response, *failure) {
	req, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, nil)
	if err != nil {
		return nil, c.transportFailure(err)
	}
	sent := &sending{data: body}
	sent.giveTo(req)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "gatehouse")
	if body != nil {
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	sent.letGo()
	if err != nil {
		return nil, c.transportFailure(err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		return nil, c.statusFailure(resp.StatusCode, resp.Header, parseError(text))
	}
	return resp, nil
}

// finish makes a failure the error to yield, and tells the log. An ended ctx
// is no fault of the provider: its cause is the error.
func (c *Client) finish(ctx context.Context, f *failure) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", c.name, context.Cause(ctx))
	}
	level := slog.LevelWarn
	if !f.fault.CanRetry {
		level = slog.LevelError
	}
	c.log.Log(ctx, level, "model provider fault", "provider", c.name, "code", f.fault.Code,
		"status", f.fault.Status, "err", f.fault.Error())
	fault := f.fault
	return &fault
}
