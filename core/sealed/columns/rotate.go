package columns

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core/sealed"
	"gatehouse/core/store"
)

// pageRows limits the rows of one transaction of a rotation.
const pageRows = 200

// Rotated is the outcome of a rotation.
type Rotated struct {
	Key     string   `json:"key"`               // encrypts now
	Resumed bool     `json:"resumed,omitempty"` // an interrupted rotation was finished, with its key
	Rows    int      `json:"rows"`              // that were encrypted again
	Damaged int      `json:"damaged,omitempty"` // that could not be read and stay as they are
	Earlier []string `json:"earlier"`           // keys that only backups from before need
}

// Rotate adds a key to the file, encrypts every value again with it, and returns what it
// did. Values of all keys open in the meantime. An interrupted rotation is finished by the
// next call, which then adds no other key. Only one may run at a time.
func Rotate(ctx context.Context, db *store.DB, box *sealed.Box, list []Column, progress func(string)) (r Rotated, err error) {
	ids, err := Recorded(ctx, db)
	if err != nil {
		return r, err
	}
	if len(ids) > 1 {
		r, err = encryptAll(ctx, db, box, list, progress)
		// Where nothing but damaged rows has another key, the rotation before was whole.
		if r.Resumed = true; err != nil || r.Rows > 0 || r.Damaged == 0 {
			return r, err
		}
		if ids, err = Recorded(ctx, db); err != nil {
			return r, err
		}
	}
	id, err := box.Add()
	if err != nil {
		return r, err
	}
	if err := db.Tx(ctx, func(tx *store.Tx) error { return record(ctx, tx, append([]string{id}, ids...)) }); err != nil {
		return r, err
	}
	return encryptAll(ctx, db, box, list, progress)
}

// encryptAll encrypts every value again that has not the first key, and records which
// keys are in use then.
func encryptAll(ctx context.Context, db *store.DB, box *sealed.Box, list []Column, progress func(string)) (r Rotated, err error) {
	r.Key = box.ID()
	for _, c := range list {
		for after := ""; ; {
			page, err := reseal(ctx, db, box, c, after)
			if err != nil {
				return r, fmt.Errorf("encrypt %s.%s again: %w", c.Table, c.Name, err)
			}
			r.Rows, r.Damaged, after = r.Rows+page.done, r.Damaged+page.damaged, page.last
			if progress != nil {
				progress(fmt.Sprintf("%d rows", r.Rows))
			}
			if page.n < pageRows {
				break
			}
		}
	}
	keep := []string{r.Key}
	for _, id := range box.IDs() {
		if id == r.Key {
			continue
		}
		r.Earlier = append(r.Earlier, id)
		if found, err := uses(ctx, db, list, id); err != nil {
			return r, err
		} else if found {
			keep = append(keep, id)
		}
	}
	return r, db.Tx(ctx, func(tx *store.Tx) error { return record(ctx, tx, keep) })
}

// A page is what reseal did with up to pageRows rows.
type page struct {
	n, done, damaged int
	last             string // row
}

// reseal encrypts the next rows behind after that have another key.
func reseal(ctx context.Context, db *store.DB, box *sealed.Box, c Column, after string) (p page, err error) {
	if err := context.Cause(ctx); err != nil {
		return p, err
	}
	read := "SELECT " + c.Row + " AS at, " + c.Name + " AS value FROM " + c.Table +
		" WHERE " + c.Row + " > $1 AND " + c.Name + " LIKE $2 AND NOT " + c.Name + " LIKE $3 ORDER BY " + c.Row + " LIMIT 200"
	write := "UPDATE " + c.Table + " SET " + c.Name + " = $1 WHERE " + c.Row + " = $2"
	err = db.Tx(ctx, func(tx *store.Tx) error {
		var rows []struct{ At, Value string }
		if err := tx.Select(ctx, &rows, read, after, sealed.Like(""), sealed.Like(box.ID())); err != nil {
			return err
		}
		q := page{n: len(rows)}
		for _, row := range rows {
			q.last = row.At
			at := sealed.Place{Table: c.Table, Column: c.Name, Row: row.At}
			text, err := box.Open(at, row.Value)
			if errors.Is(err, sealed.ErrDamaged) {
				q.damaged++
				continue
			}
			if err != nil {
				return err
			}
			value, err := box.Seal(at, text)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, write, value, row.At); err != nil {
				return err
			}
			q.done++
		}
		p = q
		return nil
	})
	return p, err
}
