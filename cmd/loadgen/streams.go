package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gatehouse/cmd/loadgen/field"
	"gatehouse/cmd/loadgen/model"
	"gatehouse/cmd/loadgen/report"
)

const (
	perKey     = 16  // streams that the gateway lets one key hold open
	perSession = 100 // idle readers of one session
	opening    = 32  // streams that are opened at the same time
	firsts     = 200 // first events that are timed, one run after the other
	ownFiles   = 500 // descriptors that either process needs for other things
	chatter    = time.Second
	chatFor    = 10 * time.Second
	guests     = 1_000_000 // their ids come after it
)

// streams measures what open event streams cost: very many that wait for a
// session's next run, and many that carry a run with output.
func (b *bench) streams(ctx context.Context) error {
	d := &report.Streams{Idle: b.c.Idle, Active: b.c.Active}
	b.data.Streams = d
	if d.Note = fewFiles(uint64(b.c.Idle + 2*b.c.Active + ownFiles)); d.Note != "" {
		b.say("streams: %s", d.Note)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp(b.dir, "bot-")
	if err != nil {
		return err
	}
	k, err := b.desk(ctx, dir)
	if err != nil {
		return err
	}
	if err := errors.Join(k.end(), invite(ctx, dir, (b.c.Idle+b.c.Active)/perKey+2)); err != nil {
		return err
	}
	if k, err = b.desk(ctx, dir); err != nil {
		return err
	}
	h := &hall{desk: k}
	err = h.measure(ctx, d)
	h.leave()
	return errors.Join(err, k.end())
}

// invite makes n users in the database of a gateway that has ended.
func invite(ctx context.Context, dir string, n int) error {
	db, err := sql.Open("sqlite3", "file:"+field.Database(dir))
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, `WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n+1 FROM c WHERE n < $1)
		INSERT INTO users (id, display, role, created_at) SELECT $2 + n, 'Guest ' || n, 'guest', '2026-01-01T00:00:00.000000Z' FROM c`, n, guests)
	return err
}

// fewFiles reports what is missing for that many open files in one process; "" is
// nothing. Go raises the soft limit of its programs to the hard one on its own.
func fewFiles(want uint64) string {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return "not measured: the limit of open files is unknown: " + err.Error()
	}
	if l.Max < want {
		return fmt.Sprintf("not measured: the hard limit of open files is %d, needed are %d (ulimit -Hn)", l.Max, want)
	}
	return ""
}

// A hall is a gateway and those who read its streams.
type hall struct {
	*desk
	keys   []string
	open   sync.WaitGroup
	events atomic.Int64 // read in all streams
	ended  atomic.Int64 // streams that are over

	mu    sync.Mutex
	conns []net.Conn // one per stream
}

func (h *hall) measure(ctx context.Context, d *report.Streams) (err error) {
	if err := h.makeKeys(ctx, (d.Idle+d.Active)/perKey+2, d.Idle); err != nil {
		return err
	}
	for i := range d.Idle/perSession + 1 {
		if _, err := h.ask(ctx, fmt.Sprintf("hall-%d", i), "vault", "Hello."); err != nil {
			return err
		}
	}
	if d.First, err = h.firstEvents(ctx); err != nil {
		return err
	}
	if d.Before, _, err = h.Memory(); err != nil {
		return err
	}
	if err := h.ResetPeak(); err != nil {
		return err
	}
	began := time.Now()
	if err := h.fill(ctx, d.Idle, 0, h.idle); err != nil {
		return err
	}
	d.Opened = float64(d.Idle) / time.Since(began).Seconds()
	time.Sleep(2 * time.Second)
	if d.IdleNow, _, err = h.Memory(); err != nil {
		return err
	}
	if d.FirstAmong, err = h.firstEvents(ctx); err != nil {
		return err
	}
	return h.talk(ctx, d)
}

// talk opens the active streams next to the idle ones and reads what that takes.
func (h *hall) talk(ctx context.Context, d *report.Streams) (err error) {
	h.model.Set(model.Plan{Slow: chatter})
	if err := h.fill(ctx, d.Active, d.Idle, h.active); err != nil {
		return err
	}
	if err := until(ctx, time.Minute, func() bool { return h.model.Waiting() == d.Active }); err != nil {
		return fmt.Errorf("of %d runs %d have begun: %w", d.Active, h.model.Waiting(), err)
	}
	before := h.events.Load()
	_, used, err := h.measured(func() ([]field.Sample, error) {
		select {
		case <-time.After(chatFor):
		case <-ctx.Done():
		}
		return nil, context.Cause(ctx)
	})
	if err != nil {
		return err
	}
	d.CPU, d.Events = used.Seconds()/chatFor.Seconds(), float64(h.events.Load()-before)/chatFor.Seconds()
	if d.Now, d.Peak, err = h.Memory(); err != nil {
		return err
	}
	series, err := h.Series(ctx)
	if err != nil {
		return err
	}
	d.Goroutines = series["go_goroutines"] / float64(d.Idle+d.Active)
	if n := h.ended.Load(); n > 0 || series["gatehouse_sse_streams"] != float64(d.Idle+d.Active) {
		return fmt.Errorf("%d streams ended too early, the gateway has %v open", n, series["gatehouse_sse_streams"])
	}
	h.model.Release()
	if err := until(ctx, time.Minute, func() bool { return h.ended.Load() == int64(d.Active) }); err != nil {
		return fmt.Errorf("of %d runs %d have ended: %w", d.Active, h.ended.Load(), err)
	}
	return nil
}

