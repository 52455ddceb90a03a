package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// A Ledger stores the owner and the size of each attachment.
// It is safe for concurrent use.
type Ledger struct {
	db            *store.DB
	box           Box   // nil: no previews are kept
	person, whole int64 // bytes; 0 is no bound
}

// NewLedger returns a Ledger that encrypts previews with box (nil: none are kept), with
// limits in bytes for the files of one user and of all users; 0 is no limit. Only the
// second applies to the operator.
func NewLedger(db *store.DB, box Box, person, whole int64) *Ledger {
	return &Ledger{db: db, box: box, person: person, whole: whole}
}

// Use returns the bytes of all attachments, and the most that one user has.
func (l *Ledger) Use(ctx context.Context) (whole, most int64, err error) {
	var row struct {
		Whole int64 `db:"whole_use"`
		Most  int64 `db:"most_use"`
	}
	err = l.db.Get(ctx, &row, `SELECT coalesce(sum(bytes), 0) AS whole_use, coalesce(max(CASE WHEN user_id <> $1 THEN bytes END), 0) AS most_use FROM attachment_use`, core.Operator)
	if err != nil {
		return 0, 0, fmt.Errorf("read the use of attachments: %w", err)
	}
	return row.Whole, row.Most, nil
}

// Gauge returns the collector of gatehouse_attachments_bytes, which reads the table
// at each scrape.
func (l *Ledger) Gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gatehouse_attachments_bytes", Help: "What the files take that came with messages or were shown in answers; -1: not known."}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		whole, _, err := l.Use(ctx)
		if err != nil {
			return -1 // shown, unlike a 0 that would look well
		}
		return float64(whole)
	})
}

// Room implements Quota. It reads one row for each user who has files.
func (l *Ledger) Room(ctx context.Context, user int64) (left int64, why string, err error) {
	return l.room(ctx, l.db, user)
}

func (l *Ledger) room(ctx context.Context, q store.Queryer, user int64) (left int64, why string, err error) {
	var row struct {
		Whole int64 `db:"whole_use"`
		Own   int64 `db:"own_use"`
	}
	err = q.Get(ctx, &row, `SELECT coalesce(sum(bytes), 0) AS whole_use, coalesce(sum(CASE WHEN user_id = $1 THEN bytes END), 0) AS own_use FROM attachment_use`, user)
	if err != nil {
		return 0, "", fmt.Errorf("read the use of attachments: %w", err)
	}
	left = math.MaxInt64
	if l.person > 0 && user != core.Operator {
		left, why = max(0, l.person-row.Own), texts.Text("room_own", texts.With{"Most": core.ByteSize(int(l.person))})
	}
	if rest := max(0, l.whole-row.Whole); l.whole > 0 && rest < left {
		left, why = rest, texts.Text("room_all", texts.With{"Most": core.ByteSize(int(l.whole))})
	}
	return left, why, nil
}

// Note implements Quota. Check and insert are one transaction, so concurrent files
// cannot exceed a limit together.
func (l *Ledger) Note(ctx context.Context, user int64, f core.File) (fits bool, err error) {
	err = l.db.Tx(ctx, func(tx *store.Tx) error {
		left, _, err := l.room(ctx, tx, user)
		if fits = f.Size <= left; err != nil || !fits {
			return err
		}
		return Record(ctx, tx, user, "", "", []core.File{f})
	})
	return fits && err == nil, err
}

// Find implements Quota.
func (l *Ledger) Find(ctx context.Context, user int64, beginning string) (f core.File, found bool, err error) {
	var row struct {
		Path string `db:"path"`
		Size int64  `db:"size"`
	}
	err = l.db.Get(ctx, &row, `SELECT path, coalesce(size, -1) AS size FROM attachments WHERE path >= $1 AND path < $2 AND user_id = $3 ORDER BY path LIMIT 1`, beginning, beginning+"\U0010ffff", user)
	if errors.Is(err, store.ErrNoRows) {
		return f, false, nil
	}
	if err != nil {
		return f, false, fmt.Errorf("find an attachment: %w", err)
	}
	return core.File{Path: row.Path, Size: row.Size}, true, nil
}

