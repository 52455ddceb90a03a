package admin_test

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/admin/page"
	"gatehouse/admin/settings"
	"gatehouse/core"
)

// knobWorld is what the panel changes of a configuration.
type knobWorld struct{ *world }

func (w knobWorld) Change(_ context.Context, values map[string]string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if values["BUDGET_DAY"] == "lots" {
		return core.Errorf(core.Invalid, `BUDGET_DAY: "lots" is neither a number of tokens (200k), nor dollars ($2), nor off`)
	}
	if values["MODEL"] == "openai/nope" {
		return core.Errorf(core.Invalid, "MODEL: openai/nope does not answer: there is no such model")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		w.note(by, "set %s %s", name, values[name])
	}
	if w.changed == nil {
		w.changed = map[string]string{}
	}
	maps.Copy(w.changed, values)
	if w.changed["DM_TRUST"] == "sandboxed" {
		delete(w.changed, "DM_TRUST") // as configured
	}
	return nil
}

func (w knobWorld) BotSettings() (out []settings.BotSettings) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.bots {
		s := settings.BotSettings{Bot: b.Bot, Platform: b.Platform, Token: "in the environment", BotPolicy: settings.BotPolicy{DMPolicy: "pairing", DMTrust: "sandboxed", GroupTrust: "sandboxed"}}
		if p, ok := w.policies[b.Bot]; ok {
			s.BotPolicy, s.PolicyFromUs = p, true
		}
		if f, ok := w.tokens[b.Bot]; ok {
			s.Token, s.TokenFromUs = "in the file "+f, true
		}
		if s.Added = w.added[b.Bot]; s.Added {
			s.Token = "set in the panel"
		}
		out = append(out, s)
	}
	return out
}

func (w knobWorld) SetPolicy(_ context.Context, bot string, p *settings.BotPolicy, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.policies == nil {
		w.policies = map[string]settings.BotPolicy{}
	}
	if p == nil {
		delete(w.policies, bot)
		w.note(by, "policy %s as configured", bot)
		return nil
	}
	if p.AllowedUsers == "ada" {
		return core.Errorf(core.Invalid, `allowed users: "ada" is not a numeric user id; names can change hands, so they are not accepted`)
	}
	w.policies[bot] = *p
	w.note(by, "policy %s %s", bot, strings.Join([]string{p.DMPolicy, p.AllowedUsers, p.DMTrust, p.GroupTrust}, "|"))
	return nil
}

func (w knobWorld) SetTokenFile(_ context.Context, bot, path string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tokens == nil {
		w.tokens = map[string]string{}
	}
	if path == "/vault/token" {
		return core.Errorf(core.Invalid, "token file: it lies in the vault, where agents can read it: move it out of the vault")
	}
	if w.tokens[bot] = path; path == "" {
		delete(w.tokens, bot)
	}
	w.note(by, "token %s %q", bot, path)
	return nil
}

func (w knobWorld) Platforms() []string { return []string{"telegram", "discord"} }

func (w knobWorld) AddBot(_ context.Context, n settings.NewBot, by core.Actor) (settings.Identified, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch n.Token {
	case "":
		return settings.Identified{}, core.Errorf(core.Invalid, "token: give the bot's token")
	case "refused":
		return settings.Identified{}, core.Errorf(core.Invalid, "token: Telegram refuses this token")
	case "unreachable":
		return settings.Identified{}, core.Errorf(core.Busy, "the platform cannot be asked; check this machine's network, then try again")
	}
	w.bots = append(w.bots, core.BotState{Bot: n.Name, Platform: n.Platform, State: core.Running})
	if w.added == nil {
		w.added = map[string]bool{}
	}
	w.added[n.Name] = true
	w.note(by, "add %s %s %s", n.Platform, n.Name, strings.Join([]string{n.DMPolicy, n.AllowedUsers, n.DMTrust, n.GroupTrust}, "|"))
	return settings.Identified{Account: "@new_bot", Hints: []string{"Invite it to a server."}}, nil
}

func (w knobWorld) SetToken(_ context.Context, bot, token string, by core.Actor) (settings.Identified, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(by, "new token %s", bot)
	return settings.Identified{Account: "@new_bot"}, nil
}

