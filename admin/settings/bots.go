package settings

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
	// testTimeout bounds a test of a bot's credentials.
	testTimeout = 15 * time.Second
	// changeTimeout bounds a change of settings, in which models may be asked.
	changeTimeout = 50 * time.Second
)

// ---- bots

// botKnobs is a bot with its settings.
type botKnobs struct {
	BotSettings
	State    core.BotState
	Tone     string
	Word     string
	Policies []page.Choice
	Levels   []page.Choice
	CSRF     string
	Texts    bool // its texts can be changed
	OwnTexts int  // how many of them were
}

// policies returns the choices for direct messages of strangers.
func policies() []page.Choice {
	return []page.Choice{{Value: "pairing", Label: "pairing: you decide"}, {Value: "allowlist", Label: "allowlist: the ids below"}, {Value: "open", Label: "open: everybody"}, {Value: "disabled", Label: "disabled: silence"}}
}

// presets returns the levels that can be preset.
func presets() []page.Choice {
	return []page.Choice{{Value: "sandboxed", Label: "sandboxed"}, {Value: "vault", Label: "vault"}}
}

func (p *valuePages) botKnobs() (out []botKnobs) {
	states := p.links.Bots()
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
	k := botKnobs{BotSettings: b, State: s, Policies: policies(), Levels: presets()}
	k.Tone, k.Word = page.State(s.State)
	return k
}

func (k botKnobs) Up() bool {
	return k.State.State != core.Stopped && k.State.State != core.FailedPhase
}

// policyOf returns the policy of a form.
func policyOf(r *http.Request) BotPolicy {
	return BotPolicy{DMPolicy: r.PostFormValue("dm_policy"), AllowedUsers: strings.Join(strings.FieldsFunc(r.PostFormValue("allowed_users"), func(r rune) bool { return r == ',' || unicode.IsSpace(r) }), ","),
		DMTrust: r.PostFormValue("dm_trust"), GroupTrust: r.PostFormValue("group_trust")}
}

// sure refuses a form that lets everybody in without the box that confirms it.
func sure(r *http.Request, bot string, p BotPolicy) error {
	if p.DMPolicy == "open" && r.PostFormValue("sure") != "yes" {
		return core.Errorf(core.Invalid, "policy: with open, %s answers anyone who finds it; tick the box to confirm", bot)
	}
	return nil
}

func (p *valuePages) setPolicy(r *http.Request, by core.Actor) (page.Flash, string, error) {
	bot := r.PathValue("bot")
	back := pathOf(secBots)
	if r.PostFormValue("do") == "configured" {
		return page.Good(bot + " treats strangers as configured again."), back, p.o.Changes.SetPolicy(r.Context(), bot, nil, by)
	}
	policy := policyOf(r)
	if err := sure(r, bot, policy); err != nil {
		return page.Flash{}, back, err
	}
	return page.Good(bot + " treats strangers so from now on. Who has access keeps it."), back, p.o.Changes.SetPolicy(r.Context(), bot, &policy, by)
}

func (p *valuePages) setTokenFile(r *http.Request, by core.Actor) (page.Flash, string, error) {
	bot := r.PathValue("bot")
	back := pathOf(secBots)
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

func (p *valuePages) switchBot(r *http.Request, by core.Actor) (page.Flash, string, error) {
	said, _, err := p.links.Switch(r, by)
	return said, pathOf(secBots), err
}
