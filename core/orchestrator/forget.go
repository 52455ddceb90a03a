package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// OwnFiles notes whose the kept files of a message are, and to which run they
// came, once that is known.
func OwnFiles(ctx context.Context, tx *store.Tx, user int64, session, run string, files []core.File) error {
	for _, f := range files {
		if f.Path == "" {
			continue
		}
		n, err := tx.Exec(ctx, `INSERT INTO attachments (path, user_id, session_id, run, at, size) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (path) DO NOTHING`,
			f.Path, user, session, run, core.Stamp(tx.Time()), f.Size)
		if err == nil && n == 0 {
			_, err = tx.Exec(ctx, `UPDATE attachments SET session_id = $2, run = $3 WHERE path = $1 AND run = ''`, f.Path, session, run)
		} else if err == nil {
			err = use(ctx, tx, user, f.Size)
		}
		if err != nil {
			return fmt.Errorf("note whose a file is: %w", err)
		}
	}
	return nil
}

// Give makes another user's what the tables hold of one: two accounts of one
// person were linked.
func (e *Events) Give(ctx context.Context, tx *store.Tx, from, to int64) error {
	for _, q := range [...]string{`UPDATE runs SET user_id = $1 WHERE user_id = $2`, `UPDATE attachments SET user_id = $1 WHERE user_id = $2`} {
		if _, err := tx.Exec(ctx, q, to, from); err != nil {
			return fmt.Errorf("give runs: %w", err)
		}
	}
	var bytes int64
	err := tx.Get(ctx, &bytes, `DELETE FROM attachment_use WHERE user_id = $1 RETURNING bytes`, from)
	if errors.Is(err, store.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = use(ctx, tx, to, bytes)
	}
	if err != nil {
		return fmt.Errorf("give files: %w", err)
	}
	return nil
}

// Forgotten is what Forget took out, for those who keep more of it.
type Forgotten struct {
	Runs     []string            // all of the person's
	Sessions map[string][]string // their runs by session, those of groups too
	Files    []string            // in the vault, that came with their messages
}

// ForgetSome takes at most most of a person's runs and files out of the tables,
// as Forget does; more where there may be further ones. Forget is still to be called.
func (e *Events) ForgetSome(ctx context.Context, tx *store.Tx, user int64, most int) (f Forgotten, more bool, err error) {
	f.Sessions = map[string][]string{}
	if user == 0 {
		return f, false, nil
	}
	var rows []forgottenRun
	if err := tx.Select(ctx, &rows, `SELECT id, session_id FROM runs WHERE user_id = $1 LIMIT $2`, user, most); err != nil {
		return f, false, fmt.Errorf("forget runs: %w", err)
	}
	for _, r := range rows {
		f.add(r)
		for _, q := range [...]string{`DELETE FROM run_events WHERE run = $1`, `DELETE FROM runs WHERE id = $1`} {
			if _, err := tx.Exec(ctx, q, r.ID); err != nil {
				return f, false, fmt.Errorf("forget runs: %w", err)
			}
		}
	}
	if len(rows) == most {
		return f, true, nil
	}
	if err := tx.Select(ctx, &f.Files, `SELECT path FROM attachments WHERE user_id = $1 LIMIT $2`, user, most); err != nil {
		return f, false, fmt.Errorf("forget files: %w", err)
	}
	for _, path := range f.Files {
		if _, err := tx.Exec(ctx, `DELETE FROM attachments WHERE path = $1`, path); err != nil {
			return f, false, fmt.Errorf("forget files: %w", err)
		}
	}
	return f, len(f.Files) == most, nil
}

type forgottenRun struct {
	ID      string `db:"id"`
	Session string `db:"session_id"`
}

func (f *Forgotten) add(r forgottenRun) {
	f.Runs = append(f.Runs, r.ID)
	f.Sessions[r.Session] = append(f.Sessions[r.Session], r.ID)
}

// Forget takes a person's runs, with their events, and files out of the tables.
func (e *Events) Forget(ctx context.Context, tx *store.Tx, user int64) (f Forgotten, err error) {
	f.Sessions = map[string][]string{}
	if user == 0 {
		return f, nil
	}
	var rows []forgottenRun
	if err := tx.Select(ctx, &rows, `SELECT id, session_id FROM runs WHERE user_id = $1 ORDER BY started, id`, user); err != nil {
		return f, fmt.Errorf("forget runs: %w", err)
	}
	for _, r := range rows {
		f.add(r)
	}
	if err := tx.Select(ctx, &f.Files, `SELECT path FROM attachments WHERE user_id = $1 ORDER BY path`, user); err != nil {
		return f, fmt.Errorf("forget files: %w", err)
	}
	for _, q := range [...]string{
		`DELETE FROM run_events WHERE run IN (SELECT id FROM runs WHERE user_id = $1)`,
		`DELETE FROM runs WHERE user_id = $1`,
		`DELETE FROM attachments WHERE user_id = $1`,
		`DELETE FROM attachment_use WHERE user_id = $1`,
	} {
		if _, err := tx.Exec(ctx, q, user); err != nil {
			return f, fmt.Errorf("forget runs: %w", err)
		}
	}
	return f, nil
}

// ForgetSession takes the stored events of a session's runs out, whoever's they
// are: each begins with the session's title, which may be a forgotten person's
// words. Call it while none of them is at work.
func (e *Events) ForgetSession(ctx context.Context, tx *store.Tx, session string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM run_events WHERE run IN (SELECT id FROM runs WHERE session_id = $1)`, session); err != nil {
		return fmt.Errorf("forget a session's events: %w", err)
	}
	return nil
}
