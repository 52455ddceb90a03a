package main

import (
	"context"
	"fmt"
	"os"

	"gatehouse/core"
)

type exportCmd struct {
	Session string `arg:"" optional:"" name:"session" help:"The session's id."`
	User    string `placeholder:"PERSON" help:"All that is a person's instead: their number, or platform and id, such as telegram:12345678. Needs -o."`
	Output  string `short:"o" name:"output" placeholder:"FILE" help:"Write to this file (with --user: folder), which must not exist yet, instead of the terminal."`
}

func (c *exportCmd) Run(p *process) error {
	if c.User != "" {
		return c.all(p)
	}
	if c.Session == "" {
		return core.Errorf(core.Invalid, "name the session to export, or a person by --user")
	}
	res, err := ask(p, "export", order{Ref: c.Session})
	if err != nil {
		return err
	}
	if c.Output == "" {
		_, err = fmt.Fprint(p.stdout, res.Text)
		return err
	}
	f, err := os.OpenFile(c.Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if os.IsExist(err) {
		return core.Errorf(core.Conflict, "%s is there already", c.Output)
	}
	if err != nil {
		return err
	}
	if _, err = f.WriteString(res.Text); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// export returns a session as Markdown, for anyone who may use the command line.
func (a *app) export(ctx context.Context, o order) (result, error) {
	id, known, err := a.sessions.Locate(ctx, core.Operator, o.Ref)
	if err == nil && !known {
		err = core.Errorf(core.NotFound, "there is no session %s", core.CleanName(o.Ref))
	}
	if err != nil {
		return result{}, err
	}
	sess, err := a.sessions.ByID(ctx, a.db, id)
	if err != nil {
		return result{}, err
	}
	text, err := a.sessions.Export(ctx, sess)
	return result{Text: text}, err
}
