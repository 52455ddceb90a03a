package client_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/core/coretest"
	"gatehouse/core/vaultsync/client"
)

// A badLine is a server behind a line that breaks in each request, or answer, of more than a
// megabyte.
type badLine struct {
	http.Handler
	broken atomic.Int64
	pushes atomic.Int64
	down   atomic.Bool // every push fails
}

func (l *badLine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const most = 1 << 20
	if strings.HasSuffix(r.URL.Path, "/push") {
		if l.pushes.Add(1); l.down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
	}
	in, _ := io.ReadAll(io.LimitReader(r.Body, most+1))
	if len(in) > most {
		l.broken.Add(1)
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(in))
	out := httptest.NewRecorder()
	l.Handler.ServeHTTP(out, r)
	for key, values := range out.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(out.Code)
	text := out.Body.Bytes()
	_, _ = w.Write(text[:min(len(text), most)])
	if len(text) > most {
		l.broken.Add(1)
		panic(http.ErrAbortHandler)
	}
}

// over has a device sync with the server over a bad line.
func (d *device) over(t *testing.T, s *server) *badLine {
	t.Helper()
	line := &badLine{Handler: s.handler}
	listening := httptest.NewServer(line)
	t.Cleanup(listening.Close)
	at, err := url.Parse(listening.URL)
	if err != nil {
		t.Fatal(err)
	}
	d.o.HTTP = &http.Client{Transport: elsewhere(at.Host)}
	return line
}

func once(t *testing.T, c *client.Client) client.Report {
	t.Helper()
	r, err := c.Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func told(r client.Report, name string) bool {
	return len(r.Errors) == 1 && strings.HasPrefix(r.Errors[0], name+": it does not arrive: ")
}

// It is reported and tried again after a pause; what comes behind it is done.
func TestOnce_AFileThatCannotBeSentKeepsNoOther(t *testing.T) {
	s, a, _ := pair(t)
	for _, name := range []string{"gone.md", "old.md"} {
		write(t, a.dir, name, name)
	}
	a.sync(t)
	line := a.over(t, s)
	remove(t, a.dir, "gone.md")
	remove(t, s.dir, "old.md")
	write(t, s.dir, "there.md", "new there")
	write(t, a.dir, "a.md", "before it")
	noise(t, a.dir, "film.mp4", 2<<20)
	write(t, a.dir, "z.md", "behind it")
	c, err := client.Open(a.o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if r := once(t, c); r.Sent != 2 || r.DeletedOut != 1 || r.Fetched != 1 || r.DeletedHere != 1 || !told(r, "film.mp4") {
		t.Errorf("%+v", r)
	}
	remove(t, a.dir, "film.mp4")
	same(t, s.dir, a.dir)
	noise(t, a.dir, "film.mp4", 2<<20)
	tries := line.broken.Load()
	if r := once(t, c); !told(r, "film.mp4") || line.broken.Load() != tries {
		t.Errorf("before the pause is over: %+v", r)
	}
	a.o.Clock.(*coretest.Clock).Advance(time.Minute)
	if r := once(t, c); !told(r, "film.mp4") || line.broken.Load() == tries {
		t.Errorf("behind it: %+v", r)
	}
	write(t, a.dir, "film.mp4", "a shorter one")
	if r := once(t, c); r.Sent != 1 || len(r.Errors) != 0 {
		t.Errorf("another content: %+v", r)
	}
	same(t, s.dir, a.dir)
}

func TestOnce_AFileThatCannotBeFetchedKeepsNoOther(t *testing.T) {
	s, a, b := pair(t)
	write(t, b.dir, "old.md", "old")
	b.sync(t)
	line := b.over(t, s)
	write(t, s.dir, "a.md", "before it")
	sum := noise(t, s.dir, "film.mp4", 2<<20)
	write(t, s.dir, "z.md", "behind it")
	remove(t, s.dir, "old.md")
	c, err := client.Open(b.o)
	if err != nil {
		t.Fatal(err)
	}
	r := once(t, c)
	if r.Fetched != 2 || r.DeletedHere != 1 || !told(r, "film.mp4") {
		t.Errorf("%+v", r)
	}
	tries := line.broken.Load()
	if r := once(t, c); !told(r, "film.mp4") || line.broken.Load() != tries {
		t.Errorf("before the pause is over: %+v", r)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	b.o.HTTP = a.o.HTTP
	if r := b.sync(t); r.Fetched != 1 || sumOf(t, b.dir, "film.mp4") != sum {
		t.Errorf("over another line: %+v", r)
	}
	same(t, s.dir, b.dir)
}

// More of them than a run tries are behind the others, also for a client that runs once.
func TestOnce_LargeFilesThatCannotBeSentAreBehindTheOthers(t *testing.T) {
	s, a, _ := pair(t)
	a.over(t, s)
	for i := range 5 {
		noise(t, a.dir, fmt.Sprintf("film %d.mp4", i), 2<<20)
	}
	write(t, a.dir, "z.md", "text")
	if r := a.sync(t); r.Sent != 1 || read(t, s.dir, "z.md") != "text" {
		t.Errorf("%+v", r)
	}
}

// The server has it under its old name until it has it under the new one.
func TestOnce_ARenamedFileThatCannotBeSentIsNotDeletedThere(t *testing.T) {
	s, a, _ := pair(t)
	good := a.o.HTTP
	sum := noise(t, a.dir, "film.mp4", 2<<20)
	a.sync(t)
	a.over(t, s)
	if err := os.Rename(filepath.Join(a.dir, "film.mp4"), filepath.Join(a.dir, "a film.mp4")); err != nil {
		t.Fatal(err)
	}
	if r := a.sync(t); !told(r, "a film.mp4") || sumOf(t, s.dir, "film.mp4") != sum {
		t.Errorf("%+v", r)
	}
	a.o.HTTP = good
	a.sync(t)
	same(t, s.dir, a.dir)
}

// A server that takes no file is not sent all of them; it is asked for what it has.
func TestOnce_AServerThatTakesNothingIsSentFewFiles(t *testing.T) {
	s, a, _ := pair(t)
	line := a.over(t, s)
	line.down.Store(true)
	for i := range 20 {
		write(t, a.dir, fmt.Sprintf("%02d.md", i), "new here")
	}
	write(t, s.dir, "there.md", "new there")
	if r := a.sync(t); r.Fetched != 1 || r.Sent != 0 || !strings.Contains(strings.Join(r.Errors, "\n"), " files wait") {
		t.Errorf("%+v", r)
	}
	if n := line.pushes.Load(); n > 8 {
		t.Errorf("%d requests", n)
	}
	line.down.Store(false)
	a.sync(t)
	same(t, s.dir, a.dir)
}
