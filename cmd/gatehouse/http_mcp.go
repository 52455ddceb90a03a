package main

import (
	"context"
	"net/http"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/mcp"
)

// mcp returns what other agents use, over the routes of the API.
func (a *app) mcp(door *auth.Door, api http.Handler) http.Handler {
	s := mcp.New(mcp.Options{Door: door, API: api, Audit: logView{a.db, a.usage}, Files: a.vault.FS(), MayRead: a.readable.mayRead,
		Agents: func() (list []mcp.Agent) {
			for _, x := range (agentsView{a.agents}).Agents() {
				list = append(list, mcp.Agent(x))
			}
			return list
		},
		Now: a.nowOf, Bots: a.bots.Names, Version: version, Clock: a.clock, Log: a.log, Registry: a.reg})
	a.closing(s.Close)
	return web.Serve(a.log, web.WriteProblem, s.Serve)
}

// Called records a call of another agent.
func (v logView) Called(ctx context.Context, by core.Actor, what, key string) error {
	return v.db.Tx(ctx, func(tx *store.Tx) error {
		return store.Audit(ctx, tx, by, "mcp.call", what, map[string]any{"key": key})
	})
}
