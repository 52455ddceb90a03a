package quote

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm"
)

// What one search and the cache may take.
const (
	maxEntries   = 50_000          // directory entries checked in a walk
	maxListed    = 10_000          // text files remembered of a walk
	maxDepth     = 32              // directories below the vault
	maxFiles     = 2_000           // files read in one search
	maxFile      = 1 << 20         // bytes; longer files are left out
	maxRead      = 16 << 20        // bytes read in one search
	maxCached    = 4 << 20         // bytes of contents kept (twice: as they are and folded)
	cacheFor     = 3 * time.Second // after that, list and contents are read again
	maxPerSearch = 20              // passages
	maxIndexed   = 20              // files that the index names
)

// An Index finds files of the vault by their words.
type Index interface {
	// Files returns at most limit slash paths of files with words that begin with one of
	// stems, the best first, among those that sender may read. It may lack what was
	// written a moment ago, and has nothing before it is filled.
	Files(ctx context.Context, sender llm.Sender, stems []string, limit int) ([]string, error)
}

// Grep searches the *.md and *.txt files below root that mayRead allows the sender, by
// terms: passages (paragraphs with the heading directly above them) with more different
// terms come first, then the denser ones. Headings further above count too. Names that
// begin with a dot, and symbolic links, are skipped.
//
// mayRead is asked for every file in every search, before the file is opened;
// paths are relative to root, with slashes. The list of files and up to 4 MiB
// of contents are kept for three seconds. A search checks 50,000 entries,
// reads 2,000 files of up to 1 MiB and 16 MiB in all; what is beyond is left
// out. It ends with ctx.
//
// With an index, the 20 files that it names are read instead, and no directory; the others
// are where it names none with a passage. index may be nil.
func Grep(root *os.Root, index Index, mayRead func(sender llm.Sender, path string) bool, clock core.Clock) Search {
	g := &grep{root: root, index: index, mayRead: mayRead, clock: clock, lock: make(chan struct{}, 1), open: openPlain}
	return g.search
}

type grep struct {
	root    *os.Root
	index   Index // may be nil
	mayRead func(llm.Sender, string) bool
	clock   core.Clock
	open    func(root *os.Root, name string) (*os.File, error) // a test counts

	lock  chan struct{} // holds one token while the cache is used; select can leave it
	since time.Time     // when the cache was begun
	paths []string      // sorted, at most maxListed
	texts map[string]*document
	bytes int // of texts, at most maxCached
}

// A document is a file's contents; folded is its lower case.
type document struct{ text, folded string }

func (g *grep) search(ctx context.Context, sender llm.Sender, words []string, limit int) ([]Passage, error) {
	stems := stemsOf(words)
	if len(stems) == 0 || limit <= 0 {
		return nil, ended(ctx)
	}
	limit = min(limit, maxPerSearch)
	if best, err := g.indexed(ctx, sender, stems, limit); err != nil || len(best) > 0 {
		return best, err
	}
	paths, err := g.list(ctx)
	if err != nil {
		return nil, err
	}
	return g.read(ctx, sender, paths, stems, limit, g.document)
}

// indexed returns the best passages of the files that the index names. An index that
// fails names none.
func (g *grep) indexed(ctx context.Context, sender llm.Sender, stems []string, limit int) ([]Passage, error) {
	if g.index == nil {
		return nil, nil
	}
	paths, err := g.index.Files(ctx, sender, stems, maxIndexed)
	if err != nil {
		return nil, ended(ctx)
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return !isText(p) })
	return g.read(ctx, sender, paths, stems, limit, func(_ context.Context, p string) *document { return g.fresh(p) })
}

// read returns the best passages of files, as of returns them.
func (g *grep) read(ctx context.Context, sender llm.Sender, paths, stems []string, limit int, of func(ctx context.Context, p string) *document) ([]Passage, error) {
	var best []Passage
	files, size := 0, 0
	for _, p := range paths {
		if err := ended(ctx); err != nil {
			return nil, err
		}
		if !g.mayRead(sender, p) {
			continue
		}
		if files++; files > maxFiles || size > maxRead {
			break
		}
		doc := of(ctx, p)
		if doc == nil {
			continue // gone, too long or not readable: there are others
		}
		size += len(doc.text)
		best = keepBest(append(best, doc.passages(p, stems)...), limit)
	}
	return best, ended(ctx)
}

func stemsOf(words []string) []string {
	var out []string
	for _, w := range words {
		if s := stem(strings.ToLower(w)); s != "" && !slices.Contains(out, s) && len(out) < maxWords {
			out = append(out, s)
		}
	}
	return out
}

