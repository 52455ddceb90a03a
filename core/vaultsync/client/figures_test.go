package client_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"gatehouse/core"
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

// BenchmarkOneLine measures a change of one line in a vault of 10,000 files, from the
// start of the client to its end.
func BenchmarkOneLine(b *testing.B) {
	s := serve(b, b.TempDir())
	d := s.device(b, "laptop", s.key(b, core.Operator, core.Vault, auth.ScopeSync))
	for i := range 10_000 {
		write(b, s.dir, fmt.Sprintf("Notes/%02d/%04d.md", i%100, i), fmt.Sprintf("%d\n", i)+strings.Repeat("a line\n", 100))
	}
	d.sync(b)
	d.sync(b)
	wire := &counting{}
	d.o.HTTP = &http.Client{Transport: wire}
	n := 0
	for b.Loop() {
		n++
		write(b, d.dir, "Notes/07/0007.md", fmt.Sprintf("changed %d\n", n)+strings.Repeat("a line\n", 100))
		if r := d.sync(b); r.Sent != 1 {
			b.Fatalf("%+v", r)
		}
	}
	b.ReportMetric(float64(wire.n)/float64(n), "wire-B/op")
}
