package permission

import (
	"encoding/json"
	"path"
	"strings"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/vault"
)

// A Case is a tool call that someone wants explained; one JSON line of
// 'gatehouse explain --json --stdin'.
type Case struct {
	Tool  string          `json:"tool"`  // "Bash", "Read", "mcp__server__tool" …
	Input json.RawMessage `json:"input"` // the tool's input; or a text: the command, the path
	As    string          `json:"as"`    // "owner" or "guest"; "" is the owner
	Trust string          `json:"trust"` // "" is full
	Auto  *bool           `json:"auto"`  // trust mode; nil is on for the owner, off for a guest below full
	User  int64           `json:"user"`  // the guest's number; 0 is any guest
}

// A Reason is what Explain reports of a Case.
type Reason struct {
	Decision string   `json:"decision"` // deny, ask, allow
	Rule     string   `json:"rule"`
	Commands []string `json:"commands"` // of a shell: what it runs, as parsed
	Text     string   `json:"text,omitempty"`
}

// Explained is what a Case is held against; all of it may be empty.
type Explained struct {
	Vault      *vault.Vault // nil: names are taken as text, without .parachuteignore
	GuestRead  []string
	Configured *Configured // a session's; nil: the defaults
	Session    string
	Grants     []GrantRow // of that session
	Own        []string   // guard.Options.Own
}

// Explain decides a case by the function that Guard.Decide uses, as if every
// tool of that name existed and there were a sandbox. Invalid for a case that
// makes no sense.
func Explain(c Case, e Explained) (Reason, error) {
	p, err := c.profile(e)
	if err != nil {
		return Reason{}, err
	}
	q := question{p: p, t: known(c.Tool), input: c.Input, grants: e.Grants, ignore: IgnoreLines(e.Vault), isolation: true}
	q.vault, q.resolve = place(e.Vault)
	q.where = newWhere(e.Vault, "", e.Own)
	if q.a, err = c.touches(q); err != nil {
		return Reason{}, err
	}
	d := q.decide()
	r := Reason{Decision: d.Verdict.String(), Rule: d.Rule, Commands: d.Commands, Text: d.Text}
	if r.Commands == nil {
		r.Commands = []string{}
	}
	return r, nil
}

func (c Case) profile(e Explained) (Profile, error) {
	p := Profile{User: core.Operator, Trust: core.Full, Owner: true, Auto: true, CanAsk: true, Session: e.Session, GuestRead: e.GuestRead, Configured: ForOwner()}
	switch c.As {
	case "", "owner", "admin", "operator":
	case "guest":
		p.Owner, p.User = false, c.User
		if p.User == 0 {
			p.User, p.Any = core.Operator+1, true
		}
		p.Configured = ForGuest(p.User)
	default:
		return p, core.Errorf(core.Invalid, "as %q is neither owner nor guest", c.As)
	}
	if c.Trust != "" {
		level, err := core.ParseTrust(c.Trust)
		if err != nil {
			return p, err
		}
		p.Trust = level
	}
	p.Auto = p.Owner || p.Trust == core.Full
	if c.Auto != nil {
		p.Auto = *c.Auto
	}
	if e.Configured != nil {
		p.Configured = *e.Configured
	}
	return p, nil
}

// known returns a tool by its name, as far as decisions go.
func known(name string) tool.Tool {
	t := tool.Tool{Name: name}
	switch name {
	case "Read", "Glob", "Grep", "Search", "LS", "NotebookRead":
		t.Kind = tool.Read
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		t.Kind = tool.Write
	case "Bash":
		t.Kind, t.Isolated = tool.Shell, true
	case "WebFetch", "WebSearch":
		t.Kind = tool.Network
	case "Task", "Skill", "AskUserQuestion":
		t.Kind = tool.Inner
	}
	if strings.HasPrefix(name, "mcp__") {
		t.Kind = tool.MCP
	}
	return t
}

// touches reads the tool's input.
func (c Case) touches(q question) (tool.Access, error) {
	var in struct {
		Command  string `json:"command"`
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
		Path     string `json:"path"`
		Folder   string `json:"folder"`
		Pattern  string `json:"pattern"`
		URL      string `json:"url"`
	}
	text := ""
	if json.Unmarshal(c.Input, &text) == nil {
		in.Command, in.Path, in.URL = text, text, text
	} else if json.Unmarshal(c.Input, &in) != nil {
		return tool.Access{}, core.Errorf(core.Invalid, "the input is neither an object nor a text")
	}
	name := in.File
	for _, other := range []string{in.Notebook, in.Path, in.Folder} {
		if name == "" {
			name = other
		}
	}
	switch q.t.Kind {
	case tool.Shell:
		return tool.Access{Command: in.Command}, nil
	case tool.Network:
		if q.t.Name == "WebFetch" {
			return tool.Access{URL: in.URL}, nil
		}
	case tool.Write:
		return tool.Access{Write: []string{q.name(name)}}, nil
	case tool.Read:
		if name == "" && q.t.Name != "Read" {
			name = "."
		}
		a := tool.Access{Read: []string{q.name(name)}}
		if hit := path.Join(name, in.Pattern); q.t.Name == "Glob" && denied(strings.TrimLeft(hit, "/")) {
			a.Read = append(a.Read, hit)
		}
		return a, nil
	}
	return tool.Access{}, nil
}

// name returns a path as tool.Turn's Name makes it, as far as it is known here.
func (q question) name(p string) string {
	if q.resolve != nil {
		if real, _ := q.resolve(path.Clean(p)); real != "" {
			return real
		}
	}
	if strings.HasPrefix(p, "~") {
		return "/" + strings.TrimLeft(p, "~/") // somewhere outside
	}
	if p == "" {
		return ""
	}
	return path.Clean(p)
}
