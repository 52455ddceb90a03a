package erasure

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/store"
)

// rows removes the user whose forgetting has begun from every table: first what
// may be much, in short transactions between which others commit, and at last, in
// one, who they are with what is left. What is to be done in the vault is noted
// for finish.
func (e *Eraser) rows(ctx context.Context, ref string, progress func(string)) error {
	note, exists, err := store.Metadata(ctx, e.o.DB, begunKey+ref)
	if err != nil || !exists {
		return err
	}
	var b begun
	if err := json.Unmarshal([]byte(note), &b); err != nil {
		return fmt.Errorf("read the note of a forgetting: %w", err)
	}
	p, err := e.begunPerson(ctx, e.o.DB, b)
	if core.KindOf(err) == core.NotFound { // only the note is left
		return e.o.DB.Tx(ctx, func(tx *store.Tx) error { return store.DeleteMetadata(ctx, tx, begunKey+ref) })
	}
	if err != nil {
		return err
	}
	progress("erasing messages")
	swept, err := e.sweep(ctx, p)
	if err != nil {
		return err
	}
	for more, steps := p.User != 0, 0; more; steps++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		progress(fmt.Sprintf("erasing rows: some %d so far", steps*Step))
		err := e.o.DB.Tx(ctx, func(tx *store.Tx) (err error) {
			more, err = e.step(ctx, tx, p, b.By)
			return err
		})
		if err != nil {
			return err
		}
	}
	return e.o.DB.Tx(ctx, func(tx *store.Tx) error { return e.last(ctx, tx, b, swept) })
}

// begunPerson returns the user of a forgetting that has begun.
func (e *Eraser) begunPerson(ctx context.Context, q store.Queryer, b begun) (core.Person, error) {
	p, err := e.person(ctx, q, b.Ref)
	p.Chats = union(p.Chats, b.Chats)
	return p, err
}

// sweep calls every Sweeper and returns how far each table was read.
func (e *Eraser) sweep(ctx context.Context, p core.Person) (map[string]int64, error) {
	swept := map[string]int64{}
	for _, s := range having[Sweeper](e.o.Registry) {
		read, err := s.Sweep(ctx, p, func(tx *store.Tx, files []string) error { return noteWork(ctx, tx, work{Files: files}) })
		if err != nil {
			return nil, err
		}
		maps.Copy(swept, read)
	}
	return swept, nil
}

// step removes up to Step rows of the user; more reports whether it removed any.
func (e *Eraser) step(ctx context.Context, tx *store.Tx, p core.Person, by core.Actor) (more bool, err error) {
	r := core.Removal{Person: p, By: by, Rows: Step, Turns: map[string][]string{}}
	if err := e.o.Registry.forget(ctx, tx, &r); err != nil {
		return false, err
	}
	return r.Rows < Step, noteWork(ctx, tx, work{Sessions: r.Sessions, Turns: r.Turns, Files: r.Files})
}

// last removes all that is left of the user.
func (e *Eraser) last(ctx context.Context, tx *store.Tx, b begun, swept map[string]int64) error {
	p, err := e.begunPerson(ctx, tx, b)
	if core.KindOf(err) == core.NotFound {
		return store.DeleteMetadata(ctx, tx, begunKey+b.Ref)
	}
	if err != nil {
		return err
	}
	if p.User != 0 {
		if err := e.o.Registry.revoke(ctx, tx, p.User); err != nil {
			return err
		}
	}
	r := core.Removal{Person: p, By: b.By, Last: true, Swept: swept, Turns: map[string][]string{}}
	if err := e.o.Registry.forget(ctx, tx, &r); err != nil {
		return err
	}
	if err := noteWork(ctx, tx, work{User: p.User, Sessions: r.Sessions, Turns: r.Turns, Files: r.Files}); err != nil {
		return err
	}
	if err := store.SetMetadata(ctx, tx, pagesOf(b.Ref), core.Stamp(tx.Time())); err != nil {
		return err
	}
	return store.DeleteMetadata(ctx, tx, begunKey+b.Ref)
}

// work is what is left to do in the vault once the database has forgotten some
// of the user. It is stored in the metadata until it is done.
type work struct {
	User     int64               `json:"user"`
	Sessions []string            `json:"sessions"` // to be erased
	Turns    map[string][]string `json:"turns"`    // runs to be blanked, by session
	Files    []string            `json:"files"`
}

// noteWork stores w, unless there is nothing in it.
func noteWork(ctx context.Context, tx *store.Tx, w work) error {
	if w.User == 0 && len(w.Sessions)+len(w.Turns)+len(w.Files) == 0 {
		return nil
	}
	b, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return store.SetMetadata(ctx, tx, workKey+uuid.NewString(), string(b))
}
