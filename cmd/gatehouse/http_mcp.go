package main

import (
	"net/http"

	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/mcp"
)

// mcp returns what other agents use, over the routes of the API.
func (a *app) mcp(authn *auth.Authenticator, api http.Handler) http.Handler {
	s := mcp.New(mcp.Options{Authenticator: authn, API: api, Audit: a.views().Log(), Files: a.vault.FS(), MayRead: a.readable.mayRead,
		Agents: func() (list []mcp.Agent) {
			for _, x := range a.views().Agents().Agents() {
				list = append(list, mcp.Agent(x))
			}
			return list
		},
		Now: a.nowOf, Bots: a.bots.Names, Version: version, Clock: a.clock, Log: a.log, Registry: a.reg})
	a.closing(s.Close)
	return web.Serve(a.log, web.WriteProblem, s.Serve)
}
