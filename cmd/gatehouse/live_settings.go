package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gatehouse/admin"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/llm/registry"
	"gatehouse/core/store"
	"gatehouse/core/usage"
)

// changesKey is where what the panel has set is kept: configs.Changes as JSON.
const changesKey = "setting:changes"

// now is the configuration as it holds now; nobody changes it.
func (a *app) now() *configs.Config {
	if c := a.live.Load(); c != nil {
		return c
	}
	return a.cfg
}

func budgetsOf(c *configs.Config) usage.Budgets {
	return usage.Budgets{UserDay: usage.Budget(c.BudgetUserDay), BotDay: usage.Budget(c.BudgetBotDay), Day: usage.Budget(c.BudgetDay)}
}

func readChanges(ctx context.Context, q store.Queryer) (configs.Changes, error) {
	ch := configs.Changes{Settings: map[string]string{}, Bots: map[string]configs.BotChange{}}
	text, set, err := store.Metadata(ctx, q, changesKey)
	if err != nil || !set {
		return ch, err
	}
	if err := json.Unmarshal([]byte(text), &ch); err != nil {
		return ch, fmt.Errorf("what the panel has set: %w", err)
	}
	if ch.Settings == nil {
		ch.Settings = map[string]string{}
	}
	if ch.Bots == nil {
		ch.Bots = map[string]configs.BotChange{}
	}
	return ch, nil
}

// restoreChanges has hold what the panel has set. What can't hold any more is
// left out with a word, so that the gateway starts.
func (a *app) restoreChanges(ctx context.Context) error {
	ch, err := readChanges(ctx, a.db)
	if err != nil {
		return err
	}
	next, left := a.cfg.Holding(ch)
	for _, err := range left {
		a.log.Error("something that the panel has set can't hold; there it is as configured", "err", err)
	}
	a.live.Store(next)
	bots, err := next.ReadBots(a.fleet.all())
	if err != nil {
		return err
	}
	a.fleet.set(bots, "", a.clock.Now())
	return nil
}

