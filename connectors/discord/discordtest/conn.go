package discordtest

import (
	"encoding/json"
	"time"

	"github.com/gorilla/websocket"

	"gatehouse/connectors/simulator"
)

func (c *conn) send(op int, d any) {
	b, err := json.Marshal(struct {
		T  *string `json:"t"`
		S  *int64  `json:"s"`
		Op int     `json:"op"`
		D  any     `json:"d"`
	}{Op: op, D: d})
	if err == nil {
		c.push(frame{data: b})
	}
}

// push queues a frame; a client that does not read is cut off.
func (c *conn) push(f frame) {
	if c.closed {
		return
	}
	if len(c.queue) >= maxQueue {
		c.drop("the client reads no more")
		return
	}
	c.queue = append(c.queue, f)
	c.ring()
}

func (c *conn) ring() {
	select {
	case c.bell <- struct{}{}:
	default:
	}
}

// close ends the connection with a code after what is queued; the session can
// be resumed.
func (c *conn) close(code int, text string) {
	if c.closed {
		return
	}
	c.push(frame{code: code, text: text})
	c.closed = true
	c.log(GatewayEvent{Kind: "close", Code: code, Text: text})
	c.detach()
}

// closeSession ends the session too (4007 and 4009: "start a new session").
func (c *conn) closeSession(code int, text string) {
	if c.ses != nil {
		delete(c.bot.sessions, c.ses.id)
	}
	c.close(code, text)
}

// drop cuts the connection without a close frame.
func (c *conn) drop(why string) {
	if !c.closed {
		c.log(GatewayEvent{Kind: "drop", Text: why})
	}
	c.closed = true
	c.detach()
	simulator.Sever(c.ws.UnderlyingConn())
}

// pump writes what is queued.
func (c *conn) pump() {
	for {
		select {
		case <-c.bell:
		case <-c.done:
			return
		}
		for {
			f, slow, ok := c.next()
			if !ok {
				break
			}
			if slow > 0 {
				select {
				case <-c.s.clock.After(slow):
				case <-c.done:
					return
				case <-c.s.Closing():
					return
				}
			}
			if !c.write(f) {
				return
			}
		}
	}
}

// next takes the first frame, unless the connection is frozen.
func (c *conn) next() (f frame, slow time.Duration, ok bool) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if len(c.queue) == 0 {
		c.queue = nil
		return f, 0, false
	}
	if c.bot != nil {
		if c.bot.disturb.frozen {
			return f, 0, false
		}
		slow = c.bot.disturb.slow
	}
	f = c.queue[0]
	c.queue[0] = frame{}
	c.queue = c.queue[1:]
	return f, slow, true
}

// write sends one frame. After a close frame the client has a second to answer.
func (c *conn) write(f frame) bool {
	soon := time.Now().Add(10 * time.Second) // of the socket, which knows no other clock
	if f.code != 0 {
		c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(f.code, f.text), soon)
		c.ws.SetReadDeadline(time.Now().Add(time.Second))
		return false
	}
	c.ws.SetWriteDeadline(soon)
	kind, data := websocket.TextMessage, f.data
	c.s.mu.Lock()
	compress := c.compress
	c.s.mu.Unlock()
	if compress && len(data) > 1024 { // "not all payloads will be compressed"
		kind, data = websocket.BinaryMessage, deflate(data)
	}
	if c.ws.WriteMessage(kind, data) != nil {
		c.ws.Close()
		return false
	}
	return true
}
