package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"gatehouse/admin/settings"
	"gatehouse/cmd/gatehouse/fleet"
	"gatehouse/cmd/gatehouse/models"
	"gatehouse/configs"
	"gatehouse/configs/live"
	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/registry"
	"gatehouse/core/usage"
)

func budgetsOf(c *configs.Config) usage.Budgets {
	return usage.Budgets{UserDay: usage.Budget(c.BudgetUserDay), BotDay: usage.Budget(c.BudgetBotDay), Day: usage.Budget(c.BudgetDay)}
}

// settingsView shows and changes settings in the panel.
type settingsView struct{ a *app }

func (v settingsView) Settings() (list []settings.Setting) {
	changed := map[string]configs.Setting{} // bounded by the settings
	for _, s := range v.a.settings.Now().Redacted() {
		if s.Source == configs.SourcePanel {
			changed[s.Name] = s
		}
	}
	for _, s := range v.a.cfg.Redacted() {
		var configured string
		if c, ok := changed[s.Name]; ok {
			configured, s = s.Value, c
		}
		x := settings.Setting{Name: s.Name, Value: s.Value, Source: s.Source, About: s.About, Configured: configured,
			Effect: v.a.cfg.Effect(strings.TrimPrefix(s.Name, configs.Prefix+"_"))}
		if now, ok := v.a.settings.LogLevel(); ok && s.Name == configs.Prefix+"_LOG_LEVEL" && now != v.a.cfg.LogLevel.Level() {
			x.Value, x.Source = strings.ToLower(now.String()), "panel"
		}
		list = append(list, x)
	}
	return list
}

func (v settingsView) SetLogLevel(ctx context.Context, level string, by core.Actor) error {
	return v.a.settings.SetLogLevel(ctx, level, by)
}

// Change gives settings these values, as the environment would hold them; the
// configured value takes a change away.
func (v settingsView) Change(ctx context.Context, values map[string]string, by core.Actor) error {
	configured := map[string]string{}
	for _, s := range v.a.cfg.Redacted() {
		configured[strings.TrimPrefix(s.Name, configs.Prefix+"_")] = s.Value
	}
	edit := func(ch *configs.Changes) {
		for name, value := range values {
			if ch.Settings[name] = value; value == configured[name] {
				delete(ch.Settings, name)
			}
		}
	}
	trial := models.Trial{
		Settings: v.a.settings, Options: v.a.modelOptions, Log: v.a.log,
		Call: func(ctx context.Context, name string, m llm.Model) error {
			_, err := v.a.spending.try(ctx, name, m)
			return err
		},
	}
	tried, err := trial.Try(ctx, edit, values)
	if err != nil {
		return err
	}
	err = v.a.settings.Change(ctx, by, live.Change{
		Subject: strings.Join(slices.Sorted(maps.Keys(values)), " "), Detail: map[string]any{"values": values}, Edit: edit,
		Prepare: func(now, next *configs.Config) (func(), error) {
			m, err := trial.Next(now, next, tried)
			if err = errors.Join(v.agentThere(next, values), err); err != nil {
				return nil, err
			}
			return func() { v.apply(next, m) }, nil
		},
	})
	if values["DM_TRUST"]+values["GROUP_TRUST"] != "" && err == nil {
		v.a.fleet.Reload(ctx) // the bots' policies have them
	}
	return err
}

// apply makes next effective from the next turn on; running turns continue as they
// began. m are next's models, nil if they stay.
func (v settingsView) apply(next *configs.Config, m *registry.Models) {
	v.a.usage.SetBudgets(budgetsOf(next))
	v.a.agents.SetDefault(next.DefaultAgent)
	v.a.library.Crawler.Kick() // GUEST_READ decides what guests find
	if m != nil {
		v.a.know(m.Names)
		v.a.models.Replace(m)
	}
}