func (w knobWorld) RemoveBot(_ context.Context, bot string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bots = slices.DeleteFunc(w.bots, func(b core.BotState) bool { return b.Bot == bot })
	w.note(by, "remove %s", bot)
	return nil
}

// backupWorld has backups in memory.
type backupWorld struct{ *world }

func (w backupWorld) Backups(context.Context) ([]settings.BackupFile, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.backups), w.broken
}

func (w backupWorld) Backup(_ context.Context, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.job = &page.Job{Running: true, Tell: "backing up: 1204 entries, 38 MB"}
	w.note(by, "backup")
	return nil
}

func (w backupWorld) Job() (page.Job, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.job == nil {
		return page.Job{}, false
	}
	return *w.job, true
}

func (w backupWorld) OpenBackup(_ context.Context, name string, by core.Actor) (io.ReadSeekCloser, time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.backups {
		if b.Name == name {
			w.note(by, "download %s", name)
			return file{bytes.NewReader([]byte("an archive"))}, b.At, nil
		}
	}
	return nil, time.Time{}, core.Errorf(core.NotFound, "there is no such backup any more")
}

func (w backupWorld) RemoveBackup(_ context.Context, name string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.backups = slices.DeleteFunc(w.backups, func(b settings.BackupFile) bool { return b.Name == name })
	w.note(by, "delete %s", name)
	return nil
}

func (w *world) setRestoring(r settings.Restoring) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restoring = r
}

// restoreWorld has a restore in memory.
type restoreWorld struct{ *world }

func (w restoreWorld) Restore() settings.Restoring {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.restoring
}

func (w restoreWorld) BeginRestore(_ context.Context, name string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if by.User != core.Operator {
		return core.Errorf(core.Denied, "only the owner can restore a backup")
	}
	w.note(by, "restore %s", name)
	w.restoring = settings.Restoring{State: settings.RestoreWaits, Backup: name, Of: w.clock.Now().Add(-24 * time.Hour), Left: 10}
	return nil
}

func (w restoreWorld) CancelRestore(_ context.Context, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(by, "cancel the restore")
	w.restoring = settings.Restoring{}
	return nil
}

func (w restoreWorld) DismissRestore() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(core.Actor{User: core.Operator, Via: "panel"}, "dismiss the restore")
	w.restoring = settings.Restoring{}
	return nil
}

const backupOne = "gatehouse-20260101-030405.tar.gz"

func (w *world) made(name string) {
	w.mu.Lock()
	w.backups = append([]settings.BackupFile{{Name: name, Path: "/srv/gatehouse-backups/" + name, Size: 39_845_888, At: w.clock.Now().Add(-24 * time.Hour), SHA256: strings.Repeat("9f86d081884c7d65", 4)}}, w.backups...)
	w.job = &page.Job{Said: []string{"412 files and the database are in " + name + " (38 MB).", "Not in it: .claude/.credentials.json (Claude Code's login)"}, At: w.clock.Now()}
	w.mu.Unlock()
	w.ring(core.TopicBots)
}

