package agent

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"gatehouse/core"
)

// Where the files are in a vault.
const (
	agentsDir     = ".parachute/agents"
	skillsDir     = ".parachute/skills"
	workspacesDir = ".parachute/workspaces"
	configFile    = "config.yaml"
)

// Bounds of what is read.
const (
	maxDefinitions = 100       // agents, skills and workspaces, each
	maxListed      = 1000      // names in one of their directories; what follows is not seen
	maxDefinition  = 100 << 10 // bytes of one file
)

// A set is what was found at one time. It does not change; its size is bounded
// by maxDefinitions and maxDefinition.
type set struct {
	agents    []Agent        // by name
	agentKeys map[string]int // by name and by file name, in lower case
	skills    []Skill        // by name
	spaces    map[string]Workspace
	broken    map[string]Fault // agents' files that cannot be used, by file name in lower case
	faults    []Fault
	notes     []Fault // on agents' files that are used
	hash      hash    // of all that was read
}

// whySpace explains why a workspace is not there.
func (s *set) whySpace(slug string) string {
	for _, f := range s.faults {
		if f.File == path.Join(workspacesDir, slug, configFile) {
			return f.String()
		}
	}
	return "there is no " + configFile + " in its folder"
}

// Faults returns the files of agents, skills and workspaces that cannot be used,
// by name. Everything else works.
func (a *Agents) Faults() []Fault { return slices.Clone(a.now.Load().faults) }

// Notes returns what is ignored in the files of agents that are used, or read in another
// way than it is written, by name and line.
func (a *Agents) Notes() []Fault { return slices.Clone(a.now.Load().notes) }

// Workspaces returns those that can be used, by slug.
func (a *Agents) Workspaces() (list []Workspace) {
	for _, w := range a.now.Load().spaces {
		list = append(list, w)
	}
	core.Sort(list, func(a, b Workspace) int { return strings.Compare(a.Slug, b.Slug) })
	return list
}

// Skills returns those that a turn of trust is notified of, by name.
func (a *Agents) Skills(trust core.Trust) (list []Skill) {
	for _, s := range a.now.Load().skills {
		if trust != core.Stranger && trust >= s.Least {
			list = append(list, s)
		}
	}
	return list
}

// Reload reads everything again and reports whether something changed. An agent with an
// invalid file keeps its last valid version while the file exists; a workspace does
// not, because the change may have been meant to close it.
func (a *Agents) Reload() bool {
	a.reading.Lock()
	defer a.reading.Unlock()
	was := a.now.Load()
	r := reader{a: a, was: was, set: &set{agentKeys: map[string]int{}, spaces: map[string]Workspace{}, broken: map[string]Fault{}}}
	r.agents()
	r.skills()
	r.workspaces()
	core.Sort(r.set.faults, func(a, b Fault) int { return strings.Compare(a.File, b.File) })
	r.set.hash = r.sum
	if was.agentKeys != nil && was.hash == r.set.hash {
		return false
	}
	a.now.Store(r.set)
	return true
}

// A reader builds one set.
type reader struct {
	a   *Agents
	was *set
	set *set
	sum hash
}

func (r *reader) fault(f *Fault) { r.set.faults = append(r.set.faults, *f) }

func (r *reader) agents() {
	for _, file := range r.markdown(agentsDir) {
		x, notes, fault := r.agent(file)
		if fault != nil {
			r.fault(fault)
			r.set.broken[key(stem(file))] = *fault
			i := slices.IndexFunc(r.was.agents, func(old Agent) bool { return old.File == file })
			if i < 0 {
				continue
			}
			x = r.was.agents[i]
		}
		if twin, taken := r.twin(x); taken {
			r.fault(&Fault{File: file, Text: "the name is taken by " + twin + ", also in another case or as a file's name"})
			continue
		}
		r.set.agents, r.set.notes = append(r.set.agents, x), append(r.set.notes, notes...)
		for _, k := range []string{key(x.Name), key(stem(file))} {
			r.set.agentKeys[k] = len(r.set.agents) - 1
		}
	}
	order := slices.Clone(r.set.agents)
	core.Sort(order, func(a, b Agent) int { return strings.Compare(key(a.Name), key(b.Name)) })
	for k, i := range r.set.agentKeys {
		r.set.agentKeys[k] = slices.IndexFunc(order, func(x Agent) bool { return x.File == r.set.agents[i].File })
	}
	r.set.agents = order
}

