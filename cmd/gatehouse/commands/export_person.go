package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
	"gatehouse/core/erasure"
)

// all writes what is known of a user into a new directory: person.json, a
// Markdown file for each conversation, and what lies in their directory.
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
	if err := c.fill(q, part, person); err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	if err := os.Rename(part, c.Output); err != nil {
		return err
	}
	fmt.Fprintf(p.Stdout, "Exported %s and what else is known of this person into %s.\n", counted(len(person.Sessions), "conversation"), c.Output)
	var rows struct {
		Trash []erasure.Deleted `json:"trash"`
	}
	if err := json.Unmarshal(person.Rows, &rows); err != nil || len(rows.Trash) == 0 {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "Not in it: %s in the trash (.parachute/trash of the vault), which person.json lists; they are deleted 30 days after they were moved there.\n",
		counted(len(rows.Trash), "deleted conversation"))
	return err
}

// fill writes the files.
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
