package source

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/record"
)

// Bounds of a directory.
const (
	maxFiles = 100_000 // that are imported
	maxSeen  = 1_000_000
)

// A tree is a directory that is imported. Nothing outside of it is read.
type tree struct {
	*Source
	root  *os.Root
	dir   string
	ours  bool     // it is in the gateway's vault: its transcripts are not imported
	place string   // where in that vault, a slash path
	files []string // to be read, slash paths; at most maxFiles
	rows  map[string]row
	names map[string][]string // of files that may be assets, by directory: at most maxFiles each
}

// openDir opens a directory: an unpacked export, a vault, Claude Code's directory of projects, or
// one with records.
func openDir(ctx context.Context, dir string, ours bool, place string) (*Source, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, missing(dir, err)
	}
	t := &tree{Source: &Source{}, root: root, dir: dir, ours: ours, place: filepath.ToSlash(place)}
	t.close = append(t.close, root)
	if err := t.look(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t.Source, nil
}

// look finds out what the directory is.
func (t *tree) look(ctx context.Context) (err error) {
	exports, err := t.list(".", func(name string) bool {
		return strings.HasPrefix(name, "conversations") && strings.HasSuffix(name, ".json")
	})
	if err != nil {
		return err
	}
	const projects = ".claude/projects"
	switch {
	case len(exports) > 0:
		t.Format, t.files, t.asset = "an unpacked export", exports, t.findAsset
	case t.hasFile("Chat/sessions.db") && !t.ours:
		t.Format = "a vault"
		if t.rows, err = readRows(ctx, filepath.Join(t.dir, "Chat", "sessions.db")); err != nil {
			return err
		}
		err = t.find(ctx, append([]string{projects}, record.Folders...)...)
	case t.has("agent-chats"), t.has("agent-sessions"):
		t.Format = "a vault of the first generation"
		err = t.find(ctx, append([]string{projects}, record.Folders...)...)
	case t.has(projects):
		t.Format = "transcripts of Claude Code"
		err = t.find(ctx, projects)
	default:
		t.Format = "a directory of conversations"
		err = t.find(ctx, ".")
	}
	if err == nil && len(t.files) == 0 {
		return core.Errorf(core.Invalid, "%s holds nothing that can be imported: no conversations.json, no transcripts of Claude Code, no conversations as Markdown", t.dir)
	}
	for _, name := range t.files {
		if st, err := t.root.Lstat(name); err == nil {
			t.Size += st.Size()
		}
	}
	t.each = t.eachFile
	return err
}

func (t *tree) has(name string) bool {
	_, err := t.root.Stat(name)
	return err == nil
}

// hasFile reports whether name is a plain file: a pipe is never opened.
func (t *tree) hasFile(name string) bool {
	st, err := t.root.Lstat(name)
	return err == nil && st.Mode().IsRegular()
}

