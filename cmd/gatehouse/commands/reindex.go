package commands

import (
	"fmt"

	"gatehouse/core/session/reindex"
)

// A Reindex rebuilds the list of conversations from the files.
type Reindex struct {
	JSON bool `help:"As JSON."`
}

func (c *Reindex) Help() string {
	return "Rebuilds the database's rows of conversations from the vault's files, for a lost database or a vault from another machine. Existing rows stay. A conversation without a known owner belongs to the operator, sandboxed. One that was deleted does not come back. It may be run again."
}

func (c *Reindex) Run(p *Process) error {
	q, err := p.connect()
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	var r reindex.Progress
	if err := q.long("/control/reindex", &r); err != nil {
		return err
	}
	if c.JSON {
		return PrintJSON(p.Stdout, r)
	}
	_, err = fmt.Fprintf(p.Stdout, "Read %s: %s added (%d of them without an owner, for the operator only), %d already known; %s skipped.\n",
		counted(r.Transcripts+r.Sidecars, "file"), counted(r.Added, "conversation"), r.Unowned, r.Kept, counted(r.Skipped, "file"))
	return err
}

// counted returns n with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