// makeKeys makes n API keys: those of idle streams are the operator's, who has
// begun the sessions, and each further one is of a user of its own, since the
// messages that one user lets wait are bounded.
func (h *hall) makeKeys(ctx context.Context, n, idle int) error {
	own, err := h.key()
	if err != nil {
		return err
	}
	for i := range n {
		user := 1
		if i > idle/perKey {
			user = guests + i
		}
		body := fmt.Sprintf(`{"label":"hall %d","user_id":%d,"trust_level":"vault","scopes":["chat"]}`, i, user)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/api/keys", strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+own)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		var made struct {
			Key string `json:"key"`
		}
		err = json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&made)
		_ = resp.Body.Close()
		if err != nil || made.Key == "" {
			return fmt.Errorf("a key is not made: %s %w", resp.Status, err)
		}
		h.keys = append(h.keys, made.Key)
	}
	return nil
}

// fill opens n streams, the first of which is number from.
func (h *hall) fill(ctx context.Context, n, from int, open func(context.Context, int) error) error {
	next, failed := atomic.Int64{}, make(chan error, opening)
	for range opening {
		go func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := open(ctx, from+i); err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	var err error
	for range opening {
		err = errors.Join(err, <-failed)
	}
	return err
}

// idle opens a stream that waits for a session's next run.
func (h *hall) idle(ctx context.Context, i int) error {
	return h.watch(ctx, i, "GET", fmt.Sprintf("/api/chat/hall-%d/events", i/perSession), "", ": open")
}

// active opens a run's stream and waits for its first event.
func (h *hall) active(ctx context.Context, i int) error {
	return h.watch(ctx, i, "POST", "/api/chat", fmt.Sprintf(`{"message":"Go on.","session_id":"active-%d"}`, i), "data: ")
}

// watch asks for a stream, waits for a line that begins with first, and reads on
// next to until the stream ends.
func (h *hall) watch(ctx context.Context, i int, method, path, body, first string) error {
	conn, lines, err := h.request(ctx, i, method, path, body)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.conns = append(h.conns, conn)
	h.mu.Unlock()
	if err := lineOf(lines, first); err != nil {
		return fmt.Errorf("stream %d: %w", i, err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	h.open.Go(func() {
		for lineOf(lines, "data: ") == nil {
			h.events.Add(1)
		}
		h.ended.Add(1)
	})
	return nil
}

// request begins a stream on a connection of its own. The addresses of this
// machine take turns, so that no one runs out of ports.
func (h *hall) request(ctx context.Context, i int, method, path, body string) (net.Conn, *bufio.Reader, error) {
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%4))}, Timeout: 30 * time.Second}
	host := strings.TrimPrefix(h.url, "http://")
	conn, err := from.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, nil, err
	}
	fail := func(err error) (net.Conn, *bufio.Reader, error) { return nil, nil, errors.Join(err, conn.Close()) }
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return fail(err)
	}
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, path, host, h.keys[i/perKey], len(body), body); err != nil {
		return fail(err)
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
	if err != nil {
		return fail(err)
	}
	if resp.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fail(fmt.Errorf("%s %s: %s %s", method, path, resp.Status, why))
	}
	return conn, bufio.NewReaderSize(resp.Body, 512), nil
}

// lineOf reads up to a line that begins with this.
func lineOf(r *bufio.Reader, begin string) error {
	for {
		line, err := r.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !long {
			return err
		}
		found := bytes.HasPrefix(line, []byte(begin))
		for long { // the rest of the line
			_, err = r.ReadSlice('\n')
			long = errors.Is(err, bufio.ErrBufferFull)
		}
		if found {
			return nil
		}
	}
}

// firstEvents returns the times from asking to the run's first event, one at a time.
func (h *hall) firstEvents(ctx context.Context) (report.Percentiles, error) {
	h.model.Set(model.Plan{})
	var took []time.Duration
	last := (len(h.keys) - 1) * perKey // the last key has nothing else open
	for n := range firsts + 10 {
		began := time.Now()
		conn, lines, err := h.request(ctx, last, "POST", "/api/chat", `{"message":"Hello.","session_id":"first"}`)
		if err != nil {
			return report.Percentiles{}, err
		}
		err = lineOf(lines, "data: ")
		if n >= 10 {
			took = append(took, time.Since(began))
		}
		if err == nil {
			err = lineOf(lines, `data: {"type":"message_stop"`)
		}
		if err = errors.Join(err, conn.Close()); err != nil {
			return report.Percentiles{}, err
		}
	}
	return report.Summary(took), nil
}

// leave closes every stream and waits for its reader.
func (h *hall) leave() {
	h.mu.Lock()
	for _, c := range h.conns {
		_ = c.Close()
	}
	h.mu.Unlock()
	h.open.Wait()
}