// list returns the plain files of a directory whose name is wanted, sorted.
func (t *tree) list(dir string, wanted func(name string) bool) (names []string, err error) {
	d, err := t.root.Open(dir)
	if err != nil {
		return nil, missing(t.dir, err)
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(256)
		for _, e := range entries {
			if e.Type().IsRegular() && wanted(e.Name()) && len(names) < maxFiles {
				names = append(names, path.Join(dir, e.Name()))
			}
		}
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// find adds the transcripts and records below directories. Links are not followed.
func (t *tree) find(ctx context.Context, folders ...string) error {
	seen := 0
	for _, folder := range folders {
		err := fs.WalkDir(t.root.FS(), folder, func(name string, d fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if seen++; err != nil || seen > maxSeen {
				return fs.SkipDir // missing, or not ours to read
			}
			if d.IsDir() && t.ours && path.Join(t.place, name) == core.GuestsDir {
				return fs.SkipDir // what guests write is not the owner's
			}
			_, transcript := sessionFile(name)
			if d.Type().IsRegular() && (transcript && !t.ours || strings.HasSuffix(name, ".md")) && len(t.files) < maxFiles {
				t.files = append(t.files, name)
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.SkipDir) {
			return err
		}
	}
	return nil
}

// eachFile calls do with the conversations of every file.
func (t *tree) eachFile(ctx context.Context, do func(Item) error) error {
	done := int64(0)
	for _, name := range t.files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := t.one(ctx, name, do); err != nil {
			return err
		}
		if st, err := t.root.Lstat(name); err == nil {
			done += st.Size()
		}
		t.read.Store(done)
	}
	return nil
}

// ofGuest matches Claude Code's directories of projects below the gateway's Guests.
var ofGuest = regexp.MustCompile(`-Guests-\d+(-|$)`)

// maxSidecar is the largest file that describes a session, in bytes.
const maxSidecar = 1 << 20

// rowOf returns what the gateway's file about the session id has of its row: the database may be
// lost, or on a server. The zero row without one.
func (t *tree) rowOf(id string) (r row) {
	name := ".parachute/sessions/" + id + ".json"
	if !t.hasFile(name) {
		return r
	}
	f, err := t.root.Open(name)
	if err != nil {
		return row{others: true}
	}
	defer f.Close()
	var side struct {
		User     int64           `json:"user_id"`
		Trust    core.Trust      `json:"trust_level"`
		Scope    core.Scope      `json:"scope"`
		Place    string          `json:"place"`
		Title    string          `json:"title"`
		Tags     []string        `json:"tags"`
		Archived bool            `json:"archived"`
		Source   string          `json:"source"`
		Created  string          `json:"created_at"`
		From     string          `json:"continued_from"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if json.NewDecoder(io.LimitReader(f, maxSidecar)).Decode(&side) != nil {
		return row{others: true} // whose it was is not known
	}
	r = row{title: side.Title, source: side.Source, from: side.From, metadata: string(side.Metadata), created: side.Created, archived: side.Archived, trust: side.Trust,
		others: side.User != 0 && side.User != core.Operator || side.Scope == core.ScopeGroup || side.Place != ""}
	for _, tag := range side.Tags {
		r.tag(tag)
	}
	return r
}

// describe adds what the vault knows of the transcript name to c.
func (t *tree) describe(c *foreign.Transcript, name string) {
	side := t.rowOf(c.ID)
	r, known := t.rows[c.ID]
	if !known {
		r = side
		if _, id := sessionFile(r.from + ".jsonl"); !id || r.from == c.ID || r.others {
			r.from = "" // see readRows
		} else if before := t.rowOf(r.from); before.created == "" || before.others {
			r.from = ""
		}
	}
	r.describe(c)
	c.Others = c.Others || side.others || ofGuest.MatchString(path.Base(path.Dir(name)))
	c.Trust = cmp.Or(c.Trust, side.trust)
}

func (t *tree) one(ctx context.Context, name string, do func(Item) error) error {
	if id, ok := sessionFile(name); ok {
		c := &foreign.Transcript{Source: CommandLine, ID: id, Open: func() (io.ReadCloser, error) { return t.root.Open(name) }}
		t.describe(c, name)
		return do(Item{File: name, Copy: c})
	}
	f, err := t.root.Open(name)
	if err != nil {
		return do(Item{File: name, Err: core.Errorf(core.Invalid, "it cannot be read")})
	}
	defer f.Close()
	if strings.HasSuffix(name, ".json") {
		return eachElement(ctx, name, &counted{f, &t.read}, do)
	}
	item := recordOf(name, f)
	if item.Err != nil && t.Format == "a directory of conversations" && core.KindOf(item.Err) == core.Invalid {
		return nil // any other text
	}
	return do(item)
}

// findAsset opens the file of an unpacked export whose name is, or begins with, ref.
func (t *tree) findAsset(ref string) (io.ReadCloser, string, error) {
	for _, dir := range []string{".", "dalle-generations", "user-files"} {
		names := t.assetsIn(dir)
		i, _ := slices.BinarySearch(names, path.Join(dir, ref))
		for ; i < len(names); i++ {
			rest, ok := strings.CutPrefix(path.Base(names[i]), ref)
			if !ok {
				break
			}
			if rest == "" || strings.ContainsRune("-._", rune(rest[0])) {
				f, err := t.root.Open(names[i])
				return f, path.Base(names[i]), err
			}
		}
	}
	return nil, "", fs.ErrNotExist
}

// assetsIn returns the files of a directory, which is read once.
func (t *tree) assetsIn(dir string) []string {
	names, known := t.names[dir]
	if !known {
		names, _ = t.list(dir, func(string) bool { return true }) // one that is missing has none
		if t.names == nil {
			t.names = map[string][]string{}
		}
		t.names[dir] = names
	}
	return names
}
