package orchestrator

import (
	"context"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Tables forgets, merges and prunes what the tables of runs and of kept files
// keep.
type Tables struct{ Events *Events }

// Tables returns the tables that keep data of people.
func (Tables) Tables() []string {
	return []string{"runs", "run_events", "attachments", "attachment_use"}
}

// Forget removes the person's runs, with their events, and kept files.
func (t Tables) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) (err error) {
	var gone Forgotten
	if r.Last {
		gone, err = t.Events.Forget(ctx, tx, r.User)
	} else if r.Rows > 0 {
		var more bool
		gone, more, err = t.Events.ForgetSome(ctx, tx, r.User, r.Rows)
		r.Removed(len(gone.Runs)+len(gone.Files), more)
	}
	r.Runs, r.Files = append(r.Runs, gone.Runs...), append(r.Files, gone.Files...)
	for id, runs := range gone.Sessions {
		r.Turns[id] = append(r.Turns[id], runs...)
	}
	return err
}

// Merge makes the runs and files of one user another's.
func (t Tables) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	return t.Events.Give(ctx, tx, from, to)
}

// Chores returns the tables' housekeeping.
func (t Tables) Chores() []core.Chore {
	return []core.Chore{{Name: "run_events", Every: 10 * time.Minute, Run: t.Events.Prune}}
}

// Exports returns the statements of an export.
func (Tables) Exports() []store.Export {
	return []store.Export{
		{Name: "runs", Query: `SELECT id, session_id, state, bot, chat, model, started, ended FROM runs WHERE user_id = $1 ORDER BY started DESC LIMIT $2`},
		{Name: "files", Query: `SELECT path, session_id, at FROM attachments WHERE user_id = $1 ORDER BY at DESC LIMIT $2`},
	}
}

// FilesOf returns up to 500 files that came with a user's messages, in order of
// their names, from behind after on.
func (t Tables) FilesOf(ctx context.Context, user int64, after string) (paths []string, err error) {
	err = t.Events.db.Select(ctx, &paths, `SELECT path FROM attachments WHERE user_id = $1 AND path > $2 ORDER BY path LIMIT 500`, user, after)
	return paths, err
}
