// Package anthropic is an llm.Model over Anthropic's streaming Messages API
// (https://platform.claude.com/docs/en/api/messages).
//
// It does without the official SDK, of which it would use types alone and which would be
// a fifth of the program's file (docs/performance.md). What requests look like is held
// against what the SDK wrote, in testdata.
//
// Nothing is taken from the environment: base URL, key and HTTP client are
// given, and the package's own transport uses no proxy.
package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/provider"
)

// DefaultBaseURL is Anthropic's own API.
const DefaultBaseURL = "https://api.anthropic.com"

// version is that of the API, which every request names.
const version = "2023-06-01"

const (
	maxModels    = 1000     // names Models returns; the API's largest page
	maxListBody  = 8 << 20  // bytes of a list of models
	maxErrorBody = 64 << 10 // bytes of an error answer that are read
)

// Options say which server to talk to. Clock is needed; everything else has a
// default.
type Options struct {
	Name    string       // the provider's name in front of model names; "anthropic"
	Model   string       // the provider's name of the model; "" = chosen from /v1/models at the first reply
	BaseURL string       // without /v1 (which is taken off); DefaultBaseURL
	Key     string       // sent as x-api-key; "" sends none
	Window  int          // tokens of context; 0 = what is known of the model
	HTTP    *http.Client // nil: own transport with time-outs for dialling (10 s), TLS (10 s) and the answer's header (120 s)
	Setting string       // that the operator checks when the key is refused; "" = GATEHOUSE_ANTHROPIC_API_KEY
	Clock   core.Clock
	Log     *slog.Logger   // nil: silent
	Rand    func() float64 // jitter in [0, 1); nil: math/rand
}

// A Client is one model of one server. It is safe for use by many goroutines.
type Client struct {
	link    *provider.Link
	base    string // ends in "/"
	window  int
	tools   provider.ToolCache
	dialect dialect
}

// dialect is what was learnt about a server from its refusals. It is kept for
// the life of the client.
type dialect struct {
	noThinking    atomic.Bool  // the parameter "thinking" is refused
	noCache       atomic.Bool  // cache_control is refused
	noTemperature atomic.Bool  // temperature is refused
	noFormat      atomic.Bool  // output_config.format is refused
	noSearch      atomic.Bool  // the provider's web search is refused
	maxTokens     atomic.Int64 // the most tokens of an answer that the model allows; 0 unknown
}

// New checks o and makes the client; it does not connect.
func New(o Options) (*Client, error) {
	base, err := parseBase(o.BaseURL)
	if err != nil {
		return nil, err
	}
	c := &Client{base: base, window: o.Window}
	words := words
	words.Setting = cmp.Or(o.Setting, words.Setting)
	c.link, err = provider.New(provider.Options{
		Name: cmp.Or(o.Name, "anthropic"), Model: o.Model, Key: o.Key, HTTP: o.HTTP,
		Clock: o.Clock, Log: o.Log, Rand: o.Rand, Words: words, List: c.models, Pick: pick,
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// parseBase reads a base URL; its errors never show it, for it may hold a password.
func parseBase(s string) (string, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		s = DefaultBaseURL
	}
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return "", core.Errorf(core.Invalid, "the model base URL is not like https://api.anthropic.com, without user and password")
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1") + "/"
	u.RawPath, u.RawQuery, u.Fragment = "", "", ""
	return u.String(), nil
}

// Close closes idle connections. Replies under way go on.
func (c *Client) Close() { c.link.HTTP.CloseIdleConnections() }

// String returns the model's name, so that printing a client never shows its key.
func (c *Client) String() string { return c.link.String() }

// About names the model as "anthropic/claude-sonnet-5"; only "anthropic" until
// one was chosen from the server's list.
func (c *Client) About() llm.About {
	model, window := c.link.Present(), c.window
	if window == 0 && model != "" {
		window = windowOf(model)
	}
	return llm.About{Name: c.link.String(), Window: c.link.Window(window), Tools: true, Images: sees(model), Documents: sees(model), Thinking: model != "" && c.thinks(model), Search: !c.dialect.noSearch.Load()}
}

var versioned = regexp.MustCompile(`^claude-[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?:-|$)`)

// since46 reports whether model is of the generation that began with Claude
// Opus 4.6: a window of a million tokens, and thinking as the model sees fit.
// Source: https://platform.claude.com/docs/en/about-claude/models/overview
func since46(model string) bool {
	m := versioned.FindStringSubmatch(model)
	if m == nil {
		return false
	}
	major, _ := strconv.Atoi(m[1]) // digits
	minor, _ := strconv.Atoi(m[2]) // digits, or "": 0
	return major > 4 || major == 4 && minor >= 6
}

// windowOf returns the model's context in tokens; models that are not known have at
// least 200,000.
func windowOf(model string) int {
	if since46(model) {
		return 1_000_000
	}
	return 200_000
}

// thinks reports whether the model is asked to think where it sees fit. Older
// models want a budget of tokens for it and are not asked.
func (c *Client) thinks(model string) bool { return since46(model) && !c.dialect.noThinking.Load() }

// Models lists the server's models in its own order, at most 1,000. Errors are Faults.
func (c *Client) Models(ctx context.Context) ([]string, error) { return c.link.Models(ctx) }

func (c *Client) models(ctx context.Context) ([]string, *provider.Failure) {
	resp, bad := c.do(ctx, http.MethodGet, "v1/models?limit="+strconv.Itoa(maxModels), nil)
	if bad != nil {
		return nil, bad
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxListBody+1))
	if err != nil {
		return nil, c.link.Lost(err)
	}
	if len(body) > maxListBody {
		return nil, provider.Garbage("the list of models is too long")
	}
	var page struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, provider.Garbage("the list of models is no JSON")
	}
	var ids []string
	for i := range page.Data {
		if id := page.Data[i].ID; id != "" && len(ids) < maxModels {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// do sends one request and returns its 200 response; everything else is a failure.
func (c *Client) do(ctx context.Context, method, path string, body []byte) (*http.Response, *provider.Failure) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return nil, c.link.Lost(err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "gatehouse")
	req.Header.Set("Anthropic-Version", version)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.link.Key != "" {
		req.Header.Set("X-Api-Key", c.link.Key)
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

// pick takes the newest model of the middle size: the list is newest first.
func pick(ids []string) string {
	if i := slices.IndexFunc(ids, func(id string) bool { return strings.HasPrefix(id, "claude-sonnet-") }); i >= 0 {
		return ids[i]
	}
	return ids[0]
}
