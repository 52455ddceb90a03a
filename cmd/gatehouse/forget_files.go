package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/tool"
	"gatehouse/core/transcript"
)

// noteErasure notes what is to be done in the vault, where there is something.
func noteErasure(ctx context.Context, tx *store.Tx, todo erasure) error {
	if todo.User == 0 && len(todo.Sessions)+len(todo.Turns)+len(todo.Files) == 0 {
		return nil
	}
	b, err := json.Marshal(todo)
	if err != nil {
		return err
	}
	return store.SetMetadata(ctx, tx, erasureKey+uuid.NewString(), string(b))
}

// finishForgetting does what is left of every forgetting: the rows of one that
// was cut short, and then what is in the vault. It says how many notes of that
// it has done with. A group that is being answered is left for later. The caller
// holds forgettings.
func (a *app) finishForgetting(ctx context.Context, f *forgotten) (ended int, err error) {
	left, err := store.MetadataLike(ctx, a.db, begunKey)
	if err != nil {
		return 0, err
	}
	for key := range left {
		ref := strings.TrimPrefix(key, begunKey)
		if err := a.quietRef(ctx, ref); err != nil {
			return 0, err
		}
		if err := a.forgetRows(ctx, ref, func(string) {}); err != nil {
			return 0, err
		}
		ended++
	}
	for {
		notes, err := store.MetadataLike(ctx, a.db, erasureKey)
		if err != nil {
			return ended, err
		}
		n, err := a.eraseNoted(ctx, notes, f)
		if ended += n; err != nil || n == 0 {
			return ended, err
		}
	}
}

// quietRef waits until nothing runs for the person that ref names, if anybody.
func (a *app) quietRef(ctx context.Context, ref string) error {
	p, err := a.person(ctx, a.db, ref)
	if core.KindOf(err) == core.NotFound || err == nil && p.User == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return a.quiet(ctx, p)
}

// eraseNoted does what notes say, and takes away those that it has done with.
// Turns of one session are blanked together, whoever's they are: its transcript
// is long.
func (a *app) eraseNoted(ctx context.Context, notes map[string]string, f *forgotten) (ended int, err error) {
	of, sessions, turns := map[string]erasure{}, map[string]bool{}, map[string][]string{}
	for key, value := range notes {
		var todo erasure
		if err := json.Unmarshal([]byte(value), &todo); err != nil {
			return 0, fmt.Errorf("what is left of a forgetting: %w", err)
		}
		if err := a.erase(todo, f); err != nil {
			return 0, err
		}
		of[key] = todo
		for _, id := range todo.Sessions {
			sessions[id] = true
		}
		for id, runs := range todo.Turns {
			turns[id] = append(turns[id], runs...)
		}
	}
	for id := range sessions {
		if err := context.Cause(ctx); err != nil {
			return 0, err
		}
		if err := a.sessions.Erase(id); err != nil {
			return 0, err
		}
		f.Sessions++
	}
	busy := map[string]bool{}
	for id, runs := range turns {
		n, still, err := a.blank(ctx, id, runs)
		if err != nil {
			return 0, err
		}
		f.Turns += n
		if still {
			busy[id] = true
		}
	}
	const later = "A group is being answered just now; the person's turns there are blanked within minutes."
	if len(busy) > 0 && !slices.Contains(f.Left, later) {
		f.Left = append(f.Left, later)
	}
	for key, todo := range of {
		waits := false
		for id := range todo.Turns {
			waits = waits || busy[id]
		}
		if waits {
			continue
		}
		if err := a.db.Tx(ctx, func(tx *store.Tx) error { return store.DeleteMetadata(ctx, tx, key) }); err != nil {
			return ended, err
		}
		ended++
	}
	return ended, nil
}

// erase deletes the folder and the files that an erasure names. It may be done again.
func (a *app) erase(todo erasure, f *forgotten) error {
	root := a.vault.Root()
	if todo.User > core.Operator {
		if err := a.vault.RemoveAll(tool.Area(todo.User)); err != nil {
			return fmt.Errorf("erase the person's folder: %w", err)
		}
	}
	for _, name := range todo.Files {
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

// maxBlank is how often a transcript is written anew beside the writer, where
// others speak into it meanwhile, before it is done while they wait.
const maxBlank = 3

// blank redacts runs of a session that others speak in, where nobody is being
// answered, and says of how many there were words.
func (a *app) blank(ctx context.Context, id string, runs []string) (n int, busy bool, err error) {
	for try := 1; ; try++ {
		done := false
		if n, busy, done, err = a.blankOnce(ctx, id, runs, try == maxBlank); err != nil || busy {
			return 0, busy, err
		}
		if done {
			break
		}
	}
	if err := a.sessions.Shed(ctx, id); err != nil {
		return n, false, err
	}
	err = a.db.Tx(ctx, func(tx *store.Tx) error {
		if err := a.sessions.Reword(ctx, tx, id); core.KindOf(err) != core.NotFound {
			return err
		}
		return nil // deleted meanwhile
	})
	return n, false, err
}

// blankOnce writes the transcript anew, beside the writer unless inside, and puts
// it in its place in a transaction, in which no run can be claimed. done is false
// where it has changed meanwhile.
func (a *app) blankOnce(ctx context.Context, id string, runs []string, inside bool) (n int, busy, done bool, err error) {
	if a.answering(id) {
		return 0, true, false, nil
	}
	var ready *transcript.Redaction
	write := func() (err error) {
		ready, err = a.sessions.Redact(id, runs)
		return err
	}
	if !inside {
		if err := write(); err != nil {
			return 0, false, false, err
		}
		defer func() { ready.Drop() }()
	}
	err = a.db.Tx(ctx, func(tx *store.Tx) error {
		n, busy, done = 0, false, false
		if busy = a.answering(id); busy {
			return nil
		}
		if err := a.events.ForgetSession(ctx, tx, id); err != nil {
			return err
		}
		if inside && ready == nil { // a second try of this has it already
			if err := write(); err != nil {
				return err
			}
		}
		n, done, err = ready.Keep()
		return err
	})
	return n, busy, done, err
}

// forgetPages has nothing stay in the database's file.
func (a *app) forgetPages(ctx context.Context, f *forgotten) (err error) {
	most := int64(maxCompact)
	if !a.serving.Load() {
		most = 0
	}
	if err := a.sessions.PurgeWords(ctx); err != nil {
		return err
	}
	if f.Compacted, err = a.db.Compact(ctx, most); err != nil {
		return err
	}
	if !f.Compacted {
		f.Left = append(f.Left, "The database is too large to be written anew while the gateway serves, so free pages of its file may still hold traces: stop the gateway and run the same command again.")
	}
	copies, err := filepath.Glob(a.cfg.DatabasePath() + ".v*.bak")
	for _, c := range copies {
		f.Left = append(f.Left, "A copy of the database from before an upgrade may still hold the person; delete it when you no longer need it: "+c)
	}
	return err
}
