package vaultsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/vaultsync/place"
	"gatehouse/core/vaultsync/wire"
)

// Rows that are in memory at a time.
const (
	batch   = 500  // that a transaction writes
	rowPage = 1000 // that are read
)

// A cursor reads the rows of a directory in the order of their paths, a page at a time.
type cursor struct {
	s         *Store
	cond      string // further condition
	last, end string // paths are behind last and, unless it is "", before end
	page      []row
	over      bool
}

// rows returns the rows of the files below dir with a condition, "" for none.
func (s *Store) rows(dir, cond string) *cursor {
	c := &cursor{s: s, cond: cond}
	if dir != "." {
		c.last, c.end = dir+"/", dir+"0" // the character behind the slash
	}
	return c
}

// head returns the next row without taking it; nil at the end.
func (c *cursor) head(ctx context.Context) (*row, error) {
	if len(c.page) == 0 && !c.over {
		query, args := `SELECT path, hash, mark, entries, deleted, size, modified, seq FROM sync_files WHERE path > $1`+c.cond, []any{c.last}
		if c.end != "" {
			query, args = query+` AND path < $2`, append(args, c.end)
		}
		var page []row
		if err := c.s.o.DB.Select(ctx, &page, query+` ORDER BY path LIMIT `+strconv.Itoa(rowPage), args...); err != nil {
			return nil, fmt.Errorf("read synced files: %w", err)
		}
		c.page, c.over = page, len(page) < rowPage
		if len(page) > 0 {
			c.last = page[len(page)-1].Path
		}
	}
	if len(c.page) == 0 {
		return nil, nil
	}
	c.page[0].known = true
	return &c.page[0], nil
}

// take takes the row that head has returned.
func (c *cursor) take() row {
	r := c.page[0]
	c.page = c.page[1:]
	return r
}

// A comparison finds the rows that differ from what a walk finds (place.Visitor), and writes
// them. Both come in the same order.
type comparison struct {
	*Store
	ctx     context.Context // of one scan
	tree    place.Tree
	below   string // the directory of the scan
	rows    *cursor
	changed []row // at most batch
	gone    int   // rows of files that are not there any more
	there   bool  // a file of a row is there, or may be
}

// advance takes the rows before name: their files are gone.
func (c *comparison) advance(name string) error {
	for {
		r, err := c.rows.head(c.ctx)
		if err != nil || r == nil || r.Path >= name {
			return err
		}
		gone := c.rows.take()
		if gone.Deleted != "" {
			continue
		}
		c.gone++
		gone.Deleted, gone.Seq = core.Stamp(c.o.Clock.Now()), 0
		if err := c.change(gone); err != nil {
			return err
		}
	}
}

// at takes the row of name; false if there is none.
func (c *comparison) at(name string) (r row, ok bool, err error) {
	if err := c.advance(name); err != nil {
		return r, false, err
	}
	head, err := c.rows.head(c.ctx)
	if err != nil || head == nil || head.Path != name {
		return r, false, err
	}
	return c.rows.take(), true, nil
}

// Known implements place.Visitor.
func (c *comparison) Known(f place.Found) (string, error) {
	if err := c.advance(f.Name); err != nil {
		return "", err
	}
	r, err := c.rows.head(c.ctx)
	if err != nil || r == nil || r.Path != f.Name || r.Deleted != "" || r.Mark != f.Mark {
		return "", err
	}
	return r.Hash, nil
}

// File implements place.Visitor.
func (c *comparison) File(f place.Found) error {
	r, known, err := c.at(f.Name)
	if err != nil {
		return err
	}
	c.there = c.there || known && r.Deleted == ""
	if known && r.Deleted == "" && r.Hash == f.Hash {
		if r.Mark == f.Mark {
			return nil
		}
		r.Mark, r.Size, r.Modified = f.Mark, f.Size, f.Modified.UnixNano() // only read again
		return c.change(r)
	}
	return c.change(row{Path: f.Name, Hash: f.Hash, Mark: f.Mark, Size: f.Size, Modified: f.Modified.UnixNano(), Entries: entriesOf(c.tree, f), known: known})
}

