package discordtest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// Opcodes ([codes] "Gateway Opcodes").
const (
	opDispatch     = 0
	opHeartbeat    = 1
	opIdentify     = 2
	opResume       = 6
	opReconnect    = 7
	opInvalid      = 9
	opHello        = 10
	opHeartbeatACK = 11
)

// Close codes ([codes] "Gateway Close Event Codes").
const (
	closeUnknown    = 4000
	closeOpcode     = 4001
	closeDecode     = 4002
	closeNoIdentify = 4003
	closeAuth       = 4004
	closeTwice      = 4005
	closeSeq        = 4007
	closeRate       = 4008
	closeTimeout    = 4009
	closeShard      = 4010
	closeVersion    = 4012
	closeIntents    = 4013
	closeDisallowed = 4014
)

const (
	maxPayload = 4096    // [gateway] "Sending Events"
	maxSends   = 120     // [gateway] "Rate Limiting": 120 events per connection every 60 seconds
	maxConns   = 100     // ours
	maxQueue   = 100_000 // frames that wait for one client; one that reads no more is cut off
)

// A conn is one websocket. All but ws is guarded by Server.mu; reading is done
// by the goroutine of the request, writing by pump.
type conn struct {
	s        *Server
	ws       *websocket.Conn
	id       int
	resuming bool // it came by the resume_gateway_url
	bot      *bot
	ses      *session
	queue    []frame
	bell     chan struct{}
	done     chan struct{}
	closed   bool // no more frames
	lastBeat time.Time
	sends    window
	compress bool
}

// A frame is one payload to the client; code is that of a close frame.
type frame struct {
	data []byte
	code int
	text string
}

type payload struct {
	Op int             `json:"op"`
	D  json.RawMessage `json:"d"`
}

// serveGateway opens a connection ([gateway] "Connecting"). REST faults for
// the method "gateway" hit it before the upgrade.
func (s *Server) serveGateway(w http.ResponseWriter, r *http.Request) {
	entry := Request{At: s.clock.Now(), Verb: r.Method, Path: strings.TrimPrefix(r.URL.RequestURI(), "/"), Method: "gateway"}
	note := func(outcome string) {
		entry.Outcome = outcome
		s.record(entry)
	}
	if _, ok := s.Begin(w, r, "gateway", note); !ok {
		return
	}
	up := websocket.Upgrader{CheckOrigin: func(r *http.Request) bool { return r.Header.Get("Origin") == "" }}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		entry.Status = http.StatusBadRequest // Upgrade has answered
		note("answered")
		return
	}
	entry.Status = http.StatusSwitchingProtocols
	note("answered")
	c := &conn{s: s, ws: ws, resuming: strings.HasPrefix(r.URL.Path, "/gateway/resume"), bell: make(chan struct{}, 1), done: make(chan struct{}),
		sends: window{limit: maxSends, per: time.Minute}}
	defer ws.Close()
	defer close(c.done)
	if !c.greet(r.URL.Query().Get("v"), r.URL.Query().Get("encoding"), r.URL.Query().Get("compress")) {
		return
	}
	s.Go(c.pump)
	s.Go(c.watch)
	c.read()
}

// greet registers the connection and sends HELLO; false when the server is
// closing or full. Versions before 9 are not simulated, nor other encodings.
func (c *conn) greet(version, encoding, compress string) bool {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Away() || len(s.conns) >= maxConns {
		return false
	}
	s.connID++
	c.id, c.lastBeat = s.connID, s.clock.Now()
	s.conns[c] = struct{}{}
	c.log(GatewayEvent{Kind: "connect", Resuming: c.resuming})
	switch {
	case version != "9" && version != "10":
		c.close(closeVersion, "Invalid API version.")
	case encoding != "json" || compress != "":
		c.close(closeDecode, "Only JSON without transport compression is simulated.")
	default:
		c.send(opHello, map[string]any{"heartbeat_interval": s.opt.Heartbeat.Milliseconds()})
	}
	return true
}

