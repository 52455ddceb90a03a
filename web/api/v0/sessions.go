package v0

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// pageSize is how many sessions or messages one answer holds at most.
const pageSize = 200

type row struct {
	ID               string    `json:"id"`
	Title            string    `json:"title"`
	AgentPath        string    `json:"agentPath"`
	Module           string    `json:"module"`
	Model            string    `json:"model"`
	WorkingDirectory string    `json:"workingDirectory"`
	MessageCount     int       `json:"messageCount"`
	Archived         bool      `json:"archived"`
	CreatedAt        time.Time `json:"createdAt"`
	LastAccessed     time.Time `json:"lastAccessed"`
	ContinuedFrom    string    `json:"continuedFrom,omitempty"`
}

// row returns a session as lists show it: its agent by the path of its file, or by
// name where it has none.
func (a *API) row(s session.Session) row {
	agent := s.AgentType
	for _, x := range a.Agents() {
		if x.Name == agent && x.Path != "" {
			agent = x.Path
		}
	}
	return row{s.ID, s.Title, agent, s.Module, s.Model, s.WorkingDirectory, s.MessageCount, s.Archived, s.CreatedAt, s.LastAccessed, s.ContinuedFrom}
}

// list serves GET /api/chat/sessions.
func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	f := session.Filter{User: p.User, All: p.ReadsEveryone(), Limit: pageSize, Cursor: q.Get("cursor")}
	if given := q.Get("archived"); given != "" {
		archived, err := strconv.ParseBool(given)
		if err != nil {
			return core.Errorf(core.Invalid, "archived must be true or false")
		}
		f.Archived = &archived
	}
	page, next, err := a.Sessions.List(r.Context(), f)
	if err != nil {
		return err
	}
	rows := make([]row, 0, len(page))
	for _, s := range page {
		rows = append(rows, a.row(s))
	}
	out := map[string]any{"sessions": rows}
	if next != "" {
		out["nextCursor"] = next
	}
	return web.WriteJSON(w, http.StatusOK, out)
}

type message struct {
	Role      string    `json:"role"`
	Content   string    `json:"content"`
	Timestamp time.Time `json:"timestamp,omitzero"`
	ToolCalls []call    `json:"toolCalls,omitempty"`
}

// read serves GET /api/chat/session/{id}: the session and its newest messages, as
// text.
func (a *API) read(w http.ResponseWriter, r *http.Request) error {
	_, d, err := a.Today.Found(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	page, err := a.Sessions.Page(r.Context(), d.Session, transcript.PageQuery{Limit: pageSize})
	if err != nil {
		return err
	}
	messages := []message{}
	for _, m := range page.Messages {
		if x := messageOf(m, d.User == core.Operator); x.Content != "" || len(x.ToolCalls) > 0 {
			messages = append(messages, x)
		}
	}
	return web.WriteJSON(w, http.StatusOK, struct {
		row
		Messages []message `json:"messages"`
		HasMore  bool      `json:"hasMore"`
	}{a.row(d.Session), messages, page.More})
}

// messageOf returns a message as users read it; group: of a group's conversation. Its content
// begins with its author in a group, and states whose a forwarded text is: the format has no
// field for either.
func messageOf(m transcript.Message, group bool) message {
	out := message{Role: m.Role, Timestamp: m.At}
	var words []string
	by, blocks := m.Shown(group)
	for _, b := range blocks {
		switch b.Type {
		case "text":
			text := b.Text
			if b.Quote != nil && b.Quote.Forwarded {
				text = core.ForwardedLine(transcript.OneLine(b.Quote.Name)) + text
			}
			words = append(words, text)
		case "tool_use":
			input := b.Input
			if !json.Valid(input) {
				input = json.RawMessage("{}")
			}
			out.ToolCalls = append(out.ToolCalls, call{b.ID, b.Name, input})
		}
	}
	out.Content = strings.Join(words, "\n\n")
	if name := transcript.OneLine(by.Name); name != "" && (by.Place != "" || m.Author == nil) && out.Content != "" {
		out.Content = name + ": " + out.Content
	}
	return out
}

func done(w http.ResponseWriter, id string, more map[string]any) error {
	out := map[string]any{"success": true, "sessionId": id}
	for k, v := range more {
		out[k] = v
	}
	return web.WriteJSON(w, http.StatusOK, out)
}

// remove serves DELETE /api/chat/session/{id}.
func (a *API) remove(w http.ResponseWriter, r *http.Request) error {
	p, d, err := a.Today.Found(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	if err := a.Editor.Delete(r.Context(), d.ID, nil, p.Actor()); err != nil {
		return err
	}
	return done(w, d.ID, nil)
}

// archive serves POST /api/chat/session/{id}/archive and …/unarchive.
func (a *API) archive(yes bool) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		p, d, err := a.Today.Found(r, auth.ScopeChat)
		if err != nil {
			return err
		}
		if _, err := a.Editor.Update(r.Context(), d.ID, session.Change{Archived: &yes, Trust: p.Trust}, p.Actor()); err != nil {
			return err
		}
		return done(w, d.ID, map[string]any{"archived": yes})
	}
}

// clear serves DELETE /api/chat/session: it archives the caller's newest session
// with the agent, so that nothing is lost by a client that knows no ids.
func (a *API) clear(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	given, err := agentOf(w, r)
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(given[strings.LastIndexByte(given, '/')+1:], ".md")
	for _, x := range a.Agents() {
		if x.Path == given || strings.EqualFold(x.Name, given) {
			name = x.Name
		}
	}
	no, yes := false, true
	page, _, err := a.Sessions.List(r.Context(), session.Filter{User: p.User, AgentType: name, Archived: &no, Limit: 1})
	if err != nil {
		return err
	}
	if len(page) == 0 {
		return core.Errorf(core.NotFound, "you have no session with this agent that is not archived")
	}
	if _, err := a.Editor.Update(r.Context(), page[0].ID, session.Change{Archived: &yes, Trust: p.Trust}, p.Actor()); err != nil {
		return err
	}
	return done(w, page[0].ID, map[string]any{"archived": true})
}

// agentOf returns agentPath, from the address or the body.
func agentOf(w http.ResponseWriter, r *http.Request) (string, error) {
	given := r.URL.Query().Get("agentPath")
	if given == "" && r.ContentLength != 0 {
		if err := web.ReadFieldsInto(w, r, map[string]any{"agent_path": &given}); err != nil {
			return "", err
		}
	}
	if given == "" || len(given) > 400 {
		return "", core.Errorf(core.Invalid, "name in agentPath the agent of the session to clear")
	}
	return given, nil
}

// agents serves GET /api/agents.
func (a *API) agents(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeRead, auth.ScopeChat); err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"agents": a.Agents()})
}

// stats serves GET /api/stats: of the caller's own sessions, of everyone's with
// the scope admin besides read.
func (a *API) stats(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	yes := true
	f := session.Filter{User: p.User, All: p.ReadsEveryone()}
	total, err := a.Sessions.Count(r.Context(), f)
	if err != nil {
		return err
	}
	f.Archived = &yes
	archived, err := a.Sessions.Count(r.Context(), f)
	if err != nil {
		return err
	}
	rss, loaded := a.Memory()
	return web.WriteJSON(w, http.StatusOK, map[string]any{
		"sessions":       map[string]int{"total": total, "active": max(0, total-archived), "archived": archived},
		"memory":         map[string]any{"rss_bytes": rss, "loaded_sessions": loaded},
		"uptime_seconds": int64(a.Clock.Now().Sub(a.began).Seconds()),
	})
}
