package commands

import (
	"fmt"
	"path"
	"text/tabwriter"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/schedule/daily"
	"gatehouse/core/vault"
)

// An agentsSamplesCmd lists the daily agents that come with the program, and copies one
// into the vault. A running gateway reads it within half a minute.
type agentsSamplesCmd struct {
	Add  string `placeholder:"NAME" help:"Copy this one into the vault."`
	JSON bool   `help:"As JSON."`
}

// A sampleLine is a sample as the list shows it.
type sampleLine struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Schedule    string `json:"schedule"`
	Path        string `json:"path"`
	Added       bool   `json:"added"` // the vault has a file of that name
}

func (c *agentsSamplesCmd) Run(p *console.Process) error {
	cfg, err := configs.Load()
	if err != nil {
		return err
	}
	if c.Add == "" { // a list makes no vault
		if err := p.CheckVault(cfg); err != nil {
			return err
		}
	}
	v, err := vault.Open(cfg.VaultPath)
	if err != nil {
		return err
	}
	defer v.Close()
	files := daily.NewFiles(v)
	if c.Add != "" {
		if err := files.AddSample(c.Add); err != nil {
			return err
		}
	}
	if c.Add != "" && !c.JSON {
		fmt.Fprintf(p.Stdout, "%s was added to the vault; you can edit it. It runs by its schedule from now on.\n", path.Join(daily.Dir, c.Add+".md"))
		return nil
	}
	list, err := sampleLines(files)
	if err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(p.Stdout, list)
	}
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	for _, s := range list {
		about := s.Description
		if s.Added {
			about += " (in the vault already)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, s.Schedule, oneLine(about))
	}
	return w.Flush()
}

func sampleLines(files *daily.Files) ([]sampleLine, error) {
	var list []sampleLine
	for _, name := range daily.Samples() {
		a, err := daily.Sample(name)
		if err != nil {
			return nil, err
		}
		_, err = files.Text(name)
		list = append(list, sampleLine{name, a.Description, a.Rule.String() + " " + a.Rule.Zone().String(), a.File, core.KindOf(err) != core.NotFound})
	}
	return list, nil
}
