package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"time"
)

// RunStream opens a stream like OpenStream, for one that mostly waits, and has f
// write it: f runs on a connection and in a goroutine of its own, so that what
// a request holds (buffers, headers, a deep stack) is given back while the
// stream is open. RunStream returns as soon as it is, and the stream is closed
// when f returns. The stream's context does not end with the request's then,
// but with the reader, and f must not use the request. With an error f is not
// called. Where a connection cannot be taken over, f runs before RunStream returns.
func RunStream(w http.ResponseWriter, r *http.Request, o StreamOptions, f func(*Stream)) error {
	eventHeaders(w.Header())
	srv, _ := r.Context().Value(stopKey{}).(*Server)
	conn, ok := takeOver(w, r, srv)
	if !ok {
		s, err := OpenStream(w, r, o)
		if err != nil {
			return err
		}
		defer s.Close()
		f(s)
		return nil
	}
	head, chunked := headOf(r, w.Header())
	line := lineOf(w)
	c := &connection{conn: conn, chunked: chunked, line: line, srv: srv}
	s, err := newStream(srv.base, c, o, head)
	if err != nil { // the reader is gone already
		return err
	}
	go s.drain(conn)
	go func() {
		defer s.Close()
		defer func() {
			if p := recover(); p != nil {
				srv.log.Error("panic in a stream", "request", line.name(), "panic", p, "stack", string(debug.Stack()))
				s.fail(errPanic)
			}
		}()
		f(s)
	}()
	return nil
}

var errPanic = errors.New("the stream's writer panicked")

// takeOver takes the connection from net/http.
func takeOver(w http.ResponseWriter, r *http.Request, srv *Server) (net.Conn, bool) {
	if srv == nil || r.ProtoMajor != 1 || !srv.more() {
		return nil, false
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		srv.fewer()
		return nil, false
	}
	return conn, true
}

// headOf returns the answer's head. HTTP/1.0 knows no chunks: there the stream ends
// with its connection.
func headOf(r *http.Request, h http.Header) (head []byte, chunked bool) {
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 200 OK\r\n")
	if chunked = r.ProtoAtLeast(1, 1); chunked {
		h.Set("Transfer-Encoding", "chunked")
	}
	h.Set("Connection", "close")
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	_ = h.Write(&b) // a buffer takes everything
	b.WriteString("\r\n")
	return b.Bytes(), chunked
}

// drain reads what a reader has no business to send, a little, to learn when
// it goes. It ends when the stream closes.
func (s *Stream) drain(conn net.Conn) {
	some := make([]byte, 64)
	for range 64 {
		if _, err := conn.Read(some); err != nil {
			break
		}
	}
	s.cancel(context.Canceled)
}

// A connection is written to as it is.
type connection struct {
	conn    net.Conn
	chunked bool
	at      int // where the present piece begins in the buffer
	sent    int64
	line    *requestLine
	srv     *Server
}

const chunkHead = "00000000\r\n" // the length, in hexadecimal digits

func (c *connection) begin(b *bytes.Buffer) {
	if c.at = b.Len(); c.chunked {
		b.WriteString(chunkHead)
	}
}

func (c *connection) end(b *bytes.Buffer) {
	if c.chunked {
		copy(b.Bytes()[c.at:], fmt.Sprintf("%08x", b.Len()-c.at-len(chunkHead)))
		b.WriteString("\r\n")
	}
}

func (c *connection) write(b []byte, patience time.Duration) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	n, err := c.conn.Write(b)
	c.sent += int64(n)
	return err
}

func (c *connection) close(cut bool) {
	if c.chunked && !cut {
		_ = c.write([]byte("0\r\n\r\n"), time.Second)
	}
	_ = c.conn.Close()
	c.line.log(http.StatusOK, c.sent)
	c.srv.fewer()
}
