package settings

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/web/auth"
)

const (
	settingsPath = "/admin/settings"
	maxKeyRows   = 50
)

type settingsBody struct {
	CSRF    string
	Bots    []botKnobs
	Knobs   []knobGroup
	Known   []string // models, to choose from
	Backups page.Part[[]BackupFile]
	MoreBk  int
	Job     *page.Job // the backup
	HasJob  bool
	Groups  []settingGroup
	Level   string
	Levels  []string
	FromUs  bool // the level was set here
	Keys    page.Part[[]keyView]
	HasKeys bool
	Scopes  []string
	Trusts  []core.Trust
	Ends    []end
	Graces  []end  // how long an old secret stays valid
	Secret  string // of the key just made or rotated; shown once
	Rotated bool
	Label   string
	Error   string // why none was made
}

// An end is one choice of how long a key holds.
type end struct {
	Value, Label string
	Checked      bool
}

type keyView struct {
	auth.KeyRow
	Display string
	Over    bool
	Old     bool // the secret before the present one is valid, too
}

type settingGroup struct {
	Name     string
	Settings []Setting
}

// settingGroups are the settings by prefix or suffix of their names; the last
// has the rest.
var settingGroups = []struct {
	name   string
	prefix []string
}{
	{"Where things are", []string{"VAULT_", "DATABASE_", "ADDR", "PORT", "BOTS_FILE", "METRICS_"}},
	{"Who comes in", []string{"ALLOWED_", "CORS_", "TRUSTED_", "LOCALHOST_", "ADMIN_"}},
	{"Bots and people", []string{"_TOKEN", "_API_URL", "_DM_POLICY", "_ALLOWED_USERS", "DM_", "GROUP_", "GUEST_READ", "DEFAULT_", "BUSY_", "RATE_", "PACE"}},
	{"Models and budgets", []string{"MODEL", "_MODEL", "ANTHROPIC_", "OPENAI_", "CLAUDE_", "BUDGET_", "LIMIT_"}},
	{"Tools and the rest", []string{""}},
}

func (p *valuePages) settingsPage(w http.ResponseWriter, r *http.Request) error {
	return p.showSettings(w, r, http.StatusOK, settingsBody{})
}

func (p *valuePages) showSettings(w http.ResponseWriter, r *http.Request, status int, b settingsBody) error {
	ctx, now := r.Context(), p.frame.Clock.Now()
	b.CSRF, b.Levels = page.Token(r), []string{"debug", "info", "warn", "error"}
	all := p.o.Settings.Settings()
	b.Bots, b.Knobs, b.Known = p.botKnobs(), inGroups(p.knobs(all)), p.links.Models(core.Operator)
	for i := range b.Bots {
		b.Bots[i].CSRF = b.CSRF
		b.Bots[i].Texts, b.Bots[i].OwnTexts = p.ownTexts(b.Bots[i].Bot)
	}
	every := p.backupsOf(ctx, &b)
	for _, s := range all {
		if strings.HasSuffix(s.Name, "LOG_LEVEL") {
			b.Level, b.FromUs = s.Value, s.Source == "panel"
		}
	}
	b.Groups = grouping(all)
	if p.o.Keys != nil {
		b.HasKeys, b.Scopes, b.Trusts = true, auth.Scopes(), []core.Trust{core.Sandboxed, core.Vault, core.Full}
		b.Ends = []end{{"30d", "30 days", false}, {"90d", "90 days", true}, {"365d", "1 year", false}, {"", "No end", false}}
		b.Graces = []end{{"", "at once", true}, {"1h", "in 1 hour", false}, {"24h", "in 1 day", false}, {"168h", "in 7 days", false}}
		names := p.links.Names(ctx)
		b.Keys = page.Load(ctx, p.frame, "The list of keys", func(ctx context.Context) (out []keyView, err error) {
			rows, err := p.o.Keys.List(ctx, maxKeyRows)
			for _, k := range rows {
				out = append(out, keyView{k, names.Of(k.User), !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(now), k.OldExpiresAt.After(now)})
			}
			return out, err
		})
	}
	v := page.View{Title: "Settings", In: "settings", Topics: "bots people", Every: every, Still: b.Secret != "" || b.Error != "", Body: b}
	return p.frame.Show(w, r, status, "settings", v)
}

