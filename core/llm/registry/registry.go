package registry

import (
	"sync/atomic"

	"gatehouse/core/llm"
)

// A Registry has the models that answer now. They are replaced as a whole
// while turns run.
type Registry struct{ now atomic.Pointer[Models] }

// NewRegistry returns a registry of m.
func NewRegistry(m *Models) *Registry {
	r := &Registry{}
	r.now.Store(m)
	return r
}

// Now returns the models that answer now. A turn keeps those it began with.
func (r *Registry) Now() *Models { return r.now.Load() }

// Replace has m answer from the next turn on and closes idle connections of
// the models before.
func (r *Registry) Replace(m *Models) { r.now.Swap(m).Close() }

// Close closes idle connections.
func (r *Registry) Close() error {
	r.Now().Close()
	return nil
}

// Find returns the present model of that name, as Models.Find does.
func (r *Registry) Find(name string, guest bool) (llm.Model, error) { return r.Now().Find(name, guest) }

// Names returns the names of the models that may answer, in order.
func (r *Registry) Names(guest bool) []string { return r.Now().Open(guest) }

// Default returns the name of the model that answers where none is chosen.
func (r *Registry) Default() string { return r.Now().Default() }

// Missing returns why turns that name this model are answered by the default
// instead; "" if they are not.
func (r *Registry) Missing(name string) string { return r.Now().Missing(name) }
