package doctor

import (
	"context"
	"fmt"
	"os"

	"gatehouse/configs/live"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/vault"
)

// checkAgents reads the files of agents, skills and workspaces.
func checkAgents(_ context.Context, p Subject) []Finding {
	if st, err := os.Stat(p.Config.VaultPath); err != nil || !st.IsDir() {
		return nil // checkVault reports it; opening it would create it
	}
	v, err := vault.Open(p.Config.VaultPath)
	if err != nil {
		return nil
	}
	defer v.Close()
	agents := agent.New(v, agent.Options{Clock: p.Clock, Default: p.Config.DefaultAgent})
	var checks []Finding
	for _, f := range agents.Faults() {
		checks = append(checks, Finding{"agents", Warn, f.String(), "fix the file; docs/agents.md lists every field"})
	}
	for _, f := range agents.Notes() {
		checks = append(checks, Finding{"agents", Warn, f.String(), "change the line, or leave it: the agent works; docs/agents.md lists every field"})
	}
	var faults []string
	if p.ModelFaults != nil {
		faults = p.ModelFaults(agents)
	}
	for _, f := range faults {
		checks = append(checks, Finding{"agents", Warn, f, "name a configured model, or configure that one (" + live.WhereSet(p.Config, "MODEL") + ", " + live.WhereSet(p.Config, "MODEL_FALLBACKS") + ")"})
	}
	if name := p.Config.DefaultAgent; name != "" {
		if _, warnings := agents.Choose(""); len(warnings) > 0 {
			checks = append(checks, Finding{"agents", Warn, live.WhereSet(p.Config, "DEFAULT_AGENT") + ": " + warnings[0].Message,
				"set it to the name of a file in .parachute/agents, without .md"})
		}
	}
	if len(checks) > 0 {
		return checks
	}
	return []Finding{{Name: "agents", State: OK, Text: fmt.Sprintf("%s, %s, %s",
		core.Counted(len(agents.List()), "agent"), core.Counted(len(agents.Skills(core.Full)), "skill"), core.Counted(len(agents.Workspaces()), "workspace"))}}
}
