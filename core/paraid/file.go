package paraid

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"sync"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/vault"
)

// File is the registry's file in the vault, with one line of JSON for each id.
const File = ".parachute/ids.jsonl"

// A Registry has all ids. It is safe for concurrent use. The caller has Flush called
// regularly, and at the end.
type Registry struct {
	db    *store.DB
	vault *vault.Vault
	log   *slog.Logger
	file  file
}

// New returns the registry in db and v. Call Load before it is used.
func New(db *store.DB, v *vault.Vault, log *slog.Logger) *Registry {
	return &Registry{db: db, vault: v, log: log, file: file{first: true}}
}

// maxPending limits the lines that wait for Flush. With more, it writes the whole file.
const maxPending = 4096

// A file is what the registry's file lacks.
type file struct {
	write   sync.Mutex // one writes at a time
	mu      sync.Mutex
	pending []Entry // to be appended; at most maxPending
	whole   bool    // it is written from the table
	first   bool    // it was not compared with the table yet
	unread  bool    // it could not be read: it is not written
}

func (f *file) add(e Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.pending) < maxPending {
		f.pending = append(f.pending, e)
		return
	}
	f.whole = true
}

// stale has the whole file written, since lines that it has changed.
func (f *file) stale() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.whole = true
}

func (f *file) take(last bool) (lines []Entry, whole bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines, whole = f.pending, f.whole || f.first && !last
	f.pending, f.whole = nil, false
	if !last {
		f.first = false
	}
	return lines, whole
}

func (f *file) isUnread() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unread
}

type line struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Path    string `json:"path"`
	Created string `json:"created_at"`
	User    int64  `json:"user_id"`
}

func encode(b *bytes.Buffer, e Entry) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	return enc.Encode(line{e.ID, e.Type, e.Path, core.Stamp(e.Created), e.User})
}

// Flush brings the file up to date and returns how many ids it wrote. It appends new
// ids and does not wait for the disk: the database has them. After other changes, an
// error, and for the first time, it writes the whole file where that differs.
func (r *Registry) Flush(ctx context.Context) (n int, err error) { return r.flush(ctx, false) }

// Close writes what waits for Flush.
func (r *Registry) Close() error {
	_, err := r.flush(context.Background(), true)
	return err
}

func (r *Registry) flush(ctx context.Context, last bool) (n int, err error) {
	r.file.write.Lock()
	defer r.file.write.Unlock()
	lines, whole := r.file.take(last)
	if r.file.isUnread() {
		return 0, nil
	}
	switch {
	case whole:
		n, err = r.rewrite(ctx)
	case len(lines) > 0:
		n, err = len(lines), r.append(lines)
		if errors.Is(err, fs.ErrNotExist) {
			n, err = r.rewrite(ctx)
		}
	}
	if err != nil {
		r.file.stale()
		return 0, fmt.Errorf("write %s: %w", File, err)
	}
	return n, nil
}

