package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/vaultsync/client"
	"gatehouse/web/auth"
)

// counting counts the bytes of bodies, both ways.
type counting struct{ n int64 }

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body = counted{r.Body, &c.n}
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		res.Body = counted{res.Body, &c.n}
	}
	return res, err
}

type counted struct {
	io.ReadCloser
	n *int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	*c.n += int64(n)
	return n, err
}

func TestOnce_AChangedLineOfALargeVaultCostsLittleOnTheWire(t *testing.T) {
	s := serve(t, t.TempDir())
	d := s.device(t, "laptop", s.key(t, core.Operator, core.Vault, auth.ScopeSync))
	for i := range 300 {
		write(t, d.dir, fmt.Sprintf("Notes/%03d.md", i), strings.Repeat("a line\n", 100))
	}
	d.sync(t)
	d.sync(t) // it learns the cursor of what it sent
	wire := &counting{}
	d.o.HTTP = &http.Client{Transport: wire}
	write(t, d.dir, "Notes/007.md", "changed\n"+strings.Repeat("a line\n", 100))
	if r := d.sync(t); r.Sent != 1 {
		t.Fatalf("%+v", r)
	}
	if wire.n > 4<<10 {
		t.Errorf("%d bytes", wire.n)
	}
}

// weighing measures the memory in use while an answer is read.
type weighing struct {
	io.ReadCloser
	reads *int
	most  *uint64
}

func (w weighing) Read(p []byte) (int, error) {
	if *w.reads++; *w.reads%20 == 0 {
		*w.most = max(*w.most, inUse())
	}
	return w.ReadCloser.Read(p)
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first has found finished
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// roundTrip makes a function a transport.
type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A device knows of each file its hashes and little else, also while it reads the server's list.
func TestOnce_NeedsLittleMemoryForManyFiles(t *testing.T) {
	const files, each, others = 10_000, 300, 1 << 20 // in bytes
	s := serve(t, t.TempDir())
	d := s.device(t, "laptop", s.key(t, core.Operator, core.Vault, auth.ScopeSync))
	for i := range files {
		name := fmt.Sprintf("Notes/%02d/a note with a name %05d.md", i%50, i)
		write(t, s.dir, name, "x")
		write(t, d.dir, name, "x")
	}
	reads, most, base := 0, uint64(0), inUse()
	d.o.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		res, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			res.Body = weighing{res.Body, &reads, &most}
		}
		return res, err
	})}
	for range 2 {
		c, err := client.Open(d.o)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := c.Once(t.Context()); err != nil || r.Sent+r.Fetched != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		most = max(most, inUse())
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if grown := int64(most - base); reads < 40 || grown > files*each+others {
		t.Errorf("%d files take %d bytes each, in %d reads", files, grown/files, reads)
	} else {
		t.Logf("%d files take %d bytes each", files, grown/files)
	}
}

// A file passes through both sides in pieces, in either direction.
func TestOnce_ALargeFileNeedsLittleMemory(t *testing.T) {
	const size, limit = 48 << 20, 12 << 20 // both sides together; a text of up to 4 MiB is kept whole
	s := serve(t, t.TempDir())
	key := s.key(t, core.Operator, core.Vault, auth.ScopeSync)
	from, to := s.device(t, "laptop", key), s.device(t, "phone", key)
	write(t, from.dir, "film.mp4", "")
	if err := os.Truncate(filepath.Join(from.dir, "film.mp4"), size); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*device{from, to} {
		reads, most, base := 0, uint64(0), inUse()
		d.o.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Body != nil {
				r.Body = weighing{r.Body, &reads, &most}
			}
			res, err := http.DefaultTransport.RoundTrip(r)
			if err == nil {
				res.Body = weighing{res.Body, &reads, &most}
			}
			return res, err
		})}
		if r := d.sync(t); r.Sent+r.Fetched != 1 {
			t.Fatalf("%+v", r)
		}
		if grown := int64(most - base); reads < 100 || grown > limit {
			t.Errorf("%s: %d MiB take %.1f MiB, in %d reads", d.name, size>>20, float64(grown)/(1<<20), reads)
		} else {
			t.Logf("%s: %.1f MiB, in %d reads", d.name, float64(grown)/(1<<20), reads)
		}
	}
	if st, err := os.Stat(filepath.Join(to.dir, "film.mp4")); err != nil || st.Size() != size {
		t.Errorf("%v, %v", st, err)
	}
}

// large returns a device whose folder has 10,000 files, which are synced.
func large(b *testing.B) (*server, *device) {
	b.Helper()
	s := serve(b, b.TempDir())
	d := s.device(b, "laptop", s.key(b, core.Operator, core.Vault, auth.ScopeSync))
	for i := range 10_000 {
		write(b, s.dir, fmt.Sprintf("Notes/%02d/%04d.md", i%100, i), fmt.Sprintf("%d\n", i)+strings.Repeat("a line\n", 100))
	}
	d.sync(b)
	d.sync(b)
	return s, d
}

// oneLine changes a line of the vault and returns the file's content.
func oneLine(b *testing.B, d *device, n int) string {
	b.Helper()
	text := fmt.Sprintf("changed %d\n", n) + strings.Repeat("a line\n", 100)
	write(b, d.dir, "Notes/07/0007.md", text)
	return text
}

// median reports the median of how long each round took.
func median(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "median-ms")
	b.ReportMetric(float64(took[len(took)-1].Milliseconds()), "max-ms")
}

// BenchmarkOneLine measures a change of one line in a vault of 10,000 files, from the
// start of the client to its end.
func BenchmarkOneLine(b *testing.B) {
	_, d := large(b)
	wire := &counting{}
	d.o.HTTP = &http.Client{Transport: wire}
	var took []time.Duration
	for b.Loop() {
		oneLine(b, d, len(took))
		at := time.Now()
		if r := d.sync(b); r.Sent != 1 {
			b.Fatalf("%+v", r)
		}
		took = append(took, time.Since(at))
	}
	b.ReportMetric(float64(wire.n)/float64(len(took)), "wire-B/op")
	median(b, took)
}

// BenchmarkOneLineWatched measures the same with a client that watches the folder, until the
// server has the change.
func BenchmarkOneLineWatched(b *testing.B) {
	s, d := large(b)
	d.o.Clock = core.System{}
	c, err := client.Open(d.o)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	reports, ended := make(chan client.Report, 100), make(chan error, 1)
	go func() { ended <- c.Watch(ctx, func(r client.Report) { reports <- r }) }()
	var took []time.Duration
	for n := -1; n == -1 || b.Loop(); n++ { // the first is not measured: the folder is not watched before
		text, at := oneLine(b, d, n), time.Now()
		if r := <-reports; r.Sent != 1 {
			b.Fatalf("%+v", r)
		}
		if n >= 0 {
			took = append(took, time.Since(at))
		}
		if read(b, s.dir, "Notes/07/0007.md") != text {
			b.Fatal("the server has another content")
		}
	}
	median(b, took)
	stop()
	if err := errors.Join(<-ended, c.Close()); err != nil {
		b.Fatal(err)
	}
}
