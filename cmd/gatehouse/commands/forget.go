package commands

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
	"gatehouse/core/erasure"
)

// A Forget erases a user.
type Forget struct {
	Person string `arg:"" help:"Their number ('gatehouse people list' shows it), or platform and id, such as telegram:12345678."`
	Yes    bool   `help:"Do not ask."`
	JSON   bool   `help:"As JSON; needs --yes."`
}

func (c *Forget) Help() string {
	return "Erases a person: who they are, their access, keys and blocks, their conversations, their folder and their files, for good. What they run is stopped. In groups their turns are blanked. The audit log keeps numbers only, the usage figures stay without the person. Afterwards they are a stranger. Backups that were made before still hold them."
}

func (c *Forget) Run(p *console.Process) error {
	q, err := p.Connect()
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	if !c.Yes {
		if c.JSON {
			return core.Errorf(core.Invalid, "--json needs --yes")
		}
		if err := c.confirm(p, q); err != nil {
			return err
		}
	}
	var f erasure.Forgotten
	if err := q.Long(control.Path("control", "people", c.Person, "forget"), &f); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(p.Stdout, f)
	}
	fmt.Fprintf(p.Stdout, "Forgotten: %s, %s that came with messages, and %s in groups.\n",
		core.Counted(f.Sessions, "conversation"), core.Counted(f.Files, "file"), core.Counted(f.Turns, "turn"))
	for _, left := range f.Left {
		fmt.Fprintln(p.Stdout, left)
	}
	return nil
}

// confirm shows who it is and wants a yes.
func (c *Forget) confirm(p *console.Process, q *console.Connection) error {
	var who control.Person
	err := q.Do(http.MethodGet, control.Path("control", "people", c.Person), nil, &who)
	if core.KindOf(err) == core.NotFound { // an earlier forgetting of them may have to be finished
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Stderr, "%s: %s.\nThis cannot be undone. Type yes to forget this person: ", strings.Join(who.Names, ", "), core.Counted(who.Sessions, "conversation"))
	line := ""
	if p.Stdin != nil {
		line, _ = bufio.NewReader(p.Stdin).ReadString('\n')
	}
	switch strings.TrimSpace(line) {
	case "yes":
		return nil
	case "":
		fmt.Fprintln(p.Stderr)
		return core.Errorf(core.Conflict, "nothing was deleted: this needs a confirmation; type yes, or give --yes where no one can be asked")
	}
	return core.Errorf(core.Conflict, "nothing was deleted: the answer was not yes (--yes does not ask)")
}
