package commands

import (
	"fmt"
	"net/http"
	"os"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
)

// An Export writes a conversation, or all data of a user.
type Export struct {
	Session string `arg:"" optional:"" name:"session" help:"The session's id, or the beginning of it."`
	User    string `placeholder:"PERSON" help:"All that is a person's instead: their number or name ('gatehouse people list' shows them), or platform and id, such as telegram:12345678. Needs -o."`
	Output  string `short:"o" name:"output" placeholder:"FILE" help:"Write to this file (with --user: folder), which must not exist yet, instead of the terminal."`
}

func (c *Export) Run(p *console.Process) error {
	if c.User != "" {
		return c.all(p)
	}
	if c.Session == "" {
		return core.Errorf(core.Invalid, "name the session to export, or a person by --user")
	}
	q, err := p.Connect()
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	text, err := export(q, c.Session)
	if core.KindOf(err) == core.NotFound && !q.HasNoVault() { // it may be the beginning of an id
		var found control.Session
		if look := q.Do(http.MethodGet, control.Path("control", "sessions", c.Session), nil, &found); look == nil {
			text, err = export(q, found.ID)
		} else if core.KindOf(look) != core.NotFound {
			err = look
		}
	}
	if err != nil {
		return err
	}
	if c.Output == "" {
		_, err = fmt.Fprint(p.Stdout, text)
		return err
	}
	f, err := os.OpenFile(c.Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if os.IsExist(err) {
		return core.Errorf(core.Conflict, "%s is there already", c.Output)
	}
	if err != nil {
		return err
	}
	if _, err = f.WriteString(text); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// export returns a session as Markdown.
func export(c *console.Connection, session string) (text string, err error) {
	err = c.Do(http.MethodGet, control.Path("api", "chat", session, "export.md"), nil, &text)
	if core.KindOf(err) == core.NotFound && !c.HasNoVault() {
		err = core.Errorf(core.NotFound, "there is no session %s", core.CleanName(session))
	}
	return text, err
}
