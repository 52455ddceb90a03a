package main

import (
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/backups"
	"gatehouse/configs"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core"
	"gatehouse/core/backup"
	"gatehouse/core/store/storetest"
)

// adds submits the form for a new bot and returns what the page says.
func (b *browser) adds(more url.Values) (int, string) {
	b.w.t.Helper()
	form := url.Values{"platform": {"telegram"}, "name": {"support"}, "dm_policy": {"pairing"}, "dm_trust": {"sandboxed"}, "group_trust": {"sandboxed"}}
	maps.Copy(form, more)
	return b.submit("/admin/settings/bots/add", b.page("/admin/settings/bots/add"), form)
}

// newSupport is a gateway whose platform has one more account, and its token.
func newSupport(t *testing.T, change func(*configs.Config)) (*park, string) {
	t.Helper()
	p := newPark(t, 1, "bots: []\n", change)
	return p, furtherToken(1)
}

// lacksToken checks that a secret is in neither the log, nor the audit log, nor the stored settings.
func (w *world) lacksToken(token string) {
	w.t.Helper()
	if strings.Contains(w.log.String(), token) {
		w.t.Error("the log shows the token")
	}
	if n := w.count(`SELECT count(*) FROM audit_events WHERE detail LIKE $1 OR subject LIKE $1`, "%"+token+"%"); n != 0 {
		w.t.Error("the audit log shows the token")
	}
	if n := w.count(`SELECT count(*) FROM metadata WHERE value LIKE $1`, "%"+token+"%"); n != 0 {
		w.t.Error("the database holds the token")
	}
}

func TestABotIsAddedInThePanelAndRemovedAgain(t *testing.T) {
	storetest.SQLiteOnly(t, "a server has no backup here")
	t.Parallel()
	p, token := newSupport(t, nil)
	b := p.browser()
	_, body := b.adds(url.Values{"token": {" " + token + " "}, "dm_trust": {"vault"}})
	if !strings.Contains(body, "The token is @further1_bot’s. support is starting.") || !strings.Contains(body, `id="bot-support"`) || strings.Contains(body, token) {
		t.Fatal(body)
	}
	file := filepath.Join(p.cfg.VaultPath, ".parachute", "tokens", "support")
	for path, mode := range map[string]fs.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", path, st, err)
		}
	}
	p.awaits("support", core.Running)
	ada := p.sim.NewUser("Ada")
	p.says(ada, 1, "hello")
	p.hearsFrom(1, ada, "code")
	if got := p.app.bots.Preset("support", core.ScopeDM); got != core.Vault {
		t.Errorf("the preset is %s", got)
	}
	archive := filepath.Join(p.dir, "b.tar.gz")
	if _, err := backup.Make(t.Context(), backups.Source(p.cfg, "", version), archive, nil); err != nil {
		t.Fatal(err)
	}
	if _, bodies := contents(t, archive); slices.ContainsFunc(slices.Collect(maps.Values(bodies)), func(body []byte) bool { return strings.Contains(string(body), token) }) {
		t.Error("the token is in the backup")
	}

	p.again()
	p.awaits("support", core.Running)
	bo := p.sim.NewUser("Bo")
	p.says(bo, 1, "hello")
	p.hearsFrom(1, bo, "code")

	b = p.browser()
	newer := p.sim.Bots()[1].Revoke()
	p.says(bo, 1, "are you there?")
	if _, body := b.submit("/admin/settings/bots/support/newtoken", b.page("/admin/settings/bots"), url.Values{"token": {token}}); !strings.Contains(body, "Telegram refuses this token") {
		t.Error(body)
	}
	if _, body := b.submit("/admin/settings/bots/support/newtoken", b.page("/admin/settings/bots"), url.Values{"token": {newer}}); !strings.Contains(body, "goes on with the new token, which is @further1_bot’s.") || strings.Contains(body, newer) {
		t.Error(body)
	}
	p.awaits("support", core.Running)

	if _, body := b.submit("/admin/settings/bots/support/remove", b.page("/admin/settings/bots"), url.Values{}); !strings.Contains(body, "support is removed and its token deleted.") {
		t.Fatal(body)
	}
	p.until("it is gone", func() bool { return p.state("support").Bot == "" })
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("its token is still there: %v", err)
	}
	if _, body := b.submit("/admin/settings/bots/telegram/remove", b.page("/admin/settings/bots"), url.Values{}); !strings.Contains(body, "Bot telegram is configured by GATEHOUSE_TELEGRAM_TOKEN") {
		t.Error(body)
	}
	for _, action := range []string{"bot.add", "bot.remove"} {
		if n := p.count(`SELECT count(*) FROM audit_events WHERE action = $1 AND subject = 'support' AND via = 'panel' AND user_id = 1`, action); n != 1 {
			t.Errorf("%d audit rows %s", n, action)
		}
	}
	if page := b.page("/admin/audit?action=bot"); !strings.Contains(page, "added the bot support on Telegram") || !strings.Contains(page, "removed the bot support") {
		t.Error("the audit page does not say who added the bot")
	}
	p.lacksToken(token)
	p.lacksToken(newer)
	p.again()
	if _, there := p.app.bots.Find("support"); there {
		t.Error("it is back after a restart")
	}
}

func TestABotThatCannotBeAddedIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	gone := discordtest.New(discordtest.Options{})
	address, hers := gone.URL(), gone.Token()
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	p, token := newSupport(t, func(c *configs.Config) { c.DiscordApiURL = address })
	b := p.browser()
	const wrong = "4711:not-a-token-that-is-known-anywhere"
	for name, c := range map[string]struct {
		form url.Values
		says string
	}{
		"refused":      {url.Values{"token": {wrong}}, "Token: Telegram refuses this token: it is mistyped or was revoked."},
		"form":         {url.Values{"token": {"wxyz-1"}}, "Token: it does not look like a token from @BotFather"},
		"none":         {url.Values{"token": {" "}}, "Token: give the bot’s token"},
		"taken":        {url.Values{"token": {p.sim.Token()}}, "Token: the bot telegram has this account already"},
		"unreachable":  {url.Values{"platform": {"discord"}, "token": {hers}}, "check this machine’s network, then try again"},
		"a known name": {url.Values{"token": {token}, "name": {"telegram"}}, "Name: there is a bot telegram already"},
		"a bad name":   {url.Values{"token": {token}, "name": {"../x"}}, "Name: it is 1 to 32 small letters"},
		"reserved":     {url.Values{"token": {token}, "name": {"api"}}, "Name: api is the name of something else"},
		"of another":   {url.Values{"token": {token}, "name": {"discord"}}, "Name: discord is the name of something else"},
		"platform":     {url.Values{"token": {token}, "platform": {"irc"}}, "Platform: choose one of"},
		"policy":       {url.Values{"token": {token}, "dm_policy": {"all"}}, "is not one of pairing"},
		"open":         {url.Values{"token": {token}, "dm_policy": {"open"}}, "tick the box to confirm"},
		"users":        {url.Values{"token": {token}, "dm_policy": {"allowlist"}, "allowed_users": {"ada"}}, "is not a numeric user id"},
	} {
		code, body := b.adds(c.form)
		body = strings.ReplaceAll(strings.ReplaceAll(body, "&#39;", "’"), "&#34;", `"`)
		if code != 422 || !strings.Contains(body, c.says) || !strings.Contains(body, "Nothing was added.") {
			t.Errorf("%s: %d, the page does not say %q\n%s", name, code, c.says, body)
		}
		if typed := strings.TrimSpace(c.form.Get("token")); typed != "" && strings.Contains(body, typed) {
			t.Errorf("%s: the page shows the token", name)
		}
		if want := `name="name" value="` + c.form.Get("name") + `"`; c.form.Has("name") && !strings.Contains(body, want) {
			t.Errorf("%s: the name that was typed is lost", name)
		}
	}
	if n := len(p.app.bots.All()); n != 1 {
		t.Errorf("%d bots", n)
	}
	if _, err := os.Stat(p.cfg.TokensDir()); !os.IsNotExist(err) {
		t.Errorf("a token was stored: %v", err)
	}
	for _, each := range []string{wrong, "wxyz-1", hers, token} {
		p.lacksToken(each)
	}
}

func TestABotOfAnotherPlatformIsAddedWithWhatIsLeftToDo(t *testing.T) {
	t.Parallel()
	discord := discordtest.New(discordtest.Options{FloodOff: true})
	t.Cleanup(func() { _ = discord.Close() })
	p, _ := newSupport(t, func(c *configs.Config) { c.DiscordApiURL = discord.URL() })
	_, body := p.browser().adds(url.Values{"platform": {"discord"}, "name": {"discord"}, "token": {"Bot " + discord.Token()}})
	if !strings.Contains(body, "discord is starting.") || !strings.Contains(body, "Invite it to a server: https://discord.com/oauth2/authorize?client_id=") {
		t.Fatal(body)
	}
	p.until("it runs", func() bool { s := p.state("discord").State; return s == core.Running || s == core.Degraded })
	if _, filter, _ := strings.Cut(p.browser().page("/admin/chats?state=all"), "Began on"); !strings.Contains(filter, `<option value="discord">Discord</option>`) {
		t.Error("the conversations cannot be filtered by the platform of the new bot")
	}
	bob := discord.NewUser("Bob")
	bob.Send(tea)
	discordHears(p.world, discord, bob.DM(), "code")
}

// A gateway that is killed while it adds or removes a bot leaves a token that no bot has.
func TestATokenThatNoBotHasIsDeletedAtTheStart(t *testing.T) {
	t.Parallel()
	p, token := newSupport(t, nil)
	if _, body := p.browser().adds(url.Values{"token": {token}}); !strings.Contains(body, "support is starting.") {
		t.Fatal(body)
	}
	p.stop()
	orphans := []string{p.cfg.TokenOf("orphan"), p.cfg.TokenOf(".support-17")}
	for _, file := range orphans {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.again()
	p.awaits("support", core.Running)
	for _, file := range orphans {
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", file, err)
		}
	}
	p.lacksToken(token)
}

// A restore leaves out the token: the bot says so, the rest runs.
func TestAnAddedBotWithoutItsTokenSaysWhatToDo(t *testing.T) {
	t.Parallel()
	p, token := newSupport(t, nil)
	if _, body := p.browser().adds(url.Values{"token": {token}}); !strings.Contains(body, "support is starting.") {
		t.Fatal(body)
	}
	p.stop()
	if err := os.Remove(p.cfg.TokenOf("support")); err != nil {
		t.Fatal(err)
	}
	p.again()
	if s := p.awaits("support", core.FailedPhase); !strings.Contains(s.Reason, "no such file") {
		t.Errorf("it says %q", s.Reason)
	}
	b := p.browser()
	if _, body := b.submit("/admin/settings/bots/support/newtoken", b.page("/admin/settings/bots"), url.Values{"token": {token}}); !strings.Contains(body, "goes on with the new token") {
		t.Fatal(body)
	}
	p.awaits("support", core.Running)
}
