// Package bots serves the bots of the API: their state, starting and stopping
// them, and sending messages by them.
package bots

import (
	"context"
	"net/http"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/upload"
)

// Bots are the connectors. Start, Stop and Test get a bot that States lists.
type Bots interface {
	States() []core.BotState
	Start(ctx context.Context, bot string, by core.Actor) error
	Stop(ctx context.Context, bot string, by core.Actor) error
	Test(ctx context.Context, bot string) (username string, err error)
}

// An API serves the routes of bots and of the messages that they send.
type API struct {
	Bots    Bots
	Mail    Mail
	uploads *upload.Reader
}

// New returns an API. Files that come with messages are stored in files.
func New(bots Bots, mail Mail, files upload.Files) *API {
	return &API{Bots: bots, Mail: mail, uploads: upload.New(files)}
}

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /api/bots/status":              a.botStates,
		"POST /api/bots/{bot}/start":        a.botStart,
		"POST /api/bots/{bot}/stop":         a.botStop,
		"POST /api/bots/{bot}/test":         a.botTest,
		"POST /api/bots/{bot}/messages":     a.sendUnasked,
		"GET /api/bots/{bot}/messages/{id}": a.sentUnasked,
	}
}

// botStates serves GET /api/bots/status.
func (a *API) botStates(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	states := a.Bots.States()
	if states == nil {
		states = []core.BotState{}
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"bots": states})
}

// Find returns the state of the bot that name refers to: its own name, or a platform
// that has one bot only.
func (a *API) Find(name string) (core.BotState, error) {
	var of []core.BotState
	for _, s := range a.Bots.States() {
		if s.Bot == name {
			return s, nil
		}
		if s.Platform == name {
			of = append(of, s)
		}
	}
	switch len(of) {
	case 0:
		return core.BotState{}, core.Errorf(core.NotFound, "there is no such bot")
	case 1:
		return of[0], nil
	}
	return core.BotState{}, core.Errorf(core.Conflict, "several bots are on this platform; name one of them")
}

// botStart serves POST /api/bots/{bot}/start.
func (a *API) botStart(w http.ResponseWriter, r *http.Request) error {
	return a.switchBot(w, r, a.Bots.Start)
}

// botStop serves POST /api/bots/{bot}/stop.
func (a *API) botStop(w http.ResponseWriter, r *http.Request) error {
	return a.switchBot(w, r, a.Bots.Stop)
}

func (a *API) switchBot(w http.ResponseWriter, r *http.Request, do func(context.Context, string, core.Actor) error) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	s, err := a.Find(r.PathValue("bot"))
	if err != nil {
		return err
	}
	if err := do(r.Context(), s.Bot, p.Actor()); err != nil {
		return err
	}
	if s, err = a.Find(s.Bot); err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, s)
}

// botTest serves POST /api/bots/{bot}/test. The answer has the platform's result;
// only an internal fault is an error.
func (a *API) botTest(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	s, err := a.Find(r.PathValue("bot"))
	if err != nil {
		return err
	}
	name, err := a.Bots.Test(r.Context(), s.Bot)
	switch kind := core.KindOf(err); {
	case err == nil:
		return web.WriteJSON(w, http.StatusOK, map[string]any{"bot": s.Bot, "ok": true, "username": name})
	case kind == core.Denied || kind == core.Busy:
		return web.WriteJSON(w, http.StatusOK, map[string]any{"bot": s.Bot, "ok": false, "reason": core.TextOf(err)})
	}
	return err
}
