package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"gatehouse/core"
)

type forgetCmd struct {
	Person string `arg:"" help:"Their number (the panel's page People shows it), or platform and id, such as telegram:12345678."`
	Yes    bool   `help:"Do not ask."`
	JSON   bool   `help:"As JSON; needs --yes."`
}

func (c *forgetCmd) Help() string {
	return "Erases a person: who they are, their access, keys and blocks, their conversations, their folder and their files, for good. What they run is stopped. In groups their turns are blanked. The audit log keeps numbers only, the usage figures stay without the person. Afterwards they are a stranger. Backups that were made before still hold them."
}

func (c *forgetCmd) Run(p *process) error {
	q, err := newOffice(p)
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
	res, err := q.long("forget", order{Ref: c.Person})
	if err != nil {
		return err
	}
	f := res.Forgotten
	if c.JSON {
		return printJSON(p.stdout, f)
	}
	fmt.Fprintf(p.stdout, "Forgotten: %s, %s that came with messages, and %s in groups.\n",
		counted(f.Sessions, "conversation"), counted(f.Files, "file"), counted(f.Turns, "turn"))
	for _, left := range f.Left {
		fmt.Fprintln(p.stdout, left)
	}
	return nil
}

// confirm shows who it is and wants a yes.
func (c *forgetCmd) confirm(p *process, q *office) error {
	res, err := q.ask("forget/look", order{Ref: c.Person})
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stderr, "%s\nThis cannot be undone. Type yes to forget this person: ", res.Text)
	if p.stdin == nil {
		return core.Errorf(core.Invalid, "there is no terminal to ask on: give --yes")
	}
	line, _ := bufio.NewReader(p.stdin).ReadString('\n')
	if strings.TrimSpace(line) != "yes" {
		return core.Errorf(core.Invalid, "nothing was deleted: the answer was not yes (--yes does not ask)")
	}
	return nil
}

func (a *app) forgetOrders() map[string]func(context.Context, order) (result, error) {
	return map[string]func(context.Context, order) (result, error){
		"forget": func(ctx context.Context, o order) (result, error) {
			return a.jobs.do(ctx, "forget "+o.Ref, func(ctx context.Context, tell func(string)) (result, error) {
				f, err := a.eraser.Forget(ctx, o.Ref, cli, tell)
				return result{Forgotten: &f}, err
			})
		},
		"forget/look": func(ctx context.Context, o order) (result, error) {
			p, err := a.eraser.Person(ctx, o.Ref)
			if err != nil {
				return result{}, err
			}
			var names []string
			for _, n := range p.Names {
				names = append(names, core.CleanName(n))
			}
			for _, id := range p.Identities {
				names = append(names, id.Platform+" "+core.CleanName(id.ID))
			}
			return result{Text: fmt.Sprintf("%s: %s.", strings.Join(names, ", "), counted(len(p.Sessions), "conversation"))}, nil
		},
	}
}
