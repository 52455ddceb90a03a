package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/beneath"
	"gatehouse/core/erasure"
	"gatehouse/core/vault"
)

// all writes what is known of a user into a new directory, as the panel's archive has it:
// person.json, a Markdown file for each conversation, and in files what came with their
// messages and what their directory in the vault has.
func (c *Export) all(p *console.Process) error {
	if c.Session != "" {
		return core.Errorf(core.Invalid, "name a session, or a person by --user, not both")
	}
	if c.Output == "" {
		return core.Errorf(core.Invalid, "give the directory to write: -o DIRECTORY, which must not exist yet")
	}
	q, err := p.Connect()
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	var person erasure.Export
	if err := q.Do(http.MethodGet, control.Path("control", "people", c.User, "export"), nil, &person); err != nil {
		return err
	}
	part := c.Output + ".part"
	if _, err := os.Lstat(c.Output); err == nil {
		return core.Errorf(core.Conflict, "%s is there already", c.Output)
	}
	if err := errors.Join(os.RemoveAll(part), os.MkdirAll(filepath.Join(part, "conversations"), 0o700)); err != nil {
		return err
	}
	err = c.fill(q, part, person)
	copied := 0
	if err == nil {
		copied, err = c.copyFiles(p, filepath.Join(part, "files"), person.Files)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	if err := os.Rename(part, c.Output); err != nil {
		return err
	}
	fmt.Fprintf(p.Stdout, "Exported %s, %s and what else is known of this person into %s.\n", core.Counted(len(person.Sessions), "conversation"), core.Counted(copied, "file"), c.Output)
	var rows struct {
		Trash []erasure.Deleted `json:"trash"`
	}
	if err := json.Unmarshal(person.Rows, &rows); err != nil || len(rows.Trash) == 0 {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "Not in it: %s in the trash (.parachute/trash of the vault), which person.json lists; they are deleted 30 days after they were moved there.\n",
		core.Counted(len(rows.Trash), "deleted conversation"))
	return err
}

// copyFiles copies the files of the vault into dir and returns how many there still were.
func (c *Export) copyFiles(p *console.Process, dir string, names []string) (n int, err error) {
	if len(names) == 0 {
		return 0, nil
	}
	cfg, err := configs.Load()
	if err != nil {
		return 0, err
	}
	v, err := vault.Open(cfg.VaultPath)
	if err != nil {
		return 0, err
	}
	defer func() { _ = v.Close() }()
	for _, name := range names {
		if !filepath.IsLocal(name) {
			return n, core.Errorf(core.Invalid, "a file has a name that leads out of the vault")
		}
		found, err := copyFile(v, name, filepath.Join(dir, name))
		if err = errors.Join(err, context.Cause(p.Context)); err != nil {
			return n, err
		}
		if found {
			n++
		}
	}
	return n, nil
}

// copyFile copies a file of the vault to a new one; false where it is gone or no file any more.
func copyFile(v *vault.Vault, name, to string) (found bool, err error) {
	from, err := v.OpenNoLinks(name)
	if errors.Is(err, fs.ErrNotExist) || beneath.Replaced(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer from.Close()
	if st, err := from.Stat(); err != nil || !st.Mode().IsRegular() {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return false, err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	_, err = io.Copy(f, from)
	return err == nil, errors.Join(err, f.Close())
}

// fill writes person.json and the conversations.
func (c *Export) fill(q *console.Connection, dir string, person erasure.Export) error {
	var rows any
	if err := json.Unmarshal(person.Rows, &rows); err != nil {
		return err
	}
	b, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "person.json"), append(b, '\n'), 0o600); err != nil {
		return err
	}
	for _, id := range person.Sessions {
		text, err := export(q, id)
		if core.KindOf(err) == core.NotFound {
			continue // deleted in the meantime
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(id) || filepath.Base(id) != id {
			return core.Errorf(core.Invalid, "a session has an id that is no file name")
		}
		if err := os.WriteFile(filepath.Join(dir, "conversations", id+".md"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
