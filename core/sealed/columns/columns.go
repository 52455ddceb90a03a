// Package columns knows which columns of the database are encrypted, and with which keys:
// it opens the key file at the start (Start), refuses a database whose keys are missing,
// and encrypts all rows again with a new key (Rotation). The owners of the tables name
// their columns.
package columns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"gatehouse/core"
	"gatehouse/core/sealed"
	"gatehouse/core/store"
)

// A Column is one encrypted column. Its fields are constants of the owner of the table.
type Column struct {
	Table, Name string
	Row         string // expression of SQL for Place.Row, such as "id" or "CAST(id AS TEXT)"
	// Was is true for a column of few rows that earlier versions did not encrypt: Start
	// encrypts what it finds there.
	Was bool
}

// InUse is the key of the metadata with the ids of the keys that rows may be encrypted
// with, as a JSON list.
const InUse = "content_keys"

// compacts is the key of the metadata that is set while the database's file may still have
// plain text that was encrypted.
const compacts = "content_keys.compact"

// Recorded returns the ids of the keys that rows of the database may be encrypted with.
func Recorded(ctx context.Context, q store.Queryer) (ids []string, err error) {
	text, _, err := store.Metadata(ctx, q, InUse)
	if err != nil {
		return nil, err
	}
	return parse(text)
}

func parse(recorded string) (ids []string, err error) {
	if recorded == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(recorded), &ids); err != nil {
		return nil, fmt.Errorf("read the metadata %s: %w", InUse, err)
	}
	return ids, nil
}

// Complete returns core.Invalid if a key file lacks a key of recorded, which is the value
// of the metadata InUse. setting is the name of the setting with the file's path.
func Complete(recorded, file, setting string) error {
	ids, err := parse(recorded)
	if err != nil || len(ids) == 0 {
		return err
	}
	box, err := sealed.Open(file)
	if err != nil && !errors.Is(err, sealed.ErrMissing) {
		return err
	}
	lacks := slices.DeleteFunc(ids, func(id string) bool { return box != nil && box.Has(id) })
	if len(lacks) == 0 {
		return nil
	}
	return core.Errorf(core.Invalid, "the database is encrypted with the key %s, which %s lacks: copy the file from the gateway that serves, or set %s to where it is", list(lacks), file, setting)
}

func record(ctx context.Context, tx *store.Tx, ids []string) error {
	text, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	return store.SetMetadata(ctx, tx, InUse, string(text))
}

// Used returns those of the recorded keys with which at least one row is encrypted.
func Used(ctx context.Context, q store.Queryer, list []Column) (used []string, err error) {
	ids, err := Recorded(ctx, q)
	for _, id := range ids {
		found, err := uses(ctx, q, list, id)
		if err != nil {
			return nil, err
		}
		if found {
			used = append(used, id)
		}
	}
	return used, err
}

// uses reports whether a row is encrypted with the key.
func uses(ctx context.Context, q store.Queryer, list []Column, id string) (bool, error) {
	for _, c := range list {
		var one int
		err := q.Get(ctx, &one, "SELECT 1 FROM "+c.Table+" WHERE "+c.Name+" LIKE $1 LIMIT 1", sealed.Like(id))
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, store.ErrNoRows) {
			return false, fmt.Errorf("read %s.%s: %w", c.Table, c.Name, err)
		}
	}
	return false, nil
}

// Options of Start. All but Lost and Log are needed.
type Options struct {
	DB      *store.DB
	File    string // of the keys, absolute
	Setting string // the name of the setting with its path
	Columns []Column
	Lost    bool // texts whose key is missing are deleted
	Log     *slog.Logger
}

