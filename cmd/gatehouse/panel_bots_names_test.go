package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/live"
	"gatehouse/core"
)

func TestAConfiguredBotObeysThePanelAlsoUnderTheNameOfAnAddedOne(t *testing.T) {
	t.Parallel()
	p, token := newSupport(t, nil)
	if _, body := p.browser().adds(url.Values{"token": {token}}); !strings.Contains(body, "support is starting") {
		t.Fatal(body)
	}
	p.awaits("support", core.Running)
	p.write(t, "bots.yaml", "bots:\n  - {name: support, platform: telegram, token_file: t1}\n")
	p.again()
	p.awaits("support", core.Running)
	b := p.browser()
	if _, body := b.submit("/admin/settings/bots/support/policy", b.page("/admin/settings/bots"), url.Values{"dm_policy": {"disabled"}, "dm_trust": {"sandboxed"}, "group_trust": {"sandboxed"}}); !strings.Contains(body, "treats strangers so") {
		t.Fatal(body)
	}
	if bot, _ := p.app.bots.Find("support"); bot.Added || bot.DMPolicy != "disabled" {
		t.Errorf("the bot of the file has the policy %q, added %v", bot.DMPolicy, bot.Added)
	}
	if err := p.app.fleet.Stop(t.Context(), "support"); err != nil && core.KindOf(err) != core.Busy {
		t.Fatal(err)
	}
	p.again()
	if bot, _ := p.app.bots.Find("support"); !bot.Off || bot.DMPolicy != "disabled" {
		t.Errorf("after a restart it has the policy %q, stopped %v", bot.DMPolicy, bot.Off)
	}
}

func TestAnAddedBotThatIsRemovedMeanwhileLeavesNoSettings(t *testing.T) {
	t.Parallel()
	p, token := newSupport(t, nil)
	if _, body := p.browser().adds(url.Values{"token": {token}}); !strings.Contains(body, "support is starting") {
		t.Fatal(body)
	}
	// Another admin's removal is stored, and not applied yet.
	gone := func(ch *configs.Changes) { delete(ch.Bots, "support") }
	if err := p.app.settings.Change(t.Context(), core.Actor{}, live.Change{Subject: "bot support", Edit: gone}); err != nil {
		t.Fatal(err)
	}
	closed := &configs.BotPolicy{DMPolicy: "disabled", DMTrust: "sandboxed", GroupTrust: "sandboxed"}
	if err := p.app.fleet.SetPolicy(t.Context(), "support", closed, core.Actor{}); core.KindOf(err) != core.NotFound {
		t.Errorf("a policy for a bot that is gone: %v", err)
	}
	if b, there := p.app.settings.Now().BotChanges()["support"]; there {
		t.Errorf("kept for the next bot of this name: %+v", b)
	}
}

func TestATokenThatCouldNotBeSetLeavesTheOldOne(t *testing.T) {
	t.Parallel()
	p, token := newSupport(t, nil)
	if _, body := p.browser().adds(url.Values{"token": {token}}); !strings.Contains(body, "support is starting") {
		t.Fatal(body)
	}
	p.awaits("support", core.Running)
	newer := p.sim.Bots()[1].Revoke()
	p.exec(`CREATE TRIGGER full_disk BEFORE INSERT ON audit_events WHEN NEW.subject = 'bot support' BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END`)
	b := p.browser()
	if _, body := b.submit("/admin/settings/bots/support/newtoken", b.page("/admin/settings/bots"), url.Values{"token": {newer}}); strings.Contains(body, "goes on with the new token") || !strings.Contains(body, `class="flash bad"`) {
		t.Errorf("a token that was not stored: %s", body)
	}
	text, err := os.ReadFile(filepath.Join(p.cfg.VaultPath, ".parachute", "tokens", "support"))
	if err != nil || strings.TrimSpace(string(text)) != token {
		t.Errorf("the file holds another token than before: %v", err)
	}
}
