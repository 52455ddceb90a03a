package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"gatehouse/admin/page"
	"gatehouse/core"
)

const (
	// maxBackupRows bounds the backups that are shown.
	maxBackupRows = 20
	// changeTimeout bounds a change of settings, in which models may be asked.
	// testTimeout bounds a test of a bot's credentials.
	testTimeout   = 15 * time.Second
	changeTimeout = 50 * time.Second
)

func (p *Panel) settingsRoutes() {
	if p.o.Settings == nil {
		return
	}
	p.frame.Page("GET "+settingsPath, p.settingsPage)
	p.frame.Post("POST "+settingsPath+"/log", p.setLogLevel)
	if p.o.Keys != nil {
		p.frame.Page("POST "+settingsPath+"/keys", p.newKey)
		p.frame.Post("POST "+settingsPath+"/keys/{id}/change", p.changeKey)
		p.frame.Post("POST "+settingsPath+"/keys/{id}/revoke", p.revokeKey)
	}
	if p.o.Changes != nil {
		p.frame.Post("POST "+settingsPath+"/change", p.changeSettings)
		p.frame.Post("POST "+settingsPath+"/bots/{bot}/policy", p.setPolicy)
		p.frame.Post("POST "+settingsPath+"/bots/{bot}/token", p.setTokenFile)
		if p.o.Texts != nil {
			p.frame.Page("GET "+textsPath+"/{bot}", p.textsPage)
			p.frame.Page("GET "+textsPath+"/{bot}/{name}", p.textPage)
			p.frame.Page("POST "+textsPath+"/{bot}/{name}", p.text)
		}
		if p.o.Operations.Bots != nil {
			p.frame.Post("POST "+settingsPath+"/bots/{bot}/{verb}", p.switchBot)
		}
	}
	if p.o.Backups != nil && p.o.BackupJob != nil {
		p.frame.Post("POST "+settingsPath+"/backups", p.backUp)
		p.frame.Page("GET "+settingsPath+"/backups/{name}", p.downloadBackup)
		p.frame.Post("POST "+settingsPath+"/backups/{name}/delete", p.deleteBackup)
	}
}

// ---- bots

// botKnobs is a bot with what can be set of it.
type botKnobs struct {
	BotSettings
	State    core.BotState
	Tone     string
	Word     string
	Policies []page.Choice
	Levels   []page.Choice
	CSRF     string
	Texts    bool // what it says can be written anew
	OwnTexts int  // how many of them are
}

// policies are what a stranger's direct message meets.
func policies() []page.Choice {
	return []page.Choice{{Value: "pairing", Label: "pairing: you decide"}, {Value: "allowlist", Label: "allowlist: the ids below"}, {Value: "open", Label: "open: everybody"}, {Value: "disabled", Label: "disabled: silence"}}
}

func (p *Panel) botKnobs() (out []botKnobs) {
	states := p.bots()
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
	k := botKnobs{BotSettings: b, State: s, Policies: policies(), Levels: []page.Choice{{Value: "sandboxed", Label: "sandboxed"}, {Value: "vault", Label: "vault"}}}
	k.Tone, k.Word = page.State(s.State)
	return k
}

func (k botKnobs) Up() bool {
	return k.State.State != core.Stopped && k.State.State != core.FailedPhase
}

func (p *Panel) setPolicy(r *http.Request, by core.Actor) (page.Flash, string, error) {
	bot := r.PathValue("bot")
	back := settingsPath + "#bots-h"
	if r.PostFormValue("do") == "configured" {
		return page.Good(bot + " treats strangers as configured again."), back, p.o.Changes.SetPolicy(r.Context(), bot, nil, by)
	}
	policy := BotPolicy{DMPolicy: r.PostFormValue("dm_policy"), AllowedUsers: strings.Join(strings.FieldsFunc(r.PostFormValue("allowed_users"), func(r rune) bool { return r == ',' || unicode.IsSpace(r) }), ","),
		DMTrust: r.PostFormValue("dm_trust"), GroupTrust: r.PostFormValue("group_trust")}
	if policy.DMPolicy == "open" && r.PostFormValue("sure") != "yes" {
		return page.Flash{}, back, core.Errorf(core.Invalid, "policy: with open everybody who finds %s is answered; tick that you mean it", bot)
	}
	return page.Good(bot + " treats strangers so from now on. Who has access keeps it."), back, p.o.Changes.SetPolicy(r.Context(), bot, &policy, by)
}

func (p *Panel) setTokenFile(r *http.Request, by core.Actor) (page.Flash, string, error) {
	bot := r.PathValue("bot")
	back := settingsPath + "#bots-h"
	ctx, cancel := context.WithTimeout(r.Context(), testTimeout)
	defer cancel()
	if r.PostFormValue("do") == "configured" {
		return page.Good(bot + " goes on with the token that is configured."), back, p.o.Changes.SetTokenFile(ctx, bot, "", by)
	}
	path := strings.TrimSpace(r.PostFormValue("token_file"))
	if path == "" {
		return page.Flash{}, back, core.Errorf(core.Invalid, "token file: name the file that holds the token, on the gateway's machine")
	}
	return page.Good(bot + " goes on with the token in that file. When the file changes it is read again."), back, p.o.Changes.SetTokenFile(ctx, bot, path, by)
}

func (p *Panel) switchBot(r *http.Request, by core.Actor) (page.Flash, string, error) {
	said, _, err := p.operations.Switch(r, by)
	return said, settingsPath + "#bots-h", err
}

// ---- backups

// backupsOf fills in the backups, and says how often the page should look.
func (p *Panel) backupsOf(ctx context.Context, b *settingsBody) (every int) {
	if p.o.Backups == nil || p.o.BackupJob == nil {
		return 0
	}
	b.HasJob = true
	b.Backups = page.Load(ctx, p.frame, "The list of backups", p.o.Backups.Backups)
	b.MoreBk = page.Cut(&b.Backups.Value, maxBackupRows)
	if j, ok := p.o.BackupJob(); ok {
		b.Job = &j
		if j.Running {
			every = 1
		}
	}
	return every
}

func (p *Panel) backUp(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return page.Note("The backup is being made. This page shows how far it is."), settingsPath + "#backups-h", p.o.Backups.Backup(r.Context(), by)
}

func (p *Panel) deleteBackup(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return page.Good("The backup is deleted."), settingsPath + "#backups-h", p.o.Backups.RemoveBackup(r.Context(), r.PathValue("name"), by)
}

func (p *Panel) downloadBackup(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	f, at, err := p.o.Backups.OpenBackup(r.Context(), r.PathValue("name"), who.Actor())
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Disposition", `attachment; filename="`+r.PathValue("name")+`"`) // the source knows no names with quotes
	w.Header().Set("Content-Type", "application/gzip")
	http.ServeContent(page.Slow(w), r, "", at, f)
	return nil
}
