package sync

import (
	"io"
	"net/http"
)

// perStep is how much of a content has perFile to arrive or to be taken, in bytes: a line of a
// kilobyte a second carries a file of any size, and one on which nothing moves is given up.
const perStep = 256 << 10

// moving is what is read of a request, or for an answer: it gives the request more time with
// each perStep.
type moving struct {
	io.Reader
	w    http.ResponseWriter
	left int
}

func move(w http.ResponseWriter, r io.Reader) *moving { return &moving{r, w, perStep} }

func (m *moving) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if m.left -= n; m.left <= 0 {
		allow(m.w, perFile)
		m.left = perStep
	}
	return n, err
}

// body is the body of a request that moves.
type body struct {
	*moving
	io.Closer
}
