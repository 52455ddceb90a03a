package index

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gatehouse/core/store"
	"gatehouse/core/transcript"
)

// walked is the key under which Fill notes how far it has looked for sessions
// that the index does not know: a session's id, or walkedAll.
const (
	walked    = "search.walked"
	walkedAll = "*"
)

// Fill brings the index up to date where turns alone do not: sessions that were
// there before it, were imported, or whose transcripts were changed by others.
// It returns how many it has checked; 0 when nothing is left. One call reads at
// most 32 MB of transcripts, in small transactions. Call it from upkeep.
func (x *Index) Fill(ctx context.Context) (int, error) {
	done := 0
	for size := int64(0); size < maxFill; {
		var n []int64
		err := x.db.Select(ctx, &n, `SELECT n FROM search_sessions WHERE behind = 1 ORDER BY n LIMIT $1`, maxWalk)
		if err != nil {
			return done, fmt.Errorf("fill search index: %w", err)
		}
		if len(n) == 0 {
			if more, err := x.walk(ctx); err != nil || !more {
				return done, err
			}
			continue
		}
		for _, n := range n {
			read, err := x.catchUp(ctx, n)
			if err != nil {
				return done, err
			}
			done++
			if size += read + 1<<10; size >= maxFill {
				break
			}
		}
	}
	return done, nil
}

// walk notes the next sessions that the index does not know, and reports whether
// there may be any.
func (x *Index) walk(ctx context.Context) (more bool, err error) {
	if last, _, err := store.Metadata(ctx, x.db, walked); err != nil || last == walkedAll {
		return false, err // without a write, every minute
	}
	err = x.db.Tx(ctx, func(tx *store.Tx) error {
		more = false
		last, _, err := store.Metadata(ctx, tx, walked)
		if err != nil || last == walkedAll {
			return err
		}
		var ids []string
		if err := tx.Select(ctx, &ids, `SELECT id FROM sessions WHERE id > $1 ORDER BY id LIMIT $2`, last, maxWalk); err != nil {
			return err
		}
		for _, id := range ids {
			_, err := tx.Exec(ctx, `INSERT INTO search_sessions (session_id, behind) VALUES ($1, 1) ON CONFLICT (session_id) DO NOTHING`, id)
			if err != nil {
				return err
			}
		}
		if more = len(ids) > 0; !more {
			return store.SetMetadata(ctx, tx, walked, walkedAll)
		}
		return store.SetMetadata(ctx, tx, walked, ids[len(ids)-1])
	})
	if err != nil {
		return false, fmt.Errorf("fill search index: %w", err)
	}
	return more, nil
}

// emptyStep bounds the rows that are taken out of the index in one transaction.
const emptyStep = 5000

// Empty forgets what the index has, and has Fill begin again.
func (x *Index) Empty(ctx context.Context) error {
	err := x.db.Tx(ctx, func(tx *store.Tx) error {
		return errors.Join(tx.EmptyWords(ctx), store.DeleteMetadata(ctx, tx, walked))
	})
	for _, q := range [...]string{
		`DELETE FROM search_docs WHERE id IN (SELECT id FROM search_docs ORDER BY id LIMIT $1)`,
		`DELETE FROM search_sessions WHERE n IN (SELECT n FROM search_sessions ORDER BY n LIMIT $1)`,
	} {
		for n := int64(1); n > 0 && err == nil; {
			err = x.db.Tx(ctx, func(tx *store.Tx) (err error) { n, err = tx.Exec(ctx, q, emptyStep); return err })
		}
	}
	if err != nil {
		return fmt.Errorf("empty search index: %w", err)
	}
	return nil
}

// PurgeWords removes the terms of deleted sessions from the database's file, where only
// its bytes still contain them. It rewrites the index, in short transactions.
func (x *Index) PurgeWords(ctx context.Context) error { return x.db.MergeWords(ctx) }

