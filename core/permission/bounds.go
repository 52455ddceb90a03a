package permission

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"gatehouse/core"
	"gatehouse/core/permission/pattern"
)

// Bounds returns what no grant opens, by name as tool.Turn's Name makes it: a slash
// path relative to the vault, or absolute outside of it. ignore are lines of
// .parachuteignore, at most 1000 of them count.
//
//   - The deny list and ignore hold at every level, for reading and writing.
//   - Below full nothing outside the vault is opened, and what commands the
//     gateway or other agents is not written.
//   - Sandboxed reads what GuestRead names, and reads and writes in Guests/{user}/.
func (p Profile) Bounds(ignore []string) (mayRead, mayWrite func(name string) bool) {
	return p.Within(ParseIgnore(ignore))
}

// An Ignore is lines of .parachuteignore, read once for many Bounds.
type Ignore struct{ lines ignoreLines }

// ParseIgnore reads lines of .parachuteignore.
func ParseIgnore(lines []string) Ignore { return Ignore{parseIgnore(lines)} }

// Within is Bounds.
func (p Profile) Within(ignore Ignore) (mayRead, mayWrite func(name string) bool) {
	b := bounds{p, ignore.lines}
	return func(name string) bool { return b.read(name) == "" }, func(name string) bool { return b.write(name) == "" }
}

// bounds reports which rule forbids a name, "" when none does.
type bounds struct {
	p      Profile
	ignore ignoreLines
}

func (b bounds) read(name string) string {
	if rest, outside := strings.CutPrefix(name, "/"); outside {
		clean, ok := cleaned(rest)
		switch {
		case rest != "" && (!ok || denied(clean) || ofProcess(clean)):
			return RuleDenyList
		case b.p.Trust != core.Full:
			return RuleArea
		}
		return ""
	}
	clean, ok := cleaned(name)
	switch {
	case !ok || denied(clean) || b.ignore.match(clean) || b.p.Trust < core.Full && holdsCredentials(clean):
		return RuleDenyList
	case !inArea(b.p.GuestRead, b.p.Trust, b.p.User, clean):
		return RuleArea
	}
	return ""
}

func (b bounds) write(name string) string {
	if rule := b.read(name); rule != "" {
		return rule
	}
	if b.p.Trust == core.Full {
		return ""
	}
	clean, _ := cleaned(name)
	switch {
	case commands(clean):
		return RuleWriteDenyList
	case b.p.Trust == core.Vault:
		return ""
	}
	own := core.GuestDir(b.p.User)
	if b.p.Trust == core.Sandboxed && b.p.User > 0 && (clean == own || strings.HasPrefix(clean, own+"/")) {
		return ""
	}
	return RuleArea
}

// commanding are names of files and directories that the gateway, agents or programs
// that find them in their working directory obey: the write-deny list, which
// holds below full. In .git it is more than config and hooks: attributes, modules
// and worktrees name programs too. HEAD makes a directory a bare repository, with a
// configuration that names programs.
var commanding = map[string]bool{
	".mcp.json": true, ".claude": true, ".parachute": true, ".parachuteignore": true,
	"claude.md": true, "claude.local.md": true, "agents.md": true, "gemini.md": true, ".cursorrules": true, ".cursor": true,
	".git": true, "head": true, ".gitmodules": true, ".gitconfig": true, ".husky": true, ".pre-commit-config.yaml": true,
	".envrc": true, ".mise.toml": true, "mise.toml": true, ".tool-versions": true, ".editrc": true, ".inputrc": true,
	".vimrc": true, ".gvimrc": true, ".exrc": true, ".nvimrc": true, ".nvim.lua": true, ".lvimrc": true, "_vimrc": true, ".dir-locals.el": true,
	".bashrc": true, ".bash_profile": true, ".bash_login": true, ".bash_logout": true, ".bash_aliases": true, ".profile": true,
	".zshrc": true, ".zshenv": true, ".zprofile": true, ".zlogin": true, ".cshrc": true, ".tcshrc": true, ".kshrc": true,
	".gdbinit": true, ".lldbinit": true, ".pdbrc": true, ".irbrc": true, ".rprofile": true, ".pythonrc": true, "sitecustomize.py": true, "usercustomize.py": true,
	".npmrc": true, ".yarnrc": true, ".yarnrc.yml": true, ".pnpmfile.cjs": true, ".curlrc": true, ".wgetrc": true, ".screenrc": true, ".tmux.conf": true,
	".vscode": true, ".idea": true, ".devcontainer": true, ".cargo": true,
}

// commands reports whether a file of the vault is on the write-deny list.
func commands(name string) bool {
	parts := strings.Split(folded(name), "/")
	for _, p := range parts {
		if commanding[p] {
			return true
		}
	}
	return parts[0] == "agents" || parts[0] == "daily" && len(parts) > 1 && parts[1] == ".agents"
}

// systems are folders of the machine that its programs obey.
var systems = []string{"/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/run", "/var", "/Library", "/System", "/private/etc", "/private/var"}

// temporary are folders in them that programs write to at any time.
var temporary = []string{"/var/tmp", "/var/folders", "/private/var/tmp", "/private/var/folders", "/run/user"}

