// Package bridge passes the messages of the Model Context Protocol between a client that has
// started this program, on standard input and output, and the running gateway, over its socket.
package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
)

// Limits.
const (
	maxLine   = 4 << 20  // bytes of a message of the client; the gateway takes less
	maxAnswer = 64 << 20 // and of an event of the gateway
	maxCalls  = 32       // that wait for their answers at once; more are not read
)

// Options for Run. All are needed.
type Options struct {
	Client *http.Client // of the socket
	URL    string       // of the gateway's endpoint
	// Header returns what is sent with each request: the key.
	Header func() (http.Header, error)
	In     io.Reader
	Out    io.Writer
}

// A bridge is one client's.
type bridge struct {
	o     Options
	slots chan struct{}
	calls sync.WaitGroup

	writing sync.Mutex // of Out

	mu       sync.Mutex
	begin    []byte // the message that began the session; nil: none did
	session  string
	protocol string // that was agreed on
}

// A message is what the bridge reads of one.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// grace is how long calls may still run after the input has ended.
const grace = 5 * time.Second

// Run passes messages on until the input or ctx ends, and ends the session. Calls that run
// when the input ends have a few seconds to end. When ctx ends, a read of the input may go on.
// An error is of the input; what fails between here and the gateway is the answer to a call.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bridge{o: o, slots: make(chan struct{}, maxCalls)}
	read := make(chan error, 1)
	go func() { read <- b.read(ctx) }()
	var err error
	select {
	case err = <-read:
		b.rest(ctx)
	case <-ctx.Done():
	}
	b.end(context.WithoutCancel(ctx))
	cancel()
	return err
}

