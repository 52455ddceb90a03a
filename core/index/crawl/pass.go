package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/index/document"
)

// Limits of a pass.
const (
	MaxFile    = 20 << 20        // bytes; larger files are not indexed
	maxPath    = 1000            // bytes; indexes of databases take no much longer ones
	maxDepth   = 64              // directories above a file
	page       = 500             // known files that are read at a time
	batch      = 100             // documents that are removed at a time
	maxRefused = 3               // documents one after the other that cannot be stored: it is not about them
	maxTold    = 1000            // directories whose errors are remembered as logged
	looked     = 8 << 10         // bytes in which a NUL makes a file binary
	retryPDF   = 24 * time.Hour  // between attempts at a PDF that could not be read
	freshFor   = 2 * time.Second // a file changed within it may change again without a new time
	fresh      = '~'             // begins the hash of such a file: the next pass reads it again
)

// A pass compares the files of a directory with what is indexed of them. Both are read
// in the order of their paths' bytes, so that neither is held whole; of the directories
// above a file all entries are.
type pass struct {
	c     *Crawler
	below string
	whole bool
	seen  func(dir string)
	log   *slog.Logger

	known []document.File // read but not yet compared, at most page
	after string          // the last that was read
	ended bool            // nothing is behind it
	gone  []string        // to be removed, at most batch

	refused int // documents one after the other that could not be stored

	files, indexed, faults int
	bytes                  int64 // indexed
}

var errDeep = errors.New("directories are nested too deep")

func (p *pass) run(ctx context.Context) error {
	if _, err := fs.Stat(p.c.o.Files, ".parachute"); err != nil { // as each vault has
		return fmt.Errorf("this is no vault, maybe it is not mounted: %w", err)
	}
	if p.below != "" {
		p.after = p.below + "/"
	}
	err := p.dir(ctx, cmp.Or(p.below, "."), strings.Count(p.below, "/"))
	if errors.Is(err, fs.ErrNotExist) && p.below != "" {
		err = nil // it is gone, and all that was in it
	}
	if err == nil {
		err = p.until(ctx, "")
	}
	if err == nil {
		err = p.remove(ctx)
	}
	return err
}

