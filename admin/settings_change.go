package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"gatehouse/core"
)

// maxBackupRows bounds the backups that are shown.
const maxBackupRows = 20

func (p *Panel) settingsRoutes() {
	if p.o.Settings == nil {
		return
	}
	p.page("GET "+settingsPath, p.settingsPage)
	p.post("POST "+settingsPath+"/log", p.setLogLevel)
	if p.o.Keys != nil {
		p.page("POST "+settingsPath+"/keys", p.newKey)
		p.post("POST "+settingsPath+"/keys/{id}/change", p.changeKey)
		p.post("POST "+settingsPath+"/keys/{id}/revoke", p.revokeKey)
	}
	if p.o.Changes != nil {
		p.post("POST "+settingsPath+"/change", p.changeSettings)
		p.post("POST "+settingsPath+"/bots/{bot}/policy", p.setPolicy)
		p.post("POST "+settingsPath+"/bots/{bot}/token", p.setTokenFile)
		if p.o.Texts != nil {
			p.page("GET "+textsPath+"/{bot}", p.textsPage)
			p.page("GET "+textsPath+"/{bot}/{name}", p.textPage)
			p.page("POST "+textsPath+"/{bot}/{name}", p.text)
		}
		if p.o.Bots != nil {
			p.post("POST "+settingsPath+"/bots/{bot}/{verb}", p.switchBot)
		}
	}
	if p.o.Backups != nil && p.o.BackupJob != nil {
		p.post("POST "+settingsPath+"/backups", p.backUp)
		p.page("GET "+settingsPath+"/backups/{name}", p.downloadBackup)
		p.post("POST "+settingsPath+"/backups/{name}/delete", p.deleteBackup)
	}
}

// ---- settings

// A knob is one setting that can be turned here.
type knob struct {
	Setting
	Short   string // without prefix, which is its field
	Label   string
	Hint    string
	Choices []choice // empty: it is written
}

// knobs are the settings that can be changed, in this order.
func (p *Panel) knobs(all []Setting) (out []knob) {
	if p.o.Changes == nil {
		return nil
	}
	levels := []choice{{"sandboxed", "sandboxed"}, {"vault", "vault"}}
	for _, k := range []knob{
		{Short: "DM_TRUST", Label: "Level preset for direct messages", Choices: levels},
		{Short: "GROUP_TRUST", Label: "Level preset for groups", Choices: levels},
		{Short: "BUSY_MODE", Label: "Messages while an answer is made", Choices: []choice{{"collect", "collect them"}, {"queue", "queue them"}, {"interrupt", "interrupt the answer"}}},
		{Short: "BUDGET_USER_DAY", Label: "Budget of each person, a day"},
		{Short: "BUDGET_BOT_DAY", Label: "Budget of each bot, a day"},
		{Short: "BUDGET_DAY", Label: "Budget of all, a day"},
	} {
		i := slices.IndexFunc(all, func(s Setting) bool { return strings.TrimPrefix(s.Name, "GATEHOUSE_") == k.Short })
		if i < 0 {
			continue
		}
		k.Setting = all[i]
		out = append(out, k)
	}
	return out
}

func (p *Panel) changeSettings(r *http.Request, by core.Actor) (flash, string, error) {
	back := settingsPath + "#knobs-h"
	values := map[string]string{} // bounded by the knobs
	for _, k := range p.knobs(p.o.Settings.Settings()) {
		if _, sent := r.PostForm[k.Short]; !sent {
			continue
		}
		if value := strings.TrimSpace(r.PostFormValue(k.Short)); value != k.Value {
			values[k.Short] = value
		}
	}
	if len(values) == 0 {
		return flash{"note", "Nothing was changed: all of it was so already."}, back, nil
	}
	return good(count(len(values), "setting is", "settings are") + " changed and hold from now on, also after a restart."), back, p.o.Changes.Change(r.Context(), values, by)
}

// ---- bots

// botKnobs is a bot with what can be set of it.
type botKnobs struct {
	BotSettings
	State    core.BotState
	Tone     string
	Word     string
	Policies []choice
	Levels   []choice
	CSRF     string
	Texts    bool // what it says can be written anew
	OwnTexts int  // how many of them are
}

// policies are what a stranger's direct message meets.
func policies() []choice {
	return []choice{{"pairing", "pairing: you decide"}, {"allowlist", "allowlist: the ids below"}, {"open", "open: everybody"}, {"disabled", "disabled: silence"}}
}