// keepBest sorts by score, then by place, and cuts to limit.
func keepBest(p []Passage, limit int) []Passage {
	core.Sort(p, func(a, b Passage) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
	return p[:min(len(p), limit)]
}

// hold takes the cache; false when ctx ended first.
func (g *grep) hold(ctx context.Context) bool {
	select {
	case g.lock <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (g *grep) release() { <-g.lock }

// list returns the cached list of files, walked again when it is old (or the clock
// was set back). One walk at a time.
func (g *grep) list(ctx context.Context) ([]string, error) {
	if !g.hold(ctx) {
		return nil, ended(ctx)
	}
	defer g.release()
	if age := g.clock.Now().Sub(g.since); g.texts != nil && age >= 0 && age < cacheFor {
		return g.paths, nil
	}
	w := walk{ctx: ctx}
	if err := w.dir(g.root, "", 0); err != nil {
		return nil, err
	}
	slices.Sort(w.found)
	g.since, g.paths, g.texts, g.bytes = g.clock.Now(), w.found, map[string]*document{}, 0
	return g.paths, nil
}

// A walk collects text files.
type walk struct {
	ctx     context.Context
	entries int
	found   []string
}

// dir walks one directory. A directory that cannot be read is left out; only an
// ended ctx or an unreadable root is an error.
func (w *walk) dir(root *os.Root, name string, depth int) error {
	f, err := openDir(root, name)
	if err != nil {
		if depth == 0 {
			return err
		}
		return nil
	}
	defer f.Close()
	for {
		if err := ended(w.ctx); err != nil {
			return err
		}
		entries, err := f.ReadDir(256)
		for _, e := range entries {
			if w.entries++; w.entries > maxEntries || len(w.found) >= maxListed {
				return nil
			}
			if err := w.entry(root, path.Join(name, e.Name()), e, depth); err != nil {
				return err
			}
		}
		if err != nil || len(entries) == 0 {
			return nil // io.EOF, or the directory went away
		}
	}
}

func (w *walk) entry(root *os.Root, p string, e fs.DirEntry, depth int) error {
	switch {
	case strings.HasPrefix(e.Name(), "."):
		return nil
	case e.IsDir() && depth < maxDepth:
		return w.dir(root, p, depth+1)
	case e.Type().IsRegular() && isText(e.Name()):
		w.found = append(w.found, p)
	}
	return nil
}

func openDir(root *os.Root, name string) (*os.File, error) {
	if name == "" {
		name = "."
	}
	return openPlain(root, name)
}

func isText(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".md" || ext == ".txt"
}

// document returns a file's contents, nil when it cannot or may not be read.
func (g *grep) document(ctx context.Context, p string) *document {
	if !g.hold(ctx) {
		return nil
	}
	doc := g.texts[p]
	g.release()
	if doc != nil {
		return doc
	}
	if doc = g.fresh(p); doc == nil {
		return nil
	}
	if g.hold(ctx) {
		if g.texts[p] == nil && g.bytes+len(doc.text) <= maxCached {
			g.texts[p] = doc
			g.bytes += len(doc.text)
		}
		g.release()
	}
	return doc
}

// fresh is document without the cache.
func (g *grep) fresh(p string) *document {
	text, ok := g.textOf(p)
	if !ok {
		return nil
	}
	return &document{text: text, folded: strings.ToLower(text)}
}

func (g *grep) textOf(p string) (string, bool) {
	f, err := g.open(g.root, p)
	if err != nil {
		return "", false
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() > maxFile {
		return "", false
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil || len(b) > maxFile {
		return "", false
	}
	return strings.ToValidUTF8(string(b), "\ufffd"), true
}

// openPlain opens name without following a symbolic link anywhere on the way:
// os.Root keeps links inside the root, but a link from a directory that a guest
// writes to a directory that it may not read stays inside too. Each step is
// opened from the directory before it and must be the file that the directory lists as
// not a link, so that no one can insert a link in between.
func openPlain(root *os.Root, name string) (*os.File, error) {
	dir := root
	defer func() {
		if dir != root {
			dir.Close()
		}
	}()
	for {
		step, rest, more := strings.Cut(name, "/")
		if !more {
			return openStep(dir, step)
		}
		next, err := enter(dir, step)
		if err != nil {
			return nil, err
		}
		if dir != root {
			dir.Close()
		}
		dir, name = next, rest
	}
}

func enter(dir *os.Root, name string) (*os.Root, error) {
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	st, err := next.Stat(".")
	if err == nil {
		err = samePlain(dir, name, st)
	}
	if err != nil {
		next.Close()
		return nil, err
	}
	return next, nil
}

func openStep(dir *os.Root, name string) (*os.File, error) {
	// A look first: opening a pipe would wait for its writer.
	if st, err := dir.Lstat(name); err != nil || !(st.Mode().IsRegular() || st.IsDir()) {
		return nil, cmp.Or(err, error(&fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}))
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil {
		err = samePlain(dir, name, st)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// samePlain returns nil if dir lists name as the opened file, not through a link.
func samePlain(dir *os.Root, name string, opened fs.FileInfo) error {
	listed, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if listed.Mode()&fs.ModeSymlink != 0 || !os.SameFile(listed, opened) {
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return nil
}
