// Package embed has texts turned into vectors by a server that speaks OpenAI's
// /v1/embeddings (OpenAI, Ollama, llama.cpp, vLLM, text-embeddings-inference).
package embed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Limits of one request.
const (
	MaxDimensions = 4096
	timeout       = 2 * time.Minute
	maxAnswer     = 32 << 20 // bytes that are read of an answer
	maxSaid       = 300      // bytes of a server's error text
	minSecret     = 5        // a shorter key is no secret: local servers get values such as "none"
)

// Options for New. URL and Model are required.
type Options struct {
	URL        string // "http://host/v1", or the whole address of the endpoint
	Model      string // the server's name of the model
	Key        string // "" sends none
	Dimensions int    // that are asked for; 0: those that the model has
}

// A Client asks one model of one server. It is safe for concurrent use.
type Client struct {
	o    Options
	url  string
	http *http.Client
}

// New makes a client. It does not connect.
func New(o Options) (*Client, error) {
	u, err := url.Parse(strings.TrimSuffix(strings.TrimRight(o.URL, "/"), "/embeddings"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the address of the embedding server is not like http://127.0.0.1:11434/v1")
	}
	if o.Model == "" || o.Dimensions < 0 || o.Dimensions > MaxDimensions {
		return nil, fmt.Errorf("an embedding model has a name and at most %d dimensions", MaxDimensions)
	}
	u.Path = cmp.Or(strings.TrimRight(u.Path, "/"), "/v1") + "/embeddings"
	h := &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			Proxy:               nil, // never from the environment
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second, MaxIdleConns: 4, MaxConnsPerHost: 4, IdleConnTimeout: 30 * time.Second,
		},
		// A redirect would carry key and texts to another place.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Client{o, u.String(), h}, nil
}

// A Fault is why a server gave no vectors. Its text has neither the key nor texts of the request.
type Fault struct {
	Text   string
	Status int           // of the answer; 0: there was none
	Again  bool          // the same request may succeed later
	After  time.Duration // not before this time has passed; 0: unknown
	Late   bool          // the answer did not come in time: the server may have made it
}

func (f *Fault) Error() string { return "embeddings: " + f.Text }

// Refused reports whether the server refuses these texts, and may take others.
func (f *Fault) Refused() bool {
	return f.Status == http.StatusBadRequest || f.Status == http.StatusRequestEntityTooLarge || f.Status == http.StatusUnprocessableEntity
}

// OfTexts reports whether one of the texts may be why: the server refuses it, takes too
// long, fails, or returns no vector for it. It may then take the others.
func (f *Fault) OfTexts() bool {
	return f.Refused() || f.Late || f.Status >= 500 || f.Status == http.StatusRequestTimeout || f.Status == http.StatusOK
}

type request struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Dimensions int      `json:"dimensions,omitempty"`
}

type answer struct {
	Data []struct {
		Index  int     `json:"index"`
		Vector numbers `json:"embedding"`
	} `json:"data"`
	Usage struct {
		Tokens int64 `json:"prompt_tokens"`
	} `json:"usage"`
}

// numbers are decoded strictly: null and what no float32 holds are errors.
type numbers []float32

func (n *numbers) UnmarshalJSON(raw []byte) error {
	list := strings.TrimSpace(string(raw))
	if !strings.HasPrefix(list, "[") {
		return errors.New("a vector is not a list of numbers")
	}
	for one := range strings.SplitSeq(list[1:len(list)-1], ",") {
		if len(*n) == MaxDimensions {
			return fmt.Errorf("a vector has more than %d dimensions", MaxDimensions)
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(one), 32)
		if err != nil {
			return errors.New("a vector has a value that is not a finite number")
		}
		*n = append(*n, float32(f))
	}
	return nil
}

// Embed returns a vector for each of texts, in their order and all of the same length,
// and the tokens that the server counted, 0 where it did not. It asks once. Vectors that
// are missing, of the wrong length, zero or not finite are an error, as is everything
// else than an answer: a *Fault, or ctx's.
func (c *Client) Embed(ctx context.Context, texts []string) (vectors [][]float32, tokens int64, err error) {
	if len(texts) == 0 {
		return nil, 0, nil
	}
	body, err := json.Marshal(request{c.o.Model, texts, c.o.Dimensions})
	if err != nil {
		return nil, 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, 0, &Fault{Text: "the address is not valid"}
	}
	req.Header.Set("Content-Type", "application/json")
	if c.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, 0, c.lost(ctx, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, 0, c.lost(ctx, err)
	case resp.StatusCode != http.StatusOK:
		return nil, 0, c.fault(resp, raw, texts)
	case len(raw) > maxAnswer:
		return nil, 0, &Fault{Text: "the answer is too long", Status: resp.StatusCode}
	}
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, 0, &Fault{Text: c.hide("the answer cannot be read: " + err.Error()), Status: resp.StatusCode}
	}
	vectors, err = c.vectors(a, len(texts))
	return vectors, max(0, a.Usage.Tokens), err
}

