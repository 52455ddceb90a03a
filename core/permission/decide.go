package permission

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/permission/arguments"
	"gatehouse/core/permission/shell"
	"gatehouse/core/tool"
)

// Rules that decide, as Decision.Rule and as the label of gatehouse_denied_total.
const (
	RuleDenyList      = "deny_list"       // no: secrets and the gateway's own files
	RuleWriteDenyList = "write_deny_list" // no, below full: what commands the gateway
	RuleArea          = "area"            // no: outside of what the trust level opens
	RuleDangerous     = "dangerous"       // no: the shell would do what is never done
	RuleNotOffered    = "not_offered"     // no: the tool is not for this trust level
	RuleNobody        = "nobody"          // no: it would be asked, and no one can answer
	RuleTooMany       = "too_many_asks"   // no: too many questions wait already
	RulePerson        = "person"          // a user decided
	RuleTimeout       = "timeout"         // no: no one answered in time
	RuleChanged       = "changed"         // no: the call is not the one that was approved, or its file changed since
	RuleAlways        = "always"          // yes: always allowed where it is offered
	RuleTrustMode     = "trust_mode"      // yes: trust mode
	RuleConfigured    = "configured"      // yes: the session's permissions
	RuleGrant         = "grant"           // yes: a tool grant
	RuleHidden        = "hidden"          // ask: the command hides what it does
	RuleUnknown       = "not_understood"  // ask: the command is not wholly understood
	RuleSecretNamed   = "secret_named"    // ask: at full, the command names a file of the deny list, or of the gateway's own
	RuleAsk           = "ask"             // ask: nothing else decides
)

// DenyRules are the rules that refuse.
var DenyRules = []string{RuleDenyList, RuleWriteDenyList, RuleArea, RuleDangerous, RuleNotOffered, RuleNobody, RuleTooMany, RulePerson, RuleTimeout, RuleChanged}

// question is all that a decision goes by.
type question struct {
	p         Profile
	t         tool.Tool
	input     json.RawMessage
	a         tool.Access
	grants    []GrantRow // of this session, user and trust
	ignore    []string   // lines of .parachuteignore
	isolation bool
	known     bool                        // of a fetch: its address was named in the conversation
	vault     string                      // the vault's absolute path, "" unknown
	resolve   func(string) (string, bool) // a name with links resolved ("": it can't be), and whether it exists; nil: by text alone
	where     where
}

// decide goes through the order: deny list, dangerous shell, what is not
// offered, always allowed, trust mode, the session's permissions and grants, ask.
func (q question) decide() Decision {
	b := bounds{q.p, parseIgnore(q.ignore)}
	if d, no := q.forbidden(b); no {
		return d
	}
	var line shell.Report
	var d Decision
	if q.t.Kind == tool.Shell {
		line = shell.Examine(q.a.Command)
		for _, c := range line.Commands {
			d.Commands = append(d.Commands, c.Text)
		}
		if line.Danger != "" {
			return d.With(Deny, RuleDangerous, "This command is never run, for any user: "+line.Danger+".")
		}
	}
	if o := Offered(q.p, q.t, q.isolation); !o.OK {
		return d.With(Deny, RuleNotOffered, o.Why)
	}
	switch q.t.Kind {
	case tool.Network:
		return q.fetch(d)
	case tool.MCP, tool.Inner:
		return d.With(Allow, RuleAlways, "")
	case tool.Shell:
		return q.command(d, b, line)
	}
	return q.files(d)
}

// With returns d with another verdict, and the rule and reason of it.
func (d Decision) With(v Verdict, rule, text string) Decision {
	d.Verdict, d.Rule, d.Text = v, rule, text
	return d
}

// forbidden holds names against the bounds. For files outside of a guest's area
// the reason reports what is open.
func (q question) forbidden(b bounds) (Decision, bool) {
	switch q.t.Kind {
	case tool.Read, tool.Write:
		for _, name := range q.a.Read {
			if rule := b.read(name); rule != "" {
				return Decision{}.With(Deny, rule, b.forbidden(rule, name)), true
			}
		}
		for _, name := range q.a.Write {
			if rule := b.write(name); rule != "" {
				return Decision{}.With(Deny, rule, b.forbidden(rule, name)), true
			}
		}
	case tool.MCP:
		names, all := arguments.Names(q.input)
		for _, s := range names {
			if name, no := q.secret(b, s); no {
				return Decision{}.With(Deny, RuleDenyList, b.forbidden(RuleDenyList, name)), true
			}
		}
		if !all {
			return Decision{}.With(Deny, RuleDenyList, fmt.Sprintf("The call has more than %d texts: too many to compare with the deny list. Make several calls.", arguments.Most)), true
		}
	}
	return Decision{}, false
}

