package agent

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/agent/frontmatter"
)

// A Skill is instructions for one kind of task, which a model loads when it
// comes to it.
type Skill struct {
	Name        string
	Description string
	Body        string
	File        string
	Least       core.Trust // the lowest trust that is notified of it
}

// A Workspace is what sessions in it have in common. Its Trust is a ceiling;
// Stranger sets none.
type Workspace struct {
	Slug             string // the name of its directory
	Name             string
	Description      string
	Trust            core.Trust
	WorkingDirectory string
	Model            string
	Agent            string
}

// goodName reports whether a name of an agent, a skill or a workspace is 1 to
// 64 letters, digits, blanks, dots, hyphens and underlines, and begins with one
// of the first two. It is no regular expression: sixty-four times all letters
// there are would take 2 MiB in every program that is started.
func goodName(name string) bool {
	n := 0
	for _, r := range name {
		plain := unicode.IsLetter(r) || unicode.IsNumber(r)
		if !plain && (n == 0 || !strings.ContainsRune(" ._-", r)) {
			return false
		}
		n++
	}
	return n >= 1 && n <= 64
}

// agentFields are the fields of an agent's frontmatter.
type agentFields struct {
	Name             string
	Description      string
	Model            string
	Accuracy         string
	SystemPrompt     string `yaml:"system_prompt"`
	Tools            *frontmatter.List
	MCPServers       *frontmatter.List `yaml:"mcpServers"`
	Trust            string            `yaml:"trust_level"`
	WritePermissions *frontmatter.List `yaml:"write_permissions"`
	Permissions      *struct {
		Read, Write *frontmatter.List
		Bash        *commands
	}
	Context struct {
		Include, Exclude *frontmatter.List
		MaxTokens        int `yaml:"maxTokens"`
	}
}

var agentKeys = []string{"name", "description", "model", "accuracy", "system_prompt", "tools", "mcpServers", "trust_level", "write_permissions", "permissions", "context"}

// commands are true, false, or a list of patterns.
type commands Commands

// UnmarshalYAML takes either form.
func (c *commands) UnmarshalYAML(read func(any) error) error {
	if read(&c.All) == nil {
		return nil
	}
	return read(&c.Patterns)
}

// parseAgent reads an agent's file. notes are what is ignored in it or read in another
// way than it is written.
func parseAgent(file, text string) (a Agent, notes []Fault, fault *Fault) {
	h, body, fault := frontmatter.Split(file, text)
	if fault != nil {
		return Agent{}, nil, fault
	}
	var f agentFields
	below, above := "", ""
	if h.Has("agent") {
		below, above = "agent", "agent."
		if fault = nested(h); fault != nil {
			return Agent{}, nil, fault
		}
	}
	ignored, notes := foreign(h, below, above)
	if fault = h.DecodeWithout(below, ignored, &f); fault != nil {
		return Agent{}, nil, fault
	}
	if a, fault = f.agent(h, above, body); fault != nil {
		return Agent{}, nil, fault
	}
	if provided, note := provider(a.Model); note != "" {
		a.Model = provided
		notes = append(notes, *h.At(above+"model", "%s", note))
	}
	core.Sort(notes, func(a, b Fault) int { return a.Line - b.Line })
	return a, notes, nil
}

// nested checks the fields next to "agent:". Anything may be there that other programs
// keep in frontmatter, but none of the agent's own fields.
func nested(h *frontmatter.Header) *Fault {
	if h.Null("agent") {
		return h.At("agent", "agent has no fields")
	}
	for _, k := range agentKeys {
		if h.Has(k) {
			return h.At(k, "%s is next to agent; it belongs below it", k)
		}
	}
	return nil
}

// agent checks the fields and joins them with the body.
func (f *agentFields) agent(h *frontmatter.Header, above, body string) (Agent, *Fault) {
	keys := []string{"tools", "mcpServers", "trust_level", "write_permissions", "permissions", "permissions.read", "permissions.write", "permissions.bash"}
	for i := range keys {
		keys[i] = above + keys[i]
	}
	if fault := h.NotNull(keys...); fault != nil {
		return Agent{}, fault
	}
	a := Agent{
		File: h.File, Name: f.Name, Description: strings.TrimSpace(f.Description), Model: strings.TrimSpace(f.Model),
		Prompt: strings.TrimSpace(f.SystemPrompt), Tools: f.Tools.Values(), Servers: f.MCPServers.Values(),
		Context: Context{Include: f.Context.Include.Values(), Exclude: f.Context.Exclude.Values(), MaxTokens: f.Context.MaxTokens},
	}
	if f.Accuracy != "" {
		if a.Model != "" || core.CouncilModel(f.Accuracy) == "" {
			return Agent{}, h.At(above+"accuracy", "accuracy is one of %s, in place of model", strings.Join(core.AccuracyLevels(), ", "))
		}
		a.Model = core.CouncilModel(f.Accuracy)
	}
	if a.Prompt != "" && body != "" {
		a.Prompt += "\n\n"
	}
	a.Prompt += body
	var fault *Fault
	if a.Name, fault = nameOf(h, above+"name", a.Name); fault != nil {
		return Agent{}, fault
	}
	if a.Trust, fault = trustOf(h, above+"trust_level", f.Trust); fault != nil {
		return Agent{}, fault
	}
	if a.Permissions, fault = f.permissions(h, above); fault != nil {
		return Agent{}, fault
	}
	if n := f.Context.MaxTokens; n < 0 || n > maxFolderTokens {
		return Agent{}, h.At(above+"context.maxTokens", "maxTokens is not between 1 and %d", maxFolderTokens)
	}
	for k, globs := range map[string][]string{"include": a.Context.Include, "exclude": a.Context.Exclude} {
		if fault = h.Globs(above+"context."+k, globs); fault != nil {
			return Agent{}, fault
		}
	}
	return a, nil
}