// obeyed returns why the file of a name, in the vault or absolute, is one that other programs
// obey; "" where it is not.
func obeyed(name string) string {
	outside := strings.HasPrefix(name, "/")
	switch {
	case commands(strings.TrimLeft(name, "/")):
		return "which commands the gateway or other programs"
	case outside && slices.ContainsFunc(temporary, func(s string) bool { return beneath(name, s) }):
		return ""
	case outside && slices.ContainsFunc(systems, func(s string) bool { return beneath(name, s) }) || strings.Contains(folded(name), "/library/launchagents/"):
		return "a file of the system"
	case outside && slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return len(part) > 1 && part[0] == '.' }):
		return "a hidden file outside of the vault, which may command other programs"
	}
	return ""
}

// ofProcess reports whether a name, without the leading slash, is a process's
// memory or environment, which holds the gateway's own secrets.
func ofProcess(name string) bool {
	parts := strings.Split(name, "/")
	last := parts[len(parts)-1]
	return parts[0] == "proc" && (last == "environ" || last == "mem") && len(parts) > 2
}

// forbidden returns the reason, for a user and the model, why rule forbids name.
func (b bounds) forbidden(rule, name string) string {
	if strings.HasPrefix(name, "/") && b.p.Trust != core.Full {
		name = "The path" // resolved, it is one of the host
	}
	switch rule {
	case RuleWriteDenyList:
		return fmt.Sprintf("%s commands the gateway or other agents: it is changed at trust full only.", name)
	case RuleArea:
		if b.p.Trust != core.Sandboxed {
			return fmt.Sprintf("%s is outside of the vault, which trust %s does not leave.", name, b.p.Trust)
		}
		who, open := "this person", fmt.Sprintf("they have their own folder Guests/%d/", b.p.User)
		if b.p.Any {
			who, open = "a guest", "each guest has a folder of their own in Guests/"
		}
		if len(b.p.GuestRead) > 0 {
			open += " and, for reading, " + strings.Join(b.p.GuestRead, ", ")
		}
		return fmt.Sprintf("%s is not open to %s. At trust sandboxed %s. Only the owner can change that, by giving more trust or opening files to guests.", name, who, open)
	}
	return fmt.Sprintf("%s is on the deny list (secrets, the gateway's own files, .parachuteignore): no tool opens it, for any user, and no grant allows it.", name)
}

// maxIgnore bounds the lines of .parachuteignore that count.
const maxIgnore = 1000

// ignoreLines are the lines of .parachuteignore. As in .gitignore, a line
// without an inner slash holds at every depth, one with a slash from the vault
// on; "!" opens again what an earlier line closed, but nothing inside a directory
// that is closed; the last line that matches decides. "**" crosses directories.
type ignoreLines []ignoreLine

type ignoreLine struct {
	globs [2]string // for names as foldCase and foldSimply bring them, in which ? is another letter
	open  bool
}

func parseIgnore(lines []string) ignoreLines {
	var out ignoreLines
	for _, l := range lines[:min(len(lines), maxIgnore)] {
		l = strings.TrimRightFunc(l, unicode.IsSpace)
		if l == "" || l[0] == '#' {
			continue
		}
		l, open := strings.CutPrefix(l, "!")
		if !open {
			l = strings.TrimPrefix(l, `\`) // \# and \! begin a name
		}
		l = strings.TrimSuffix(l, "/")
		anchored := strings.Contains(l, "/")
		if l = strings.TrimPrefix(l, "/"); foldCase(l) == "" {
			continue
		}
		out = append(out, ignoreLine{[2]string{ignoreGlob(foldCase(l), anchored), ignoreGlob(foldSimply(l), anchored)}, open})
	}
	return out
}

func ignoreGlob(glob string, anchored bool) string {
	if !doublestar.ValidatePattern(glob) {
		glob = pattern.EscapeGlob(glob)
	}
	if !anchored {
		glob = "**/" + glob
	}
	return glob
}

// match reports whether the lines close a name, in either way to compare it.
func (ls ignoreLines) match(name string) bool {
	if len(ls) == 0 || name == "." {
		return false
	}
	full, simple := folded(name), foldedBy(name, foldSimply)
	return ls.close(full, 0) || simple != full && ls.close(simple, 1)
}

// close reports whether the globs of one kind close a name or a directory above it.
func (ls ignoreLines) close(name string, kind int) bool {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		closed := false
		for _, l := range ls {
			if matches(l.globs[kind], name[:i]) {
				closed = !l.open
			}
		}
		if closed {
			return true
		}
	}
	return false
}

// covers reports whether one of globs lets a tool at name. A search goes below
// what it names, so only a glob that names all below covers it, or its own name.
func covers(globs []string, name string, search bool) bool {
	return slices.ContainsFunc(globs, func(g string) bool {
		if !search {
			return matches(g, name)
		}
		if g == pattern.EscapeGlob(name) {
			return true
		}
		top, ok := below(g)
		return ok && strings.HasPrefix(g, "/") == strings.HasPrefix(name, "/") &&
			(top == "" || top == name || strings.HasPrefix(name, top+"/"))
	})
}

// below returns the directory that a glob names with everything in it: "a/**" and
// "a/**/*" name "a", "**" names "" (all).
func below(glob string) (top string, ok bool) {
	glob = strings.TrimPrefix(glob, "./")
	top, ok = strings.CutSuffix(strings.TrimSuffix(glob, "/*"), "**")
	if !ok || top != "" && !strings.HasSuffix(top, "/") {
		return "", false
	}
	top = strings.TrimSuffix(top, "/")
	return top, !strings.ContainsAny(top, `*?[]{}\`)
}