func (r *Registry) append(lines []Entry) error {
	var b bytes.Buffer
	for _, e := range lines {
		if err := encode(&b, e); err != nil {
			return err
		}
	}
	if err := r.vault.Fenced(); err != nil {
		return err
	}
	f, err := r.vault.Root().OpenFile(File, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	return errors.Join(err, f.Close())
}

// pageRows is how many rows are read at a time.
const pageRows = 1000

// rewrite writes the file from the table, unless it is equal.
func (r *Registry) rewrite(ctx context.Context) (n int, err error) {
	d, err := r.vault.Draft(path.Dir(File))
	if err != nil {
		return 0, err
	}
	defer d.Drop()
	same := r.compare()
	defer same.close()
	for after := ""; ; {
		var rows []row
		if err := r.db.Select(ctx, &rows, `SELECT id, type, path, created_at, user_id FROM para_ids WHERE id > $1 ORDER BY id LIMIT 1000`, after); err != nil {
			return 0, err
		}
		var b bytes.Buffer
		for _, w := range rows {
			if err := encode(&b, w.entry()); err != nil {
				return 0, err
			}
			after = w.ID
		}
		same.read(b.Bytes())
		if _, err := d.Write(b.Bytes()); err != nil {
			return 0, err
		}
		n += len(rows)
		if len(rows) < pageRows {
			break
		}
	}
	if same.end() {
		return 0, nil
	}
	return n, d.Keep(File)
}

// compare reads the present file and what is to be written.
func (r *Registry) compare() *comparison {
	f, err := r.vault.Root().Open(File)
	if err != nil {
		return &comparison{differs: true}
	}
	return &comparison{f: f, r: bufio.NewReader(f)}
}

type comparison struct {
	f       *os.File
	r       *bufio.Reader
	differs bool
}

func (c *comparison) read(want []byte) {
	if c.differs {
		return
	}
	have := make([]byte, len(want))
	_, err := io.ReadFull(c.r, have)
	c.differs = len(want) > 0 && err != nil || !bytes.Equal(have, want)
}

// end reports whether the file has what was read, and no more.
func (c *comparison) end() bool {
	if c.differs {
		return false
	}
	_, err := c.r.ReadByte()
	return errors.Is(err, io.EOF)
}

func (c *comparison) close() {
	if c.f != nil {
		_ = c.f.Close()
	}
}

// maxLine is the longest line that Load reads, in bytes.
const maxLine = 8 << 10

// loaded is the metadata that records that the table has what the file had.
const loaded = "para_ids_loaded"

// Unread is where a file is copied to of which Load could not read all lines.
const Unread = ".parachute/ids-unread.jsonl"

// Load adds the ids of the file to a new table, after the loss of the database; one that
// was interrupted is repeated by the next. Lines that are none are counted in the log and
// left out, and the file is copied to Unread. A file that cannot be read stays as it is
// until the next start.
func (r *Registry) Load(ctx context.Context) error {
	_, done, err := store.Metadata(ctx, r.db, loaded)
	if err != nil || done {
		return err
	}
	f, err := r.vault.OpenNoLinks(File)
	if errors.Is(err, fs.ErrNotExist) {
		return r.claim(ctx, nil, true)
	}
	if err != nil {
		return r.leave(err)
	}
	defer f.Close()
	n, bad, err := r.read(ctx, f)
	var unread *fs.PathError
	if errors.As(err, &unread) {
		return r.leave(err)
	}
	if err == nil && bad > 0 {
		err = r.copyUnread(f)
	}
	if err == nil {
		err = r.claim(ctx, nil, true)
	}
	if n+bad > 0 {
		r.log.Info("read the ids of the vault's entries from their file", "file", File, "ids", n, "invalid_lines", bad, "err", err)
	}
	return err
}

// leave has the file stay as it is, since it cannot be read.
func (r *Registry) leave(err error) error {
	r.log.Warn("the file of ids cannot be read and is left as it is; new ids are checked against the database only", "file", File, "err", err)
	r.file.mu.Lock()
	defer r.file.mu.Unlock()
	r.file.unread = true
	return nil
}

// read adds the lines of a file to the table and returns how many these were, and how
// many were none.
func (r *Registry) read(ctx context.Context, f io.Reader) (n, bad int, err error) {
	lines := bufio.NewReaderSize(f, maxLine)
	var page []Entry // at most pageRows
	for long, end := false, false; !end; {
		text, err := lines.ReadSlice('\n')
		if end = errors.Is(err, io.EOF); err != nil && !end && !errors.Is(err, bufio.ErrBufferFull) {
			return n, bad, err
		}
		if long = long || errors.Is(err, bufio.ErrBufferFull); long {
			if err == nil || end { // its end
				long, bad = false, bad+1
			}
			continue
		}
		if len(text) == 0 {
			continue
		}
		e, ok := decode(text)
		if !ok {
			bad++
			continue
		}
		if page = append(page, e); len(page) == pageRows {
			if err := r.claim(ctx, page, false); err != nil {
				return n, bad, err
			}
			n, page = n+len(page), page[:0]
		}
	}
	return n + len(page), bad, r.claim(ctx, page, false)
}

// copyUnread copies the file to Unread, unless there is one.
func (r *Registry) copyUnread(f io.ReadSeeker) error {
	if _, err := r.vault.Stat(Unread); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d, err := r.vault.Draft(path.Dir(Unread))
	if err != nil {
		return err
	}
	defer d.Drop()
	if _, err = f.Seek(0, io.SeekStart); err == nil {
		_, err = io.Copy(d, f)
	}
	if err == nil {
		err = d.Sync()
	}
	if err != nil {
		return fmt.Errorf("copy the file of ids: %w", err)
	}
	return d.Keep(Unread)
}

func decode(text []byte) (Entry, bool) {
	var l line
	if json.Unmarshal(text, &l) != nil {
		return Entry{}, false
	}
	at, err := core.ParseStamp(l.Created)
	e := Entry{ID: l.ID, Type: l.Type, Path: l.Path, User: l.User, Created: at}
	return e, err == nil && e.Check() == nil
}

// claim adds a page of entries. After the last page the table has all.
func (r *Registry) claim(ctx context.Context, page []Entry, last bool) error {
	if len(page) == 0 && !last {
		return nil
	}
	return r.db.Tx(ctx, func(tx *store.Tx) error {
		for _, e := range page {
			if _, err := r.Claim(ctx, tx, e); err != nil {
				return err
			}
		}
		if !last {
			return nil
		}
		return store.SetMetadata(ctx, tx, loaded, core.Stamp(tx.Time()))
	})
}