func (r *reader) agent(file string) (Agent, []Fault, *Fault) {
	text, fault := r.text(file)
	if fault != nil {
		return Agent{}, nil, fault
	}
	return parseAgent(file, text)
}

// twin returns the file of another agent with one of x's names.
func (r *reader) twin(x Agent) (string, bool) {
	for _, k := range []string{key(x.Name), key(stem(x.File))} {
		if i, ok := r.set.agentKeys[k]; ok {
			return r.set.agents[i].File, true
		}
	}
	return "", false
}

func (r *reader) skills() {
	for _, file := range r.markdown(skillsDir) {
		text, fault := r.text(file)
		var s Skill
		if fault == nil {
			s, fault = parseSkill(file, text)
		}
		if fault == nil {
			if i := slices.IndexFunc(r.set.skills, func(old Skill) bool { return key(old.Name) == key(s.Name) }); i >= 0 {
				fault = &Fault{File: file, Text: "the name is taken by " + r.set.skills[i].File}
			}
		}
		if fault != nil {
			r.fault(fault)
			continue
		}
		r.set.skills = append(r.set.skills, s)
	}
	core.Sort(r.set.skills, func(a, b Skill) int { return strings.Compare(key(a.Name), key(b.Name)) })
}

func (r *reader) workspaces() {
	for _, e := range r.list(workspacesDir) {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		file := path.Join(workspacesDir, e.Name(), configFile)
		if len(r.set.spaces) >= maxDefinitions {
			r.fault(&Fault{File: workspacesDir, Text: fmt.Sprintf("there are more than %d workspaces; those from %s on are not read", maxDefinitions, e.Name())})
			return
		}
		text, fault := r.text(file)
		var w Workspace
		if fault == nil {
			w, fault = parseWorkspace(file, text)
		}
		if fault != nil {
			r.fault(fault)
			continue
		}
		r.set.spaces[w.Slug] = w
	}
}

// markdown returns the Markdown files of a directory. A README and names that begin
// with a dot or an underscore are no definitions.
func (r *reader) markdown(dir string) (files []string) {
	for _, e := range r.list(dir) {
		name := e.Name()
		if !strings.HasSuffix(name, ".md") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || strings.EqualFold(name, "README.md") {
			continue
		}
		if len(files) == maxDefinitions {
			r.fault(&Fault{File: dir, Text: fmt.Sprintf("there are more than %d files; those from %s on are not read", maxDefinitions, name)})
			return files
		}
		files = append(files, path.Join(dir, name))
	}
	return files
}

// list returns what is in a directory, by name.
func (r *reader) list(dir string) []fs.DirEntry {
	d, err := openFolder(r.a.vault, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var entries []fs.DirEntry
	if err == nil {
		defer d.Close()
		entries, err = d.ReadDir(maxListed)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		r.sum.add(dir, err.Error())
		r.fault(&Fault{File: dir, Text: "the folder cannot be read: " + reason(err)})
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

// text returns the content of a file.
func (r *reader) text(file string) (string, *Fault) {
	data, err := func() ([]byte, error) {
		f, _, err := openFile(r.a.vault, file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, maxDefinition+1))
	}()
	switch {
	case err != nil:
		r.sum.add(file, err.Error())
		return "", &Fault{File: file, Text: "the file cannot be read: " + reason(err)}
	case len(data) > maxDefinition:
		r.sum.add(file, "too long")
		return "", &Fault{File: file, Text: fmt.Sprintf("the file is longer than %d bytes", maxDefinition)}
	}
	r.sum.add(file, string(data))
	return strings.ToValidUTF8(string(data), "\ufffd"), nil
}

// reason returns an error without the path, which precedes it.
func reason(err error) string {
	var p *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it is not there"
	case errors.Is(err, fs.ErrPermission):
		return "it may not be read by this program"
	case errors.Is(err, errNotRegular):
		return errNotRegular.Error()
	case errors.Is(err, errHardLinked):
		return errHardLinked.Error()
	case errors.As(err, &p):
		return p.Err.Error()
	}
	return err.Error()
}

// A hash reports whether what is read differs from the last time.
type hash [sha256.Size]byte

func (h *hash) add(name, text string) {
	one := sha256.Sum256([]byte(text))
	*h = sha256.Sum256(slices.Concat(h[:], []byte(name), []byte{0}, one[:]))
}