func grouping(all []Setting) (groups []settingGroup) {
	used := map[string]bool{} // one per setting
	for _, g := range settingGroups {
		group := settingGroup{Name: g.name}
		for _, s := range all {
			short := strings.TrimPrefix(s.Name, "GATEHOUSE_")
			if !used[s.Name] && slices.ContainsFunc(g.prefix, func(x string) bool {
				return strings.HasPrefix(short, x) || x != "" && x[0] == '_' && strings.HasSuffix(short, x)
			}) {
				used[s.Name] = true
				group.Settings = append(group.Settings, s)
			}
		}
		if len(group.Settings) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

func (p *valuePages) setLogLevel(r *http.Request, by core.Actor) (page.Flash, string, error) {
	level := r.PostFormValue("level")
	if level != "" && !slices.Contains([]string{"debug", "info", "warn", "error"}, level) {
		return page.Flash{}, settingsPath, core.Errorf(core.Invalid, "the level is debug, info, warn or error")
	}
	if level == "" {
		return page.Good("The log is at its configured level again."), settingsPath, p.o.Settings.SetLogLevel(r.Context(), "", by)
	}
	return page.Good("The log is at " + level + " from now on, also after a restart."), settingsPath, p.o.Settings.SetLogLevel(r.Context(), level, by)
}

// newKey answers with the page: the secret is in no cookie and no address.
func (p *valuePages) newKey(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	n := auth.NewKey{Label: r.PostFormValue("label"), User: who.User, Scopes: r.PostForm["scope"]}
	var err error
	if n.Trust, err = core.ParseTrust(r.PostFormValue("trust")); err == nil {
		if days, bad := strconv.Atoi(strings.TrimSuffix(r.PostFormValue("end"), "d")); bad == nil && days > 0 && days <= 3650 {
			n.ExpiresAt = p.frame.Clock.Now().Add(time.Duration(days) * 24 * time.Hour)
		} else if r.PostFormValue("end") != "" {
			err = core.Errorf(core.Invalid, "that end was not offered")
		}
	}
	if err == nil && n.Trust > core.Vault && who.User != core.Operator {
		err = core.Errorf(core.Denied, "only the owner can make a key with trust %s", n.Trust)
	}
	b := settingsBody{Label: n.Label}
	if err == nil {
		b.Secret, _, err = p.o.Keys.Create(r.Context(), n, who.Actor())
	}
	if err != nil {
		status, ok := page.Refusal(w, err)
		if !ok {
			return err
		}
		b.Error = page.Sentence(core.TextOf(err))
		return p.showSettings(w, r, status, b)
	}
	return p.showSettings(w, r, http.StatusOK, b)
}

// rotateKey answers with the page, as newKey does.
func (p *valuePages) rotateKey(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	var o auth.KeyRotation
	var err error
	if given := r.PostFormValue("grace"); given != "" {
		var grace time.Duration
		if grace, err = time.ParseDuration(given); err == nil {
			o.OldExpiresAt = p.frame.Clock.Now().Add(grace)
		} else {
			err = core.Errorf(core.Invalid, "that end of the old secret was not offered")
		}
	}
	b := settingsBody{Rotated: true}
	if err == nil {
		var row auth.KeyRow
		b.Secret, row, err = p.o.Keys.Rotate(r.Context(), r.PathValue("id"), o, who.Actor())
		b.Label = row.Label
	}
	if err != nil {
		status, ok := page.Refusal(w, err)
		if !ok {
			return err
		}
		b.Error = page.Sentence(core.TextOf(err))
		return p.showSettings(w, r, status, b)
	}
	return p.showSettings(w, r, http.StatusOK, b)
}

func (p *valuePages) changeKey(r *http.Request, by core.Actor) (page.Flash, string, error) {
	label, scopes := r.PostFormValue("label"), append([]string{}, r.PostForm["scope"]...) // no box ticked is no scope
	row, err := p.o.Keys.Change(r.Context(), r.PathValue("id"), auth.KeyChange{Label: &label, Scopes: &scopes}, by)
	may := "nothing"
	if len(row.Scopes) > 0 {
		may = strings.Join(row.Scopes, ", ")
	}
	return page.Good("The key “" + row.Label + "” may from now on: " + may + "."), settingsPath + "#keys-h", err
}

func (k keyView) May(scope string) bool { return slices.Contains(k.Scopes, scope) }

func (p *valuePages) revokeKey(r *http.Request, by core.Actor) (page.Flash, string, error) {
	return page.Good("The key is revoked: what it asks for is refused, and what it has running ends."), settingsPath + "#keys-h", p.o.Keys.Revoke(r.Context(), r.PathValue("id"), by)
}