// Start opens the key file, and makes it where there is none and no row needs one. It
// returns core.Invalid, with the ids of the keys and what to do, while rows are encrypted
// with a key that the file lacks; with Lost it empties these values and returns how many
// in deleted. Then it encrypts what earlier versions left in plain text (Column.Was), and
// rewrites a SQLite file, so that the plain text is neither in it nor in its log; where that
// fails, it is logged and done at the next start. It reads the other tables only where a key
// is missing.
func Start(ctx context.Context, o Options) (box *sealed.Box, deleted int, err error) {
	recorded, err := Recorded(ctx, o.DB)
	if err != nil {
		return nil, 0, err
	}
	box, err = sealed.Open(o.File)
	fresh := errors.Is(err, sealed.ErrMissing)
	if err != nil && !fresh {
		return nil, 0, err
	}
	var missing []string
	for _, id := range recorded {
		if fresh || !box.Has(id) {
			missing = append(missing, id)
		}
	}
	var needed []string
	for _, id := range missing {
		found, err := uses(ctx, o.DB, o.Columns, id)
		if err != nil {
			return nil, 0, err
		}
		if found {
			needed = append(needed, id)
		}
	}
	if len(needed) > 0 && !o.Lost {
		return nil, 0, o.refuse(needed, fresh)
	}
	if fresh {
		box, err = sealed.Create(o.File)
		if core.KindOf(err) == core.Conflict { // another process was first
			if other, failed := sealed.Open(o.File); failed == nil {
				box, err = other, nil
			}
		}
		if err != nil {
			return nil, 0, core.Errorf(core.Invalid, "the key file of the encrypted columns cannot be made at %s: %v; make its directory for the gateway's user, or set %s to a path that it can write, outside the vault", o.File, err, o.Setting)
		}
	}
	keep := []string{box.ID()}
	for _, id := range recorded {
		if !slices.Contains(missing, id) && id != box.ID() {
			keep = append(keep, id)
		}
	}
	if slices.Equal(keep, recorded) {
		return box, 0, o.encrypt(ctx, box)
	}
	err = o.DB.Tx(ctx, func(tx *store.Tx) error {
		n := 0
		for _, id := range needed {
			for _, c := range o.Columns {
				rows, err := tx.Exec(ctx, "UPDATE "+c.Table+" SET "+c.Name+" = '' WHERE "+c.Name+" LIKE $1", sealed.Like(id))
				if err != nil {
					return err
				}
				n += int(rows)
			}
		}
		deleted = n
		return record(ctx, tx, keep)
	})
	if err == nil {
		err = o.encrypt(ctx, box)
	}
	return box, deleted, err
}

// encrypt encrypts the plain text that earlier versions left.
func (o Options) encrypt(ctx context.Context, box *sealed.Box) error {
	for _, c := range o.Columns {
		if !c.Was {
			continue
		}
		if err := o.DB.Tx(ctx, func(tx *store.Tx) error { return c.encrypt(ctx, tx, box) }); err != nil {
			return fmt.Errorf("encrypt %s.%s: %w", c.Table, c.Name, err)
		}
	}
	pending, err := o.DB.Load(ctx, compacts)
	if err != nil || pending == "" {
		return err
	}
	return o.compact(ctx)
}

func (c Column) encrypt(ctx context.Context, tx *store.Tx, box *sealed.Box) error {
	var rows []struct{ At, Value string }
	if err := tx.Select(ctx, &rows, "SELECT "+c.Row+" AS at, "+c.Name+" AS value FROM "+c.Table+" WHERE "+c.Name+" <> '' AND NOT "+c.Name+" LIKE $1", sealed.Like("")); err != nil || len(rows) == 0 {
		return err
	}
	for _, row := range rows {
		value, err := box.Seal(sealed.Place{Table: c.Table, Column: c.Name, Row: row.At}, row.Value)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "UPDATE "+c.Table+" SET "+c.Name+" = $1 WHERE "+c.Row+" = $2", value, row.At); err != nil {
			return err
		}
	}
	return store.SetMetadata(ctx, tx, compacts, "1")
}

// compact rewrites the file of the database. The copies that were kept before migrations
// stay as they are, and are logged.
func (o Options) compact(ctx context.Context) error {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	done, err := o.DB.Compact(ctx, 0)
	if err != nil {
		log.Warn("what was encrypted may still be readable in the database's file; the next start tries again to rewrite it", "err", err)
		return nil
	}
	if copies, _ := o.DB.Copies(); done && len(copies) > 0 { // its only error is a bad pattern
		log.Warn("texts were encrypted that earlier versions stored as they are; copies of the database from before still have them: delete these when you will not go back", "copies", copies)
	}
	return o.DB.Tx(ctx, func(tx *store.Tx) error { return store.DeleteMetadata(ctx, tx, compacts) })
}

func (o Options) refuse(needed []string, fresh bool) error {
	what := fmt.Sprintf("the key file %s lacks it", o.File)
	if fresh {
		what = fmt.Sprintf("there is no key file at %s", o.File)
	}
	return core.Errorf(core.Invalid, "texts in the database are encrypted with the key %s, and %s: copy the file from where you keep it, or set %s to where it is. 'gatehouse serve --lost-content-key' deletes these texts and goes on without them", list(needed), what, o.Setting)
}

func list(ids []string) string {
	text := ""
	for i, id := range ids {
		if i > 0 {
			text += " and "
		}
		text += id
	}
	return text
}
