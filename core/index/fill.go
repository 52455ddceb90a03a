package index

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gatehouse/core/store"
	"gatehouse/core/transcript"
)

// walked is the key under which Fill notes how far it has looked for sessions that the
// index does not know: walkedRecent, a time and an id; walkedAny and an id; or walkedAll.
const (
	walked       = "sessions.walked"
	walkedRecent = "r "
	walkedAny    = "i "
	walkedAll    = "*"
)

// Fill brings the index up to date where turns alone do not: sessions that were
// there before it, were imported, or whose transcripts were changed by others. Those that
// were there before are indexed below all others, the last used first.
// It returns how many it has checked; 0 when nothing is left. One call reads at
// most 32 MB of transcripts, in small transactions. Call it from upkeep.
func (x *Index) Fill(ctx context.Context) (int, error) {
	done, err := x.fill(ctx)
	return done, errors.Join(err, x.merge(ctx))
}

func (x *Index) fill(ctx context.Context) (int, error) {
	done := 0
	for size := int64(0); size < maxFill; {
		var ids []string
		err := x.db.Select(ctx, &ids, `SELECT content_id FROM index_manifest WHERE behind > 0 ORDER BY behind, indexed_at LIMIT $1`, maxWalk)
		if err != nil {
			return done, fmt.Errorf("fill search index: %w", err)
		}
		if len(ids) == 0 {
			if more, err := x.walk(ctx); err != nil || !more {
				return done, err
			}
			continue
		}
		for _, id := range ids {
			read, err := x.catchUp(ctx, id)
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

// How the index of words is merged: after so many transactions of Fill and turns, and at its
// end, so many pages at a time.
const (
	partsBetween = 16
	mergePages   = 32
)

// merge merges what turns and Fill have added to the index of words, in short transactions:
// none of theirs does, so that no turn waits for a long one.
func (x *Index) merge(ctx context.Context) error {
	for more := x.parts.Swap(0) > 0; more; {
		var err error
		if more, err = x.db.MergeSome(ctx, "session_words", mergePages); err != nil {
			return fmt.Errorf("merge search index: %w", err)
		}
		if more {
			x.pause(ctx)
		}
	}
	return nil
}

// walk notes the next sessions that the index does not know, and reports whether
// there may be any: first the last used ones, then in the order of their ids those that
// were used concurrently and so left their place.
func (x *Index) walk(ctx context.Context) (more bool, err error) {
	if last, _, err := store.Metadata(ctx, x.db, walked); err != nil || last == walkedAll {
		return false, err // without a write, every minute
	}
	err = x.db.TxSoon(ctx, func(tx *store.Tx) error {
		more = false
		last, _, err := store.Metadata(ctx, tx, walked)
		if err != nil || last == walkedAll {
			return err
		}
		var next []struct {
			ID   string `db:"id"`
			Used string `db:"last_accessed"`
		}
		after, any := strings.CutPrefix(last, walkedAny)
		if any {
			err = tx.Select(ctx, &next, `SELECT id, last_accessed FROM sessions WHERE id > $1 ORDER BY id LIMIT $2`, after, maxWalk)
		} else {
			used, id, found := strings.Cut(strings.TrimPrefix(last, walkedRecent), " ")
			if !found {
				used = "~" // behind every time
			}
			err = tx.Select(ctx, &next, `SELECT id, last_accessed FROM sessions WHERE (last_accessed, id) < ($1, $2) ORDER BY last_accessed DESC, id DESC LIMIT $3`, used, id, maxWalk)
		}
		if err != nil {
			return err
		}
		for i, s := range next {
			if err := x.expect(ctx, tx, s.ID, "", 0, older, tx.Time().Add(time.Duration(i)*time.Microsecond)); err != nil {
				return err
			}
		}
		to := walkedAll
		switch {
		case any && len(next) > 0:
			to = walkedAny + next[len(next)-1].ID
		case len(next) > 0:
			to = walkedRecent + next[len(next)-1].Used + " " + next[len(next)-1].ID
		case !any:
			to = walkedAny
		}
		more = to != walkedAll
		return store.SetMetadata(ctx, tx, walked, to)
	})
	if err != nil {
		return false, fmt.Errorf("fill search index: %w", err)
	}
	return more, nil
}

// below returns the number of the first of rows chunks of an older session: they come
// before all others. It is negative, so that no number that the database chooses is among
// them.
func (x *Index) below(ctx context.Context, tx *store.Tx, rows int64) (int64, error) {
	var lowest int64
	err := tx.Get(ctx, &lowest, `SELECT coalesce(min(n), 0) FROM chunks`)
	return min(0, lowest) - rows, err
}

// emptyStep bounds the rows that are taken out of the index in one transaction.
const emptyStep = 1000

// Empty forgets what the index has, and has Fill begin again.
func (x *Index) Empty(ctx context.Context) error {
	err := x.db.Tx(ctx, func(tx *store.Tx) error {
		return errors.Join(tx.EmptyWords(ctx), store.DeleteMetadata(ctx, tx, walked))
	})
	for after, again := int64(math.MinInt64), true; again && err == nil; {
		last := after
		err = x.db.Tx(ctx, func(tx *store.Tx) (err error) {
			var gone []int64
			if err = tx.Select(ctx, &gone, `SELECT n FROM chunks WHERE content_type = 'session' AND n > $1 ORDER BY n LIMIT $2`, after, emptyStep); err != nil {
				return err
			}
			if again = len(gone) > 0 || after != math.MinInt64; len(gone) == 0 {
				last = math.MinInt64 // once more from the beginning: what a Fill has added meanwhile
				return nil
			}
			last = gone[len(gone)-1]
			if err = x.vectors(ctx, tx, gone); err == nil {
				_, err = tx.Exec(ctx, `DELETE FROM chunks WHERE content_type = 'session' AND n > $1 AND n <= $2`, after, last)
			}
			return err
		})
		after = last
	}
	for n := int64(1); n > 0 && err == nil; {
		err = x.db.Tx(ctx, func(tx *store.Tx) (err error) {
			n, err = tx.Exec(ctx, `DELETE FROM index_manifest WHERE content_id IN (SELECT content_id FROM index_manifest WHERE content_type = 'session' LIMIT $1)`, emptyStep)
			return err
		})
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
	ID     string `db:"content_id"`
	User   int64  `db:"user_id"`
	File   string `db:"file"`
	Bytes  int64  `db:"bytes"`
	Behind int    `db:"behind"`
}

// catchUp indexes what is missing of a session and returns how many bytes it has read.
func (x *Index) catchUp(ctx context.Context, id string) (read int64, err error) {
	var l lag
	err = x.db.Get(ctx, &l, `SELECT m.content_id, s.user_id, m.source_path AS file, m.size AS bytes, m.behind FROM index_manifest m JOIN sessions s ON s.id = m.content_id WHERE m.content_id = $1 AND m.behind > 0`, id)
	if errors.Is(err, store.ErrNoRows) {
		return 0, x.gone(ctx, id)
	}
	if err != nil {
		return 0, fmt.Errorf("fill search index: %w", err)
	}
	file, size := x.fileOf(l)
	p := part{lag: l, file: file}
	if l.Behind == older {
		p.again = l.Bytes > 0 // an attempt that was interrupted
	}
	for p.first = true; ; p.first, p.again = false, false {
		if size < p.Bytes { // another file than the one that was read
			p.again = true
		}
		from := p.Bytes
		if p.again {
			from = 0
		}
		if p.again || p.first && from == 0 { // what there is goes in short transactions
			heavy, err := x.Heavy(ctx, l.ID)
			if err == nil && heavy {
				err = x.Shed(ctx, l.ID)
				p.Bytes = 0
			}
			if err != nil {
				return read, err
			}
		}
		docs, to, err := x.scanStep(file, from)
		if err != nil { // a file that cannot be read is not tried for ever: the next turn does
			x.log.Warn("messages cannot be searched", "session", l.ID, "err", err)
			docs, to, size = nil, from, 0
		}
		p.docs, p.to, p.whole = docs, to, to >= size || to == from
		if l.Behind == older && p.first {
			p.rows = x.countRows(file, to, size, 1+rowsOf(docs...))
		}
		if went, err := x.caught(ctx, &p); err != nil || !went {
			return read, err
		}
		x.pause(ctx)
		if x.parts.Add(1) >= partsBetween {
			if err := x.merge(ctx); err != nil {
				return read, err
			}
		}
		read += to - from
		if p.Bytes = to; p.whole {
			return read, nil
		}
	}
}

// gone removes a session from the index that was deleted.
func (x *Index) gone(ctx context.Context, id string) error {
	return x.db.Tx(ctx, func(tx *store.Tx) error {
		var there bool
		err := tx.Get(ctx, &there, `SELECT EXISTS (SELECT 1 FROM sessions WHERE id = $1)`, id)
		if err != nil || there {
			return err
		}
		return x.Remove(ctx, tx, id)
	})
}

// countRows returns how many chunks a transcript has; rows are those up to from.
func (x *Index) countRows(file string, from, size, rows int64) int64 {
	for from < size {
		docs, to, err := x.scanStep(file, from)
		if err != nil || to == from {
			break // the part that fails is reported when it is indexed
		}
		rows, from = rows+rowsOf(docs...), to
	}
	return rows
}

func (x *Index) scanStep(file string, from int64) ([]transcript.Doc, int64, error) {
	if file == "" {
		return nil, from, nil
	}
	return x.files.Scan(file, from, maxStep)
}

// A part is one transaction of catchUp.
type part struct {
	lag
	file  string
	docs  []transcript.Doc
	to    int64 // where they end
	first bool
	again bool // what is indexed is deleted first
	whole bool // nothing follows

	rows int64 // that are left for an older session
	next int64 // their first number; 0 where the database chooses
}

// caught commits a part; false if a turn was faster, and the session is still behind.
func (x *Index) caught(ctx context.Context, p *part) (went bool, err error) {
	rows, next := p.rows, p.next
	err = x.db.TxSoon(ctx, func(tx *store.Tx) error {
		went = false
		p.rows, p.next = rows, next
		var now lag
		err := tx.Get(ctx, &now, `SELECT content_id, size AS bytes, behind FROM index_manifest WHERE content_id = $1`, p.ID)
		if errors.Is(err, store.ErrNoRows) {
			return nil
		}
		if err != nil || now.Bytes != p.Bytes || now.Behind != p.Behind {
			return err
		}
		if went = true; p.again || p.first && p.Bytes == 0 {
			if err := x.dropAll(ctx, tx, p.ID); err != nil {
				return err
			}
		}
		if p.Behind == older && p.first {
			if p.next, err = x.below(ctx, tx, p.rows); err != nil {
				return err
			}
		}
		if err := x.putPart(ctx, tx, p); err != nil {
			return err
		}
		left := p.Behind
		if p.whole {
			left = 0
		}
		return x.set(ctx, tx, `source_path = $2, size = $3, behind = $4`, p.ID, p.file, p.to, left)
	})
	if err != nil {
		return false, fmt.Errorf("fill search index: %w", err)
	}
	return went, ctx.Err()
}

// putPart inserts the chunks of a part, with the first also title and tags. A file that has
// grown since its rows were counted goes on among the newest.
func (x *Index) putPart(ctx context.Context, tx *store.Tx, p *part) error {
	if p.first {
		h, err := x.sessions.Head(ctx, tx, p.ID)
		if err == nil {
			err = x.setHead(ctx, tx, p.ID, h, p.next)
		}
		if err != nil {
			return err
		}
		p.take(1)
	}
	need := rowsOf(p.docs...)
	if need > p.rows {
		p.next = 0
	}
	err := x.put(ctx, tx, p.ID, p.User, p.docs, p.next)
	p.take(need)
	return err
}

func (p *part) take(rows int64) {
	if p.next != 0 {
		p.next, p.rows = p.next+rows, p.rows-rows
	}
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
