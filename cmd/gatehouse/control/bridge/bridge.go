// Package bridge passes the messages of the Model Context Protocol between a client that has
// started this program, on standard input and output, and the running gateway, over its socket.
package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
)

// Limits.
const (
	maxLine   = 4 << 20         // bytes of a message of the client; the gateway takes less
	maxAnswer = 64 << 20        // and of an event of the gateway
	maxCalls  = 32              // that wait for their answers at once; more are not read
	farewell  = 5 * time.Second // that ending the session may take
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
	gone  context.CancelFunc // for when the client reads no more

	writing  sync.Mutex // of Out
	renewing sync.Mutex // one call begins the session again at a time

	mu       sync.Mutex
	begin    []byte // the message that began the session; nil: none did
	session  string
	protocol string           // that was agreed on
	running  map[string]*call // by id; at most maxCalls
}

// Run passes messages on until the input has ended and its calls are answered, or until ctx ends
// or the client reads no more; then it ends the session. When ctx ends, a read of the input may
// go on. An error is of the input; what fails between here and the gateway is the answer to a call.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bridge{o: o, slots: make(chan struct{}, maxCalls), gone: cancel, running: map[string]*call{}}
	ended := make(chan error, 1)
	go func() {
		err := b.read(ctx)
		b.calls.Wait()
		ended <- err
	}()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	b.end(context.WithoutCancel(ctx))
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

// pass passes a message on. It waits for the answer to the one that begins the session and to
// those that have none; other calls are answered as they end.
func (b *bridge) pass(ctx context.Context, data []byte) {
	var m message
	if json.Unmarshal(data, &m) != nil {
		b.fail(&message{ID: json.RawMessage("null"), Method: "?"}, "write one JSON-RPC message on each line; batches are not supported")
		return
	}
	if m.Method == "initialize" {
		b.mu.Lock()
		b.begin, b.session, b.protocol = data, "", ""
		b.mu.Unlock()
	}
	if m.Method == "initialize" || !m.asks() {
		if !b.cancel(&m, data) {
			b.ask(ctx, &m, data, nil)
		}
		return
	}
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	ctx, c := b.add(ctx, &m)
	b.calls.Go(func() {
		defer func() { <-b.slots }()
		defer b.remove(&m, c)
		b.ask(ctx, &m, data, c)
	})
}

// ask sends a message and writes what the gateway answers. c is nil if the message cannot be
// cancelled.
func (b *bridge) ask(ctx context.Context, m *message, data []byte, c *call) {
	resp, err := b.send(ctx, m, data)
	if err == nil && resp.StatusCode == http.StatusNotFound && m.Method != "initialize" && b.renew(ctx, resp.Request.Header.Get(sessionHeader)) {
		_ = resp.Body.Close() // it is not read
		resp, err = b.send(ctx, m, data)
	}
	if err != nil {
		if ctx.Err() == nil {
			b.fail(m, "the gateway cannot be reached: 'gatehouse serve' must run: "+err.Error())
		}
		return
	}
	defer func() { _ = resp.Body.Close() }()
	b.cancelAgain(ctx, c)
	if resp.StatusCode >= http.StatusMultipleChoices {
		b.refused(m, resp)
		return
	}
	answered, err := b.copy(resp, m)
	if answered || ctx.Err() != nil {
		return
	}
	text := "the gateway ended the answer before it was complete; what an agent has answered is in its conversation (sessions_list, session_read)"
	if err != nil {
		text += ": " + err.Error()
	}
	b.fail(m, text)
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
	version, name := m.since()
	if version == "" {
		return
	}
	req.Header.Del(sessionHeader)
	req.Header.Set(protocolHeader, version)
	req.Header.Set("Mcp-Method", m.Method)
	if name != "" {
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
	if old == "" {
		return false
	}
	b.renewing.Lock()
	defer b.renewing.Unlock()
	b.mu.Lock()
	begin, now := b.begin, b.session
	b.mu.Unlock()
	if now != old || begin == nil {
		return now != old && now != ""
	}
	m := &message{ID: json.RawMessage("0"), Method: "initialize"}
	quiet := &bridge{o: b.o}
	quiet.o.Out = io.Discard
	resp, err := quiet.send(ctx, m, begin)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := quiet.copy(resp, m); err != nil || quiet.session == "" {
		return false // the next call tries again
	}
	b.mu.Lock()
	b.session, b.protocol = quiet.session, quiet.protocol
	b.mu.Unlock()
	begun, err := b.send(ctx, &message{Method: "notifications/initialized"}, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err == nil {
		_ = begun.Body.Close() // there is nothing in it
	}
	return true
}

// copy writes the messages of an answer, each on its line, and reports whether the answer to m
// was one: progress is none.
func (b *bridge) copy(resp *http.Response, m *message) (answered bool, err error) {
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
		answered = answered || answers(data, m)
		b.write(data)
	}
	return answered, lines.Err()
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

// write writes a message. Without a reader there is nothing left to do.
func (b *bridge) write(data []byte) {
	b.writing.Lock()
	defer b.writing.Unlock()
	if _, err := b.o.Out.Write(append(bytes.Clone(data), '\n')); err != nil {
		b.gone()
	}
}

// fail answers a call with an error; what is no call has no answer.
func (b *bridge) fail(m *message, text string) {
	if !m.asks() {
		return
	}
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32000, "message": text}})
	if err == nil {
		b.write(data)
	}
}

// refused answers a call with what the gateway refused it with: an error of the protocol as it
// is.
func (b *bridge) refused(m *message, resp *http.Response) {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // at worst it is cut
	var line bytes.Buffer
	if answers(body, m) && json.Compact(&line, body) == nil {
		b.write(line.Bytes())
		return
	}
	b.fail(m, refusal(resp.Status, body))
}

// refusal returns the text of an answer that is an error.
func refusal(status string, body []byte) string {
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
	return status
}

// end ends the session.
func (b *bridge) end(ctx context.Context) {
	b.mu.Lock()
	session := b.session
	b.mu.Unlock()
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	if req, err := b.request(ctx, http.MethodDelete, http.NoBody); err == nil {
		if resp, err := b.o.Client.Do(req); err == nil {
			_ = resp.Body.Close() // there is nothing in it
		}
	}
}
