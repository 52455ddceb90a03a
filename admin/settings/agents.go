package settings

import (
	"cmp"
	"html/template"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"gatehouse/admin/markdown"
	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/diff"
	"gatehouse/core/tool/mcp"
	"gatehouse/web/auth"
)

const (
	agentsPath = "/admin/agents"
	editPath   = "/admin/agents/edit"
	// maxEdit bounds the editor's form: a file of 100 KB, encoded.
	maxEdit = 400 << 10
	// maxListed bounds each list of the page.
	maxListed = 100
	// maxFault bounds what is shown of a server's last error.
	maxFault = 300
)

type agentsBody struct {
	Lede    string
	Faults  []agent.Fault
	Notes   []agent.Fault
	Agents  []agentRow
	Skills  []agent.Skill
	Spaces  []agent.Workspace
	Servers []serverRow
	HasMCP  bool
}

type agentRow struct {
	agent.Agent
	Default bool // answers where a session names no agent
	Warning string
}

// Offers returns the tools that the agent allows itself.
func (a agentRow) Offers() string {
	switch {
	case a.Tools == nil && a.Servers == nil:
		return "all that the sender is offered"
	case len(a.Tools) == 0 && len(a.Servers) == 0:
		return "none"
	}
	words := slices.Clone(a.Tools)
	for _, s := range a.Servers {
		words = append(words, "all of "+s)
	}
	return strings.Join(words, ", ")
}

type serverRow struct {
	mcp.Health
	Tone, Word string
	Try        string // when it is tried again
}

// nextTry returns when a failing server is tried again, for the page.
func nextTry(h mcp.Health, now time.Time) string {
	switch {
	case h.State != mcp.Failing:
		return ""
	case h.Next.IsZero():
		return "Trying again now"
	}
	return "Next try in " + page.Span(max(0, h.Next.Sub(now)))
}

func (p *agentPages) agentsPage(w http.ResponseWriter, r *http.Request) error {
	b := agentsBody{Faults: page.Head(p.o.Library.Faults(), maxListed), Notes: page.Head(p.o.Library.Notes(), maxListed), Skills: page.Head(p.o.Library.AllSkills(), maxListed), Spaces: page.Head(p.o.Library.Workspaces(), maxListed)}
	chosen, _ := p.o.Agents.Choose("")
	for _, a := range page.Head(p.o.Agents.List(), maxListed) {
		b.Agents = append(b.Agents, agentRow{Agent: a, Default: a.Name == chosen.Name})
	}
	ill := 0
	if p.o.Servers != nil {
		b.HasMCP = true
		for _, h := range p.o.Servers() {
			row := serverRow{Health: h, Try: nextTry(h, p.frame.Clock.Now())}
			row.Tone, row.Word = serverState(h.State)
			row.Error = core.CutRunes(h.Error, maxFault)
			if row.Tone == "bad" {
				ill++
			}
			b.Servers = append(b.Servers, row)
		}
	}
	b.Lede = agentsLede(len(p.o.Agents.List()), len(p.o.Library.Faults()), ill, len(p.o.Library.Notes()))
	return p.frame.Show(w, r, http.StatusOK, "agents", page.View{Title: "Agents", Every: 10, Body: b})
}

func agentsLede(agents, faults, ill, notes int) string {
	var wants []string
	if faults > 0 {
		wants = append(wants, page.Count(faults, "file can’t be used", "files can’t be used"))
	}
	if ill > 0 {
		wants = append(wants, page.Count(ill, "MCP server can’t be used", "MCP servers can’t be used"))
	}
	if len(wants) > 0 {
		return page.Sentence(strings.Join(wants, ", "))
	}
	state := "every file is fine."
	if notes > 0 {
		state = page.Count(notes, "warning", "warnings") + " below."
	}
	return page.Count(agents, "agent answers", "agents can answer") + "; " + state
}

// serverState returns the colour and the label of the state of an MCP server.
func serverState(state string) (tone, word string) {
	switch state {
	case mcp.Ready:
		return "good", "Connected"
	case mcp.Starting:
		return "warn", "Connecting"
	case mcp.Failing:
		return "bad", "Failing"
	case mcp.Mistaken:
		return "bad", "Mistaken entry"
	}
	return "idle", "Not in use"
}

// ---- the editor

