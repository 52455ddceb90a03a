package document

import (
	"context"
	"strconv"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Tables forgets and moves what the index has of users: passages of the files in
// their directories. The files themselves are removed by others.
type Tables struct{ Store *Store }

// Tables returns the tables that keep data of users.
func (Tables) Tables() []string {
	return []string{"chunks", "index_manifest", "document_words", "guest_words", "chunk_signs"}
}

// Sweep removes most of what is indexed of the user's directory.
func (t Tables) Sweep(ctx context.Context, p core.Person, _ func(tx *store.Tx, files []string) error) (map[string]int64, error) {
	if p.User <= 0 {
		return nil, nil
	}
	return nil, t.Store.delete(ctx, `content_id IN (SELECT content_id FROM index_manifest WHERE area = $1)`, ofGuest+strconv.FormatInt(p.User, 10), nil)
}

// Forget removes the rest, in r's transaction.
func (t Tables) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	return t.drop(ctx, tx, r.User)
}

// Merge removes what is indexed of the directory that becomes a part of another's:
// the next pass over the vault finds its files there.
func (t Tables) Merge(ctx context.Context, tx *store.Tx, from, _ int64) error {
	return t.drop(ctx, tx, from)
}

func (t Tables) drop(ctx context.Context, tx *store.Tx, user int64) error {
	if user <= 0 {
		return nil
	}
	area := ofGuest + strconv.FormatInt(user, 10)
	for more := true; more; {
		var err error
		if more, err = deleteChunks(ctx, tx, `content_id IN (SELECT content_id FROM index_manifest WHERE area = $1)`, area); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `DELETE FROM index_manifest WHERE area = $1`, area)
	return err
}
