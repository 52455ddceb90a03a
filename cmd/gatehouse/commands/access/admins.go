package access

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/core"
	"gatehouse/web/account"
	"gatehouse/web/auth"
)

// An Admins manages the accounts of the panel.
type Admins struct {
	List     adminsListCmd     `cmd:"" help:"List the accounts."`
	Add      adminsAddCmd      `cmd:"" help:"Make an account; its one-time password is shown once."`
	Role     adminsRoleCmd     `cmd:"" help:"Make an account an admin or a viewer, who looks at everything and changes nothing."`
	Rename   adminsRenameCmd   `cmd:"" help:"Change the name that an account signs in with."`
	Reset    adminsResetCmd    `cmd:"" help:"Give an account a new one-time password, shown once, and end its sessions."`
	Remove   adminsRemoveCmd   `cmd:"" help:"Remove an account; its sessions, API keys and running turns end at once."`
	TOTPOff  adminsTOTPOffCmd  `cmd:"" name:"totp-off" help:"Turn two-step sign-in off for an account whose phone and recovery codes are lost."`
	Sessions adminsSessionsCmd `cmd:"" help:"List where an account is signed in, or sign it out."`
}

type adminsListCmd struct {
	JSON bool `help:"As JSON."`
}

func (c *adminsListCmd) Run(p *console.Process) error {
	var res control.Accounts
	if err := p.Get("/control/accounts", &res); err != nil {
		return err
	}
	none := "No accounts: start the gateway in a terminal, set GATEHOUSE_ADMIN_PASSWORD, or run 'gatehouse admins add NAME'."
	return console.PrintList(p.Stdout, c.JSON, res.Accounts, none, "NAME\tROLE\tUSER\tPASSWORD\tTWO-STEP\tLAST SIGN-IN", accountRow)
}

func accountRow(a account.Account) string {
	password := "chosen"
	if a.MustChange {
		password = "one-time"
	}
	role := a.Role
	if a.Owner() {
		role = "owner"
	}
	twoStep := "off"
	if a.TwoStep {
		twoStep = fmt.Sprintf("on, %d recovery codes", a.Recovery)
	}
	return console.Cells(a.Name, role, a.User, password, twoStep, whenOr(a.SignedInAt, "never"))
}

// whenOr returns a time as tables show it, or none for the zero time.
func whenOr(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return t.Local().Format(console.Minute)
}

type adminsAddCmd struct {
	Name string `arg:"" help:"The name to sign in with: a-z, 0-9, and . _ @ - behind the first."`
	Role string `enum:"admin,viewer" default:"admin" help:"admin, or viewer: looks at everything and changes nothing."`
	JSON bool   `help:"As JSON."`
}

func (c *adminsAddCmd) Run(p *console.Process) error {
	return oneTime(p, c.JSON, "/control/accounts", control.AccountTerms{Name: c.Name, Role: c.Role})
}

// oneTime makes a request that gives an account a one-time password, and prints that.
func oneTime(p *console.Process, asJSON bool, at string, body any) error {
	var res control.NewPassword
	if err := p.Request(http.MethodPost, at, body, &res); err != nil {
		return err
	}
	if asJSON {
		return console.PrintJSON(p.Stdout, res)
	}
	fmt.Fprintf(p.Stderr, "%s signs in to the panel with this one-time password, which is shown only now, and then chooses a new one:\n", res.Account.Name)
	_, err := fmt.Fprintln(p.Stdout, res.Password)
	return err
}

type adminsRoleCmd struct {
	Name string `arg:"" help:"The account's name."`
	Role string `arg:"" enum:"admin,viewer" help:"admin or viewer."`
}

func (c *adminsRoleCmd) Run(p *console.Process) error {
	if err := p.Request(http.MethodPatch, control.Path("control", "accounts", c.Name), control.AccountTerms{Role: c.Role}, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Stdout, "%s is %s now.\n", c.Name, map[string]string{"admin": "an admin", "viewer": "a viewer"}[c.Role])
	return err
}

type adminsRenameCmd struct {
	Name string `arg:"" help:"The account's name."`
	To   string `arg:"" name:"new-name" help:"The name to sign in with from now on."`
}

func (c *adminsRenameCmd) Run(p *console.Process) error {
	if err := p.Request(http.MethodPatch, control.Path("control", "accounts", c.Name), control.AccountTerms{Name: c.To}, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Stdout, "%s signs in as %s now.\n", c.Name, c.To)
	return err
}

type adminsResetCmd struct {
	Name string `arg:"" help:"The account's name."`
	JSON bool   `help:"As JSON."`
}

func (c *adminsResetCmd) Run(p *console.Process) error {
	return oneTime(p, c.JSON, control.Path("control", "accounts", c.Name, "password"), nil)
}

type adminsRemoveCmd struct {
	Name string `arg:"" help:"The account's name."`
}

func (c *adminsRemoveCmd) Run(p *console.Process) error {
	if err := p.Request(http.MethodDelete, control.Path("control", "accounts", c.Name), nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Stdout, "Removed %s: its sessions and API keys have ended.\n", c.Name)
	return err
}

type adminsTOTPOffCmd struct {
	Name string `arg:"" help:"The account's name."`
}

func (c *adminsTOTPOffCmd) Run(p *console.Process) error {
	if err := p.Request(http.MethodDelete, control.Path("control", "accounts", c.Name, "two-step"), nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Stdout, "Two-step sign-in of %s is off: the password alone signs in.\n", c.Name)
	return err
}

type adminsSessionsCmd struct {
	Name   string `arg:"" help:"The account's name."`
	End    string `placeholder:"ID" help:"End this session, by its id in the list."`
	EndAll bool   `help:"End all its sessions."`
	JSON   bool   `help:"As JSON."`
}

func (c *adminsSessionsCmd) Run(p *console.Process) error {
	at := control.Path("control", "accounts", c.Name, "sessions")
	if c.End == "" && !c.EndAll {
		var res control.Sessions
		if err := p.Get(at, &res); err != nil {
			return err
		}
		return console.PrintList(p.Stdout, c.JSON, res.Sessions, "Not signed in anywhere.", "ID\tADDRESS\tSIGNED IN\tLAST USED\tBROWSER", sessionRow)
	}
	if c.End != "" && c.EndAll {
		return core.Errorf(core.Invalid, "--end names one session, --end-all means every one: use one of them")
	}
	var res control.Ended
	if err := p.Request(http.MethodDelete, at+"?id="+url.QueryEscape(c.End), nil, &res); err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(p.Stdout, res)
	}
	_, err := fmt.Fprintf(p.Stdout, "Ended %d session(s) of %s.\n", res.Ended, c.Name)
	return err
}

func sessionRow(s auth.SessionRow) string {
	return console.Cells(s.ID, s.Address, whenOr(s.StartedAt, "?"), whenOr(s.UsedAt, "?"), core.CleanName(core.CutRunes(s.Agent, 60)))
}