type editBody struct {
	CSRF    string
	File    string
	Kind    string
	Version string
	Text    string
	New     bool
	Fault   *agent.Fault  // of the text below
	Asked   bool          // Preview was pressed
	Facts   []page.Fact   // what the text would be
	Notes   []agent.Fault // what loading it would warn of
	Changed bool
	Diff    page.DiffView

	Rendered template.HTML // the text below, of a file in Markdown
	View     bool          // it is shown first
}

func (p *agentPages) editPage(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	file := q.Get("file")
	if file == "" {
		var err error
		if file, err = agent.NewFile(q.Get("kind"), q.Get("name")); err != nil {
			p.frame.SetFlash(w, r, page.Flash{Kind: "bad", Text: page.Sentence(core.TextOf(err))})
			return p.frame.Away(w, r, agentsPath)
		}
	}
	text, version, err := p.o.Drafts.Text(file)
	if err != nil {
		return err
	}
	b := editBody{File: file, Version: version, Text: text, New: version == "", View: version != "" && q.Get("view") == "rendered"}
	if b.New {
		b.Text = starter(agent.KindOf(file))
	} else {
		d := p.o.Drafts.Try(file, text)
		b.Fault, b.Notes = d.Fault, d.Notes
	}
	return p.showEdit(w, r, http.StatusOK, b)
}

// starter returns the text of a new file.
func starter(kind string) string {
	switch kind {
	case agent.KindSkill:
		return "---\ndescription: When to use this skill, in one sentence\n---\n\nWhat to do, step by step.\n"
	case agent.KindWorkspace:
		return "name: A name for people\ndescription: What sessions in here are about\n"
	}
	return "---\ndescription: What this agent is for, in one sentence\n---\n\nYou are …\n"
}

// edit previews a change, or saves it.
func (p *agentPages) edit(w http.ResponseWriter, r *http.Request) error {
	b := editBody{File: r.PostFormValue("file"), Version: r.PostFormValue("version"), Asked: true,
		Text: strings.ReplaceAll(r.PostFormValue("text"), "\r\n", "\n")}
	was, version, err := p.o.Drafts.Text(b.File)
	if err != nil {
		return err
	}
	d := p.o.Drafts.Try(b.File, b.Text)
	b.New, b.Fault, b.Facts, b.Notes = b.Version == "", d.Fault, draftFacts(d), d.Notes
	b.Changed, b.Diff = was != b.Text, page.NewDiff("diff-rest", "What changes", diff.Of(was, b.Text))
	if r.PostFormValue("do") != "save" {
		return p.showEdit(w, r, http.StatusOK, b)
	}
	who, _ := page.Principal(r)
	if err = mayAllow(who, version != "", p.o.Drafts.Try(b.File, was), d); err == nil {
		err = p.o.SaveAgent(r.Context(), b.File, b.Version, b.Text, who.Actor())
	}
	if err != nil {
		status, ok := page.Refusal(w, err)
		if !ok {
			return err
		}
		if b.Fault == nil {
			b.Fault = &agent.Fault{File: b.File, Text: core.TextOf(err)}
		}
		return p.showEdit(w, r, status, b)
	}
	p.frame.SetFlash(w, r, page.Good(b.File+" is saved. It holds from the next turn on."))
	return p.frame.Away(w, r, agentsPath)
}

// mayAllow refuses accounts of others than the owner to change what an agent does unasked, and what
// limits an agent or a workspace that there is: both do so in the owner's turns, at the owner's trust,
// in trust mode too. The limits of a file with a fault are unknown. Sessions of a missing workspace are
// sandboxed, so a new one of others is.
func mayAllow(who auth.Principal, old bool, was, now agent.Draft) error {
	if who.User == core.Operator || now.Fault != nil {
		return nil
	}
	before, after := limits(now), limits(now)
	switch {
	case old && was.Fault != nil && now.Skill == nil:
		return core.Errorf(core.Denied, "only the owner can fix a file with a fault: its limits are unknown")
	case old:
		before = limits(was)
	case now.Agent != nil:
		before[0] = (*agent.Permissions)(nil)
	case now.Workspace != nil:
		before[0] = core.Sandboxed
	}
	switch {
	case reflect.DeepEqual(before, after):
		return nil
	case now.Workspace != nil:
		return core.Errorf(core.Denied, "only the owner can change what limits an existing workspace (trust_level, working_directory, agent), and make one without trust_level: sandboxed: the owner’s turns are in it, too")
	}
	return core.Errorf(core.Denied, "only the owner can change what an agent may do without asking (permissions, write_permissions) and the name and what limits an existing agent (tools, mcpServers, trust_level): it acts in the owner’s turns")
}

