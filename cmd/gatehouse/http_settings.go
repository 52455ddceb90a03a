package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"gatehouse/admin"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/store"
)

// logLevelKey is where the level that the panel has set is kept.
const logLevelKey = "setting:LOG_LEVEL"

// settingsView is the configuration as the panel shows it.
type settingsView struct{ a *app }

func (v settingsView) Settings() (list []admin.Setting) {
	changed := map[string]configs.Setting{} // as many as settings
	for _, s := range v.a.now().Redacted() {
		if s.Source == configs.SourcePanel {
			changed[s.Name] = s
		}
	}
	for _, s := range v.a.cfg.Redacted() {
		var configured string
		if c, ok := changed[s.Name]; ok {
			configured, s = s.Value, c
		}
		x := admin.Setting{Name: s.Name, Value: s.Value, Source: s.Source, About: s.About, Configured: configured}
		if now, ok := v.a.logLevel(); ok && s.Name == configs.Prefix+"_LOG_LEVEL" && now != v.a.cfg.LogLevel.Level() {
			x.Value, x.Source = strings.ToLower(now.String()), "panel"
		}
		list = append(list, x)
	}
	return list
}

func (v settingsView) SetLogLevel(ctx context.Context, level string, by core.Actor) error {
	err := v.a.db.Tx(ctx, func(tx *store.Tx) error {
		if err := store.Audit(ctx, tx, by, "setting.change", "LOG_LEVEL", map[string]any{"value": level}); err != nil {
			return err
		}
		if level == "" {
			return store.DeleteMetadata(ctx, tx, logLevelKey)
		}
		return store.SetMetadata(ctx, tx, logLevelKey, level)
	})
	if err != nil {
		return err
	}
	return v.a.restoreLogLevel(ctx)
}

// logLevel is the level now; false where the log is not the program's own (tests).
func (a *app) logLevel() (slog.Level, bool) {
	h, ok := a.log.Handler().(leveled)
	if !ok {
		return 0, false
	}
	return h.level.Level(), true
}

// restoreLogLevel has the log at the level that the panel has set, else at the
// configured one.
func (a *app) restoreLogLevel(ctx context.Context) error {
	h, ok := a.log.Handler().(leveled)
	if !ok {
		return nil
	}
	level := a.cfg.LogLevel.Level()
	value, set, err := store.Metadata(ctx, a.db, logLevelKey)
	if err != nil {
		return fmt.Errorf("log level: %w", err)
	}
	if set {
		if err := level.UnmarshalText([]byte(value)); err != nil {
			a.log.Warn("the stored log level can't be read; the configured one holds", "err", err)
			level = a.cfg.LogLevel.Level()
		}
	}
	h.level.Set(level)
	return nil
}
