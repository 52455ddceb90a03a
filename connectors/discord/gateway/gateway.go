// Package gateway holds one connection to Discord's gateway
// (https://discord.com/developers/docs/events/gateway): it identifies or resumes, sends
// heartbeats, passes events on in order and reports why the connection ended. The
// caller decides whether and when to reconnect.
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/gorilla/websocket"

	"gatehouse/core"
)

// Version is the gateway's version that is spoken.
const Version = "10"

const (
	// maxFrame bounds one message from the platform; the largest is a guild
	// with all its channels and threads, some megabytes.
	maxFrame = 32 << 20
	// patience is how long HELLO, and then the first event, may take.
	patience = 30 * time.Second
	dialTime = 15 * time.Second
	// writeTime is the timeout for writing one message to the network.
	writeTime = 10 * time.Second
)

// A Session is what RESUME needs: who the platform thinks we are and how far
// we have come. The zero Session asks for a new one by IDENTIFY.
type Session struct {
	ID  string `json:"session,omitempty"`
	Seq int64  `json:"seq,omitempty"` // the last event that is safe with us
	URL string `json:"url,omitempty"` // resume_gateway_url
}

// An Event is one dispatch. Malformed is why the frame could not be decoded; Data is
// then the raw frame, and Seq and Type are what was found in it, if anything.
type Event struct {
	Seq       int64
	Type      string
	Data      json.RawMessage
	Malformed string
}

// Config is what a connection needs. All fields but Log are needed.
type Config struct {
	Token   string
	Intents int
	Clock   core.Clock
	Random  func(n int64) int64 // draws from [0, n)
	Log     *slog.Logger
	// Take takes one event without waiting; false when there is no room for
	// it, which ends the connection with ErrFull.
	Take func(Event) bool
	// Stored is the number of the last event that is safe with us; heartbeats
	// and RESUME name it.
	Stored func() int64
	// Alive is called when the platform has answered a heartbeat.
	Alive func()
}

// How a connection ends, other than by an error of the network or ctx.
var (
	ErrReconnect = errors.New("the platform asked to reconnect (op 7)")
	ErrSilent    = errors.New("a heartbeat was not answered: the connection is dead")
	ErrFull      = errors.New("more events came than could be stored")
)

// Invalid means that the platform does not know the session (op 9).
type Invalid struct{ Resumable bool }

func (e Invalid) Error() string {
	return fmt.Sprintf("the platform calls the session invalid (op 9, resumable: %v)", e.Resumable)
}

// Closed is the platform's close code and reason.
type Closed struct {
	Code int
	Text string
}

func (e Closed) Error() string { return fmt.Sprintf("the platform closed with %d %s", e.Code, e.Text) }

// A Refusal is an HTTP answer instead of a connection.
type Refusal struct{ Status int }

func (e Refusal) Error() string {
	return fmt.Sprintf("the gateway answers with HTTP status %d instead of a connection", e.Status)
}

// A conn is the state of one connection; only its loop touches it.
type conn struct {
	c        Config
	ws       *websocket.Conn
	interval time.Duration
	acked    bool
	beatAt   <-chan time.Time
	welcome  <-chan time.Time // until the first event
}

// Run connects to address (wss://…) and stays until the connection ends. With
// a zero session it identifies itself, else it resumes. When ctx ends, the
// platform is left in a way that keeps the session (any close code but 1000
// and 1001 does).
func (c Config) Run(ctx context.Context, address string, s Session) error {
	where, err := endpoint(address)
	if err != nil {
		return err
	}
	ws, err := dial(ctx, where)
	if err != nil {
		return err
	}
	ws.SetReadLimit(maxFrame)
	k := &conn{c: c, ws: ws, acked: true, welcome: c.Clock.After(patience)}
	frames, ended := make(chan []byte), make(chan error, 1)
	stop := make(chan struct{})
	go k.read(frames, ended, stop)
	err = k.loop(ctx, frames, ended, s)
	k.leave(err)
	close(stop)
	<-ended
	return err
}

// dial connects. The library ignores ctx while it waits for the handshake's response,
// so the connection is closed when ctx ends.
func dial(ctx context.Context, where string) (*websocket.Conn, error) {
	lines := make(chan net.Conn, 1)
	cut := context.AfterFunc(ctx, func() {
		select {
		case line := <-lines:
			line.Close()
		default:
		}
	})
	defer cut()
	dialer := websocket.Dialer{
		HandshakeTimeout: dialTime,
		NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			line, err := (&net.Dialer{Timeout: dialTime, KeepAlive: 15 * time.Second}).DialContext(ctx, network, addr)
			if err == nil {
				lines <- line
			}
			return line, err
		},
	}
	ws, resp, err := dialer.DialContext(ctx, where, http.Header{})
	switch {
	case err != nil && resp != nil:
		return nil, Refusal{resp.StatusCode}
	case err != nil:
		return nil, fmt.Errorf("connect to the gateway: %w", err)
	}
	return ws, nil
}

