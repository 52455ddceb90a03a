package models

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/live"
	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/registry"
)

// tryTime bounds the test call to a model that was named in the panel.
const tryTime = 20 * time.Second

// modelSettings are the settings that name models.
var modelSettings = []string{"MODEL", "MODEL_FALLBACKS", "GUEST_MODEL", "TITLE_MODEL"}

// A Trial changes which models answer. A model that a change brings in must
// answer a test call first, so that a typo does not leave users without one.
type Trial struct {
	Settings *live.Settings
	Registry *registry.Registry
	Options  registry.Options
	Call     func(ctx context.Context, name string, m llm.Model) error // the test call
	Log      *slog.Logger
}

// Try makes a test call to each model that edit would bring in and returns
// their names. values are the settings that edit changes, by name.
func (m *Trial) Try(ctx context.Context, edit func(*configs.Changes), values map[string]string) (tried []string, err error) {
	if !slices.ContainsFunc(modelSettings, func(name string) bool { _, ok := values[name]; return ok }) {
		return nil, nil
	}
	next, err := m.Settings.Try(ctx, edit)
	if err != nil {
		return nil, err
	}
	for _, n := range m.newNames(m.Settings.Now(), next) {
		if err := m.try(ctx, next, n); err != nil {
			return nil, err
		}
		tried = append(tried, n.model)
	}
	return tried, nil
}

func (m *Trial) try(ctx context.Context, cfg *configs.Config, n namedModel) error {
	if registry.Local(n.model) {
		return nil
	}
	alone := Config(cfg)
	alone.Model, alone.Fallbacks, alone.Guest, alone.Title = n.model, nil, "", ""
	built, err := registry.New(alone, m.Options)
	if err == nil {
		defer built.Close()
		tryCtx, cancel := context.WithTimeout(ctx, tryTime)
		defer cancel()
		err = m.Call(tryCtx, n.model, built.First)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case core.KindOf(err) == core.Other:
		m.Log.Warn("a model that was named in the panel", "model", n.model, "err", err)
		return core.Errorf(core.Invalid, "%s: %s does not answer; see the log", n.setting, n.model)
	}
	return core.Errorf(core.Invalid, "%s: %s", n.setting, core.TextOf(err))
}

// Next returns the models of next, nil where they are those of now. Conflict:
// next names a model that is not in tried, because another change was made
// since. It makes no call.
func (m *Trial) Next(now, next *configs.Config, tried []string) (*registry.Models, error) {
	for _, n := range m.newNames(now, next) {
		if !slices.Contains(tried, n.model) {
			return nil, core.Errorf(core.Conflict, "%s: the models were changed concurrently; reload the page", n.setting)
		}
	}
	if now.Model == next.Model && slices.Equal(now.ModelFallbacks, next.ModelFallbacks) && now.GuestModel == next.GuestModel && now.TitleModel == next.TitleModel {
		return nil, nil
	}
	return registry.New(Config(next), m.Options)
}

// A namedModel is a model with the setting that names it.
type namedModel struct{ setting, model string }

// newNames returns the models that next names and now does not, in the order of
// modelSettings.
func (m *Trial) newNames(now, next *configs.Config) (list []namedModel) {
	known := []string{""}
	for _, names := range m.named(now) {
		known = append(known, names...)
	}
	for _, setting := range modelSettings {
		for _, name := range m.named(next)[setting] {
			if !slices.Contains(known, name) {
				known = append(known, name)
				list = append(list, namedModel{setting, name})
			}
		}
	}
	return list
}

// named returns the models that cfg names, by setting.
func (m *Trial) named(cfg *configs.Config) map[string][]string {
	return map[string][]string{"MODEL": {Config(cfg).First()}, "MODEL_FALLBACKS": cfg.ModelFallbacks, "GUEST_MODEL": {cfg.GuestModel}, "TITLE_MODEL": {cfg.TitleModel}}
}
