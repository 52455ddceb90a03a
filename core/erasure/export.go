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
	return Export{Sessions: p.Sessions, Rows: b}, err
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
	if err := e.zipFiles(ctx, z, ref); err != nil {
		return err
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

// zipFiles adds the files that came with the user's messages, and their directory.
func (e *Eraser) zipFiles(ctx context.Context, z *zip.Writer, ref string) error {
	p, err := e.Person(ctx, ref)
	if err != nil || p.User <= core.Operator { // the operator's directory is the vault
		return err
	}
	files := e.o.Vault.FS()
	for last := ""; ; {
		paths, err := e.o.Files.FilesOf(ctx, p.User, last)
		if err != nil {
			return err
		}
		if len(paths) == 0 {
			break
		}
		for _, name := range paths {
			if err := zipFile(ctx, z, files, name); err != nil {
				return err
			}
			last = name
		}
	}
	return fs.WalkDir(files, e.o.Area(p.User), func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), beneath.Replaced(err):
			return nil // moved or replaced since its directory was read
		case err != nil:
			return err
		case !d.Type().IsRegular():
			return nil
		}
		return zipFile(ctx, z, files, name)
	})
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