func TestSettingsAreChangedWithoutJavaScript(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	s.get("/admin/settings/access").has(t, `name="DM_TRUST"`, `<option value="sandboxed" selected>sandboxed</option>`)
	s.get("/admin/settings/models").has(t, `name="BUDGET_DAY" value="$20"`)
	s.get("/admin/settings/bots").has(t, `<h3>family</h3>`, "token in the environment, never shown")
	for _, c := range []struct {
		path string
		form url.Values
		did  []string
		says string
	}{
		{"/admin/settings/models", url.Values{"MODEL": {"openai/fake"}, "DEFAULT_AGENT": {"gone"}, "BUDGET_DAY": {" $30 "}, "BUDGET_BOT_DAY": {""}, "GATEHOUSE_ADDR": {"0.0.0.0:1"}, "DM_TRUST": {"vault"}}, []string{"set BUDGET_DAY $30", "set MODEL openai/fake"}, "2 settings are changed"},
		{"/admin/settings/access", url.Values{"DM_TRUST": {"vault"}, "GUEST_READ": {""}, "MODEL": {"openai/other"}}, []string{"set DM_TRUST vault", "set GUEST_READ "}, "2 settings are changed"},
		{"/admin/settings/limits", url.Values{"RATE_LIMIT": {"off"}, "BUSY_MODE": {"collect"}}, []string{"set RATE_LIMIT off"}, "1 setting is changed"},
		{"/admin/settings/models", url.Values{"reset": {"MODEL"}, "BUDGET_DAY": {"$40"}}, []string{"set MODEL "}, "Model is as configured again: the first provider with a key."},
		{"/admin/settings/bots/family/policy", url.Values{"dm_policy": {"allowlist"}, "allowed_users": {"123 456"}, "dm_trust": {"vault"}, "group_trust": {"sandboxed"}}, []string{"policy family allowlist|123,456|vault|sandboxed"}, "family treats strangers so from now on."},
		{"/admin/settings/bots/family/policy", url.Values{"dm_policy": {"open"}, "sure": {"yes"}, "dm_trust": {"sandboxed"}, "group_trust": {"sandboxed"}}, []string{"policy family open||sandboxed|sandboxed"}, "family treats strangers so"},
		{"/admin/settings/bots/family/policy", url.Values{"do": {"configured"}}, []string{"policy family as configured"}, "as configured again"},
		{"/admin/settings/bots/family/token", url.Values{"token_file": {" /run/secrets/new "}}, []string{`token family "/run/secrets/new"`}, "goes on with the token in that file"},
		{"/admin/settings/bots/family/token", url.Values{"do": {"configured"}}, []string{`token family ""`}, "the token that is configured"},
		{"/admin/settings/bots/family/stop", nil, []string{"stop family"}, "family is stopped"},
		{"/admin/settings/bots/family/start", nil, []string{"start family"}, "family is starting"},
		{"/admin/settings/backups/" + backupOne + "/delete", nil, []string{"delete " + backupOne}, "The backup is deleted."},
	} {
		before := len(w.done())
		page := s.post(c.path, c.form)
		if did := w.done()[before:]; !slices.Equal(did, c.did) {
			t.Errorf("%s did %q, want %q", c.path, did, c.did)
		}
		section, _, _ := strings.Cut(strings.TrimPrefix(c.path, "/admin/settings/"), "/")
		page.has(t, `<p class="flash good"`, c.says, `<a href="/admin/settings/`+section+`" aria-current="page">`)
	}
	s.get("/admin/settings/models").has(t, `name="BUDGET_DAY" value="$30"`, `<span class="pill note">panel</span>`, `name="reset" value="BUDGET_DAY"`, `<span dir="auto">$20</span>`)
}

func TestSettingsThatCanNotHoldNameTheirField(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	for name, c := range map[string]struct {
		path string
		form url.Values
		says string
	}{
		"open":      {"/admin/settings/bots/family/policy", url.Values{"dm_policy": {"open"}, "dm_trust": {"vault"}, "group_trust": {"vault"}}, "Policy: with open, family answers anyone who finds it"},
		"a name":    {"/admin/settings/bots/family/policy", url.Values{"dm_policy": {"allowlist"}, "allowed_users": {"ada"}, "dm_trust": {"vault"}}, "Allowed users: &#34;ada&#34;"},
		"no file":   {"/admin/settings/bots/family/token", nil, "Token file: name the file"},
		"the vault": {"/admin/settings/bots/family/token", url.Values{"token_file": {"/vault/token"}}, "Token file: it lies in the vault"},
	} {
		a := s.post(c.path, c.form)
		if !strings.Contains(a.body, `class="flash bad"`) || !strings.Contains(a.body, c.says) {
			t.Errorf("%s: the page does not say %q\n%s", name, c.says, a.main())
		}
	}
	if did := s.world.done(); len(did) > 0 {
		t.Errorf("was done: %q", did)
	}
	s.post("/admin/settings/access", url.Values{"DM_TRUST": {"sandboxed"}}).has(t, "flash note", "Nothing was changed")
}

