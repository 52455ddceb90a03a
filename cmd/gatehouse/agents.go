package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/vault"
)

// agentsCmd works on the vault's files; a running gateway sees them change.
type agentsCmd struct {
	List agentsListCmd `cmd:"" help:"List agents, skills and workspaces of the vault, and what is wrong with their files."`
	Add  agentsAddCmd  `cmd:"" help:"Copy an agent that comes with the program into the vault."`
}

type agentsListCmd struct{}

func (c *agentsListCmd) Run(p *process) error {
	cfg, err := configs.Load()
	if err != nil {
		return err
	}
	if _, err := os.Stat(cfg.VaultPath); err != nil {
		return core.Errorf(core.NotFound, "there is no vault at %s", cfg.VaultPath)
	}
	v, err := vault.Open(cfg.VaultPath)
	if err != nil {
		return err
	}
	defer v.Close()
	listAgents(p.stdout, agent.New(v, agent.Options{Default: cfg.DefaultAgent}), cfg)
	return nil
}

func listAgents(out io.Writer, agents *agent.Agents, cfg *configs.Config) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(kind, name, about string) {
		fmt.Fprintf(w, "%s\t%s\t%s\n", kind, oneLine(name), oneLine(about))
	}
	preset, _ := agents.Choose("")
	for _, a := range agents.List() {
		about := a.Description
		if a.Name == preset.Name {
			about += " (answers where nobody is named)"
		}
		row("agent", a.Name, about)
	}
	for _, s := range agents.Skills(core.Full) {
		row("skill", s.Name, s.Description)
	}
	for _, s := range agents.Workspaces() {
		row("workspace", s.Slug, s.Description)
	}
	_ = w.Flush()
	for _, f := range agents.Faults() { // no columns: a long fault would push those above apart
		fmt.Fprintf(out, "broken     %s\n", oneLine(f.String()))
	}
	for _, f := range modelFaults(cfg, agents) {
		fmt.Fprintf(out, "no model   %s\n", oneLine(f))
	}
	fmt.Fprintf(out, "\nAgents to begin with, for 'gatehouse agents add': %s\n", strings.Join(agentsToAdd(), ", "))
}

// oneLine is at most 200 characters of text, fit for a terminal.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text)
	return core.CutRunes(strings.Join(strings.Fields(text), " "), 200)
}

// agentsToAdd are the names of those that come with the program.
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
	Name string `arg:"" name:"name" help:"The agent's name; 'gatehouse agents list' tells them."`
}

func (c *agentsAddCmd) Run(p *process) error {
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
	fmt.Fprintf(p.stdout, "%s is in the vault now: change it as you like.\nThe owner has it answer in a chat with /agent %s; GATEHOUSE_DEFAULT_AGENT=%s has it answer where nobody is named.\n", file, c.Name, c.Name)
	return nil
}