// read passes on what comes in.
func (b *bridge) read(ctx context.Context) error {
	lines := bufio.NewScanner(b.o.In)
	lines.Buffer(nil, maxLine)
	for lines.Scan() && ctx.Err() == nil {
		if data := bytes.TrimSpace(lines.Bytes()); len(data) > 0 {
			b.pass(ctx, bytes.Clone(data))
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return core.Errorf(core.TooLarge, "a message of the client is over %s", core.ByteSize(maxLine))
	}
	return lines.Err()
}

// rest waits for the calls that run, at most grace.
func (b *bridge) rest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		b.calls.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// pass passes a message on. It waits for the answer to the one that begins the session and to
// those that have none; other calls are answered as they end.
func (b *bridge) pass(ctx context.Context, data []byte) {
	var m message
	_ = json.Unmarshal(data, &m) // the gateway says what is wrong with it
	if m.Method == "initialize" {
		b.mu.Lock()
		b.begin, b.session, b.protocol = data, "", ""
		b.mu.Unlock()
	}
	if m.Method == "initialize" || len(m.ID) == 0 {
		b.ask(ctx, &m, data)
		return
	}
	b.slots <- struct{}{}
	b.calls.Go(func() {
		defer func() { <-b.slots }()
		b.ask(ctx, &m, data)
	})
}

// ask sends a message and writes what the gateway answers.
func (b *bridge) ask(ctx context.Context, m *message, data []byte) {
	resp, err := b.send(ctx, m, data)
	if err == nil && resp.StatusCode == http.StatusNotFound && m.Method != "initialize" && b.renew(ctx, resp.Request.Header.Get(sessionHeader)) {
		_ = resp.Body.Close() // it is not read
		resp, err = b.send(ctx, m, data)
	}
	if err != nil {
		b.fail(m, "the gateway cannot be reached: 'gatehouse serve' must run: "+err.Error())
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusMultipleChoices {
		b.fail(m, refusal(resp))
		return
	}
	answered, err := b.copy(resp, m)
	if !answered && len(m.ID) > 0 && ctx.Err() == nil {
		b.fail(m, fmt.Sprintf("the gateway ended the answer before it was complete (%v)", err))
	}
}

const (
	sessionHeader  = "Mcp-Session-Id"
	protocolHeader = "Mcp-Protocol-Version"
)

func (b *bridge) send(ctx context.Context, m *message, data []byte) (*http.Response, error) {
	req, err := b.request(ctx, http.MethodPost, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	b.since(req, m)
	return b.o.Client.Do(req)
}

// since adds the headers of the generation of the protocol that has no sessions.
func (b *bridge) since(req *http.Request, m *message) {
	var params struct {
		Name string                     `json:"name"`
		URI  string                     `json:"uri"`
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	var version string
	_ = json.Unmarshal(m.Params, &params) // what has no such fields is of the other generation
	if json.Unmarshal(params.Meta["io.modelcontextprotocol/protocolVersion"], &version) != nil || version == "" {
		return
	}
	req.Header.Del(sessionHeader)
	req.Header.Set(protocolHeader, version)
	req.Header.Set("Mcp-Method", m.Method)
	if name := params.Name + params.URI; name != "" {
		req.Header.Set("Mcp-Name", name)
	}
}

func (b *bridge) request(ctx context.Context, method string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.o.URL, body)
	if err != nil {
		return nil, err
	}
	h, err := b.o.Header()
	if err != nil {
		return nil, err
	}
	req.Header = h.Clone()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != "" {
		req.Header.Set(sessionHeader, b.session)
	}
	if b.protocol != "" {
		req.Header.Set(protocolHeader, b.protocol)
	}
	return req, nil
}

// renew begins the session again that the gateway does not know any more: it was started
// again, or the session was idle. It reports whether there is another one than old.
func (b *bridge) renew(ctx context.Context, old string) bool {
	b.mu.Lock()
	begin, now := b.begin, b.session
	if old == "" || begin == nil || now != old {
		b.mu.Unlock()
		return old != "" && now != "" && now != old
	}
	b.session, b.protocol = "", ""
	b.mu.Unlock()
	m := &message{ID: json.RawMessage("0"), Method: "initialize"}
	resp, err := b.send(ctx, m, begin)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	quiet := &bridge{o: Options{Out: io.Discard}}
	_, _ = quiet.copy(resp, m) // without a session, the next call fails
	b.mu.Lock()
	b.session, b.protocol = quiet.session, quiet.protocol
	known := b.session != ""
	b.mu.Unlock()
	if known {
		b.ask(ctx, &message{Method: "notifications/initialized"}, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	}
	return known
}

// copy writes the messages of an answer, each on its line, and reports whether there were any.
func (b *bridge) copy(resp *http.Response, m *message) (any bool, err error) {
	stream := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		data := lines.Bytes()
		if rest, ok := bytes.CutPrefix(data, []byte("data: ")); ok {
			data = rest
		} else if stream {
			continue
		}
		if len(data) == 0 {
			continue
		}
		if m.Method == "initialize" {
			b.began(resp.Header.Get(sessionHeader), data)
		}
		any = true
		if err := b.write(data); err != nil {
			return any, err
		}
	}
	return any, lines.Err()
}

// began notes the session that an answer has begun.
func (b *bridge) began(session string, data []byte) {
	var answer struct {
		Result struct {
			Protocol string `json:"protocolVersion"`
		} `json:"result"`
	}
	if json.Unmarshal(data, &answer) != nil || answer.Result.Protocol == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session, b.protocol = session, answer.Result.Protocol
}

func (b *bridge) write(data []byte) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	_, err := b.o.Out.Write(append(bytes.Clone(data), '\n'))
	return err
}

// fail answers a call with an error; what is no call has no answer.
func (b *bridge) fail(m *message, text string) {
	if len(m.ID) == 0 {
		return
	}
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32000, "message": text}})
	if err == nil {
		_ = b.write(data) // the client is gone
	}
}

// refusal returns the text of an answer that is an error.
func refusal(resp *http.Response) string {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // at worst it is cut
	var problem struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
	}
	switch {
	case json.Unmarshal(body, &problem) == nil && problem.Title != "":
		return strings.TrimSuffix(problem.Title+": "+problem.Detail, ": ")
	case len(bytes.TrimSpace(body)) > 0:
		return string(bytes.TrimSpace(body))
	}
	return resp.Status
}

// end ends the session.
func (b *bridge) end(ctx context.Context) {
	b.mu.Lock()
	session := b.session
	b.mu.Unlock()
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if req, err := b.request(ctx, http.MethodDelete, http.NoBody); err == nil {
		if resp, err := b.o.Client.Do(req); err == nil {
			_ = resp.Body.Close() // there is nothing in it
		}
	}
}
