package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/llm/registry"
)

// tryTime is how long a model that was named in the panel may take for a word.
const tryTime = 20 * time.Second

// modelSettings are the settings that name models.
var modelSettings = []string{"MODEL", "MODEL_FALLBACKS", "GUEST_MODEL", "TITLE_MODEL"}

// modelsNamed are the models that cfg names, by setting.
func modelsNamed(cfg *configs.Config) map[string][]string {
	return map[string][]string{"MODEL": {modelConfig(cfg).First()}, "MODEL_FALLBACKS": cfg.ModelFallbacks, "GUEST_MODEL": {cfg.GuestModel}, "TITLE_MODEL": {cfg.TitleModel}}
}

// newNames are the models that next names and now does not, with the setting
// that names them, in the order of modelSettings.
func newNames(now, next *configs.Config) (list []namedModel) {
	known := []string{""}
	for _, names := range modelsNamed(now) {
		known = append(known, names...)
	}
	for _, setting := range modelSettings {
		for _, name := range modelsNamed(next)[setting] {
			if !slices.Contains(known, name) {
				known = append(known, name)
				list = append(list, namedModel{setting, name})
			}
		}
	}
	return list
}

// A namedModel is a model with the setting that names it.
type namedModel struct{ setting, model string }

// tryModels asks each model that a change would bring in for a word, so that a
// slip does not leave everybody without an answer; it gives those that answered.
func (a *app) tryModels(ctx context.Context, edit func(*configs.Changes), values map[string]string) (tried []string, err error) {
	if !slices.ContainsFunc(modelSettings, func(name string) bool { _, ok := values[name]; return ok }) {
		return nil, nil
	}
	ch, err := readChanges(ctx, a.db)
	if err != nil {
		return nil, err
	}
	edit(&ch)
	next, err := a.cfg.With(ch)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "%s", err.Error()) // configs' words hold no secret
	}
	for _, n := range newNames(a.now(), next) {
		if err := a.tryNamed(ctx, next, n); err != nil {
			return nil, err
		}
		tried = append(tried, n.model)
	}
	return tried, nil
}

func (a *app) tryNamed(ctx context.Context, cfg *configs.Config, n namedModel) error {
	if registry.Local(n.model) {
		return nil
	}
	alone := modelConfig(cfg)
	alone.Model, alone.Fallbacks, alone.Guest, alone.Title = n.model, nil, "", ""
	m, err := registry.New(alone, registry.Options{Search: a.search, Clock: a.clock, Log: a.log})
	if err == nil {
		defer m.Close()
		tryCtx, cancel := context.WithTimeout(ctx, tryTime)
		defer cancel()
		_, err = a.tryModel(tryCtx, n.model, m.First)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case core.KindOf(err) == core.Other:
		a.log.Warn("a model that was named in the panel", "model", n.model, "err", err)
		return core.Errorf(core.Invalid, "%s: %s does not answer; the log says more", n.setting, n.model)
	}
	return core.Errorf(core.Invalid, "%s: %s", n.setting, core.TextOf(err))
}

// allTried refuses a change with a model that nobody has tried: the settings
// were changed by somebody else in between.
func (a *app) allTried(next *configs.Config, tried []string) error {
	for _, n := range newNames(a.now(), next) {
		if !slices.Contains(tried, n.model) {
			return core.Errorf(core.Conflict, "%s: somebody has changed the models meanwhile; look again", n.setting)
		}
	}
	return nil
}

// modelsFor are the models of next; nil where they are those of now. Nobody is asked.
func (a *app) modelsFor(next *configs.Config) (*registry.Models, error) {
	now := a.now()
	if now.Model == next.Model && slices.Equal(now.ModelFallbacks, next.ModelFallbacks) && now.GuestModel == next.GuestModel && now.TitleModel == next.TitleModel {
		return nil, nil
	}
	return newModels(next, a.search, a.clock, a.log)
}

// speakBy has m answer from the next turn on; nil changes nothing. Turns go on
// with those that they began with.
func (a *app) speakBy(m *registry.Models) {
	if m == nil {
		return
	}
	a.know(m.Names)
	a.models.Replace(m)
}

// agentThere refuses a DEFAULT_AGENT that is changed to one that can't answer.
func (a *app) agentThere(next *configs.Config, values map[string]string) error {
	if _, set := values["DEFAULT_AGENT"]; !set || next.DefaultAgent == "" {
		return nil
	}
	if _, warnings := a.agents.Choose(next.DefaultAgent); len(warnings) > 0 {
		return core.Errorf(core.Invalid, "DEFAULT_AGENT: no agent %s can answer; there is %s", core.CleanName(next.DefaultAgent), strings.Join(a.agents.Names(), ", "))
	}
	return nil
}
