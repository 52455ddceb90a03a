package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"gatehouse/core"
)

// A Draft is what a text would be as one of the files: exactly one part is set.
type Draft struct {
	Agent     *Agent
	Skill     *Skill
	Workspace *Workspace
	Fault     *Fault // why it would be none of them

	Notes []Fault // as Notes of Agents
}

// Kinds of files, as NewFile takes them.
const (
	KindAgent     = "agent"
	KindSkill     = "skill"
	KindWorkspace = "workspace"
)

// NewFile returns where a new file of that kind and name is; core.Invalid for
// another kind or a name that cannot be one.
func NewFile(kind, name string) (string, error) {
	name = strings.TrimSpace(name)
	if !goodName(name) {
		return "", core.Errorf(core.Invalid, "a name is 1 to 64 letters, digits, blanks and . _ - that begin with a letter or digit")
	}
	switch kind {
	case KindAgent:
		return checked(path.Join(agentsDir, name+".md"))
	case KindSkill:
		return checked(path.Join(skillsDir, name+".md"))
	case KindWorkspace:
		return checked(path.Join(workspacesDir, name, configFile))
	}
	return "", core.Errorf(core.Invalid, "there are agents, skills and workspaces")
}

// KindOf returns what kind of definition a file of that name is; "" where it is none.
func KindOf(file string) string {
	dir, base := path.Split(file)
	dir = path.Clean(dir)
	switch {
	case path.Clean(file) != file:
	case dir == agentsDir && isDefinition(base):
		return KindAgent
	case dir == skillsDir && isDefinition(base):
		return KindSkill
	case base == configFile && path.Dir(dir) == workspacesDir && goodName(path.Base(dir)):
		return KindWorkspace
	}
	return ""
}

// isDefinition reports whether a file of this name is read, and may be written.
func isDefinition(base string) bool {
	return strings.HasSuffix(base, ".md") && !strings.EqualFold(base, "README.md") && goodName(stem(base))
}

func checked(file string) (string, error) {
	if KindOf(file) == "" {
		return "", core.Errorf(core.Invalid, "this name cannot be a file's name")
	}
	return file, nil
}

// Text returns the text of the file of an agent, skill or workspace, and the version
// that Save requires; both are "" for a missing file, and core.NotFound is returned for
// any other file. The caller checks that the reader is the gateway's owner.
func (a *Agents) Text(file string) (text, version string, err error) {
	if KindOf(file) == "" {
		return "", "", core.Errorf(core.NotFound, "that is no file of an agent, a skill or a workspace")
	}
	f, _, err := openFile(a.vault, file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err != nil {
		return "", "", core.Errorf(core.Invalid, "%s cannot be read: %s", file, reason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDefinition+1))
	switch {
	case err != nil:
		return "", "", core.Errorf(core.Invalid, "%s cannot be read: %s", file, reason(err))
	case len(data) > maxDefinition:
		return "", "", core.Errorf(core.TooLarge, "%s is longer than %s: change it with an editor of your own", file, core.ByteSize(maxDefinition))
	}
	return string(data), versionOf(data), nil
}

func versionOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// Try returns what text would be as that file. It changes nothing.
func (a *Agents) Try(file, text string) (d Draft) {
	switch KindOf(file) {
	case KindAgent:
		x, notes, fault := parseAgent(file, text)
		if fault == nil {
			fault = a.taken(x)
		}
		d.Agent, d.Fault, d.Notes = &x, fault, notes
	case KindSkill:
		x, fault := parseSkill(file, text)
		d.Skill, d.Fault = &x, fault
	case KindWorkspace:
		x, fault := parseWorkspace(file, text)
		d.Workspace, d.Fault = &x, fault
	default:
		d.Fault = &Fault{File: file, Text: "that is no file of an agent, a skill or a workspace"}
	}
	if d.Fault == nil && len(text) > maxDefinition {
		d.Fault = &Fault{File: file, Text: "the file is longer than " + core.ByteSize(maxDefinition)}
	}
	if d.Fault != nil {
		return Draft{Fault: d.Fault}
	}
	return d
}

// taken returns the fault of an agent with another file's name, or with that of a file
// that cannot be used: its sessions would be without its limits.
func (a *Agents) taken(x Agent) *Fault {
	s := a.now.Load()
	for _, k := range []string{key(x.Name), key(stem(x.File))} {
		if i, ok := s.agentKeys[k]; ok && s.agents[i].File != x.File {
			return &Fault{File: x.File, Text: "the name is taken by " + s.agents[i].File}
		}
		if f, ok := s.broken[k]; ok && f.File != x.File {
			return &Fault{File: x.File, Text: "the name is taken by " + f.File + ", which cannot be used now"}
		}
	}
	return nil
}

// Save writes a file that Try finds no fault with, and reads everything again.
// version is the one that Text gave: where the file has changed since it is
// core.Conflict, and nothing is written.
func (a *Agents) Save(file, version, text string) error {
	if d := a.Try(file, text); d.Fault != nil {
		return core.Errorf(core.Invalid, "not written: %s", d.Fault.Text)
	}
	_, now, err := a.Text(file)
	if err != nil {
		return err
	}
	if now != version {
		return core.Errorf(core.Conflict, "%s was changed since you opened it: reload it", file)
	}
	if err := a.straight(path.Dir(file)); err != nil {
		return err
	}
	if err := a.vault.WriteFile(file, []byte(text)); err != nil {
		return err
	}
	a.Reload()
	return nil
}

// straight refuses directories that are links: a file written through one would be
// elsewhere, and would not be read.
func (a *Agents) straight(dir string) error {
	for {
		d, err := openFolder(a.vault, dir)
		if err == nil {
			return d.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return core.Errorf(core.Invalid, "%s cannot be written: %s", dir, reason(err))
		}
		if dir = path.Dir(dir); dir == "." {
			return nil
		}
	}
}

// AllSkills returns all skills that can be used, by name, for the gateway's owner.
func (a *Agents) AllSkills() []Skill { return slices.Clone(a.now.Load().skills) }
