package document

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
)

// stampOf returns a file's time as the database has it, with nanoseconds.
func stampOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000000Z")
}

func timeOf(stamp string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return time.Time{}
	}
	return t
}

// maxFiles is the largest limit of Files.
const maxFiles = 1000

// Files returns the documents that are indexed or could not be, in the order of
// their paths' bytes, after a path, at most limit (up to 1,000).
func (s *Store) Files(ctx context.Context, after string, limit int) ([]File, error) {
	return s.files(ctx, `part = 0 AND source_path > $1`, after, limit)
}

// Faults returns those of Files that have a Fault.
func (s *Store) Faults(ctx context.Context, after string, limit int) ([]File, error) {
	return s.files(ctx, `part = 0 AND source_path > $1 AND fault <> ''`, after, limit)
}

func (s *Store) files(ctx context.Context, where, after string, limit int) ([]File, error) {
	if limit < 1 || limit > maxFiles {
		return nil, core.Errorf(core.Invalid, "the limit is a number from 1 to %d", maxFiles)
	}
	var rows []struct {
		File
		Stamp   string `db:"modified"`
		Changed string `db:"changed"`
		Indexed string `db:"indexed_at"`
	}
	err := s.db.Select(ctx, &rows, fmt.Sprintf(`SELECT source_path, size, modified, changed, indexed_at, coalesce(content_hash, '') AS content_hash, open, fault
		FROM index_manifest WHERE %s ORDER BY source_path LIMIT %d`, where, limit), after)
	if err != nil {
		return nil, fmt.Errorf("index: files: %w", err)
	}
	files := make([]File, len(rows))
	for i, r := range rows {
		files[i] = r.File
		files[i].Modified, files[i].Changed, files[i].Indexed = timeOf(r.Stamp), timeOf(r.Changed), core.TimeOf(r.Indexed)
	}
	return files, nil
}

// Counts are how much the index has.
type Counts struct {
	Documents int64 `db:"documents"` // files with passages, those of journals too
	Entries   int64 `db:"entries"`   // of journals
	Faults    int64 `db:"faults"`    // files without, see Faults
	Chunks    int64 `db:"chunks"`
	Bytes     int64 `db:"bytes"` // of the files that are indexed
}

// Count returns how much the index has without conversations. It reads the row of each document.
func (s *Store) Count(ctx context.Context) (c Counts, err error) {
	err = s.db.Get(ctx, &c, `SELECT coalesce(sum(CASE WHEN fault = '' THEN 1 - part ELSE 0 END), 0) AS documents, coalesce(sum(part), 0) AS entries, coalesce(sum(CASE WHEN fault <> '' THEN 1 ELSE 0 END), 0) AS faults,
		coalesce(sum(chunk_count), 0) AS chunks, coalesce(sum(CASE WHEN fault = '' AND part = 0 THEN size ELSE 0 END), 0) AS bytes FROM index_manifest WHERE content_type <> 'session'`)
	if err != nil {
		return Counts{}, fmt.Errorf("index: count: %w", err)
	}
	return c, nil
}
