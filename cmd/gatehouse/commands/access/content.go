package access

import (
	"fmt"
	"strings"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/core/sealed/columns"
)

// Content has the commands for the key of encrypted columns.
type Content struct {
	Rotate contentRotateCmd `cmd:"" help:"Encrypt all texts again with a new key."`
}

type contentRotateCmd struct {
	JSON bool `help:"As JSON."`
}

func (c *contentRotateCmd) Help() string {
	return "The gateway may keep running. The new key is added to the file (GATEHOUSE_CONTENT_KEY_FILE) before anything is encrypted with it; the earlier ones stay there, since backups made before need them. If it is interrupted, run it again. Copy the file afterwards: no backup has it."
}

func (c *contentRotateCmd) Run(p *console.Process) error {
	q, err := p.Connect()
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	var r columns.Rotated
	if err := q.Long("/control/content-key/rotate", &r); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(p.Stdout, r)
	}
	if r.Resumed {
		fmt.Fprintln(p.Stdout, "An earlier rotation was interrupted; it is finished now.")
	}
	fmt.Fprintf(p.Stdout, "Encrypted %d texts again. The key is %s: copy the key file.\n", r.Rows, r.Key)
	if len(r.Earlier) > 0 {
		fmt.Fprintf(p.Stdout, "Only backups from before need the earlier keys in the file: %s.\n", strings.Join(r.Earlier, ", "))
	}
	if r.Damaged > 0 {
		fmt.Fprintf(p.Stderr, "gatehouse: %d texts are damaged and stay as they are.\n", r.Damaged)
		return console.ErrReported
	}
	return nil
}
