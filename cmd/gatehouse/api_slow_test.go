package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"gatehouse/core/llm/llmtest"
)

// A reader who takes nothing is cut off, the run goes on to its end, and the
// reader who comes back by id has every event once.
func TestASlowReaderComesBackAndHasEveryEventOnce(t *testing.T) {
	if raceEnabled {
		t.Skip("ten megabytes of words take half a minute with the race detector; make counts runs it without")
	}
	t.Parallel()
	w, model := newModelWorld(t, nil)
	const pieces, size = 5000, 2000 // more than the kernel takes on itself
	text := make([]string, pieces)
	for i := range text {
		text[i] = fmt.Sprintf("%0*d ", size, i)
	}
	model.Script(llmtest.Reply{Thinking: text, Text: []string{"Done."}})
	conn, body := w.lazy(`{"message":"Go."}`)
	defer conn.Close()
	head := readEvents(t, iotest.OneByteReader(body), 1)
	session, run := head[0].Data["id"].(string), head[0].Data["run_id"].(string)
	w.within(time.Minute, "the run has ended", func() bool {
		return w.count(`SELECT count(*) FROM runs WHERE id = $1 AND state = 'done'`, run) == 1
	})
	rest, _ := io.ReadAll(body) // broken off, perhaps in a line
	end := bytes.LastIndex(rest, []byte("\n\n"))
	got := append(head, readEvents(t, bytes.NewReader(rest[:max(0, end+2)]), -1)...)
	if got[len(got)-1].Type == "message_stop" {
		t.Fatalf("the slow reader was not cut off, of %d events", len(got))
	}
	first := len(got)
	got = append(got, w.joinAt(session, run, got[first-1].ID)...)
	t.Logf("cut after %d of %d events", first, len(got))
	checkOrder(t, got)
	var said strings.Builder
	for _, e := range got {
		if e.Type == "thinking" {
			said.WriteString(e.Data["content"].(string))
		}
	}
	if said.String() != strings.Join(text, "") {
		t.Errorf("the reader has %d bytes of thought, there were %d", said.Len(), pieces*(size+1))
	}
}

// lazy posts a chat on a connection that takes little more than is read.
func (w *world) lazy(body string) (net.Conn, io.Reader) {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.cfg.Addr)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		w.t.Fatal(err)
	}
	req, _ := http.NewRequest("POST", "http://"+w.cfg.Addr+"/api/chat", strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+w.key)
	req.Header.Set("Content-Type", "application/json")
	if err := req.Write(conn); err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), req)
	if err != nil || resp.StatusCode != 200 {
		w.t.Fatal(resp, err)
	}
	return conn, resp.Body
}