// maxPath is what a system takes for a path, in bytes.
const maxPath = 4096

// secret reports whether a text names a file of the deny list: as it is,
// decoded, and with links resolved.
func (q question) secret(b bounds, s string) (string, bool) {
	resolve := q.resolve
	if resolve == nil {
		resolve = func(string) (string, bool) { return "", false }
	}
	forms := arguments.Paths(s, func(name string) bool { _, exists := resolve(name); return exists })
	for _, form := range forms {
		for _, f := range []string{form, path.Clean(form)} { // servers resolve ".." behind a link either way
			if len(f) > maxPath {
				continue
			}
			real, exists := resolve(f)
			if exists && denied(q.inVault(real)) { // not prose, whatever blanks it has
				return shorten(real), true
			}
			if real != "" {
				forms = append(forms, real)
			}
		}
	}
	for _, f := range forms {
		if name := q.inVault(f); named(name) || b.ignore.match(name) {
			return shorten(path.Clean(f)), true
		}
	}
	return "", false
}

// inVault returns a path as the deny list has it.
func (q question) inVault(f string) string {
	f = path.Clean(f)
	if q.vault != "" {
		f = strings.TrimPrefix(f, q.vault+"/")
	}
	return strings.TrimLeft(strings.TrimPrefix(f, "~"), "/")
}

// named is denied for a text that may be prose: an element with blanks inside
// is no file's name.
func named(name string) bool {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if strings.ContainsAny(strings.TrimSpace(p), " \t") {
			parts[i] = "x"
		}
	}
	return denied(strings.Join(parts, "/"))
}

// files decides a tool that reads or writes files.
func (q question) files(d Decision) Decision {
	if len(q.a.Read)+len(q.a.Write) == 0 {
		return d.With(Deny, RuleArea, q.t.Name+" names no file.")
	}
	if q.p.Auto {
		return q.trusted(d)
	}
	if q.t.Kind == tool.Read && q.t.Name == "Search" {
		// The index finds what the user may read, within their rights. It shows lines of it and
		// changes nothing; to read a file, and to send anything away, still asks.
		return d.With(Allow, RuleAlways, "")
	}
	rule := RuleConfigured
	for _, need := range q.needs() {
		globs := q.p.Configured.Read
		if need.kind == kindRead && q.p.Trust == core.Sandboxed {
			globs = append(slices.Clone(globs), q.p.GuestRead...)
		}
		if need.kind == kindWrite {
			globs = q.p.Configured.Write
		}
		if covers(globs, need.name, need.search) {
			continue
		}
		if !covers(q.granted(need.kind), need.name, need.search) {
			d.Suggested = suggestFiles(need.name, need.search)
			return d.With(MustAsk, RuleAsk, fmt.Sprintf("%s wants to %s %s.", q.t.Name, need.kind, shorten(need.name)))
		}
		rule = RuleGrant
	}
	return d.With(Allow, rule, "")
}

// trusted decides in trust mode. As for a command, what other programs obey is not changed
// unasked.
func (q question) trusted(d Decision) Decision {
	for _, name := range q.a.Write {
		why := obeyed(name)
		if why == "" || covers(q.p.Configured.Write, name, false) || covers(q.granted(kindWrite), name, false) {
			continue
		}
		d.Suggested = suggestFiles(name, false)
		return d.With(MustAsk, RuleAsk, fmt.Sprintf("%s wants to write %s, %s.", q.t.Name, shorten(name), why))
	}
	return d.With(Allow, RuleTrustMode, "")
}

// Kinds of what is asked and granted, as in core.PermissionRequest.
const (
	kindRead  = "read"
	kindWrite = "write"
	kindBash  = "bash"
)

// need is one file that a call touches.
type need struct {
	kind, name string
	search     bool
}

// needs returns the files that have to be allowed. Who may change a file may have
// the tool check it first. Any tool that reads but Read goes below a directory.
func (q question) needs() []need {
	var out []need
	for _, n := range q.a.Write {
		out = append(out, need{kindWrite, n, false})
	}
	for _, n := range q.a.Read {
		if !slices.Contains(q.a.Write, n) {
			out = append(out, need{kindRead, n, q.t.Kind == tool.Read && q.t.Name != "Read"})
		}
	}
	return out
}

func (q question) granted(kind string) []string {
	var out []string
	for _, g := range q.grants {
		if g.Kind == kind && g.Session == q.p.Session && g.User == q.p.User && g.Trust == q.p.Trust {
			out = append(out, g.Pattern)
		}
	}
	return out
}

func shorten(name string) string { return core.CutRunes(name, 200) }