// Drop implements Quota.
func (l *Ledger) Drop(ctx context.Context, files []core.File) error {
	return l.db.Tx(ctx, func(tx *store.Tx) error {
		for _, f := range files {
			var row struct {
				User int64 `db:"user_id"`
				Size int64 `db:"size"`
			}
			err := tx.Get(ctx, &row, `DELETE FROM attachments WHERE path = $1 RETURNING user_id, coalesce(size, 0) AS size`, f.Path)
			if errors.Is(err, store.ErrNoRows) {
				continue
			}
			if err == nil {
				err = use(ctx, tx, row.User, -row.Size)
			}
			if err != nil {
				return fmt.Errorf("drop an attachment: %w", err)
			}
		}
		return nil
	})
}

// use adds bytes to the total of a user.
func use(ctx context.Context, tx *store.Tx, user, bytes int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO attachment_use (user_id, bytes) VALUES ($1, $2) ON CONFLICT (user_id) DO UPDATE SET bytes = attachment_use.bytes + $2`, user, bytes)
	return err
}

// recountPage is how many files Recount reads at a time.
const recountPage = 500

// Recount corrects sizes from the files in the vault, deletes the rows of files that
// do not exist, and adds up the totals. It returns how many rows it changed. Where
// no file of any row exists, the disk that has them may be away: the rows stay, and count nothing.
func (l *Ledger) Recount(ctx context.Context, files fs.FS) (changed int, err error) {
	if there, err := l.anyOf(ctx, files); err != nil || !there {
		if err == nil {
			err = l.db.Tx(ctx, func(tx *store.Tx) error { _, err := tx.Exec(ctx, `DELETE FROM attachment_use`); return err })
		}
		return 0, err
	}
	for after := ""; ; {
		var rows []struct {
			Path string `db:"path"`
			Size int64  `db:"size"`
		}
		if err := l.db.Select(ctx, &rows, `SELECT path, coalesce(size, -1) AS size FROM attachments WHERE path > $1 ORDER BY path LIMIT $2`, after, recountPage); err != nil {
			return changed, fmt.Errorf("recount attachments: %w", err)
		}
		if len(rows) == 0 {
			break
		}
		was := map[string]int64{} // path → outdated size, -1 gone; at most recountPage
		for _, r := range rows {
			st, err := fs.Lstat(files, r.Path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				was[r.Path] = -1
			case err == nil && st.Size() != r.Size:
				was[r.Path] = st.Size()
			}
			after = r.Path
		}
		if err := l.correct(ctx, was); err != nil {
			return changed, err
		}
		changed += len(was)
	}
	return changed, l.db.Tx(ctx, func(tx *store.Tx) error {
		for _, q := range [...]string{`DELETE FROM attachment_use`,
			`INSERT INTO attachment_use (user_id, bytes) SELECT user_id, sum(coalesce(size, 0)) FROM attachments GROUP BY user_id`} {
			if _, err := tx.Exec(ctx, q); err != nil {
				return fmt.Errorf("add up attachments: %w", err)
			}
		}
		return nil
	})
}

// anyOf reports whether a file of any row exists.
func (l *Ledger) anyOf(ctx context.Context, files fs.FS) (bool, error) {
	for after := ""; ; {
		var paths []string
		if err := l.db.Select(ctx, &paths, `SELECT path FROM attachments WHERE path > $1 ORDER BY path LIMIT $2`, after, recountPage); err != nil || len(paths) == 0 {
			return false, err
		}
		for _, after = range paths {
			if _, err := fs.Lstat(files, after); err == nil {
				return true, nil
			}
		}
	}
}

func (l *Ledger) correct(ctx context.Context, sizes map[string]int64) error {
	if len(sizes) == 0 {
		return nil
	}
	return l.db.Tx(ctx, func(tx *store.Tx) error {
		for path, size := range sizes {
			query, args := `UPDATE attachments SET size = $2 WHERE path = $1`, []any{path, size}
			if size < 0 {
				query, args = `DELETE FROM attachments WHERE path = $1`, []any{path}
			}
			if _, err := tx.Exec(ctx, query, args...); err != nil {
				return fmt.Errorf("recount attachments: %w", err)
			}
		}
		return nil
	})
}
