package provider

import (
	"io"
	"net/http"
	"sync"
)

// Do sends req with body, which may be nil, and returns the answer, of any status.
// Errors are those of the connection; Lost judges them.
func (l *Link) Do(req *http.Request, body []byte) (*http.Response, error) {
	sent := &sending{data: body}
	sent.giveTo(req)
	resp, err := l.HTTP.Do(req)
	sent.letGo()
	return resp, err
}

// sending is a request's body: the whole conversation. net/http holds a request
// until its answer has been read, which may take minutes; the body is forgotten
// as soon as the answer has begun and all of it was sent.
type sending struct {
	mu   sync.Mutex
	data []byte // nil: forgotten, or there is none
	sent bool   // all of it, once at least
	over bool   // no one will ask for it again
}

// giveTo makes it the body of req, which net/http may send again until letGo.
func (s *sending) giveTo(req *http.Request) {
	if s.data == nil {
		return
	}
	req.ContentLength = int64(len(s.data))
	req.GetBody = s.open
	req.Body, _ = s.open()
}

func (s *sending) open() (io.ReadCloser, error) { return &sendingReader{s: s}, nil }

// letGo means that the answer has begun, or that there will be none.
func (s *sending) letGo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.forget()
}

func (s *sending) forget() {
	if s.sent && s.over {
		s.data = nil
	}
}

// A sendingReader reads the body; it holds nothing of it itself.
type sendingReader struct {
	s  *sending
	at int
}

func (r *sendingReader) Read(p []byte) (int, error) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.at >= len(r.s.data) { // also where it is forgotten, for then it was read to its end
		return 0, io.EOF
	}
	n := copy(p, r.s.data[r.at:])
	r.at += n
	if r.at == len(r.s.data) {
		r.s.sent = true
		r.s.forget()
	}
	return n, nil
}

func (r *sendingReader) Close() error { return nil }