// dir compares the files below a directory.
func (p *pass) dir(ctx context.Context, dir string, depth int) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if depth > maxDepth {
		return p.unread(ctx, dir, errDeep)
	}
	if p.seen != nil {
		p.seen(dir) // first, so that no change falls between
	}
	entries, err := fs.ReadDir(p.c.o.Files, dir)
	if err != nil {
		if dir == "." || errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return p.unread(ctx, dir, err)
	}
	delete(p.c.told, dir)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(ordered(a), ordered(b)) })
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case skipped(name):
		case e.IsDir():
			if err := p.dir(ctx, name, depth+1); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		case e.Type().IsRegular() && kindOf(name) != unknown && p.c.o.MayRead(name):
			if err := p.file(ctx, name, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// ordered is an entry's name as it is sorted among paths.
func ordered(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

// skipped reports whether a name is not for users (it begins with a dot), cannot be
// shown to them (it is not UTF-8), is too long, or holds conversations, their attachments and the
// log of them: conversations are found otherwise.
func skipped(name string) bool {
	return strings.HasPrefix(path.Base(name), ".") || name == "Chat" || name == "Daily/chat-log" || strings.HasSuffix(name, "~") || !utf8.ValidString(name) || len(name) > maxPath
}

// unread keeps what is indexed below a directory that cannot be read, and logs it once.
func (p *pass) unread(ctx context.Context, dir string, why error) error {
	if !p.c.told[dir] && len(p.c.told) < maxTold {
		p.c.told[dir] = true
		p.log.Warn("a directory is not indexed", "directory", dir, "err", why)
	}
	if err := p.until(ctx, dir+"/"); err != nil {
		return err
	}
	for {
		known, err := p.peek(ctx)
		if err != nil || known == nil || !strings.HasPrefix(known.Path, dir+"/") {
			return err
		}
		p.count(*known)
		p.known = p.known[1:]
	}
}

// peek returns the next known file, nil at the end.
func (p *pass) peek(ctx context.Context) (*document.File, error) {
	if len(p.known) == 0 && !p.ended {
		list, err := p.c.o.Library.Files(ctx, p.after, page)
		if err != nil {
			return nil, err
		}
		p.ended = len(list) < page
		if len(list) > 0 {
			p.after = list[len(list)-1].Path
		}
		p.known = list
	}
	if len(p.known) == 0 || p.below != "" && !strings.HasPrefix(p.known[0].Path, p.below+"/") {
		return nil, nil
	}
	return &p.known[0], nil
}

// until removes what is known before name, "" for all, and was not met.
func (p *pass) until(ctx context.Context, name string) error {
	for {
		known, err := p.peek(ctx)
		if err != nil || known == nil || name != "" && known.Path >= name {
			return err
		}
		p.gone = append(p.gone, known.Path)
		p.c.bytes -= p.changes(*known)
		p.known = p.known[1:]
		if len(p.gone) == batch {
			if err := p.remove(ctx); err != nil {
				return err
			}
		}
	}
}

func (p *pass) remove(ctx context.Context) error {
	if len(p.gone) == 0 {
		return nil
	}
	err := p.c.o.Library.Remove(ctx, p.gone)
	p.gone = nil
	return err
}

// file compares one file.
func (p *pass) file(ctx context.Context, name string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return nil // it is gone: the next pass knows
	}
	if err := p.until(ctx, name); err != nil {
		return err
	}
	known, err := p.peek(ctx)
	if err != nil {
		return err
	}
	var was document.File
	if known != nil && known.Path == name {
		was = *known
		p.known = p.known[1:]
	}
	now := document.File{Path: name, Size: info.Size(), Modified: info.ModTime(), Changed: changedAt(info), Open: p.c.o.Open(name)}
	same := was.Hash != "" && was.Hash[0] != fresh && was.Size == now.Size && was.Modified.Equal(now.Modified) && was.Changed.Equal(now.Changed)
	if same && was.Open == now.Open && !p.retries(was) && (!p.whole || isFull(was.Fault) == isFull(p.fits(now.Size, was))) {
		p.count(was)
		return nil
	}
	return p.put(ctx, was, now)
}

// count adds a file to the sums of the pass.
func (p *pass) count(f document.File) {
	if p.files++; f.Fault != "" {
		p.faults++
	} else {
		p.indexed++
		p.bytes += f.Size
	}
	if p.whole {
		p.c.set(func(s *Status) { s.Seen, s.Indexed, s.Faults = p.files, p.indexed, p.faults })
		p.c.metrics.counted(max(p.indexed, p.c.indexed), max(p.faults, p.c.faults))
	}
}

// retries reports whether the reason of a fault may be gone, though the file is the same.
func (p *pass) retries(was document.File) bool {
	return strings.HasPrefix(was.Fault, unreadable) || was.Fault == noPDF && p.c.o.PDF != nil ||
		strings.HasPrefix(was.Fault, badPDF) && p.c.o.Clock.Now().Sub(was.Indexed) >= retryPDF
}

// changedAt returns a file's ctime, zero where its file system does not have it.
func changedAt(info fs.FileInfo) time.Time {
	if c, ok := info.(interface{ Changed() time.Time }); ok {
		return c.Changed()
	}
	return time.Time{}
}

// changes returns the bytes by which a file's place in the index changes the sum that
// the last pass over the whole vault has found; such a pass finds it itself.
func (p *pass) changes(f document.File) int64 {
	if p.whole || f.Fault != "" {
		return 0
	}
	return f.Size
}

// Faults that may be gone without a change of the file.
const (
	unreadable = "it cannot be read: "
	noPDF      = "PDFs are not read here"
	badPDF     = "its text cannot be read: " // the machine may have been short of memory or time
)

// full begins the fault of a file that the index has no room for.
const full = "the index is full"

func isFull(fault string) bool { return strings.HasPrefix(fault, full) }

// fits returns why a file of a size has no place in the index; "" when it has. was is
// what it replaces.
func (p *pass) fits(size int64, was document.File) string {
	used := p.bytes
	if !p.whole {
		used = p.c.bytes - p.changes(was)
	}
	switch {
	case size > MaxFile:
		return fmt.Sprintf("larger than %d MB", MaxFile>>20)
	case p.c.o.MaxBytes > 0 && used+size > p.c.o.MaxBytes:
		return fmt.Sprintf(full+": GATEHOUSE_INDEX_MAX_MB is %d", p.c.o.MaxBytes>>20)
	}
	return ""
}

// put brings a file that has changed into the index.
func (p *pass) put(ctx context.Context, was, now document.File) error {
	var d document.Document
	if now.Fault = p.fits(now.Size, was); now.Fault == "" {
		var ok bool
		var err error
		if d, ok, err = p.read(ctx, was, now); err != nil || !ok {
			return err
		}
		now = d.File
	} else {
		now.Hash = "not read"
		d = p.bare(now)
	}
	p.count(now)
	p.c.bytes += p.changes(now) - p.changes(was)
	if was.Hash != "" && strings.TrimPrefix(was.Hash, string(fresh)) == strings.TrimPrefix(now.Hash, string(fresh)) && was.Fault == now.Fault {
		if was.Hash == now.Hash && was.Size == now.Size && was.Modified.Equal(now.Modified) && was.Changed.Equal(now.Changed) && was.Open == now.Open && !strings.HasPrefix(now.Fault, badPDF) {
			return nil
		}
		return p.c.o.Library.Mark(ctx, now)
	}
	if err := p.yield(ctx); err != nil {
		return err
	}
	began := p.c.o.Clock.Now()
	if err := p.c.o.Library.Put(ctx, d); err != nil {
		if p.refused++; p.refused > maxRefused || ctx.Err() != nil {
			return err
		}
		p.log.Warn("a document is not indexed", "document", d.Path, "err", err) // the next pass tries again
		return nil
	}
	p.refused = 0
	if took := p.c.o.Clock.Now().Sub(began); took > 0 { // at most half of the time
		core.Sleep(ctx, p.c.o.Clock, min(took, time.Second))
	}
	return nil
}

// yield waits while messages are being answered, but not for ever.
func (p *pass) yield(ctx context.Context) error {
	for n := 0; p.c.o.Busy != nil && n < maxWays && p.c.o.Busy(); n++ {
		core.Sleep(ctx, p.c.o.Clock, giveWay)
	}
	return context.Cause(ctx)
}
