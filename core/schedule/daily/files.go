package daily

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/vault"
)

// Limits of the directory.
const (
	MaxAgents = 64       // further files are listed as faults
	maxFile   = 64 << 10 // bytes of a file
	maxListed = 1000     // entries of the directory that are read
)

//go:embed samples/*.md
var samples embed.FS

// A Set is what the directory of agents has, by name.
type Set struct {
	Agents []Agent
	Faults []Fault
}

// Agent returns the agent of that name.
func (s Set) Agent(name string) (Agent, bool) {
	i, ok := slices.BinarySearchFunc(s.Agents, name, func(a Agent, name string) int { return cmp.Compare(a.Name, name) })
	if !ok {
		return Agent{}, false
	}
	return s.Agents[i], true
}

// Fault returns why the file of that name cannot be used.
func (s Set) Fault(name string) (Fault, bool) {
	i := slices.IndexFunc(s.Faults, func(f Fault) bool { return f.File == path.Join(Dir, name+".md") })
	if i < 0 {
		return Fault{}, false
	}
	return s.Faults[i], true
}

// Files are the files of daily agents in a vault. It is safe for concurrent use.
type Files struct{ vault *vault.Vault }

// NewFiles returns the files of v.
func NewFiles(v *vault.Vault) *Files { return &Files{v} }

// Read returns what the directory has now. A file that cannot be used is among the faults,
// and so is one that has the output of another agent, whose name comes first; a missing
// directory has no agents.
func (f *Files) Read() (Set, error) {
	dir, err := f.vault.OpenNoLinks(Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Set{}, nil
	}
	if err != nil {
		return Set{}, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxListed)
	if err != nil && !errors.Is(err, io.EOF) {
		return Set{}, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	var s Set
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".md")
		if !ok || strings.HasPrefix(name, ".") || strings.EqualFold(e.Name(), "README.md") {
			continue
		}
		if len(s.Agents)+len(s.Faults) >= MaxAgents {
			s.Faults = append(s.Faults, *whole(Dir, "there are more than 64 files: the rest are not read"))
			break
		}
		a, fault := f.one(name)
		if fault != nil {
			s.Faults = append(s.Faults, *fault)
			continue
		}
		s.Agents = append(s.Agents, a)
	}
	core.Sort(s.Agents, func(a, b Agent) int { return cmp.Compare(a.Name, b.Name) })
	s.apart()
	return s, nil
}

// apart moves agents with an output of an earlier one to the faults.
func (s *Set) apart() {
	all := s.Agents
	s.Agents = nil
next:
	for i := range all {
		for k := range s.Agents {
			if fault := all[i].shares(&s.Agents[k]); fault != nil {
				s.Faults = append(s.Faults, *fault)
				continue next
			}
		}
		s.Agents = append(s.Agents, all[i])
	}
}

func (f *Files) one(name string) (Agent, *Fault) {
	text, err := f.Text(name)
	if err != nil {
		return Agent{}, &Fault{File: path.Join(Dir, core.CleanName(name)+".md"), Text: core.TextOf(err)}
	}
	return Parse(name, text)
}

// Text returns the text of the file of that name.
func (f *Files) Text(name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	file, err := f.vault.OpenNoLinks(path.Join(Dir, name+".md"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", core.Errorf(core.NotFound, "there is no daily agent %s", name)
	}
	if err != nil {
		return "", core.Errorf(core.Invalid, "the file is not read: it is no regular file, or a link")
	}
	defer file.Close()
	st, err := file.Stat()
	if err == nil && !st.Mode().IsRegular() {
		return "", core.Errorf(core.Invalid, "it is no regular file")
	}
	b, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return "", core.Errorf(core.Invalid, "the file cannot be read")
	}
	if len(b) > maxFile {
		return "", core.Errorf(core.Invalid, "the file is longer than 64 KiB")
	}
	return string(b), nil
}

// Enable changes schedule_enabled in the file of that name, and nothing else.
func (f *Files) Enable(name string, on bool) error {
	text, err := f.Text(name)
	if err != nil {
		return err
	}
	changed := enabled(text, on)
	a, fault := Parse(name, changed)
	if fault != nil {
		return core.Errorf(core.Conflict, "%s: fix the file first", fault)
	}
	if a.Enabled != on {
		return core.Errorf(core.Conflict, "the file of %s is written in a way that cannot be changed here: set schedule_enabled in it", name)
	}
	return f.vault.WriteFile(path.Join(Dir, name+".md"), []byte(changed))
}

// enabled returns text with the line schedule_enabled set, or added at the end of the
// frontmatter.
func enabled(text string, on bool) string {
	value, end := "false", "\n"
	if on {
		value = "true"
	}
	if strings.Contains(text, "\r\n") {
		end = "\r\n"
	}
	set := "schedule_enabled: " + value + end
	var b strings.Builder
	n, done := 0, false
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, " \t\r\n")
		switch {
		case done || n == 0:
		case strings.HasPrefix(line, "schedule_enabled:"):
			line, done = set, true
		case bare == "---" || bare == "...":
			line, done = set+line, true
		}
		b.WriteString(line)
		n++
	}
	return b.String()
}

// Samples returns the names of the agents that the program brings along.
func Samples() []string {
	entries, _ := samples.ReadDir("samples") // embedded: it cannot fail
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".md"))
	}
	return names
}

// Sample returns the sample of that name; core.NotFound without one.
func Sample(name string) (Agent, error) {
	text, err := sampleText(name)
	if err != nil {
		return Agent{}, err
	}
	a, fault := Parse(name, text)
	if fault != nil {
		return Agent{}, fmt.Errorf("sample %s: %s", name, fault)
	}
	return a, nil
}

func sampleText(name string) (string, error) {
	if !slices.Contains(Samples(), name) {
		return "", core.Errorf(core.NotFound, "there is no sample %s; there are %s", shown(name), strings.Join(Samples(), " and "))
	}
	b, err := samples.ReadFile("samples/" + name + ".md")
	return string(b), err
}

// AddSample writes a sample into the vault; core.Conflict if there is a file of that name.
func (f *Files) AddSample(name string) error {
	text, err := sampleText(name)
	if err != nil {
		return err
	}
	if _, err := f.Text(name); core.KindOf(err) != core.NotFound {
		return core.Errorf(core.Conflict, "there is a daily agent %s already", name)
	}
	return f.vault.WriteFile(path.Join(Dir, name+".md"), []byte(text))
}
