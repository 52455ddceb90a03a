package commands

import (
	"fmt"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/library"
	"gatehouse/core/session/reindex"
)

// A Reindex rebuilds the list of conversations from the files.
type Reindex struct {
	Search bool `help:"Rebuild the index of the search instead, of conversations and documents."`
	JSON   bool `help:"As JSON."`
}

func (c *Reindex) Help() string {
	return "Rebuilds the database's rows of conversations from the vault's files, for a lost database or a vault from another machine. Existing rows stay. A conversation without a known owner belongs to the operator, sandboxed. One that was deleted does not come back. It may be run again. With --search it deletes the index of the search, what clients have added to documents too, and indexes everything again; until it ends, searches find less."
}

func (c *Reindex) Run(p *console.Process) error {
	q, err := p.Connect()
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	q.Rebuilds = true
	at, r := "/control/reindex", fmt.Stringer(&reindex.Progress{})
	if c.Search {
		at, r = "/control/reindex/search", &library.Rebuilt{}
	}
	if err = q.Long(at, r); err == nil && c.JSON {
		return console.PrintJSON(p.Stdout, r)
	} else if err == nil {
		_, err = fmt.Fprintln(p.Stdout, r)
	}
	return err
}
