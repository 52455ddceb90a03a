package erasure

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/beneath"
	"gatehouse/core/store"
)

// MaxExportRows is the most rows of one table in an export, newest first. An
// export names the tables that have more.
const MaxExportRows = 10_000

// An Export is what the tables keep of the user.
type Export struct {
	Sessions []string        `json:"sessions"` // theirs, oldest first
	Rows     json.RawMessage `json:"rows"`     // by name of the table
	// Files are the names in the vault of what came with their messages and of what their
	// directory has; none for the operator, whose directory is the vault.
	Files []string `json:"files"`
}

// Export returns what the tables keep of the user that ref names.
func (e *Eraser) Export(ctx context.Context, ref string) (Export, error) {
	p, err := e.Person(ctx, ref)
	if err != nil {
		return Export{}, err
	}
	rows, cut := map[string]any{"user_id": p.User, "names": p.Names}, []string{}
	theirs := map[string]bool{} // sessions that a row names; at most MaxExportRows for each table
	for _, x := range e.o.Registry.Exports() {
		found, err := store.Rows(ctx, e.o.DB, x.Query, p.User, MaxExportRows+1)
		if err != nil {
			return Export{}, err
		}
		if len(found) > MaxExportRows {
			found, cut = found[:MaxExportRows], append(cut, x.Name)
		}
		rows[x.Name] = found
		for _, row := range found {
			if x.Open != nil {
				if err := x.Open(row); err != nil {
					return Export{}, fmt.Errorf("export %s: %w", x.Name, err)
				}
			}
			if id, ok := row["session_id"].(string); ok {
				theirs[id] = true
			}
		}
	}
	rows["cut"] = cut
	if rows["trash"], err = e.trashed(theirs); err != nil {
		return Export{}, err
	}
	b, err := json.Marshal(rows)
	if err != nil {
		return Export{}, err
	}
	files, err := e.filesOf(ctx, p.User)
	return Export{Sessions: p.Sessions, Rows: b, Files: files}, err
}

// A Deleted is a transcript in the trash of a session in which the user wrote.
type Deleted struct {
	Name    string    `json:"name"` // in the vault
	Session string    `json:"session_id"`
	At      time.Time `json:"deleted_at"`
}

// trashed returns what of the sessions is in the trash.
func (e *Eraser) trashed(sessions map[string]bool) ([]Deleted, error) {
	list, err := e.o.Vault.Trashed()
	found := []Deleted{}
	for _, t := range list {
		id := strings.TrimSuffix(t.Base, ".jsonl")
		if _, rest, again := strings.Cut(id, "-"); again && !sessions[id] { // the second of one name
			id = rest
		}
		if sessions[id] {
			found = append(found, Deleted{t.Name, id, t.At})
		}
	}
	return found, err
}

// Zip writes what is known of the user: person.json, a Markdown file for each
// conversation, the files that came with their messages and those of their
// directory. progress is called with what it is doing.
func (e *Eraser) Zip(ctx context.Context, ref string, to io.Writer, progress func(string)) error {
	progress("reading what the tables hold")
	found, err := e.Export(ctx, ref)
	if err != nil {
		return err
	}
	z := zip.NewWriter(to)
	var rows any
	if err := json.Unmarshal(found.Rows, &rows); err != nil {
		return err
	}
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	if err := e.zipText(z, "person.json", append(text, '\n')); err != nil {
		return err
	}
	for i, id := range found.Sessions {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		progress(fmt.Sprintf("%d of %d conversations", i, len(found.Sessions)))
		sess, err := e.o.Sessions.ByID(ctx, e.o.DB, id)
		if core.KindOf(err) == core.NotFound {
			continue // deleted since
		}
		text := ""
		if err == nil {
			text, err = e.o.Sessions.Export(ctx, sess)
		}
		if err == nil {
			err = e.zipText(z, "conversations/"+path.Base(id)+".md", []byte(text))
		}
		if err != nil {
			return err
		}
	}
	progress("their files")
	for _, name := range found.Files {
		if err := zipFile(ctx, z, e.o.Vault.FS(), name); err != nil {
			return err
		}
	}
	return z.Close()
}

func (e *Eraser) zipText(z *zip.Writer, name string, text []byte) error {
	w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: e.o.Clock.Now().UTC()})
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

// filesOf returns the names of the files that came with the user's messages, and of those in
// their directory.
func (e *Eraser) filesOf(ctx context.Context, user int64) (names []string, err error) {
	names = []string{}
	if user <= core.Operator { // the operator's directory is the vault
		return names, nil
	}
	for {
		last := ""
		if len(names) > 0 {
			last = names[len(names)-1]
		}
		page, err := e.o.Files.FilesOf(ctx, user, last)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		names = append(names, page...)
	}
	err = fs.WalkDir(e.o.Vault.FS(), e.o.Area(user), func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), beneath.Replaced(err):
			return nil // moved or replaced since its directory was read
		case err != nil:
			return err
		case d.Type().IsRegular():
			names = append(names, name)
		}
		return context.Cause(ctx)
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

func zipFile(ctx context.Context, z *zip.Writer, files fs.FS, name string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	f, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) || beneath.Replaced(err) {
		return nil // moved or replaced since its directory was read
	}
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return err
	}
	w, err := z.CreateHeader(&zip.FileHeader{Name: "files/" + name, Method: zip.Deflate, Modified: st.ModTime()})
	if err == nil {
		_, err = io.Copy(w, f)
	}
	return err
}
