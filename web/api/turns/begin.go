package turns

import (
	"context"
	"path"
	"strings"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// An Agent is an agent as lists show it.
type Agent struct {
	Name        string
	Path        string // its file in the vault; "" for the one that every vault has
	Description string
	Model       string // "" is the setting's
}

// Agents are who may answer, and where.
type Agents interface {
	Agents() []Agent
	// Agent is the name of the usable agent that goes by name or by this file
	// name without its ending.
	Agent(name string) (string, bool)
	// Workspace reports whether there is a usable workspace of this slug.
	Workspace(slug string) bool
}

// begin checks what the request reports of a session that begins, and makes names
// and ids of it. For one that exists each must be as it is: the agent and the
// workspace bound what its turns may do, so a turn does not change them, and
// anyone who may not say /agent in a chat does not choose them here.
func (a *API) begin(ctx context.Context, p auth.Principal, q *chatRequest, id string, known bool) error {
	if q.WorkingDirectory != "" && p.Trust < core.Vault {
		return web.FieldProblem(web.Forbidden, "working_directory", "at the trust level sandboxed the working directory is not yours to choose")
	}
	if !known && !p.Governs() {
		for name, asked := range map[string]string{"agent_path": q.AgentPath, "workspace": q.Workspace} {
			if asked != "" {
				return web.FieldProblem(web.Forbidden, name, "who answers, and in which workspace, is the owner's to choose; leave the field "+name+" out")
			}
		}
	}
	if q.AgentPath != "" {
		name, ok := a.Agents.Agent(agentName(q.AgentPath))
		if !ok {
			return web.FieldProblem(web.Invalid, "agent_path", "there is no such agent; GET /api/agents lists those there are")
		}
		q.AgentPath = name
	}
	if q.Workspace != "" && !a.Agents.Workspace(q.Workspace) {
		return web.FieldProblem(web.Invalid, "workspace", "there is no such workspace, or its file cannot be used")
	}
	if err := a.mayAnswer(p, q); err != nil {
		return err
	}
	if err := a.continues(ctx, p, q); err != nil {
		return err
	}
	if !known || q.AgentPath+q.Module+q.Workspace+q.ContinuedFrom == "" {
		return nil
	}
	d, err := a.Details.Detail(ctx, id)
	if err != nil {
		return err
	}
	for _, f := range []struct{ name, asked, is string }{
		{"agent_path", q.AgentPath, d.AgentType}, {"module", q.Module, d.Module},
		{"workspace", q.Workspace, d.Workspace}, {"continued_from", q.ContinuedFrom, d.ContinuedFrom},
	} {
		if f.asked != "" && f.asked != f.is {
			return web.FieldProblem(web.Conflict, f.name, "the session has begun with another "+f.name+"; begin a new one, or change it with PATCH /api/chat/{id} where that is yours to do")
		}
	}
	return nil
}

// mayAnswer refuses a model that cannot answer the turn, before anything is stored of it.
func (a *API) mayAnswer(p auth.Principal, q *chatRequest) error {
	if q.Model == "" {
		return nil
	}
	trust := p.Trust
	if asked, err := core.ParseTrust(q.TrustLevel); err == nil {
		trust = core.Least(trust, asked)
	}
	err := a.Model(p, trust, q.Model)
	switch core.KindOf(err) {
	case core.Invalid:
		return web.FieldProblem(web.Invalid, "model", core.TextOf(err))
	case core.Denied:
		return web.FieldProblem(web.Forbidden, "model", core.TextOf(err))
	}
	return err
}

// continues makes the id of continued_from out of what the client calls it: a
// session of the caller's own, also for admins.
func (a *API) continues(ctx context.Context, p auth.Principal, q *chatRequest) error {
	if q.ContinuedFrom == "" {
		return nil
	}
	missing := web.FieldProblem(web.NotFound, "continued_from", "you have no such session to go on from")
	id, known, err := a.Sessions.Locate(ctx, p, q.ContinuedFrom)
	if core.KindOf(err) == core.NotFound || core.KindOf(err) == core.Invalid || err == nil && !known {
		return missing
	}
	if err != nil {
		return err
	}
	owner, err := a.Sessions.Owner(ctx, id)
	if core.KindOf(err) == core.NotFound || err == nil && owner != p.User {
		return missing
	}
	q.ContinuedFrom = id
	return err
}

// agentName returns the agent of a name, or by the path of an agent's file.
func agentName(given string) string {
	if strings.HasSuffix(given, ".md") {
		return strings.TrimSuffix(path.Base(given), ".md")
	}
	return given
}