func (f *agentFields) permissions(h *frontmatter.Header, above string) (*Permissions, *Fault) {
	switch {
	case f.WritePermissions != nil && f.Permissions != nil:
		return nil, h.At(above+"write_permissions", "write_permissions and permissions are both there; keep one of them")
	case f.WritePermissions != nil:
		p := &Permissions{Write: f.WritePermissions.Items}
		return p, h.Globs(above+"write_permissions", p.Write)
	case f.Permissions == nil:
		return nil, nil
	}
	p := &Permissions{Bash: (*Commands)(f.Permissions.Bash)}
	for k, l := range map[string]*frontmatter.List{"read": f.Permissions.Read, "write": f.Permissions.Write} {
		if l == nil {
			continue
		}
		if fault := h.Globs(above+"permissions."+k, l.Items); fault != nil {
			return nil, fault
		}
		if k == "read" {
			p.Read = l.Items
		} else {
			p.Write = l.Items
		}
	}
	return p, nil
}

// name is the given one or the file's.
func nameOf(h *frontmatter.Header, key, given string) (string, *Fault) {
	if given == "" {
		given = stem(h.File)
	}
	if !goodName(given) {
		return "", h.At(key, "the name is not 1 to 64 letters, digits, blanks and . _ - that begin with a letter or digit")
	}
	return given, nil
}

func trustOf(h *frontmatter.Header, key, given string) (core.Trust, *Fault) {
	if given == "" && !h.Has(key) {
		return core.Stranger, nil
	}
	t, err := core.ParseTrust(given)
	if err != nil {
		return core.Stranger, h.At(key, "the trust level is not one of sandboxed, vault, full")
	}
	return t, nil
}

// stem returns a file's name without directory and ending.
func stem(file string) string { return strings.TrimSuffix(path.Base(file), ".md") }

// parseSkill reads a skill's file.
func parseSkill(file, text string) (Skill, *Fault) {
	h, body, fault := frontmatter.Split(file, text)
	if fault != nil {
		return Skill{}, fault
	}
	var f struct {
		Name        string
		Description string
		Trust       string `yaml:"trust_level"`
	}
	if fault = h.Decode(&f); fault == nil {
		fault = h.NotNull("trust_level")
	}
	if fault != nil {
		return Skill{}, fault
	}
	s := Skill{Description: strings.TrimSpace(f.Description), Body: body, File: file}
	if s.Name, fault = nameOf(h, "name", f.Name); fault != nil {
		return Skill{}, fault
	}
	if s.Least, fault = trustOf(h, "trust_level", f.Trust); fault != nil {
		return Skill{}, fault
	}
	if s.Least == core.Stranger {
		s.Least = core.Vault
	}
	switch {
	case s.Description == "":
		return Skill{}, h.At("description", "a skill needs a description: by it a model sees when to use it")
	case body == "":
		return Skill{}, h.At("name", "the skill is empty: its instructions belong below the frontmatter")
	}
	return s, nil
}

// parseWorkspace reads a workspace's config.yaml.
func parseWorkspace(file, text string) (Workspace, *Fault) {
	h, fault := frontmatter.Read(file, strings.TrimPrefix(text, "\ufeff"), 0)
	if fault != nil {
		return Workspace{}, fault
	}
	var f struct {
		Name             string
		Description      string
		Trust            string `yaml:"trust_level"`
		WorkingDirectory string `yaml:"working_directory"`
		Model            string
		Agent            string
	}
	if fault = h.Decode(&f); fault == nil {
		fault = h.NotNull("trust_level", "working_directory", "model", "agent")
	}
	if fault != nil {
		return Workspace{}, fault
	}
	w := Workspace{
		Slug: path.Base(path.Dir(file)), Name: strings.TrimSpace(f.Name), Description: strings.TrimSpace(f.Description),
		WorkingDirectory: f.WorkingDirectory, Model: f.Model, Agent: f.Agent,
	}
	if w.Trust, fault = trustOf(h, "trust_level", f.Trust); fault != nil {
		return Workspace{}, fault
	}
	if strings.ContainsRune(w.WorkingDirectory, 0) || slices.Contains(strings.Split(w.WorkingDirectory, "/"), "..") {
		return Workspace{}, h.At("working_directory", "the working directory holds .. or a NUL character")
	}
	return w, nil
}
