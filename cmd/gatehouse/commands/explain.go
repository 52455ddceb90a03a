package commands

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/configs"
	"gatehouse/configs/live"
	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/vault"
)

// An Explain prints which rule decides a tool call. It runs nothing and changes nothing.
type Explain struct {
	Subject string `arg:"" optional:"" name:"command-or-path" help:"A command for the shell, or with --tool another tool's path."`
	Tool    string `default:"Bash" help:"The tool: Bash, Read, Write, Edit, Glob, Grep, Search, WebFetch, mcp__SERVER__TOOL …"`
	As      string `default:"owner" enum:"owner,guest" help:"Who asks: owner or guest."`
	User    int64  `help:"The guest's number (/whoami shows it); without it, any guest."`
	Trust   string `default:"" enum:",sandboxed,vault,full" help:"sandboxed, vault or full; without it full for the owner and sandboxed for a guest."`
	Ask     bool   `help:"With trust mode off, as in a chat."`
	Session string `help:"With the permissions and grants of this session: its id, or the beginning of it."`
	Stdin   bool   `help:"Read one {\"tool\",\"input\",\"as\",\"trust\"} per line, at full trust with trust mode on unless given; print one answer per line (with --json)."`
	JSON    bool   `name:"json" help:"As JSON."`
}

// Help returns the longer text of 'gatehouse explain --help'.
func (c *Explain) Help() string {
	return `Runs and changes nothing. Examples:

  gatehouse explain 'git status && rm -rf ~'
  gatehouse explain --tool Write Daily/today.md --as guest
  echo '{"tool":"Bash","input":{"command":"echo hello"}}' | gatehouse explain --json --stdin`
}

func (c *Explain) Run(p *console.Process) error {
	if c.Stdin != (c.Subject == "") {
		return core.Errorf(core.Invalid, "give either a command or path, or --json --stdin")
	}
	e, from, closeVault, err := c.against(p)
	defer closeVault()
	if err != nil {
		return err
	}
	if c.Stdin {
		return explainLines(p, e)
	}
	input, err := json.Marshal(c.Subject)
	if err != nil {
		return err
	}
	one := permission.Case{Tool: c.Tool, Input: input, As: c.As, Trust: c.Trust, User: c.User}
	if c.As == "guest" && c.Trust == "" {
		one.Trust = core.Sandboxed.String()
	}
	if c.Ask {
		off := false
		one.Auto = &off
	}
	r, err := permission.Explain(one, e)
	if err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(p.Stdout, struct {
			permission.Reason
			GuestRead *guestRead `json:"guest_read,omitempty"`
		}{r, from})
	}
	fmt.Fprintf(p.Stdout, "%s, by the rule %s.\n", r.Decision, r.Rule)
	if r.Text != "" {
		fmt.Fprintln(p.Stdout, r.Text)
	}
	for _, command := range r.Commands {
		fmt.Fprintln(p.Stdout, "  runs:", command)
	}
	if from != nil && c.As == "guest" {
		fmt.Fprintf(p.Stdout, "Guests read %s (GUEST_READ: %s).\n", cmp.Or(strings.Join(from.Globs, ", "), "nothing"), live.SourceText(from.Source))
	}
	return nil
}

// A guestRead is what guests read as it holds now, and where that comes from.
type guestRead struct {
	Globs  []string `json:"globs"`
	Source string   `json:"source"`
}

// against returns what a call is held against: the settings with what was set in the
// panel, the vault where there is one, and a session where one is named. from
// is nil where the settings can't be read. The function it returns is never nil.
func (c *Explain) against(p *console.Process) (e permission.Explained, from *guestRead, end func(), err error) {
	end = func() {}
	cfg, err := configs.Load()
	if err != nil && c.Session == "" {
		return e, nil, end, nil // by text alone
	}
	if err != nil {
		return e, nil, end, err
	}
	now := Settle(p.Context, cfg)
	if now.Fault != nil {
		fmt.Fprintf(p.Stderr, "The panel's settings cannot be read, so only the environment is used: %s\n", oneLine(now.Fault.Error()))
	}
	globs, source := now.GuestRead()
	e.GuestRead, from = globs, &guestRead{globs, source}
	if c.Session != "" {
		if e, err = c.session(p, e); err != nil {
			return e, nil, end, err
		}
	}
	if st, err := os.Stat(cfg.VaultPath); err != nil || !st.IsDir() {
		return e, from, end, nil
	}
	v, err := vault.Open(cfg.VaultPath)
	if err != nil {
		return e, nil, end, err
	}
	e.Vault = v
	return e, from, func() { _ = v.Close() }, nil
}

func (c *Explain) session(p *console.Process, e permission.Explained) (permission.Explained, error) {
	var s control.SessionRules
	if err := p.Get(control.Path("control", "sessions", c.Session, "rules"), &s); err != nil {
		return e, err
	}
	defaults := permission.ForOwner()
	if c.As == "guest" {
		defaults = permission.ForGuest(max(c.User, core.Operator+1))
	}
	configured := permission.ParseConfigured(s.Metadata, defaults)
	e.Session, e.Configured, e.Grants = c.Session, &configured, s.Grants
	return e, nil
}

// maxCase bounds one line of --stdin.
const maxCase = 1 << 20

// explainLines answers each line with one line. A line that makes no sense is
// denied by the rule "invalid", so that the answers stay in step.
func explainLines(p *console.Process, e permission.Explained) error {
	if p.Stdin == nil {
		return core.Errorf(core.Invalid, "there is no input")
	}
	lines := bufio.NewScanner(p.Stdin)
	lines.Buffer(nil, maxCase)
	out := bufio.NewWriter(p.Stdout)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var c permission.Case
		r, err := permission.Reason{}, json.Unmarshal(lines.Bytes(), &c)
		if err == nil {
			r, err = permission.Explain(c, e)
		}
		if err != nil {
			r = permission.Reason{Decision: permission.Deny.String(), Rule: "invalid", Commands: []string{}}
		}
		r.Text = "" // programs read three members
		if err := enc.Encode(r); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return lines.Err()
}