// limits returns what only the owner changes of a definition, none of a skill.
func limits(d agent.Draft) []any {
	switch {
	case d.Agent != nil:
		return []any{d.Agent.Permissions, d.Agent.Tools, d.Agent.Servers, d.Agent.Trust, d.Agent.Name}
	case d.Workspace != nil:
		return []any{d.Workspace.Trust, d.Workspace.WorkingDirectory, d.Workspace.Agent}
	}
	return nil
}

func (p *agentPages) showEdit(w http.ResponseWriter, r *http.Request, status int, b editBody) error {
	b.CSRF, b.Kind = page.Token(r), agent.KindOf(b.File)
	if b.Kind != agent.KindWorkspace {
		b.Rendered = rendered(b.Text)
	}
	return p.frame.Show(w, r, status, "edit", page.View{Title: "Edit " + b.File, Menu: nil, In: "agents", Still: true, Body: b})
}

// rendered returns a file's text, its frontmatter as code.
func rendered(text string) template.HTML {
	if rest, ok := strings.CutPrefix(text, "---\n"); ok {
		if front, body, ok := strings.Cut(rest, "\n---"); ok {
			fence := "```"
			for strings.Contains(front, fence) {
				fence += "`"
			}
			text = fence + "yaml\n" + front + "\n" + fence + "\n" + strings.TrimPrefix(body, "\n")
		}
	}
	return markdown.HTML(text)
}

// draftFacts returns what a text defines.
func draftFacts(d agent.Draft) (facts []page.Fact) {
	add := func(what, is string) {
		if is != "" {
			facts = append(facts, page.Fact{What: what, Is: is})
		}
	}
	trust := func(t core.Trust) string {
		if t == core.Stranger {
			return ""
		}
		return t.String()
	}
	switch {
	case d.Fault != nil:
	case d.Agent != nil:
		a := d.Agent
		add("Name", a.Name)
		add("Description", a.Description)
		add("Model", cmp.Or(a.Model, "as in Settings"))
		add("Tools", agentRow{Agent: *a}.Offers())
		add("Trust at most", cmp.Or(trust(a.Trust), "the sender’s own"))
		add("Unasked", unasked(a.Permissions))
		add("Files in its prompt", strings.Join(a.Context.Include, ", "))
	case d.Skill != nil:
		add("Name", d.Skill.Name)
		add("Description", d.Skill.Description)
		add("Chosen by trust", d.Skill.Least.String())
	case d.Workspace != nil:
		s := d.Workspace
		add("Name", s.Name)
		add("Description", s.Description)
		add("Agent", s.Agent)
		add("Model", s.Model)
		add("Folder", s.WorkingDirectory)
		add("Trust at most", trust(s.Trust))
	}
	return facts
}

// unasked returns what an agent may do without approval in turns of the owner.
func unasked(p *agent.Permissions) string {
	if p == nil {
		return "as set in the conversation"
	}
	var parts []string
	for _, k := range []struct {
		word  string
		globs []string
	}{{"read", p.Read}, {"write", p.Write}} {
		if len(k.globs) > 0 {
			parts = append(parts, k.word+" "+strings.Join(k.globs, ", "))
		}
	}
	switch {
	case p.Bash == nil:
	case p.Bash.All:
		parts = append(parts, "run any command")
	case len(p.Bash.Patterns) > 0:
		parts = append(parts, "run "+strings.Join(p.Bash.Patterns, ", "))
	}
	return cmp.Or(strings.Join(parts, "; "), "nothing")
}

// unwell returns how many files and MCP servers can't be used.
func (p *agentPages) unwell() int {
	n := len(p.o.Library.Faults())
	if p.o.Servers != nil {
		for _, h := range p.o.Servers() {
			if h.State == mcp.Failing || h.State == mcp.Mistaken {
				n++
			}
		}
	}
	return n
}

// editURL returns the address of the editor of a file.
func editURL(file string) string { return editPath + "?" + url.Values{"file": {file}}.Encode() }