// Unread implements place.Visitor.
func (c *comparison) Unread(name string) error {
	r, known, err := c.at(name)
	c.there = c.there || known && r.Deleted == ""
	return err
}

// Below implements place.Visitor.
func (c *comparison) Below(dir string) error {
	prefix := dir + "/"
	if dir == "." {
		prefix = ""
	}
	if err := c.advance(prefix); err != nil {
		return err
	}
	for {
		r, err := c.rows.head(c.ctx)
		if err != nil || r == nil || !strings.HasPrefix(r.Path, prefix) {
			return err
		}
		c.there = c.there || r.Deleted == ""
		c.rows.take()
	}
}

// change writes a row with others.
func (c *comparison) change(r row) error {
	if c.changed = append(c.changed, r); len(c.changed) < batch {
		return nil
	}
	return c.flush()
}

// end writes what is left: the files of the rows that are left are gone.
func (c *comparison) end() error {
	for {
		r, err := c.rows.head(c.ctx)
		if err != nil {
			return err
		}
		if r == nil {
			return c.flush()
		}
		if err := c.advance(r.Path + "\x00"); err != nil {
			return err
		}
	}
}

// flush writes the changed rows, unless all files have vanished.
func (c *comparison) flush() error {
	if err := c.vanished(); err != nil || len(c.changed) == 0 {
		return err
	}
	err := c.o.DB.TxSoon(c.ctx, func(tx *store.Tx) error { return c.write(c.ctx, tx, c.changed) })
	c.changed = c.changed[:0]
	return err
}

// vanished returns core.Busy if there were files and none of them is there, as on a disk that is
// not mounted, also where others are there. It looks for one among the rows that the walk has
// not come to yet. Files that have only got another name have not vanished.
func (c *comparison) vanished() error {
	if c.there {
		return nil
	}
	gone, missing := c.gone, vanishedFiles{map[string]bool{}, map[int64]bool{}}
	for _, r := range c.changed {
		if r.Deleted != "" {
			missing.add(r)
		}
	}
	for ahead := *c.rows; ; {
		head, err := ahead.head(c.ctx)
		if err != nil {
			return err
		}
		if head == nil {
			break
		}
		r := ahead.take()
		if r.Deleted != "" {
			continue
		}
		if _, err := c.tree.Top.Stat(r.Path); !errors.Is(err, fs.ErrNotExist) {
			c.there = true
			return nil
		}
		gone++
		missing.add(r)
	}
	if gone >= suddenly {
		if _, err := c.tree.Walk(c.ctx, c.below, enter, wire.Synced, missing); !errors.Is(err, errRenamed) {
			return core.Errorf(core.Busy, "all %d synced files of the folder have vanished at once: nothing is synced until one of them is back", gone)
		}
	}
	c.there = true
	return nil
}

var errRenamed = errors.New("a file that has vanished is there under another name")

// vanishedFiles are files of which a walk looks for the content. It ends with errRenamed where it
// finds one, and has only files of their sizes read.
type vanishedFiles struct {
	hashes map[string]bool // at most batch
	sizes  map[int64]bool  // of these
}

func (v vanishedFiles) add(r row) {
	if r.Size > 0 && len(v.hashes) < batch {
		v.hashes[r.Hash], v.sizes[r.Size] = true, true
	}
}

func (v vanishedFiles) Known(f place.Found) (string, error) {
	if v.sizes[f.Size] {
		return "", nil
	}
	return "of another size", nil
}

func (v vanishedFiles) File(f place.Found) error {
	if v.hashes[f.Hash] {
		return errRenamed
	}
	return nil
}

func (vanishedFiles) Unread(string) error { return nil }
func (vanishedFiles) Below(string) error  { return nil }
