package main

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/logs"
	"gatehouse/configs"
	"gatehouse/configs/live"
	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store/storetest"
)

func TestTheLogLevelOfThePanelAppliesAtOnceAndAfterARestart(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.Open(t, coretest.NewClock(time.Time{}))
	start := func() *app {
		cfg := configs.Default()
		a := &app{cfg: cfg, db: db, log: logs.New(io.Discard, cfg, true)}
		var err error
		if a.settings, err = live.Open(ctx, cfg, db, a.log, logs.LevelOf(a.log)); err != nil {
			t.Fatal(err)
		}
		return a
	}
	source := func(a *app) (value, from string) {
		for _, s := range (settingsView{a}).Settings() {
			if s.Name == "GATEHOUSE_LOG_LEVEL" {
				return s.Value, s.Source
			}
		}
		return "", ""
	}
	a := start()
	if a.log.Enabled(ctx, slog.LevelDebug) {
		t.Fatal("debug is said before anybody asked for it")
	}
	if err := (settingsView{a}).SetLogLevel(ctx, "debug", core.Actor{User: core.Operator, Via: "panel"}); err != nil {
		t.Fatal(err)
	}
	if !a.log.Enabled(ctx, slog.LevelDebug) {
		t.Error("the level does not hold at once")
	}
	a = start()
	if value, from := source(a); !a.log.Enabled(ctx, slog.LevelDebug) || value != "debug" || from != "panel" {
		t.Errorf("after a restart it is %q from %q", value, from)
	}
	if err := (settingsView{a}).SetLogLevel(ctx, "", core.Actor{}); err != nil {
		t.Fatal(err)
	}
	if value, from := source(a); a.log.Enabled(ctx, slog.LevelDebug) || value != "info" || from != configs.SourceDefault {
		t.Errorf("taken back it is %q from %q", value, from)
	}
}