// vectors returns the vectors of an answer by the texts that they belong to.
func (c *Client) vectors(a answer, n int) ([][]float32, error) {
	bad := func(format string, args ...any) ([][]float32, error) {
		return nil, &Fault{Text: fmt.Sprintf(format, args...), Status: http.StatusOK}
	}
	if len(a.Data) != n {
		return bad("%d vectors for %d texts", len(a.Data), n)
	}
	out, size := make([][]float32, n), cmp.Or(c.o.Dimensions, len(a.Data[0].Vector))
	for _, d := range a.Data {
		if d.Index < 0 || d.Index >= n || out[d.Index] != nil {
			return bad("the answer does not say which vector is whose")
		}
		if len(d.Vector) != size || size == 0 {
			return bad("a vector has %d dimensions, not %d", len(d.Vector), size)
		}
		length := 0.0
		for _, x := range d.Vector {
			length += float64(x) * float64(x)
		}
		if length == 0 {
			return bad("a vector is zero")
		}
		out[d.Index] = d.Vector
	}
	return out, nil
}

// lost judges an error of the connection. Its text does not hold the address, which may
// hold credentials.
func (c *Client) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var late net.Error
	timedOut := errors.As(err, &late) && late.Timeout()
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return &Fault{Text: c.hide("the server does not answer: " + err.Error()), Again: true, Late: timedOut}
}

// fault judges an answer that is not 200. The message of the server is left out where it may
// repeat the key or a text: the fault is logged and shown.
func (c *Client) fault(resp *http.Response, raw []byte, texts []string) error {
	f := &Fault{Status: resp.StatusCode, Text: strings.TrimSpace(strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode))}
	var said struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(raw, &said) == nil && len(said.Error) > 0 {
		var o struct{ Message string }
		if json.Unmarshal(said.Error, &o) != nil || o.Message == "" {
			_ = json.Unmarshal(said.Error, &o.Message) // as Ollama writes it
		}
		if f.Status != http.StatusUnauthorized && f.Status != http.StatusForbidden && !repeats(o.Message[:min(len(o.Message), maxSaid)], texts) {
			f.Text += ": " + o.Message[:min(len(o.Message), maxSaid)]
		}
	}
	f.Text = c.hide(f.Text)
	f.Again = f.Status == http.StatusTooManyRequests || f.Status == http.StatusRequestTimeout || f.Status >= 500
	if s, err := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64); err == nil && s > 0 && s < 1e5 {
		f.After = time.Duration(s * float64(time.Second))
	}
	return f
}

// repeated is how many characters of a text make a message one that repeats it.
const repeated = 20

// repeats reports whether a message has repeated (the constant) consecutive letters and
// digits of a text, or all of a shorter one.
func repeats(message string, texts []string) bool {
	said := []rune(onlyWords(message))
	for _, t := range texts {
		t = onlyWords(t)
		if n := len([]rune(t)); n < repeated {
			if n >= minSecret && strings.Contains(string(said), t) {
				return true
			}
			continue
		}
		for i := 0; i+repeated <= len(said); i++ {
			if strings.Contains(t, string(said[i:i+repeated])) {
				return true
			}
		}
	}
	return false
}

// escaped are letters of escapes, and escaped letters.
var escaped = regexp.MustCompile(`\\([ntr]|u[0-9a-fA-F]{4})`)

// onlyWords returns the letters and digits of a text: servers escape and quote it in many
// ways.
func onlyWords(text string) string {
	text = escaped.ReplaceAllStringFunc(text, func(s string) string {
		code, err := strconv.ParseUint(s[2:], 16, 32)
		if err != nil {
			return " "
		}
		return string(rune(code))
	})
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}

// hide returns text without the key and control characters, cut.
func (c *Client) hide(text string) string {
	if len(c.o.Key) >= minSecret {
		text = strings.ReplaceAll(text, c.o.Key, "[key]")
	}
	if len(text) > maxSaid {
		text = text[:maxSaid]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}
