package commands

import (
	"context"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/cmd/gatehouse/doctor"
	"gatehouse/configs"
	"gatehouse/configs/live"
)

// Settle returns the settings of the gateway that runs on cfg's vault, or those
// that it would start with.
func Settle(ctx context.Context, cfg *configs.Config) live.View {
	return live.NewView(ctx, cfg, askSettings(ctx, cfg))
}

// askSettings returns the running gateway's settings; nil if none answers.
func askSettings(ctx context.Context, cfg *configs.Config) *live.Report {
	dir, err := control.Dir(cfg.VaultPath)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, doctor.LiveWait)
	defer cancel()
	var r live.Report
	if control.Dial(dir).Get(ctx, "/control/settings", &r) != nil {
		return nil // the database has the same
	}
	return &r
}