func TestASectionThatIsRefusedKeepsWhatWasTypedAndNamesTheField(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	a := s.postForm("/admin/settings/models", url.Values{"MODEL": {"openai/nope"}, "GUEST_MODEL": {"openai/<b>"}, "BUDGET_DAY": {"$30"}})
	if a.status != http.StatusUnprocessableEntity {
		t.Errorf("status %d, want 422", a.status)
	}
	a.has(t, `name="MODEL" value="openai/nope"`, `aria-invalid="true" aria-describedby="MODEL-fault"`, `id="MODEL-fault">MODEL: openai/nope does not answer: there is no such model. Nothing was saved.`,
		`name="GUEST_MODEL" value="openai/&lt;b&gt;"`, `name="BUDGET_DAY" value="$30"`, "data-still")
	if n := strings.Count(a.body, "aria-invalid"); n != 1 {
		t.Errorf("%d fields are marked", n)
	}
	s.postForm("/admin/settings/models", url.Values{"BUDGET_DAY": {"lots"}}).has(t, `id="BUDGET_DAY-fault">BUDGET_DAY: &#34;lots&#34; is neither`, `name="BUDGET_DAY" value="lots"`)
	if did := s.world.done(); len(did) > 0 {
		t.Errorf("was done: %q", did)
	}
}

func TestASectionThatIsSavedLeavesWhatAnotherAdminHasSetMeanwhile(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	shown := func() url.Values {
		form, body := url.Values{}, s.get("/admin/settings/models").body
		for _, name := range []string{"MODEL", "GUEST_MODEL", "BUDGET_DAY", "BUDGET_BOT_DAY"} {
			for _, field := range []string{name, "was." + name} {
				_, value, found := strings.Cut(body, `name="`+field+`" value="`)
				if !found {
					t.Fatalf("the page has no %s", field)
				}
				value, _, _ = strings.Cut(value, `"`)
				form.Set(field, value)
			}
		}
		return form
	}
	mine := shown()
	s.post("/admin/settings/models", url.Values{"BUDGET_DAY": {"$5"}}).has(t, "1 setting is changed")

	mine.Set("BUDGET_BOT_DAY", "$3")
	s.post("/admin/settings/models", mine).has(t, "1 setting is changed")
	s.get("/admin/settings/models").has(t, `name="BUDGET_DAY" value="$5"`, `name="BUDGET_BOT_DAY" value="$3"`)

	mine.Set("BUDGET_DAY", "$9") // $20 was shown
	a := s.postForm("/admin/settings/models", mine)
	a.has(t, `id="BUDGET_DAY-fault">BUDGET_DAY: it was changed meanwhile, to $5; save again to replace that. Nothing was saved.`, `name="BUDGET_DAY" value="$9"`, `name="was.BUDGET_DAY" value="$5"`)
	if a.status != http.StatusUnprocessableEntity {
		t.Errorf("status %d, want 422", a.status)
	}
	again := shown()
	again.Set("BUDGET_DAY", "$9")
	s.post("/admin/settings/models", again).has(t, "1 setting is changed")
}

func TestEachSettingIsOnThePageOfItsSectionWithWhenItTakesEffect(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	for path, wants := range map[string][]string{
		"/admin/settings/models":    {`id="MODEL"`, "Takes effect from the next message."},
		"/admin/settings/access":    {`id="DM_TRUST"`, "Takes effect at once.", `id="keys-h"`},
		"/admin/settings/limits":    {`id="RATE_LIMIT"`, "Takes effect at once."},
		"/admin/settings/bots":      {`<tr id="v-TELEGRAM_TOKEN"`, "(set)", "Takes effect at once."},
		"/admin/settings/backups":   {`<tr id="v-VAULT_PATH"`, "A change takes effect after a restart"},
		"/admin/settings/variables": {`<tr id="v-VAULT_PATH"`, `<tr id="v-MODEL"`, `<tr id="v-TELEGRAM_TOKEN"`, `id="LOG_LEVEL"`},
	} {
		a := s.get(path)
		a.has(t, append(wants, `<nav class="spans" aria-label="Settings">`, `<a href="`+path+`" aria-current="page">`, `action="/admin/settings" class="filter" role="search"`)...)
		_, nav, _ := strings.Cut(a.body, `<nav class="spans" aria-label="Settings">`)
		if nav, _, _ = strings.Cut(nav, "</nav>"); strings.Count(nav, "aria-current") != 1 {
			t.Errorf("%s: not one current section in %s", path, nav)
		}
	}
	s.get("/admin/settings/access").lacks(t, `id="MODEL"`)
	s.get("/admin/settings/backups").lacks(t, "Takes effect after a restart.") // in each row
	s.get("/admin/settings/variables").has(t, "Takes effect after a restart.")
}

