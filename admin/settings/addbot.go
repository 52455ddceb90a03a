package settings

import (
	"context"
	"net/http"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
)

// addBotPath is the page with the form for a new bot.
const addBotPath = settingsPath + "/" + secBots + "/add"

type addBody struct {
	CSRF      string
	Platforms []string
	Bot       NewBot // as it was typed, without the token
	Policies  []page.Choice
	Levels    []page.Choice
	Open      bool   // the policies are shown
	Field     string // that Fault is about; "": all
	Fault     string
}

// addBotFields are the fields that an error may begin with.
var addBotFields = map[string]string{"platform": "platform", "name": "name", "token": "token", "policy": "policy", "allowed users": "policy",
	"level of direct messages": "policy", "level of groups": "policy"}

func (p *valuePages) addBotPage(w http.ResponseWriter, r *http.Request) error {
	return p.showAddBot(w, r, http.StatusOK, addBody{Bot: NewBot{BotPolicy: BotPolicy{DMPolicy: "pairing", DMTrust: "sandboxed", GroupTrust: "sandboxed"}}})
}

func (p *valuePages) showAddBot(w http.ResponseWriter, r *http.Request, status int, b addBody) error {
	b.CSRF, b.Platforms, b.Policies, b.Levels = page.Token(r), p.o.NewBots.Platforms(), policies(), presets()
	b.Bot.Token = "" // it is never sent to the browser
	return p.frame.Show(w, r, status, "settings-bots-add", page.View{Title: "Add a bot", In: "settings", Still: true, Body: b})
}

// addBot adds a bot after the platform has accepted its token.
func (p *valuePages) addBot(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	n := NewBot{Name: strings.TrimSpace(r.PostFormValue("name")), Platform: r.PostFormValue("platform"), Token: strings.TrimSpace(r.PostFormValue("token")), BotPolicy: policyOf(r)}
	ctx, cancel := context.WithTimeout(r.Context(), testTimeout)
	defer cancel()
	err := sure(r, n.Name, n.BotPolicy)
	var said Identified
	if err == nil {
		said, err = p.o.NewBots.AddBot(ctx, n, who.Actor())
	}
	if err != nil {
		if _, ok := page.Refusal(w, err); !ok {
			return err
		}
		field, _, _ := strings.Cut(core.TextOf(err), ":")
		b := addBody{Bot: n, Field: addBotFields[field], Fault: page.Sentence(core.TextOf(err))}
		b.Open = b.Field == "policy" || n.DMPolicy != "pairing" || n.AllowedUsers != ""
		return p.showAddBot(w, r, http.StatusUnprocessableEntity, b)
	}
	p.frame.SetFlash(w, r, page.Good(strings.Join(append([]string{"The token is " + said.Account + "’s. " + n.Name + " is starting."}, said.Hints...), " ")))
	return p.frame.Away(w, r, pathOf(secBots)+"#bot-"+n.Name)
}

func (p *valuePages) removeBot(r *http.Request, by core.Actor) (page.Flash, string, error) {
	bot := r.PathValue("bot")
	return page.Good(bot + " is removed and its token deleted. Conversations and access stay, for a bot of the same name."), pathOf(secBots), p.o.NewBots.RemoveBot(r.Context(), bot, by)
}

// setToken gives a bot that was added here another token.
func (p *valuePages) setToken(r *http.Request, by core.Actor) (page.Flash, string, error) {
	bot := r.PathValue("bot")
	ctx, cancel := context.WithTimeout(r.Context(), testTimeout)
	defer cancel()
	said, err := p.o.NewBots.SetToken(ctx, bot, strings.TrimSpace(r.PostFormValue("token")), by)
	return page.Good(bot + " goes on with the new token, which is " + said.Account + "’s."), pathOf(secBots), err
}
