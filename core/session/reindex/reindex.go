// Package reindex rebuilds the database's rows of sessions from the vault.
package reindex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"strings"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/session/sidecar"
	"gatehouse/core/store"
	"gatehouse/core/vault"
)

// Options for Run. Owner and Progress may be nil.
type Options struct {
	DB       *store.DB
	Vault    *vault.Vault
	Sessions *session.Store
	Log      *slog.Logger

	// Owner reports whether the user that a sidecar names is one that the
	// database knows, and is still the same: ids are given again in a new
	// database, so the user must not be younger than the session. Nil: only
	// the operator is known. A session without an owner becomes the
	// operator's, sandboxed.
	Owner func(ctx context.Context, q store.Queryer, s session.Session) (bool, error)
	// Progress is called after each transaction.
	Progress func(Progress)
}

// Progress is what Run has done so far.
type Progress struct {
	Transcripts int `json:"transcripts"` // files checked
	Sidecars    int `json:"sidecars"`    // checked for sessions that have no transcript
	Added       int `json:"added"`       // sessions that the database did not know
	Unowned     int `json:"unowned"`     // of these, the ones that are no one's
	Kept        int `json:"kept"`        // sessions that the database knew: their rows stay as they are
	Deleted     int `json:"deleted"`     // deletions that had been cut short, now done
	Skipped     int `json:"skipped"`     // files that are no session's transcript, and broken sidecars
	Searchable  int `json:"searchable"`  // sessions whose words can be found again
}

// String returns p for users.
func (p Progress) String() string {
	return fmt.Sprintf("Read %s: %s added (%d of them without an owner, for the operator only), %d already known; %s skipped.",
		core.Counted(p.Transcripts+p.Sidecars, "file"), core.Counted(p.Added, "conversation"), p.Unowned, p.Kept, core.Counted(p.Skipped, "file"))
}

// step bounds the sessions of one transaction.
const step = 64

// Run inserts the missing rows of sessions from the vault: from each transcript
// and sidecar whose session the database does not know. A row that it knows
// stays as it is, and gets its messages counted where the count is 0; a deleted session
// does not come back. Then full-text search is created again, which finds little until
// it is done. It works in small transactions next to anyone who uses the
// store, and when it is cut short, running it again finishes it.
func Run(ctx context.Context, o Options) (Progress, error) {
	r := &reindex{o: o, files: sidecar.New(o.Vault, o.Log)}
	for _, part := range []func(context.Context) error{r.readTrash, r.readDeleted, r.transcripts, r.sidecars, r.words} {
		if err := part(ctx); err != nil {
			return r.done, fmt.Errorf("reindex: %w", err)
		}
	}
	return r.done, nil
}

// reindex is one Run.
type reindex struct {
	o       Options
	files   *sidecar.Files
	done    Progress
	trashed map[string]bool // ids in the trash; bounded by the 30 days that it is kept
	deleted map[string]bool // ids of deleted sessions; bounded by maxDeleted
	waiting []finding       // for the next transaction; bounded by step
}

// readTrash notes the sessions with transcripts in the trash.
func (r *reindex) readTrash(ctx context.Context) error {
	r.trashed = map[string]bool{}
	return r.eachName(ctx, ".parachute/trash", func(name string) error {
		_, rest, _ := strings.Cut(name, "-") // the stamp
		if id, ok := strings.CutSuffix(rest, ".jsonl"); ok {
			r.trashed[id] = true
			if _, id, ok = strings.Cut(id, "-"); ok { // behind the number of a second one of that time
				r.trashed[id] = true
			}
		}
		return nil
	})
}

// maxDeleted bounds the deletions that are remembered, newest first.
const maxDeleted = 100_000

// readDeleted notes which sessions were deleted.
func (r *reindex) readDeleted(ctx context.Context) error {
	var ids []string
	err := r.o.DB.Select(ctx, &ids, `SELECT subject FROM audit_events WHERE action = 'session.delete' ORDER BY id DESC LIMIT $1`, maxDeleted)
	r.deleted = make(map[string]bool, len(ids))
	for _, id := range ids {
		r.deleted[id] = true
	}
	return err
}

// transcripts goes through the transcripts of every project directory.
func (r *reindex) transcripts(ctx context.Context) error {
	const projects = ".claude/projects"
	err := r.eachName(ctx, projects, func(folder string) error {
		return r.eachName(ctx, projects+"/"+folder, func(name string) error {
			id, ok := strings.CutSuffix(name, ".jsonl")
			if !ok || !vault.ValidID(id) {
				return nil
			}
			r.done.Transcripts++
			f, ok := r.look(path.Join(projects, folder, name), id)
			if !ok {
				r.done.Skipped++
				return nil
			}
			return r.add(ctx, f)
		})
	})
	if err != nil {
		return err
	}
	return r.flush(ctx)
}

