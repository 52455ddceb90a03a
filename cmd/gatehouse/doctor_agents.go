package main

import (
	"context"
	"fmt"
	"os"

	"gatehouse/configs/live"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/vault"
)

// doctorAgents reads the files of agents, skills and workspaces.
func doctorAgents(_ context.Context, p doctorPatient) []doctorCheck {
	if st, err := os.Stat(p.Config.VaultPath); err != nil || !st.IsDir() {
		return nil // doctorVault tells why; to open it would make it
	}
	v, err := vault.Open(p.Config.VaultPath)
	if err != nil {
		return nil
	}
	defer v.Close()
	agents := agent.New(v, agent.Options{Clock: p.Clock, Default: p.Config.DefaultAgent})
	var checks []doctorCheck
	for _, f := range agents.Faults() {
		checks = append(checks, doctorCheck{"agents", doctorWarn, f.String(), "mend the file; docs/agents.md lists every field"})
	}
	for _, f := range modelFaults(p.Config, agents) {
		checks = append(checks, doctorCheck{"agents", doctorWarn, oneLine(f), "name a configured model, or configure that one (" + live.WhereSet(p.Config, "MODEL") + ", " + live.WhereSet(p.Config, "MODEL_FALLBACKS") + ")"})
	}
	if name := p.Config.DefaultAgent; name != "" {
		if _, warnings := agents.Choose(""); len(warnings) > 0 {
			checks = append(checks, doctorCheck{"agents", doctorWarn, live.WhereSet(p.Config, "DEFAULT_AGENT") + ": " + warnings[0].Message,
				"set it to the name of a file in .parachute/agents, without .md"})
		}
	}
	if len(checks) > 0 {
		return checks
	}
	return []doctorCheck{{Name: "agents", State: doctorOK, Text: fmt.Sprintf("%s, %s, %s",
		counted(len(agents.List()), "agent"), counted(len(agents.Skills(core.Full)), "skill"), counted(len(agents.Workspaces()), "workspace"))}}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
