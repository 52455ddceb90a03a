// Package commands is the command line but for the commands that run the
// gateway and those in access: each reads its flags, makes its requests of the
// gateway, and prints the answers.
package commands

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/models"
	"gatehouse/configs"
	"gatehouse/configs/live"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/vault"
)

// An Agents lists and adds agents. It works on the files of the vault, which a
// running gateway reads when they change.
type Agents struct {
	List    agentsListCmd    `cmd:"" help:"List agents, skills and workspaces of the vault, and what is wrong with their files."`
	Add     agentsAddCmd     `cmd:"" help:"Copy an agent that comes with the program into the vault."`
	Samples agentsSamplesCmd `cmd:"" help:"List the daily agents that come with the program, or copy one into the vault."`
}

type agentsListCmd struct {
	JSON bool `help:"As JSON."`
}

func (c *agentsListCmd) Run(p *console.Process) error {
	cfg, err := configs.Load()
	if err != nil {
		return err
	}
	if err := p.CheckVault(cfg); err != nil {
		return err
	}
	v, err := vault.Open(cfg.VaultPath)
	if err != nil {
		return err
	}
	defer v.Close()
	now := Settle(p.Context, cfg)
	if now.Fault != nil {
		fmt.Fprintf(p.Stderr, "The panel's settings cannot be read, so only the environment is used: %s\n", oneLine(now.Fault.Error()))
	}
	preset, _ := now.Value("DEFAULT_AGENT")
	list := listAgents(agent.New(v, agent.Options{Default: preset}), now)
	if c.JSON {
		return console.PrintJSON(p.Stdout, list)
	}
	list.print(p.Stdout)
	return nil
}

// An agentList is the output of "agents list".
type agentList struct {
	Agents     []agentLine `json:"agents"`
	Skills     []agentLine `json:"skills"`
	Workspaces []agentLine `json:"workspaces"`
	Broken     []string    `json:"broken"`   // files that can't be used
	Warnings   []string    `json:"warnings"` // on agents' files that are used
	NoModel    []string    `json:"no_model"` // agents and workspaces with a missing model
	Default    setValue    `json:"default_agent"`
	Model      setValue    `json:"model"`
}

type agentLine struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// A setValue is a setting as it holds, with where it comes from.
type setValue struct {
	Value  string `json:"value"`
	Source string `json:"source"`
}

func listAgents(agents *agent.Agents, now live.View) agentList {
	l := agentList{Agents: []agentLine{}, Skills: []agentLine{}, Workspaces: []agentLine{}, Broken: []string{}, Warnings: []string{}, NoModel: []string{}}
	for _, a := range agents.List() {
		l.Agents = append(l.Agents, agentLine{a.Name, a.Description})
	}
	for _, s := range agents.Skills(core.Full) {
		l.Skills = append(l.Skills, agentLine{s.Name, s.Description})
	}
	for _, s := range agents.Workspaces() {
		l.Workspaces = append(l.Workspaces, agentLine{s.Slug, s.Description})
	}
	for _, f := range agents.Faults() {
		l.Broken = append(l.Broken, f.String())
	}
	for _, f := range agents.Notes() {
		l.Warnings = append(l.Warnings, f.String())
	}
	l.NoModel = append(l.NoModel, noModel(now, agents)...)
	preset, _ := agents.Choose("")
	_, source := now.Value("DEFAULT_AGENT")
	l.Default = setValue{preset.Name, source}
	l.Model.Value, l.Model.Source = now.Value("MODEL")
	return l
}

func (l agentList) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, part := range []struct {
		kind  string
		lines []agentLine
	}{{"agent", l.Agents}, {"skill", l.Skills}, {"workspace", l.Workspaces}} {
		for _, x := range part.lines {
			about := x.Description
			if part.kind == "agent" && x.Name == l.Default.Value {
				about += " (answers where no agent is named)"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", part.kind, oneLine(x.Name), oneLine(about))
		}
	}
	_ = w.Flush()
	for _, f := range l.Broken { // no columns: a long fault would push those above apart
		fmt.Fprintf(out, "broken     %s\n", oneLine(f))
	}
	for _, f := range l.Warnings {
		fmt.Fprintf(out, "warning    %s\n", oneLine(f))
	}
	for _, f := range l.NoModel {
		fmt.Fprintf(out, "no model   %s\n", oneLine(f))
	}
	fmt.Fprintf(out, "\nWhere no agent is named, %s answers (DEFAULT_AGENT: %s).\n", oneLine(l.Default.Value), live.SourceText(l.Default.Source))
	if l.Model.Value != "" {
		fmt.Fprintf(out, "Agents that name no model use %s (MODEL: %s).\n", oneLine(l.Model.Value), live.SourceText(l.Model.Source))
	}
	fmt.Fprintf(out, "\nAgents to begin with, for 'gatehouse agents add': %s\n", strings.Join(agentsToAdd(), ", "))
}

// noModel returns the agents and workspaces with a missing model, as the
// gateway that runs reports them, else by the settings here.
func noModel(v live.View, agents *agent.Agents) []string {
	if v.Running != nil {
		return v.Running.NoModel
	}
	return models.Faults(v.Config, agents)
}

// oneLine returns at most 200 characters of text, fit for a terminal.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text)
	return core.CutRunes(strings.Join(strings.Fields(text), " "), 200)
}

// agentsToAdd returns the names of those that come with the program.
func agentsToAdd() (names []string) {
	files, _ := fs.Glob(configs.Agents(), "*.md") // the pattern is constant and valid
	for _, f := range files {
		if f != "README.md" {
			names = append(names, strings.TrimSuffix(f, ".md"))
		}
	}
	return names
}

type agentsAddCmd struct {
	Name string `arg:"" name:"name" help:"The agent's name; 'gatehouse agents list' shows them."`
}

func (c *agentsAddCmd) Run(p *console.Process) error {
	cfg, err := configs.Load()
	if err != nil {
		return err
	}
	if !slices.Contains(agentsToAdd(), c.Name) {
		return core.Errorf(core.NotFound, "no agent %q comes with the program; there is %s", core.CutRunes(c.Name, 64), strings.Join(agentsToAdd(), ", "))
	}
	text, err := fs.ReadFile(configs.Agents(), c.Name+".md")
	if err != nil {
		return err
	}
	v, err := vault.Open(cfg.VaultPath)
	if err != nil {
		return err
	}
	defer v.Close()
	file := path.Join(".parachute/agents", c.Name+".md")
	if _, err := v.Root().Lstat(file); err == nil {
		return core.Errorf(core.Conflict, "%s is there already", file)
	}
	if err := v.WriteFile(file, text); err != nil {
		return err
	}
	fmt.Fprintf(p.Stdout, "%s was added to the vault; you can edit it.\nThe owner selects it in a chat with /agent %s; GATEHOUSE_DEFAULT_AGENT=%s makes it the default.\n", file, c.Name, c.Name)
	return nil
}