// A link to a setting puts the focus on it: its field, or a row that takes the focus.
func TestEachSettingThatIsFoundTakesTheFocus(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	for _, set := range (settingsWorld{s.world}).Settings() {
		name := strings.TrimPrefix(set.Name, "GATEHOUSE_")
		link := regexp.MustCompile(`<h3><a href="(/admin/settings/[a-z]+)#((?:v-)?` + name + `)">[^\x00]*?<span class="num">` + set.Name + `</span>`).FindStringSubmatch(s.get("/admin/settings?q=" + set.Name).body)
		if link == nil {
			t.Errorf("%s is not found", set.Name)
			continue
		}
		if place := regexp.MustCompile(`<(input|select)[^>]* id="` + link[2] + `"|<tr id="` + link[2] + `" tabindex="-1"`); !place.MatchString(s.get(link[1]).body) {
			t.Errorf("%s leads to %s#%s, which takes no focus", set.Name, link[1], link[2])
		}
	}
}

func TestASettingIsFoundByNameLabelAndDescription(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	for q, want := range map[string]string{
		"GATEHOUSE_MODEL":      `<a href="/admin/settings/models#MODEL">Model</a>`,
		"together":             `<a href="/admin/settings/models#BUDGET_DAY">Budget of all together</a>`,
		"holds EVERYTHING":     `<a href="/admin/settings/backups#v-VAULT_PATH">GATEHOUSE_VAULT_PATH</a>`,
		"log level":            `<a href="/admin/settings/variables#LOG_LEVEL">Log level</a>`,
		"new api secret":       `<a href="/admin/settings/access?open=secrets#keys-h">New secret for an API key</a>`,
		"access and keys":      `<h3><a href="/admin/settings/access">Access and keys</a></h3>`,
		"restore":              `<a href="/admin/settings/backups#list">Restore a backup</a>`,
		"bot family":           `<a href="/admin/settings/bots#bot-family">Bot family</a>`,
		"welcome texts family": `<a href="/admin/settings/texts/family">Texts of family</a>`,
	} {
		s.get("/admin/settings?q="+url.QueryEscape(q)).has(t, want, `name="q" value="`+q+`"`, "found")
	}
	s.get("/admin/settings?q=MODEL").has(t, "takes effect from the next message.", "local/quote", `<span class="pill idle">default</span>`)
	s.get("/admin/settings?q=no+such+thing").has(t, "Nothing found", "Show the sections", `<nav class="spans" aria-label="Settings"><a href="/admin/settings/bots">Bots</a>`)
	s.get("/admin/settings?q="+strings.Repeat("x", 5000)).has(t, "Nothing found")
	s.get("/admin/settings?q=%3Cscript%3E").has(t, `value="&lt;script&gt;"`)
}

func TestTheIndexOfSettingsShowsWhatWasChangedInThePanel(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.get("/admin/settings").has(t, "None: all settings are as configured.", `href="/admin/settings/bots"`, `href="/admin/settings/models#MODEL"`, `href="/admin/settings/access?open=secrets#keys-h"`)
	s.post("/admin/settings/models", url.Values{"BUDGET_DAY": {"$30"}})
	a := s.get("/admin/settings")
	a.has(t, `<tr id="c-BUDGET_DAY">`, `<a href="/admin/settings/models#BUDGET_DAY">Budget of all together</a>`, "$30", "$20")
	a.lacks(t, `id="c-MODEL"`)
}

