package permission

import (
	"path"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/permission/pattern"
	"gatehouse/core/permission/shell"
	"gatehouse/core/permission/shell/vetted"
	"gatehouse/core/texts"
)

// command decides a shell's command that is not refused. Only a command that is
// wholly understood goes on by trust mode, by the session's permissions or by a
// grant for a kind of command; any other needs a grant of exactly its text.
func (q question) command(d Decision, b bounds, line shell.Report) Decision {
	if len(line.Hidden) > 0 {
		return d.With(MustAsk, RuleHidden, "This command hides what it runs: "+strings.Join(line.Hidden, "; ")+".")
	}
	if why := q.secretNamed(b, line); why != "" {
		return d.With(MustAsk, RuleSecretNamed, why)
	}
	why := line.Unknown
	if len(why) == 0 {
		why = q.beyond(line.Paths)
	}
	if len(why) > 0 {
		return q.exactly(d, why)
	}
	switch {
	case q.p.Auto:
		return d.With(Allow, RuleTrustMode, "")
	case q.p.Configured.Bash.All:
		return d.With(Allow, RuleConfigured, "")
	case len(line.Commands) > 0 && pattern.AllMatch(q.p.Configured.Bash.Patterns, words(line.Commands)):
		return d.With(Allow, RuleConfigured, "")
	case len(line.Commands) > 0 && pattern.AllMatch(append(slices.Clone(q.p.Configured.Bash.Patterns), q.granted(kindBash)...), words(line.Commands)):
		return d.With(Allow, RuleGrant, "")
	}
	d.Suggested = suggestCommands(line.Commands)
	return d.With(MustAsk, RuleAsk, q.t.Name+" wants to run a command.")
}

// exactly decides a command that is not wholly understood.
func (q question) exactly(d Decision, why []string) Decision {
	text := exactPattern(q.a.Command)
	switch {
	case text != "" && slices.Contains(q.p.Configured.Bash.Patterns, text):
		return d.With(Allow, RuleConfigured, "")
	case text != "" && slices.Contains(q.granted(kindBash), text):
		return d.With(Allow, RuleGrant, "")
	case text != "":
		d.Suggested = []core.SuggestedGrant{{Scope: "command", Pattern: text, Label: texts.Text("grant_exact", texts.With{"All": false})}}
	}
	return d.With(MustAsk, RuleUnknown, "This command is not wholly understood: "+strings.Join(why, "; ")+".")
}

// exactPattern returns the pattern that covers a command's exact text, or "" for
// a text that users cannot read as it is.
func exactPattern(command string) string {
	if len(command)+len(pattern.Exact) > maxPattern || command == "" || strings.ContainsFunc(command, func(c rune) bool { return !vetted.Plain(c) }) {
		return ""
	}
	return pattern.Exact + command
}

// secretNamed returns why a command at full trust names what is closed, or "".
// Below full such files are not there for a shell.
func (q question) secretNamed(b bounds, line shell.Report) string {
	if q.p.Trust != core.Full {
		return ""
	}
	for _, n := range line.Names {
		if name, yes := q.named(b, n); yes {
			return "The command names " + name + ", which is on the deny list."
		}
		p := shell.Path{Name: n, Pattern: strings.ContainsAny(n, "*?[")}
		if _, known := q.where.targets(p); known && q.where.owns(p) { // else it is text
			return "The command names " + shorten(n) + ", which holds the gateway's own files."
		}
	}
	for _, p := range line.Paths {
		if name := q.deniedPath(b, p); name != "" {
			return "The command opens " + shorten(name) + ", which is on the deny list."
		}
		if q.where.owns(p) {
			return "The command reads " + shorten(p.Name) + ", which holds the gateway's own files."
		}
	}
	return ""
}

// deniedPath returns which file of the deny list a path represents, or what is
// below it where all of that is read, or "".
func (q question) deniedPath(b bounds, p shell.Path) string {
	if name, yes := q.named(b, p.Name); yes {
		return name
	}
	list, _ := q.where.targets(p)
	for _, t := range list {
		if q.closed(b, t) {
			return t
		}
	}
	if !p.Deep || p.List || p.Write && !p.Copy || q.where.holdsHome(p.Name, list) && !q.where.inside(list) {
		return ""
	}
	for _, t := range list {
		if inner := q.where.find(t, func(name string) bool { return q.closed(b, name) }); inner != "" {
			return inner
		}
	}
	return ""
}

// closed reports whether the file at an absolute path is on the deny list.
func (q question) closed(b bounds, abs string) bool {
	if rest, ok := strings.CutPrefix(abs, q.vault+"/"); ok && q.vault != "" {
		return denied(rest) || b.ignore.match(rest)
	}
	return denied(strings.TrimPrefix(abs, "/"))
}

// samples are names that a glob of a shell may be for.
var samples = []string{".env", ".env.local", ".envrc", "prod.env", "credentials.json", ".credentials.json", "id_rsa", "id_ed25519", "server.key", "server.pem", "cert.p12", "cert.pfx", ".netrc", ".npmrc", ".ssh", ".git-credentials", ".parachute", ".aws", ".gnupg"}

// named reports whether what may be a name in a command is, or by its wildcards
// may be, a file of the deny list.
func (q question) named(b bounds, n string) (string, bool) {
	if name, yes := q.secret(b, n); yes {
		return name, true
	}
	parts := strings.Split(path.Clean(n), "/")
	for i, p := range parts {
		if !strings.ContainsAny(p, "*?[") || strings.Trim(p, "*.") == "" && !strings.HasPrefix(p, ".") {
			continue
		}
		for _, s := range samples {
			if strings.HasPrefix(s, ".") && !strings.HasPrefix(p, ".") {
				continue // a wildcard does not be for a first dot
			}
			hit := slices.Clone(parts)
			hit[i] = s
			if ok, _ := path.Match(p, s); ok && denied(strings.TrimLeft(path.Join(hit...), "/~")) {
				return shorten(n), true
			}
		}
	}
	return "", false
}
