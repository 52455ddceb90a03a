package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/store/storetest"
)

// A swallower stands between the gateway and the PostgreSQL server. While it is armed, the
// server keeps each commit, and its answer and the connection are lost.
type swallower struct {
	t     *testing.T
	armed atomic.Bool
	lost  atomic.Int64 // answers
	work  sync.WaitGroup
}

// newSwallower returns a swallower before the server of an address over a Unix socket, and
// the address at which the gateway reaches it.
func newSwallower(t *testing.T, at string) (*swallower, string) {
	t.Helper()
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket, through := overTCP(t, at, in)
	s := &swallower{t: t}
	var mu sync.Mutex
	open := []net.Conn{}
	s.work.Go(func() {
		for {
			c, err := in.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", socket)
			if err != nil {
				t.Error(err)
				_ = c.Close()
				return
			}
			mu.Lock()
			open = append(open, c, server)
			mu.Unlock()
			s.carry(c, server)
		}
	})
	t.Cleanup(func() {
		_ = in.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		s.work.Wait()
	})
	return s, through
}

// carry begins to carry what two ends say to each other.
func (s *swallower) carry(c, server net.Conn) {
	var swallow atomic.Bool
	s.work.Go(func() {
		defer server.Close()
		defer c.Close()
		s.listen(bufio.NewReader(c), server, &swallow)
	})
	s.work.Go(func() {
		defer server.Close()
		defer c.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			if swallow.Load() { // the commit is done
				s.lost.Add(1)
				return
			}
			if _, err := c.Write(buf[:n]); err != nil {
				return
			}
		}
	})
}

// listen carries messages of the protocol, version 3, to the server, and notes a commit.
func (s *swallower) listen(in *bufio.Reader, server io.Writer, swallow *atomic.Bool) {
	commits := map[string]bool{} // names of prepared statements
	for first := true; ; first = false {
		kind := byte(0)
		if !first {
			k, err := in.ReadByte()
			if err != nil {
				return
			}
			kind = k
		}
		size := make([]byte, 4)
		if _, err := io.ReadFull(in, size); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(size)-4)
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		parts := bytes.SplitN(body, []byte{0}, 3)
		switch {
		case kind == 'P' && string(parts[1]) == "COMMIT":
			commits[string(parts[0])] = true
		case kind == 'B' && commits[string(parts[1])] && s.armed.Load():
			swallow.Store(true)
		}
		message := append(size, body...)
		if !first {
			message = append([]byte{kind}, message...)
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// lossy is a gateway whose commits lose their answers from its first model request on.
func lossy(t *testing.T) (w *world, s *swallower, model *llmtest.Server) {
	t.Helper()
	s, at := newSwallower(t, storetest.Fresh(t))
	var begun sync.Once
	model = llmtest.New(t, llmtest.Options{Choose: func(r llmtest.Request) llmtest.Reply {
		begun.Do(func() { s.armed.Store(true) })
		return llmtest.Say("You wrote: ", r.Messages[len(r.Messages)-1].Content)
	}})
	w = newWorld(t, func(c *configs.Config) {
		c.DatabaseURL, c.Model, c.OpenaiBaseURL = at, fakeModel, model.URL()
		c.RateLimit, c.Activity, c.Memory, c.Index = values.Rate{}, false, false, "off"
	})
	return w, s, model
}

// untilDone loses the answers of all commits until n runs have ended.
func (s *swallower) untilDone(w *world, n int) {
	s.t.Helper()
	w.until("the run has ended", func() bool {
		var done int
		err := w.app.db.Get(s.t.Context(), &done, `SELECT count(*) FROM runs WHERE state = 'done'`)
		return err == nil && done == n
	})
	s.armed.Store(false)
	if s.lost.Load() == 0 {
		s.t.Error("no answer of a commit was lost, so this shows nothing")
	}
}

func TestPostgres_AnAPIAnswerWhoseCommitHasNoAnswerIsGiven(t *testing.T) {
	storetest.PostgresOnly(t, "a commit of a file has an answer")
	w, s, model := lossy(t)
	answered := make(chan error, 1)
	go func() {
		status, m, _ := w.asked("POST", "/api/chat", map[string]any{"message": "two and two"}, wantJSON)
		if text, _ := m["response"].(string); status != http.StatusOK || !strings.Contains(text, "You wrote: two and two") {
			answered <- errors.New("the answer is wrong")
			return
		}
		answered <- nil
	}()
	s.untilDone(w, 1)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if n := len(model.Requests()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestPostgres_AChatAnswerWhoseCommitHasNoAnswerIsSentOnce(t *testing.T) {
	storetest.PostgresOnly(t, "a commit of a file has an answer")
	w, s, model := lossy(t)
	boss := w.boss()
	first := boss.Send("two and two").ID
	s.untilDone(w, 1)
	next := boss.Send("and one").ID
	w.answers(boss.DM(), next)
	w.quiet()
	if got := strings.Join(w.said(boss.DM(), first), "|"); got != "You wrote: two and two|You wrote: and one" || len(model.Requests()) != 2 {
		t.Errorf("the bot said %q, and the model was asked %d times", got, len(model.Requests()))
	}
}
