package providers

import (
	"os"
	"sync"
	"sync/atomic"
)

// A Source is a file of providers, with the last content that could be used. It
// is safe for concurrent use; a nil one has no providers.
type Source struct {
	path string
	now  atomic.Pointer[List]

	mu    sync.Mutex
	fault error // of the last reading
}

// Open reads the file. What is wrong with it is Fault; then there are no
// providers yet.
func Open(path string) *Source {
	s := &Source{path: path}
	s.now.Store(&List{files: []string{path}})
	if list, err := s.Read(); err == nil {
		s.Use(list)
	}
	return s
}

// Path returns the file; "" of nil.
func (s *Source) Path() string {
	if s == nil {
		return ""
	}
	return s.path
}

// Now returns the content in use. The caller does not change it.
func (s *Source) Now() *List {
	if s == nil {
		return &List{}
	}
	return s.now.Load()
}

// Read reads the file and the keys that it names. An error names the lines and
// fields that are wrong, and is Fault until a reading succeeds. What is in use
// stays: Use replaces it.
func (s *Source) Read() (*List, error) {
	list, err := read(s.path)
	s.Refuse(err)
	return list, err
}

// Use replaces what is in use, and returns what was.
func (s *Source) Use(list *List) (was *List) { return s.now.Swap(list) }

// Refuse has Fault return err: the file, or what it would change, cannot be used.
func (s *Source) Refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = err
}

// Fault returns why the file's present content is not in use; nil when it is.
func (s *Source) Fault() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// Files returns the file and the files with keys that it names.
func (s *Source) Files() []string {
	if s == nil {
		return nil
	}
	return s.Now().files
}

// exists reports whether there is something at path.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