// read takes what the client sends until the connection ends.
func (c *conn) read() {
	for {
		_, r, err := c.ws.NextReader()
		if err != nil {
			c.gone(err)
			return
		}
		b, err := io.ReadAll(io.LimitReader(r, maxPayload+1))
		if err == nil && len(b) > maxPayload {
			_, err = io.Copy(io.Discard, io.LimitReader(r, 1<<20))
		}
		if err != nil {
			c.gone(err)
			return
		}
		c.s.mu.Lock()
		c.take(b)
		c.s.mu.Unlock()
	}
}

// gone ends the connection. A client that closes with 1000 or 1001 ends its
// session; any other way leaves it to be resumed ([gateway] "Initiating a
// Disconnect").
func (c *conn) gone(err error) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	code := 0
	var ce *websocket.CloseError
	if errors.As(err, &ce) && ce.Code != websocket.CloseAbnormalClosure && ce.Code != websocket.CloseNoStatusReceived {
		code = ce.Code
	}
	if !c.closed {
		c.log(GatewayEvent{Kind: "left", Code: code})
	}
	ses := c.ses
	c.detach()
	if ses != nil && (code == websocket.CloseNormalClosure || code == websocket.CloseGoingAway) {
		delete(c.bot.sessions, ses.id)
	}
	c.closed = true
	delete(s.conns, c)
}

// detach leaves the session without a connection.
func (c *conn) detach() {
	if c.ses == nil {
		return
	}
	if c.ses.conn == c {
		c.ses.conn, c.ses.left = nil, c.s.clock.Now()
	}
	c.ses = nil
	c.s.emit(Change{Kind: ChangeBot, User: &c.bot.account, Status: "offline"})
}

// take handles one payload of the client. Called under the lock.
func (c *conn) take(b []byte) {
	s := c.s
	if c.closed || c.bot != nil && c.bot.disturb.frozen {
		return
	}
	if _, ok := c.sends.take(s.clock.Now()); !ok && !s.floodOff {
		c.close(closeRate, "Rate limited.")
		return
	}
	var p payload
	switch {
	case len(b) > maxPayload || json.Unmarshal(b, &p) != nil:
		c.close(closeDecode, "Error while decoding payload.")
	case p.Op == opHeartbeat:
		c.beat(p.D)
	case p.Op == opIdentify && c.ses == nil:
		c.identify(p.D)
	case p.Op == opResume && c.ses == nil:
		c.resume(p.D)
	case p.Op == opIdentify || p.Op == opResume:
		c.close(closeTwice, "Already authenticated.")
	case c.ses == nil:
		c.close(closeNoIdentify, "Not authenticated.")
	case p.Op == 3 || p.Op == 4 || p.Op == 8 || p.Op == 31 || p.Op == 43: // presence, voice, members, sounds, channels: taken, of no effect
	default:
		c.close(closeOpcode, "Unknown opcode.")
	}
}

// beat answers a heartbeat ([gateway] "Sending Heartbeats"). Its d is null or
// the last sequence number; one that was never sent is invalid.
func (c *conn) beat(d json.RawMessage) {
	var seq *int64
	if json.Unmarshal(d, &seq) != nil {
		c.close(closeDecode, "Error while decoding payload.")
		return
	}
	if seq != nil && c.ses != nil && *seq > c.ses.seq {
		c.closeSession(closeSeq, "Invalid seq.")
		return
	}
	c.lastBeat = c.s.clock.Now()
	e := GatewayEvent{Kind: "heartbeat"}
	if seq != nil {
		e.SeqNo = *seq
	}
	c.log(e)
	if c.bot == nil || !c.bot.disturb.deaf {
		c.send(opHeartbeatACK, nil)
	}
}

// watch closes a connection whose client stopped its heartbeats, after one and
// a half intervals (the half is ours: "there is already tolerance in the
// heartbeat_interval"). The session can be resumed ([gateway] "Heartbeat
// Interval").
func (c *conn) watch() {
	s := c.s
	most := s.opt.Heartbeat + s.opt.Heartbeat/2
	wait := most
	for {
		select {
		case <-s.clock.After(wait):
		case <-c.done:
			return
		case <-s.Closing():
			return
		}
		s.mu.Lock()
		wait = most - s.clock.Now().Sub(c.lastBeat)
		if wait <= 0 && !c.closed {
			c.close(closeUnknown, "Heartbeat missed.")
		}
		s.mu.Unlock()
		if wait <= 0 {
			return
		}
	}
}