func (p *Panel) botKnobs() (out []botKnobs) {
	states := p.states()
	if p.o.Changes == nil {
		for _, s := range states {
			out = append(out, knobsOf(BotSettings{Bot: s.Bot, Platform: s.Platform, Token: "set"}, s))
		}
		return out
	}
	for _, b := range p.o.Changes.BotSettings() {
		s := core.BotState{Bot: b.Bot, Platform: b.Platform}
		if i := slices.IndexFunc(states, func(s core.BotState) bool { return s.Bot == b.Bot }); i >= 0 {
			s = states[i]
		}
		out = append(out, knobsOf(b, s))
	}
	return out
}

func knobsOf(b BotSettings, s core.BotState) botKnobs {
	k := botKnobs{BotSettings: b, State: s, Policies: policies(), Levels: []choice{{"sandboxed", "sandboxed"}, {"vault", "vault"}}}
	k.Tone, k.Word = phase(s.State)
	return k
}

func (k botKnobs) Up() bool {
	return k.State.State != core.Stopped && k.State.State != core.FailedPhase
}

func (p *Panel) setPolicy(r *http.Request, by core.Actor) (flash, string, error) {
	bot := r.PathValue("bot")
	back := settingsPath + "#bots-h"
	if r.PostFormValue("do") == "configured" {
		return good(bot + " treats strangers as configured again."), back, p.o.Changes.SetPolicy(r.Context(), bot, nil, by)
	}
	policy := BotPolicy{DMPolicy: r.PostFormValue("dm_policy"), AllowedUsers: strings.Join(strings.FieldsFunc(r.PostFormValue("allowed_users"), func(r rune) bool { return r == ',' || unicode.IsSpace(r) }), ","),
		DMTrust: r.PostFormValue("dm_trust"), GroupTrust: r.PostFormValue("group_trust")}
	if policy.DMPolicy == "open" && r.PostFormValue("sure") != "yes" {
		return flash{}, back, core.Errorf(core.Invalid, "policy: with open everybody who finds %s is answered; tick that you mean it", bot)
	}
	return good(bot + " treats strangers so from now on. Who has access keeps it."), back, p.o.Changes.SetPolicy(r.Context(), bot, &policy, by)
}

func (p *Panel) setTokenFile(r *http.Request, by core.Actor) (flash, string, error) {
	bot := r.PathValue("bot")
	back := settingsPath + "#bots-h"
	ctx, cancel := context.WithTimeout(r.Context(), testTimeout)
	defer cancel()
	if r.PostFormValue("do") == "configured" {
		return good(bot + " goes on with the token that is configured."), back, p.o.Changes.SetTokenFile(ctx, bot, "", by)
	}
	path := strings.TrimSpace(r.PostFormValue("token_file"))
	if path == "" {
		return flash{}, back, core.Errorf(core.Invalid, "token file: name the file that holds the token, on the gateway's machine")
	}
	return good(bot + " goes on with the token in that file. When the file changes it is read again."), back, p.o.Changes.SetTokenFile(ctx, bot, path, by)
}

func (p *Panel) switchBot(r *http.Request, by core.Actor) (flash, string, error) {
	said, _, err := p.botAction(r, by)
	return said, settingsPath + "#bots-h", err
}

// ---- backups

// backupsOf fills in the backups, and says how often the page should look.
func (p *Panel) backupsOf(ctx context.Context, b *settingsBody) (every int) {
	if p.o.Backups == nil || p.o.BackupJob == nil {
		return 0
	}
	b.HasJob = true
	b.Backups = load(ctx, p, "The list of backups", p.o.Backups.Backups)
	b.MoreBk = cut(&b.Backups.Value, maxBackupRows)
	if j, ok := p.o.BackupJob(); ok {
		b.Job = &j
		if j.Running {
			every = 1
		}
	}
	return every
}

func (p *Panel) backUp(r *http.Request, by core.Actor) (flash, string, error) {
	return flash{"note", "The backup is being made. This page shows how far it is."}, settingsPath + "#backups-h", p.o.Backups.Backup(r.Context(), by)
}

func (p *Panel) deleteBackup(r *http.Request, by core.Actor) (flash, string, error) {
	return good("The backup is deleted."), settingsPath + "#backups-h", p.o.Backups.RemoveBackup(r.Context(), r.PathValue("name"), by)
}

func (p *Panel) downloadBackup(w http.ResponseWriter, r *http.Request) error {
	who, _ := principal(r)
	f, at, err := p.o.Backups.OpenBackup(r.Context(), r.PathValue("name"), who.Actor())
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Disposition", `attachment; filename="`+r.PathValue("name")+`"`) // the source knows no names with quotes
	w.Header().Set("Content-Type", "application/gzip")
	http.ServeContent(patient{w}, r, "", at, f)
	return nil
}
