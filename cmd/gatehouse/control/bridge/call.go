package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
)

// A message is what the bridge reads of one.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// asks reports whether m is a call, which has an answer.
func (m *message) asks() bool { return len(m.ID) > 0 && m.Method != "" }

// since returns the version of the protocol that m names, which one of the generation without
// sessions does, and what m is about. "" is one of the generation with sessions.
func (m *message) since() (version, name string) {
	var params struct {
		Name string                     `json:"name"`
		URI  string                     `json:"uri"`
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &params) // what has no such fields is of the other generation
	if json.Unmarshal(params.Meta["io.modelcontextprotocol/protocolVersion"], &version) != nil {
		return "", ""
	}
	return version, params.Name + params.URI
}

// answers reports whether data is the answer to m.
func answers(data []byte, m *message) bool {
	var a struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	return json.Unmarshal(data, &a) == nil && a.Method == "" && same(a.ID, m.ID)
}

// same reports whether two ids are the same, also when they are written differently.
func same(a, b json.RawMessage) bool {
	var x, y any
	return bytes.Equal(a, b) || json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// A call waits for its answer.
type call struct {
	end       context.CancelFunc // ends its request
	single    bool               // it is in no session: cancelling it ends its request
	cancelled []byte             // the message that cancelled it; guarded by the bridge's mu
}

// add adds a call, whose request ends with the context that is returned.
func (b *bridge) add(ctx context.Context, m *message) (context.Context, *call) {
	version, _ := m.since()
	ctx, end := context.WithCancel(ctx)
	c := &call{end: end, single: version != ""}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running[string(m.ID)] = c
	return ctx, c
}

func (b *bridge) remove(m *message, c *call) {
	c.end()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running[string(m.ID)] == c {
		delete(b.running, string(m.ID))
	}
}

// cancel cancels the call that m cancels, if it is such a message, and reports whether that is
// all: the gateway need not be notified.
func (b *bridge) cancel(m *message, data []byte) bool {
	var params struct {
		ID json.RawMessage `json:"requestId"`
	}
	if m.Method != "notifications/cancelled" || json.Unmarshal(m.Params, &params) != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.running[string(params.ID)]
	if c == nil {
		return false
	}
	c.cancelled = data
	if c.single {
		c.end()
	}
	return c.single
}

// cancelAgain passes on again what has cancelled a call whose answer begins: it may have
// overtaken the call.
func (b *bridge) cancelAgain(ctx context.Context, c *call) {
	if c == nil {
		return
	}
	b.mu.Lock()
	data := c.cancelled
	b.mu.Unlock()
	if data == nil {
		return
	}
	if resp, err := b.send(ctx, &message{Method: "notifications/cancelled"}, data); err == nil {
		_ = resp.Body.Close() // there is nothing in it
	}
}