// lag is a session that the index is behind of.
type lag struct {
	ID    string `db:"session_id"`
	User  int64  `db:"user_id"`
	File  string `db:"file"`
	Bytes int64  `db:"bytes"`
}

// catchUp indexes what is missing of the session with number n and returns how many
// bytes it has read.
func (x *Index) catchUp(ctx context.Context, n int64) (read int64, err error) {
	var l lag
	err = x.db.Get(ctx, &l, `SELECT w.session_id, s.user_id, w.file, w.bytes FROM search_sessions w JOIN sessions s ON s.id = w.session_id WHERE w.n = $1`, n)
	if errors.Is(err, store.ErrNoRows) {
		return 0, nil // deleted in the meantime
	}
	if err != nil {
		return 0, fmt.Errorf("fill search index: %w", err)
	}
	file, size := x.fileOf(l)
	for first := true; ; first = false {
		anew := size < l.Bytes // another file than the one that was read
		if anew {
			l.Bytes = 0
		}
		if anew || first && l.Bytes == 0 { // what there is goes in short transactions
			heavy, err := x.Heavy(ctx, l.ID)
			if err == nil && heavy {
				err = x.Shed(ctx, l.ID)
			}
			if err != nil {
				return read, err
			}
		}
		docs, to, err := x.scanStep(file, l.Bytes)
		if err != nil { // a file that cannot be read is not tried for ever: the next turn does
			x.log.Warn("messages cannot be searched", "session", l.ID, "err", err)
			docs, to, size = nil, l.Bytes, 0
		}
		whole := to >= size || to == l.Bytes
		if err := x.caught(ctx, n, l, file, docs, to, first, anew || l.Bytes == 0, whole); err != nil {
			return read, err
		}
		read += to - l.Bytes
		if l.Bytes = to; whole {
			return read, nil
		}
	}
}

func (x *Index) scanStep(file string, from int64) ([]transcript.Doc, int64, error) {
	if file == "" {
		return nil, from, nil
	}
	return x.files.Scan(file, from, maxStep)
}

// caught is one transaction of catchUp. again deletes what is indexed first.
func (x *Index) caught(ctx context.Context, n int64, l lag, file string, docs []transcript.Doc, to int64, first, anew, whole bool) error {
	err := x.db.Tx(ctx, func(tx *store.Tx) error {
		var now int64
		err := tx.Get(ctx, &now, `SELECT bytes FROM search_sessions WHERE n = $1`, n)
		if errors.Is(err, store.ErrNoRows) {
			return nil
		}
		if err == nil && now != l.Bytes && !(anew && first) {
			return nil // a turn was faster; the row is still behind
		}
		if err == nil && anew {
			_, err = tx.Exec(ctx, `DELETE FROM search_docs WHERE n = $1 AND at_byte <> $2`, n, noLine)
		}
		if err == nil {
			err = x.put(ctx, tx, n, l.User, docs)
		}
		if err == nil && first {
			err = x.readHead(ctx, tx, l.ID)
		}
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE search_sessions SET file = $2, bytes = $3, behind = $4 WHERE n = $1`, n, file, to, !whole)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("fill search index: %w", err)
	}
	return ctx.Err()
}

// fileOf returns where a session's transcript is, "" without one, and its size.
func (x *Index) fileOf(l lag) (string, int64) {
	names := []string{l.File}
	if name := x.sessions.TranscriptName(l.ID); name != "" {
		names = append(names, name)
	}
	for _, name := range slices.Compact(names) {
		if st, err := x.vault.Stat(name); name != "" && err == nil && st.Mode().IsRegular() {
			return name, st.Size()
		}
	}
	found, err := x.vault.FindTranscripts(l.ID)
	if err != nil || len(found) == 0 {
		return "", 0
	}
	if st, err := x.vault.Stat(found[0]); err == nil {
		return found[0], st.Size()
	}
	return "", 0
}
