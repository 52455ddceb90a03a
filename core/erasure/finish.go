package erasure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/transcript/redact"
)

// finish does what is left of every forgetting: the rows of interrupted ones, and
// then the work in the vault. It returns how many notes it is done with. Turns in
// a session that is being answered are left for later. The caller holds mu.
func (e *Eraser) finish(ctx context.Context, f *Forgotten) (done int, err error) {
	left, err := store.MetadataLike(ctx, e.o.DB, begunKey)
	if err != nil {
		return 0, err
	}
	for key := range left {
		ref := strings.TrimPrefix(key, begunKey)
		if err := e.stopRef(ctx, ref); err != nil {
			return 0, err
		}
		if err := e.rows(ctx, ref, func(string) {}); err != nil {
			return 0, err
		}
		done++
	}
	for {
		notes, err := store.MetadataLike(ctx, e.o.DB, workKey)
		if err != nil {
			return done, err
		}
		n, err := e.works(ctx, notes, f)
		if done += n; err != nil || n == 0 {
			return done, err
		}
	}
}

// stopRef stops what runs for the user that ref names, if there is one.
func (e *Eraser) stopRef(ctx context.Context, ref string) error {
	p, err := e.Person(ctx, ref)
	if core.KindOf(err) == core.NotFound || err == nil && p.User == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return e.stop(ctx, p)
}

// works does the noted work and deletes the notes it is done with. Turns of one
// session are blanked together, also of several users: a transcript is long.
func (e *Eraser) works(ctx context.Context, notes map[string]string, f *Forgotten) (done int, err error) {
	of, sessions, turns := map[string]work{}, map[string]bool{}, map[string][]string{}
	for key, value := range notes {
		var w work
		if err := json.Unmarshal([]byte(value), &w); err != nil {
			return 0, fmt.Errorf("read the note of a forgetting: %w", err)
		}
		if err := e.files(w, f); err != nil {
			return 0, err
		}
		of[key] = w
		for _, id := range w.Sessions {
			sessions[id] = true
		}
		for id, runs := range w.Turns {
			turns[id] = append(turns[id], runs...)
		}
	}
	for id := range sessions {
		if err := context.Cause(ctx); err != nil {
			return 0, err
		}
		if err := e.o.Sessions.Erase(id); err != nil {
			return 0, err
		}
		f.Sessions++
	}
	busy := map[string]bool{}
	for id, runs := range turns {
		n, answering, err := e.blank(ctx, id, runs)
		if err != nil {
			return 0, err
		}
		f.Turns += n
		busy[id] = answering
	}
	return e.drop(ctx, of, busy, f)
}

// drop deletes the notes whose turns are all blanked.
func (e *Eraser) drop(ctx context.Context, notes map[string]work, busy map[string]bool, f *Forgotten) (done int, err error) {
	const later = "A group is being answered just now; the person's turns there are blanked within minutes."
	for key, w := range notes {
		waits := false
		for id := range w.Turns {
			waits = waits || busy[id]
		}
		if waits {
			if !slices.Contains(f.Left, later) {
				f.Left = append(f.Left, later)
			}
			continue
		}
		if err := e.o.DB.Tx(ctx, func(tx *store.Tx) error { return store.DeleteMetadata(ctx, tx, key) }); err != nil {
			return done, err
		}
		done++
	}
	return done, nil
}

// files deletes the directory and the files that w names. It may be called again.
func (e *Eraser) files(w work, f *Forgotten) error {
	root := e.o.Vault.Root()
	if w.User > core.Operator {
		if err := e.o.Vault.RemoveAll(e.o.Area(w.User)); err != nil {
			return fmt.Errorf("erase the person's directory: %w", err)
		}
		if err := e.o.Vault.RemoveTrashedOf(w.User); err != nil {
			return fmt.Errorf("erase the person's files in the trash: %w", err)
		}
	}
	for _, name := range w.Files {
		err := root.Remove(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("erase a file: %w", err)
		}
		if err == nil {
			f.Files++
		}
	}
	return nil
}

// maxBlank is how often a transcript is rewritten outside of a transaction, while
// others add to it, before it is rewritten in one, for which they wait.
const maxBlank = 3

// blank redacts runs of a session of other users and returns in how many of them
// there was text. It does nothing while the session is being answered.
func (e *Eraser) blank(ctx context.Context, id string, runs []string) (n int, answering bool, err error) {
	for try := 1; ; try++ {
		done := false
		if n, answering, done, err = e.blankOnce(ctx, id, runs, try == maxBlank); err != nil || answering {
			return 0, answering, err
		}
		if done {
			break
		}
	}
	if err := e.o.Sessions.Shed(ctx, id); err != nil {
		return n, false, err
	}
	err = e.o.DB.Tx(ctx, func(tx *store.Tx) error {
		if err := e.o.Sessions.Reword(ctx, tx, id); core.KindOf(err) != core.NotFound {
			return err
		}
		return nil // it was deleted since
	})
	return n, false, err
}

// blankOnce rewrites the transcript, in the transaction if inside, else before
// it, and moves it into place in the transaction, in which no run can be claimed.
// done is false where the transcript has changed since.
func (e *Eraser) blankOnce(ctx context.Context, id string, runs []string, inside bool) (n int, answering, done bool, err error) {
	if e.o.Answering(id) {
		return 0, true, false, nil
	}
	var ready *redact.Redaction
	write := func() (err error) {
		ready, err = e.o.Sessions.Redact(id, runs)
		return err
	}
	if !inside {
		if err := write(); err != nil {
			return 0, false, false, err
		}
		defer func() { ready.Drop() }()
	}
	err = e.o.DB.Tx(ctx, func(tx *store.Tx) error {
		n, answering, done = 0, false, false
		if answering = e.o.Answering(id); answering {
			return nil
		}
		if err := e.o.Events.ForgetSession(ctx, tx, id); err != nil {
			return err
		}
		if err := e.o.Registry.blank(ctx, tx, id); err != nil {
			return err
		}
		if inside && ready == nil { // a second try of the transaction has it
			if err := write(); err != nil {
				return err
			}
		}
		n, done, err = ready.Keep()
		return err
	})
	return n, answering, done, err
}
