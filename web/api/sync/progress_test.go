package sync

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A recorder notes the deadlines that a request is given.
type recorder struct {
	http.ResponseWriter
	reads, writes []time.Time
}

func (r *recorder) SetReadDeadline(t time.Time) error {
	r.reads = append(r.reads, t)
	return nil
}

func (r *recorder) SetWriteDeadline(t time.Time) error {
	r.writes = append(r.writes, t)
	return nil
}

// A transfer on which nothing moves is given up after perFile: only each perStep of it
// gives more time.
func TestATransferGetsMoreTimeOnlyWhileItMoves(t *testing.T) {
	w := &recorder{ResponseWriter: httptest.NewRecorder()}
	in := move(newLine(w), strings.NewReader(strings.Repeat("x", 3*perStep+perStep/2)))
	if _, err := io.CopyN(io.Discard, in, perStep-1); err != nil || len(w.reads)+len(w.writes) != 0 {
		t.Errorf("%v, %d deadlines before a step has moved", err, len(w.reads))
	}
	before := time.Now()
	if _, err := io.Copy(io.Discard, in); err != nil || len(w.reads) != 3 || len(w.writes) != 3 {
		t.Fatalf("%v, %d and %d deadlines after three steps", err, len(w.reads), len(w.writes))
	}
	for _, at := range append(w.reads, w.writes...) {
		if d := at.Sub(before); d < perFile || d > time.Since(before)+perFile {
			t.Errorf("a step gives %v, want %v", d, perFile)
		}
	}
	if n, err := in.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) || len(w.reads) != 3 {
		t.Errorf("%d %v, %d deadlines: the end is no step", n, err, len(w.reads))
	}
}

// A request that was cut has no more time, and one that is answered gets no deadline.
func TestACutRequestGetsNoMoreTime(t *testing.T) {
	w := &recorder{ResponseWriter: httptest.NewRecorder()}
	l := newLine(w)
	l.cut()
	if len(w.reads) != 1 || w.reads[0].After(time.Now()) || len(w.writes) != 1 {
		t.Errorf("deadlines %v %v", w.reads, w.writes)
	}
	if _, err := move(l, strings.NewReader("x")).Read(make([]byte, 1)); !errors.Is(err, errGone) || !errors.Is(l.allow(perFile), errGone) || len(w.reads) != 1 {
		t.Errorf("%v, %v", err, w.reads)
	}
	answered := &recorder{ResponseWriter: httptest.NewRecorder()}
	l = newLine(answered)
	l.end()
	if l.cut(); len(answered.reads)+len(answered.writes) != 0 {
		t.Error("the next request of the connection was cut")
	}
}
