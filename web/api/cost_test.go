package api

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"

	"gatehouse/web/api/sessions"
	"gatehouse/web/auth"
)

// A stream that waits for a session's next run costs two small goroutines and
// a few kilobytes, its connection and the test's own end of it included.
func TestAStreamThatWaitsCostsLittle(t *testing.T) {
	const streams = 300
	h := open(t, options{streams: streams + 10})
	id := uuid.NewString()
	h.sessions[id] = sessions.Row{ID: id, User: 7}
	key := h.key(auth.ScopeChat)
	for range 10 { // what is made once
		h.idle(id, key)
	}
	held := func() (bytes, goroutines int64) {
		var m runtime.MemStats
		for range 3 { // pools are emptied, and stacks halved, with each
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse), int64(runtime.NumGoroutine())
	}
	bytes, goroutines := held()
	for range streams {
		h.idle(id, key)
	}
	more, beside := held()
	per, each := (more-bytes)/streams, float64(beside-goroutines)/streams
	t.Logf("%d bytes and %.2f goroutines a stream", per, each)
	if per > 16<<10 || each > 2.1 {
		t.Errorf("a stream that waits takes %d bytes and %.2f goroutines, want at most 16 KiB and 2", per, each)
	}
}

// idle opens a stream that waits, until the test ends.
func (h *harness) idle(session, key string) {
	h.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintf(conn, "GET /api/chat/%s/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", session, key)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != 200 {
		h.t.Fatal(res, err)
	}
}
