package sync

import (
	"io"
	"net/http"
	"sync"
	"time"

	"gatehouse/core"
)

// perStep is how much of a content has perFile to arrive or to be taken, in bytes: a line of a
// kilobyte a second carries a file of any size, and one on which nothing moves is given up.
const perStep = 256 << 10

// errGone ends a request whose caller lost access.
var errGone = core.Errorf(core.Denied, "the key may not sync any more")

// A line is the connection of a request, with the time that it has. It is safe for concurrent
// use.
type line struct {
	rc *http.ResponseController

	mu    sync.Mutex
	ended bool // the request is answered: the connection may be another's
	gone  bool // the caller lost access
}

func newLine(w http.ResponseWriter) *line { return &line{rc: http.NewResponseController(w)} }

// allow gives the request this much more time, or returns an error when its caller lost
// access. Where more time is not possible the usual limits apply.
func (l *line) allow(d time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return errGone
	}
	l.until(time.Now().Add(d))
	return nil
}

// cut ends the request, also while it waits for the other side: its caller lost access.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone = true; !l.ended {
		l.until(time.Now())
	}
}

// open returns an error when the caller of the request lost access.
func (l *line) open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return errGone
	}
	return nil
}

// end notes that the request is answered.
func (l *line) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

func (l *line) until(t time.Time) {
	_ = l.rc.SetReadDeadline(t)
	_ = l.rc.SetWriteDeadline(t)
}

// moving is what is read of a request, or for an answer: it gives the request more time with
// each perStep.
type moving struct {
	io.Reader
	line *line
	left int
}

func move(l *line, r io.Reader) *moving { return &moving{r, l, perStep} }

func (m *moving) Read(p []byte) (int, error) {
	if err := m.line.open(); err != nil {
		return 0, err
	}
	n, err := m.Reader.Read(p)
	if m.left -= n; m.left <= 0 {
		m.left = perStep
		if err := m.line.allow(perFile); err != nil {
			return 0, err
		}
	}
	return n, err
}

// body is the body of a request that moves.
type body struct {
	*moving
	io.Closer
}
