package commands

import (
	"context"
	"log/slog"
	"os"

	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/cmd/gatehouse/doctor"
	"gatehouse/cmd/gatehouse/fleet"
	"gatehouse/cmd/gatehouse/isolation"
	"gatehouse/cmd/gatehouse/models"
	"gatehouse/cmd/gatehouse/setup"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/llm/registry"
	"gatehouse/core/sandbox"
	"gatehouse/core/store"
)

// A Doctor checks the gateway and its surroundings.
type Doctor struct {
	JSON bool `xor:"form" help:"As JSON."`
	Live bool `xor:"form" help:"Only ask the running gateway whether it works, for health checks; quiet when it does."`
}

func (c *Doctor) Run(p *console.Process) error {
	if c.Live {
		cfg, err := configs.Load()
		if err != nil {
			return err
		}
		return doctor.Alive(p.Context, cfg)
	}
	patient := doctor.Subject{Clock: core.System{}, Newest: store.Newest()}
	if file := setup.File(); p.EnvFile == "" && file != "" {
		if _, err := os.Stat(file); err == nil {
			patient.Unread = file
		}
	}
	patient.Veil = sandbox.ProbeVeil
	patient.Config, patient.Fault = configs.LoadAll()
	if self, err := os.Executable(); err == nil {
		patient.Sandbox = func() []sandbox.Backend { return isolation.Probe(patient.Config, self) }
	}
	if patient.Fault == nil {
		if err := c.reach(p, &patient); err != nil {
			return err
		}
	}
	if !doctor.Run(p.Context, p.Stdout, patient, c.JSON) {
		if patient.Fault != nil {
			return console.ErrReportedUsage
		}
		return console.ErrReported
	}
	return nil
}

// reach gives the doctor its ways to platform, provider and server.
func (c *Doctor) reach(p *console.Process, patient *doctor.Subject) error {
	patient.Settled = Settle(p.Context, patient.Config)
	patient.Config = patient.Settled.Config
	cfg := patient.Config
	dir, err := control.Dir(cfg.VaultPath)
	if err != nil {
		return err
	}
	gateway, limits := control.Dial(dir), "/control/limits"
	patient.Serving = func(ctx context.Context) bool { return gateway.Get(ctx, limits, nil) == nil }
	patient.Limits = func(ctx context.Context) string {
		var r control.Limits
		if gateway.Get(ctx, limits, &r) != nil {
			return ""
		}
		return r.Text
	}
	patient.Servers = func(ctx context.Context) (list []control.Server) {
		if gateway.Get(ctx, "/control/servers", &list) != nil {
			return nil
		}
		return list
	}
	patient.Test = fleet.Test
	patient.ModelFaults = func(agents *agent.Agents) (lines []string) {
		for _, f := range models.Faults(cfg, agents) {
			lines = append(lines, oneLine(f))
		}
		return lines
	}
	m, err := models.New(cfg, registry.Options{Clock: core.System{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	patient.Model = m.Check
	return nil
}