// endpoint adds version and encoding to the gateway's address.
func endpoint(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return "", fmt.Errorf("the gateway's address %q is not of the form wss://host", core.CutRunes(address, 100))
	}
	if u.Path == "" {
		u.Path = "/"
	}
	u.RawQuery = "v=" + Version + "&encoding=json"
	return u.String(), nil
}

// read hands frames to the loop until the connection ends; then ended has
// the error and is closed. A panic of the library ends the connection, too.
func (k *conn) read(frames chan<- []byte, ended chan<- error, stop <-chan struct{}) {
	defer close(ended)
	defer func() {
		if p := recover(); p != nil {
			k.c.Log.Error("gateway: reading panicked", "panic", p, "stack", string(debug.Stack()))
			ended <- fmt.Errorf("reading panicked: %v", p)
		}
	}()
	for {
		_, raw, err := k.ws.ReadMessage()
		if err != nil {
			ended <- err
			return
		}
		select {
		case frames <- raw:
		case <-stop:
			return
		}
	}
}

func (k *conn) loop(ctx context.Context, frames <-chan []byte, ended <-chan error, s Session) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case raw := <-frames:
			if err := k.frame(raw, s); err != nil {
				return err
			}
		case err := <-ended:
			return closed(err)
		case <-k.beatAt:
			if !k.acked {
				return ErrSilent
			}
			if err := k.beat(); err != nil {
				return err
			}
			k.beatAt = k.c.Clock.After(k.interval)
		case <-k.welcome:
			return errors.New("the gateway stays silent after the connection was made")
		}
	}
}

// closed turns the library's close error into ours.
func closed(err error) error {
	var e *websocket.CloseError
	if errors.As(err, &e) && e.Code != websocket.CloseAbnormalClosure {
		return Closed{e.Code, core.CutRunes(e.Text, 200)}
	}
	return fmt.Errorf("read from the gateway: %w", err)
}

// leave closes the connection. 1012 ("service restart") keeps the session.
func (k *conn) leave(err error) {
	var far Closed
	if !errors.As(err, &far) {
		msg := websocket.FormatCloseMessage(websocket.CloseServiceRestart, "")
		if err := k.ws.WriteControl(websocket.CloseMessage, msg, time.Now().Add(time.Second)); err != nil {
			k.c.Log.Debug("gateway: close", "err", err)
		}
	}
	if err := k.ws.Close(); err != nil {
		k.c.Log.Debug("gateway: close", "err", err)
	}
}

// send writes one message.
func (k *conn) send(op int, data any) error {
	raw, err := json.Marshal(struct {
		Op int `json:"op"`
		D  any `json:"d"`
	}{op, data})
	if err != nil {
		return err
	}
	if err := k.ws.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if err := k.ws.WriteMessage(websocket.TextMessage, raw); err != nil {
		return fmt.Errorf("write op %d to the gateway: %w", op, err)
	}
	return nil
}

// beat sends a heartbeat with the number of the last stored event, null for none.
func (k *conn) beat() error {
	k.acked = false
	if n := k.c.Stored(); n > 0 {
		return k.send(opHeartbeat, n)
	}
	return k.send(opHeartbeat, nil)
}

// hello starts the heartbeat at a random moment of its first interval, and identifies
// or resumes.

func (k *conn) hello(raw json.RawMessage, s Session) error {
	var h struct {
		Interval float64 `json:"heartbeat_interval"`
	}
	if err := json.Unmarshal(raw, &h); err != nil || h.Interval < 1 || h.Interval > 24*3600*1000 {
		return errors.New("the gateway's HELLO names no heartbeat interval")
	}
	if k.interval != 0 {
		return errors.New("the gateway sent HELLO twice")
	}
	k.interval = time.Duration(h.Interval * float64(time.Millisecond))
	k.beatAt = k.c.Clock.After(time.Duration(k.c.Random(int64(k.interval))))
	if s.ID != "" {
		return k.send(opResume, map[string]any{"token": k.c.Token, "session_id": s.ID, "seq": s.Seq})
	}
	return k.send(opIdentify, map[string]any{
		"token": k.c.Token, "intents": k.c.Intents,
		"properties": map[string]string{"os": runtime.GOOS, "browser": "gatehouse", "device": "gatehouse"},
	})
}
