// Package openai is an llm.Model over the streaming chat completions API that
// OpenAI defined and that Ollama, vLLM, llama.cpp's server and OpenRouter
// speak too (https://platform.openai.com/docs/api-reference/chat/create).
//
// It uses the request and response types of sashabaranov/go-openai, but not
// its client: that one's stream reader ends both at [DONE] and at a broken
// connection with io.EOF, so a half answer looks whole; it reads lines
// without a bound; it keeps comment lines (OpenRouter's keep-alives) as parts
// of an error message and gives up after 300 of them; and it knows neither
// Retry-After nor retries. provider.Events does what is needed.
//
// Nothing is taken from the environment: base URL, key and HTTP client are
// given, and the package's own transport uses no proxy.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	api "github.com/sashabaranov/go-openai"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/provider"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1"

const (
	maxModels     = 2000     // names Models returns
	maxModelsBody = 8 << 20  // bytes; OpenRouter's list has about 1 MB
	maxErrorBody  = 64 << 10 // bytes of an error answer that are read
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
	Setting   string       // that the operator checks when the key is refused; "" = GATEHOUSE_OPENAI_API_KEY
	Clock     core.Clock
	Log       *slog.Logger   // nil: silent
	Rand      func() float64 // jitter in [0, 1); nil: math/rand
}

// A Client is one model of one server. It is safe for use by many goroutines.
type Client struct {
	link      *provider.Link
	base      *url.URL
	window    int
	documents bool
	dialect   dialect
	tools     provider.ToolCache
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
	noFormat         atomic.Bool // the server knows no response_format of a schema

	maxTokens atomic.Int64 // the most tokens of an answer that the model allows; 0 unknown
}

// New checks o and makes the client; it does not connect.
func New(o Options) (*Client, error) {
	base, err := parseBase(o.BaseURL)
	if err != nil {
		return nil, err
	}
	c := &Client{base: base, window: o.Window, documents: o.Documents}
	password, _ := base.User.Password()
	words := words
	words.Setting = cmp.Or(o.Setting, words.Setting)
	c.link, err = provider.New(provider.Options{
		Name: cmp.Or(o.Name, "openai"), Model: o.Model, Key: o.Key, Secrets: []string{password}, HTTP: o.HTTP,
		Clock: o.Clock, Log: o.Log, Rand: o.Rand, Words: words, List: c.models, Pick: c.pick,
	})
	if err != nil {
		return nil, err
	}
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

// Close closes idle connections. Replies under way go on.
func (c *Client) Close() { c.link.HTTP.CloseIdleConnections() }

// String returns the model's name, so that printing a client never shows its key.
func (c *Client) String() string { return c.link.String() }

// About names the model as "openai/gpt-4o-mini"; only "openai" until one was
// chosen from the server's list.
func (c *Client) About() llm.About {
	return llm.About{Name: c.link.String(), Window: c.link.Window(c.window), Tools: !c.dialect.noTools.Load(), Images: !c.dialect.noImages.Load(), Documents: c.media().Documents}
}

func (c *Client) atOpenAI() bool { return c.base.Hostname() == "api.openai.com" }

// Models lists the server's models in its own order, at most 2,000. Errors are Faults.
func (c *Client) Models(ctx context.Context) ([]string, error) { return c.link.Models(ctx) }

func (c *Client) models(ctx context.Context) ([]string, *provider.Failure) {
	resp, bad := c.do(ctx, http.MethodGet, "/models", nil)
	if bad != nil {
		return nil, bad
	}
	defer resp.Body.Close()
	var list api.ModelsList
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxModelsBody+1))
	if err != nil {
		return nil, c.link.Lost(err)
	}
	if len(body) > maxModelsBody {
		return nil, provider.Garbage("the list of models is too long")
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, provider.Garbage("the list of models is no JSON")
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

func (c *Client) pick(ids []string) string {
	if c.atOpenAI() {
		for _, p := range preferred {
			if slices.Contains(ids, p) {
				return p
			}
		}
	}
	return ids[0]
}

// do sends one request and returns its 200 response; everything else is a failure.
func (c *Client) do(ctx context.Context, method, path string, body []byte) (*http.Response, *provider.Failure) {
	req, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, nil)
	if err != nil {
		return nil, c.link.Lost(err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "gatehouse")
	if body != nil {
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Content-Type", "application/json")
	}
	if c.link.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.link.Key)
	}
	resp, err := c.link.Do(req, body)
	if err != nil {
		return nil, c.link.Lost(err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		return nil, c.statusFailure(resp.StatusCode, resp.Header, parseError(text))
	}
	return resp, nil
}