// holdBack keeps bots from starting that were stopped in the panel, or whose
// token file, named there, holds no good token.
func (a *app) holdBack() error {
	for _, b := range a.fleet.all() {
		if b.Fault != "" {
			if err := a.hub.Fail(b.Name, b.Platform, b.Fault); err != nil {
				return err
			}
		}
		if b.Off {
			if err := a.hub.Stop(b.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// change makes one change of what the panel has set: checked whole, kept,
// audited, and in force when it returns.
func (a *app) change(ctx context.Context, by core.Actor, subject string, detail map[string]any, edit func(*configs.Changes), check func(*configs.Config) error) error {
	a.knobs.Lock()
	defer a.knobs.Unlock()
	ch, err := readChanges(ctx, a.db)
	if err != nil {
		return err
	}
	edit(&ch)
	next, err := a.cfg.With(ch)
	if err == nil && check != nil {
		err = check(next)
	}
	var speak *registry.Models
	if err == nil {
		speak, err = a.modelsFor(next)
	}
	if err != nil {
		if core.KindOf(err) == core.Other {
			err = core.Errorf(core.Invalid, "%s", err.Error()) // configs' words hold no secret
		}
		return err
	}
	text, err := json.Marshal(ch)
	if err != nil {
		return err
	}
	err = a.db.Tx(ctx, func(tx *store.Tx) error {
		return errors.Join(store.SetMetadata(ctx, tx, changesKey, string(text)), store.Audit(ctx, tx, by, "setting.change", subject, detail))
	})
	if err != nil {
		return err
	}
	a.live.Store(next)
	a.usage.SetBudgets(budgetsOf(next))
	a.agents.SetDefault(next.DefaultAgent)
	a.speakBy(speak)
	return nil
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
	tried, err := v.a.tryModels(ctx, edit, values)
	if err != nil {
		return err
	}
	return v.a.change(ctx, by, strings.Join(slices.Sorted(maps.Keys(values)), " "), map[string]any{"values": values}, edit, func(next *configs.Config) error {
		return errors.Join(v.a.agentThere(next, values), v.a.allTried(next, tried))
	})
}

// SetPolicy changes how a bot treats people without access; nil is as configured.
func (v settingsView) SetPolicy(ctx context.Context, bot string, p *admin.BotPolicy, by core.Actor) error {
	policy, detail := (*configs.BotPolicy)(nil), map[string]any{"policy": "as configured"}
	if p != nil {
		policy = &configs.BotPolicy{DMPolicy: p.DMPolicy, DMTrust: p.DMTrust, GroupTrust: p.GroupTrust}
		_ = policy.AllowedUsers.Decode(p.AllowedUsers) // takes any text
		detail = map[string]any{"policy": policy.DMPolicy, "dm_trust": policy.DMTrust, "group_trust": policy.GroupTrust, "allowed": len(policy.AllowedUsers)}
	}
	return v.changeBot(ctx, bot, by, detail, func(c *configs.BotChange) { c.Policy = policy }, nil)
}

// SetTokenFile has a bot go on with the token in a file, once the platform has
// taken it; "" is as configured.
func (v settingsView) SetTokenFile(ctx context.Context, bot, path string, by core.Actor) error {
	return v.changeBot(ctx, bot, by, map[string]any{"token_file": path != ""}, func(c *configs.BotChange) { c.TokenFile = path }, func(next *configs.Config) error {
		bots, err := next.ReadBots(v.a.fleet.all())
		b, known := botNamed(bots, bot)
		switch {
		case err != nil && !known:
			return err
		case b.Fault != "":
			return core.Errorf(core.Invalid, "token file: %s", b.Fault)
		}
		if _, err := testBot(ctx, b); err != nil {
			return core.Errorf(core.Invalid, "token file: %s does not take its token: %s", b.Platform, core.TextOf(err))
		}
		return nil
	})
}

// setOff notes whether a bot stays stopped after a restart.
func (a *app) setOff(ctx context.Context, bot string, off bool) error {
	if b, ok := a.fleet.find(bot); !ok || b.Off == off {
		return nil
	}
	// Start and stop have an audit row of their own.
	return settingsView{a}.changeBot(ctx, bot, core.Actor{Via: "upkeep"}, map[string]any{"off": off}, func(c *configs.BotChange) { c.Off = off }, nil)
}

func (v settingsView) changeBot(ctx context.Context, bot string, by core.Actor, detail map[string]any, edit func(*configs.BotChange), check func(*configs.Config) error) error {
	if _, ok := v.a.fleet.find(bot); !ok {
		return core.Errorf(core.NotFound, "there is no bot named %s", core.CleanName(bot))
	}
	err := v.a.change(ctx, by, "bot "+bot, detail, func(ch *configs.Changes) {
		c := ch.Bots[bot]
		edit(&c)
		if ch.Bots[bot] = c; c.Empty() {
			delete(ch.Bots, bot)
		}
	}, check)
	if err != nil {
		return err
	}
	v.a.reload(ctx)
	v.a.bus.Ring("bots")
	return nil
}

// BotSettings are the bots as they are set now.
func (v settingsView) BotSettings() (list []admin.BotSettings) {
	changes := v.a.changesNow()
	for _, b := range v.a.fleet.all() {
		s := admin.BotSettings{Bot: b.Name, Platform: b.Platform, Token: "in the environment", Off: b.Off,
			BotPolicy: admin.BotPolicy{DMPolicy: b.DMPolicy, AllowedUsers: b.AllowedUsers.String(), DMTrust: b.DMTrust, GroupTrust: b.GroupTrust}}
		switch {
		case b.TokenFile != "":
			s.Token = "in the file " + b.TokenFile
		case b.InFile:
			s.Token = "in the file of bots"
		}
		c := changes[b.Name]
		s.PolicyFromUs, s.TokenFromUs = c.Policy != nil, c.TokenFile != ""
		list = append(list, s)
	}
	return list
}

func (a *app) changesNow() map[string]configs.BotChange { return a.now().BotChanges() }