// sidecars reads those without a transcript: sessions without messages.
func (r *reindex) sidecars(ctx context.Context) error {
	err := r.eachName(ctx, sidecar.Dir, func(name string) error {
		id, ok := strings.CutSuffix(name, ".json")
		if !ok || !vault.ValidID(id) {
			return nil
		}
		r.done.Sidecars++
		switch _, err := r.o.Sessions.ByID(ctx, r.o.DB, id); {
		case err == nil:
			return nil // seen with its transcript, or known
		case core.KindOf(err) != core.NotFound:
			return err
		}
		side, ok := r.files.Read(id)
		if !ok {
			r.done.Skipped++
			return nil
		}
		if r.trashed[id] { // its deletion got no further
			return r.discard(id)
		}
		return r.add(ctx, finding{id: id, name: sidecar.Name(id), side: &side})
	})
	if err != nil {
		return err
	}
	return r.flush(ctx)
}

func (r *reindex) discard(id string) error {
	r.done.Deleted++
	return r.o.Sessions.Discard(id)
}

func (r *reindex) add(ctx context.Context, f finding) error {
	r.waiting = append(r.waiting, f)
	if len(r.waiting) < step {
		return nil
	}
	return r.flush(ctx)
}

// flush keeps what is waiting.
func (r *reindex) flush(ctx context.Context) error {
	if len(r.waiting) == 0 {
		return nil
	}
	var done Progress
	var torn []string
	err := r.o.DB.Tx(ctx, func(tx *store.Tx) error {
		done, torn = r.done, nil
		for i := range r.waiting {
			deleted, err := r.keep(ctx, tx, &r.waiting[i], &done)
			if err != nil {
				return err
			}
			if deleted {
				torn = append(torn, r.waiting[i].id)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.done, r.waiting = done, r.waiting[:0]
	for _, id := range torn {
		if err := r.discard(id); err != nil {
			return err
		}
	}
	if r.o.Progress != nil {
		r.o.Progress(r.done)
	}
	return ctx.Err()
}

// keep makes the row of one finding. deleted is true for a session that was
// deleted by a gateway that ended before the files were out of the way: the
// sidecar is still there. A transcript alone was restored by someone.
func (r *reindex) keep(ctx context.Context, tx *store.Tx, f *finding, done *Progress) (deleted bool, err error) {
	known, err := r.known(ctx, tx, f)
	if err != nil || known {
		if known {
			done.Kept++
		}
		return false, err
	}
	if f.side != nil && r.deleted[f.id] {
		return true, nil
	}
	if _, err := r.o.Vault.Stat(f.name); err != nil {
		return false, nil // deleted since it was checked
	}
	sess := f.session(r.o.Vault.Path())
	owned := sess.User == core.Operator
	if !owned && sess.User > 0 && r.o.Owner != nil {
		if owned, err = r.o.Owner(ctx, tx, sess); err != nil {
			return false, err
		}
	}
	if !owned {
		done.Unowned++
	}
	done.Added++
	return false, r.o.Sessions.Restore(ctx, tx, sess, f.side, owned)
}

// known reports whether the database has the session's row.
func (r *reindex) known(ctx context.Context, tx *store.Tx, f *finding) (bool, error) {
	var count int
	err := tx.Get(ctx, &count, `SELECT message_count FROM sessions WHERE id = $1`, f.id)
	if errors.Is(err, store.ErrNoRows) {
		return false, nil
	}
	if err == nil && count == 0 && f.count > 0 {
		_, err = tx.Exec(ctx, `UPDATE sessions SET message_count = $2 WHERE id = $1`, f.id, f.count)
	}
	return true, err
}

// words rebuilds the full-text index.
func (r *reindex) words(ctx context.Context) error {
	if err := r.o.Sessions.Empty(ctx); err != nil {
		return err
	}
	for {
		n, err := r.o.Sessions.Fill(ctx)
		r.done.Searchable += n
		if err != nil || n == 0 {
			return err
		}
		if r.o.Progress != nil {
			r.o.Progress(r.done)
		}
	}
}

// eachName calls f with the names in a directory of the vault; without the directory
// with none. At most 256 are in memory at a time.
func (r *reindex) eachName(ctx context.Context, folder string, f func(name string) error) error {
	d, err := r.o.Vault.Root().Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read folder: %w", err)
	}
	defer d.Close()
	if st, err := d.Stat(); err != nil || !st.IsDir() {
		return err
	}
	for {
		entries, err := d.ReadDir(256)
		for _, e := range entries {
			if err := errors.Join(ctx.Err(), f(e.Name())); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read folder: %w", err)
		}
	}
}
