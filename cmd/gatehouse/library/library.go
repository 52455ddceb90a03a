// Package library builds the search over conversations and documents.
package library

import (
	"gatehouse/core"
	"gatehouse/core/index/document"
	"gatehouse/core/index/search"
	"gatehouse/core/session"
	"gatehouse/core/session/found"
	"gatehouse/core/store"
)

// Options for New. All are needed.
type Options struct {
	DB       *store.DB
	Sessions *session.Store
	MayRead  func(trust core.Trust, user int64, name string) bool // files of the vault
}

// A Library is what a search needs.
type Library struct {
	Documents *document.Store
	Finder    *search.Finder
}

// New returns the library of a database.
func New(o Options) *Library {
	l := &Library{Documents: document.New(o.DB)}
	l.Finder = search.New(search.Options{Sessions: found.Source{Sessions: o.Sessions}, Documents: l.Documents, MayRead: o.MayRead})
	return l
}