func TestABackupIsMadeWithProgressAndDownloaded(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.mu.Lock()
	s.world.backups = nil
	s.world.mu.Unlock()
	s.get("/admin/settings/backups").has(t, "No backups yet.", "Backup now")
	a := s.post("/admin/settings/backups", nil)
	a.has(t, "backing up: 1204 entries, 38 MB", `data-every="1"`)
	a.lacks(t, `action="/admin/settings/backups"`)
	s.world.made(backupOne)
	s.get("/admin/settings/backups").has(t, "412 files and the database are in "+backupOne, "Not in it: .claude", "38 MB", strings.Repeat("9f86d081884c7d65", 4),
		"gatehouse restore /srv/gatehouse-backups/"+backupOne, `href="/admin/settings/backups/`+backupOne+`" download`)
	a = s.get("/admin/settings/backups/" + backupOne)
	if a.body != "an archive" || a.header.Get("Content-Disposition") != `attachment; filename="`+backupOne+`"` {
		t.Errorf("%d %v %q", a.status, a.header, a.body)
	}
	if a := s.get("/admin/settings/backups/gatehouse-20990101-000000.tar.gz"); a.status != http.StatusNotFound {
		t.Errorf("one that is not there: status %d", a.status)
	}
	if did := s.world.done(); !slices.Equal(did, []string{"backup", "download " + backupOne}) {
		t.Errorf("did %q", did)
	}
}

func TestABotIsAddedWithoutJavaScript(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.get("/admin/settings").has(t, `href="/admin/settings/bots/add">Add a bot`)
	s.get("/admin/settings/bots").has(t, `href="/admin/settings/bots/add">Add a bot`)
	s.get("/admin/settings?q=new+bot").has(t, `<a href="/admin/settings/bots/add">Add a bot</a>`)
	s.get("/admin/settings/bots/add").has(t, `<option value="telegram">Telegram</option>`, `name="token" type="password" required`, `value="pairing" selected`, "data-still")
	form := url.Values{"platform": {"discord"}, "name": {"club2"}, "token": {"s3cret"}, "dm_policy": {"allowlist"}, "allowed_users": {"1 2"}, "dm_trust": {"vault"}, "group_trust": {"sandboxed"}}
	for token, says := range map[string]string{"refused": "Token: Telegram refuses this token. Nothing was added.", "unreachable": "The platform cannot be asked; check this machine&#39;s network, then try again. Nothing was added.", " ": "Token: give the bot&#39;s token. Nothing was added."} {
		form.Set("token", token)
		a := s.postForm("/admin/settings/bots/add", form)
		if a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d, want 422", token, a.status)
		}
		a.has(t, says, `name="name" value="club2"`, `<option value="discord" selected>`, `<option value="allowlist" selected>`, `value="1,2"`, `id="who" open`)
		a.lacks(t, `value="`+token+`"`)
		if marked := strings.Contains(a.body, `autocomplete="off" aria-invalid="true" aria-describedby="fault"></label>`); marked != (token != "unreachable") {
			t.Errorf("%s: the field of the token is marked: %v", token, marked)
		}
	}
	form.Set("token", "s3cret")
	form.Set("dm_policy", "open")
	s.postForm("/admin/settings/bots/add", form).has(t, "Policy: with open, club2 answers anyone who finds it", `id="who" open`)
	form.Set("dm_policy", "pairing")
	a := s.post("/admin/settings/bots/add", form)
	a.has(t, `<p class="flash good"`, "The token is @new_bot’s. club2 is starting. Invite it to a server.", `id="bot-club2"`, "token set in the panel, never shown", `action="/admin/settings/bots/club2/newtoken"`, `action="/admin/settings/bots/club2/remove"`)
	a.lacks(t, "s3cret", `action="/admin/settings/bots/club2/token"`, `action="/admin/settings/bots/family/remove"`)
	s.post("/admin/settings/bots/club2/newtoken", url.Values{"token": {"s3cret2"}}).has(t, "club2 goes on with the new token, which is @new_bot’s.")
	a = s.post("/admin/settings/bots/club2/remove", nil)
	a.has(t, "club2 is removed and its token deleted.")
	a.lacks(t, `id="bot-club2"`)
	if did := s.world.done(); !slices.Equal(did, []string{"add discord club2 pairing|1,2|vault|sandboxed", "new token club2", "remove club2"}) {
		t.Errorf("did %q", did)
	}
	if strings.Contains(s.log.String(), "s3cret") {
		t.Error("the log shows the token")
	}
}