// agentThere refuses a change of DEFAULT_AGENT to an agent that cannot answer.
func (v settingsView) agentThere(next *configs.Config, values map[string]string) error {
	if _, set := values["DEFAULT_AGENT"]; !set || next.DefaultAgent == "" {
		return nil
	}
	if _, warnings := v.a.agents.Choose(next.DefaultAgent); len(warnings) > 0 {
		return core.Errorf(core.Invalid, "DEFAULT_AGENT: no agent %s can answer; there is %s", core.CleanName(next.DefaultAgent), strings.Join(v.a.agents.Names(), ", "))
	}
	return nil
}

// SetPolicy changes how a bot treats strangers; nil is as configured.
func (v settingsView) SetPolicy(ctx context.Context, bot string, p *settings.BotPolicy, by core.Actor) error {
	if p == nil {
		return v.a.fleet.SetPolicy(ctx, bot, nil, by)
	}
	policy := policyOf(*p)
	return v.a.fleet.SetPolicy(ctx, bot, &policy, by)
}

func policyOf(p settings.BotPolicy) configs.BotPolicy {
	policy := configs.BotPolicy{DMPolicy: p.DMPolicy, DMTrust: p.DMTrust, GroupTrust: p.GroupTrust}
	_ = policy.AllowedUsers.Decode(p.AllowedUsers) // accepts any text
	return policy
}

// Platforms returns those that a bot can be added on.
func (v settingsView) Platforms() []string { return fleet.Addable() }

// AddBot adds a bot, if the platform accepts its token, and starts it.
func (v settingsView) AddBot(ctx context.Context, n settings.NewBot, by core.Actor) (settings.Identified, error) {
	id, err := v.a.fleet.Add(ctx, fleet.NewBot{Name: n.Name, Platform: n.Platform, Token: n.Token, Policy: policyOf(n.BotPolicy)}, by)
	return settings.Identified{Account: id.Username, Hints: id.Hints}, err
}

// SetToken gives a bot that was added another token, if the platform accepts it.
func (v settingsView) SetToken(ctx context.Context, bot, token string, by core.Actor) (settings.Identified, error) {
	id, err := v.a.fleet.SetToken(ctx, bot, token, by)
	return settings.Identified{Account: id.Username, Hints: id.Hints}, err
}

// RemoveBot removes a bot that was added.
func (v settingsView) RemoveBot(ctx context.Context, bot string, by core.Actor) error {
	return v.a.fleet.Remove(ctx, bot, by)
}

// SetTokenFile has a bot use the token in a file, if the platform accepts it;
// "" is as configured.
func (v settingsView) SetTokenFile(ctx context.Context, bot, path string, by core.Actor) error {
	return v.a.fleet.SetTokenFile(ctx, bot, path, by)
}

// BotSettings returns the bots' effective settings.
func (v settingsView) BotSettings() (list []settings.BotSettings) {
	changes := v.a.settings.Now().BotChanges()
	for _, b := range v.a.bots.All() {
		s := settings.BotSettings{Bot: b.Name, Platform: b.Platform, Token: "in the environment", Off: b.Off,
			BotPolicy: settings.BotPolicy{DMPolicy: b.DMPolicy, AllowedUsers: b.AllowedUsers.String(), DMTrust: b.DMTrust, GroupTrust: b.GroupTrust}}
		switch {
		case b.Added && b.TokenFile == v.a.cfg.TokenOf(b.Name):
			s.Token = "set in the panel"
		case b.TokenFile != "":
			s.Token = "in the file " + b.TokenFile
		case b.InFile:
			s.Token = "in the file of bots"
		}
		c := changes[b.Name]
		s.PolicyFromUs, s.TokenFromUs, s.Added = c.Policy != nil && !b.Added, c.TokenFile != "", b.Added
		list = append(list, s)
	}
	return list
}

// report returns the settings in effect, for the command line.
func (v settingsView) report(ctx context.Context) (*live.Report, error) {
	r, err := v.a.settings.Report(ctx, v.a.asked[0], v.a.asked[1])
	if err != nil {
		return nil, err
	}
	r.NoModel = models.Missing(v.a.models.Now(), v.a.agents)
	return r, nil
}
