package library

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/index/document"
	"gatehouse/core/index/embedding"
	"gatehouse/core/index/meaning"
	"gatehouse/core/store"
)

type documents = document.Tables // by a name that is not that of its method

// Tables forgets and moves what the library has of users: in its tables, and what was
// kept of their searches and of the meaning of their memory.
type Tables struct {
	documents
	embedder *embedding.Embedder // nil: there is none
	meaning  *meaning.Comparer   // nil: there is none
}

// Tables returns what the library has of users.
func (l *Library) Tables() Tables {
	return Tables{document.Tables{Store: l.Documents}, l.Embedder, l.Meaning}
}

// Forget removes the rest, in r's transaction.
func (t Tables) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	t.drop(tx, r.User)
	return t.documents.Forget(ctx, tx, r)
}

// Merge removes what is of the user who becomes another.
func (t Tables) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	t.drop(tx, from)
	return t.documents.Merge(ctx, tx, from, to)
}

func (t Tables) drop(tx *store.Tx, user int64) {
	if t.embedder != nil {
		tx.OnCommit(func() { t.embedder.Forget(user) })
	}
	if t.meaning != nil {
		tx.OnCommit(func() { t.meaning.Forget(user) })
	}
}
