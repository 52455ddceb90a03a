// Package permissions serves what waits for a decision: tool calls for approval
// and questions to users, and the grants that are in force.
package permissions

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/diff"
	"gatehouse/core/permission"
	"gatehouse/web"
	"gatehouse/web/auth"
)

type (
	// Asks are the tool calls that wait for the owner. Ask is also one that was
	// settled. A decision on one that is settled is core.Conflict and names the outcome;
	// a pattern that is neither a suggested grant nor narrower is core.Invalid.
	Asks interface {
		Pending(ctx context.Context, limit int) ([]ask.Waiting, error)
		Ask(ctx context.Context, id string) (ask.Ask, error)
		Grant(ctx context.Context, id, pattern string, by core.Actor) error
		Deny(ctx context.Context, id string, by core.Actor) error
	}
	// Grants are what was granted beyond one call and is: of a session
	// ("" all) and a user (0 all).
	Grants interface {
		Grants(ctx context.Context, session string, user int64) ([]permission.GrantRow, error)
		Revoke(ctx context.Context, id string, by core.Actor) error
	}
	// Answers takes what a user answers to a question of this session; to
	// anyone who was not asked it is core.NotFound.
	Answers interface {
		Answer(ctx context.Context, session, ask string, answers json.RawMessage, by core.Actor) error
	}
	// A Bell rings when something changed (*bus.Bus); its channel is closed
	// when ctx ends. core.TopicApprovals rings for asks and grants.
	Bell interface {
		Listen(ctx context.Context, topics ...core.Topic) <-chan core.Topic
	}
	// Sessions finds the session of a request (*sessions.Finder).
	Sessions interface {
		Find(r *http.Request, p auth.Principal) (string, error)
	}
	// Streams opens event streams and counts those of a caller (*stream.Streams).
	Streams interface {
		Take(caller string) (release func(), err error)
		Start(w http.ResponseWriter, r *http.Request, endless bool) (*web.Stream, error)
		Watch(r *http.Request, gone func()) (forget func())
	}
)

// Options for New; all are needed.
type Options struct {
	Asks     Asks
	Grants   Grants
	Answers  Answers
	Bell     Bell
	Sessions Sessions
	Streams  Streams
	Clock    core.Clock
	Log      *slog.Logger
}

// An API serves the routes of open questions and of grants.
type API struct{ Options }

// New returns an API.
func New(o Options) *API { return &API{o} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"POST /api/chat/{id}/answer":          a.answerQuestion,
		"GET /api/permissions/stream":         a.permissionStream,
		"POST /api/permissions/{id}/grant":    a.grant,
		"POST /api/permissions/{id}/deny":     a.refuseCall,
		"GET /api/permissions/grants":         a.grants,
		"DELETE /api/permissions/grants/{id}": a.revokeGrant,
	}
}

// maxAsks is how many calls are shown at once: all that can wait.
const maxAsks = 100

// A call is a tool call that waits for approval.
type call struct {
	core.PermissionRequest
	Session  string     `json:"session_id"`
	Run      string     `json:"run_id"`
	Bot      string     `json:"bot"`
	User     int64      `json:"user_id"` // the user of the call
	Trust    core.Trust `json:"trust_level"`
	Reason   string     `json:"reason"`
	Commands []string   `json:"commands,omitempty"`
	Diff     *change    `json:"diff,omitempty"`
	At       time.Time  `json:"created_at"`
}

// A change is what a call would change in a file.
type change struct {
	Path    string        `json:"path"`
	New     bool          `json:"new"`
	Binary  bool          `json:"binary"`
	Before  *diff.Content `json:"before,omitempty"`
	After   *diff.Content `json:"after,omitempty"`
	Added   int           `json:"added"`
	Removed int           `json:"removed"`
	Unified string        `json:"unified"`
	More    int           `json:"more"` // added and removed lines that Unified leaves out
	Problem string        `json:"problem,omitempty"`
}

// callOf returns a call as p sees it. What a file holds is not shown to a key below
// the call's trust, which may not read the file.
func callOf(w ask.Waiting, p auth.Principal) call {
	c := call{PermissionRequest: w.Request, Session: w.Session, Run: w.Run, Bot: w.Bot, User: w.User, Trust: w.Trust,
		Reason: w.Reason, Commands: w.Commands, At: w.At}
	if f := w.Diff; f != nil && !above(w.Trust, p) {
		c.Diff = &change{Path: f.Path, New: f.New, Binary: f.Binary, Before: f.Before, After: f.After, Added: f.Added, Removed: f.Removed,
			Unified: f.Unified(), More: f.More, Problem: f.Problem}
	}
	return c
}

// above reports whether a trust is above that of p's key.
func above(level core.Trust, p auth.Principal) bool { return p.Key != "" && level > p.Trust }

// A settled call has its outcome.
type settled struct {
	Type      string     `json:"type,omitempty"` // of an event
	Request   call       `json:"request"`
	Decision  string     `json:"decision"` // granted, denied, timeout, withdrawn
	By        string     `json:"by"`
	DecidedAt *time.Time `json:"decided_at,omitempty"`
}

func settledCall(a ask.Ask, c call) settled {
	s := settled{Request: c, Decision: a.Outcome(), By: a.DecidedBy}
	if !a.DecidedAt.IsZero() {
		s.DecidedAt = &a.DecidedAt
	}
	return s
}

// grant serves POST /api/permissions/{id}/grant. No one opens with a key what the
// key's own trust would not reach.
func (a *API) grant(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	pattern, err := a.pattern(w, r)
	if err != nil {
		return err
	}
	_, c, err := a.call(r, p)
	if err != nil {
		return err
	}
	if above(c.Trust, p) {
		return core.Errorf(core.Denied, "the call has the trust level %s, which is above this key's, which is %s", c.Trust, p.Trust)
	}
	return a.settle(w, r, p, func(ctx context.Context, id string) error { return a.Asks.Grant(ctx, id, pattern, p.Actor()) })
}

// pattern reads the body of a grant, which may be absent.
func (a *API) pattern(w http.ResponseWriter, r *http.Request) (pattern string, err error) {
	if r.ContentLength == 0 {
		return "", nil
	}
	given, err := web.ReadFields(w, r)
	if err != nil {
		return "", err
	}
	if value, ok := given["pattern"]; ok && (json.Unmarshal(value, &pattern) != nil || pattern == "") {
		return "", web.FieldProblem(web.Invalid, "pattern", "the field pattern must be a string that is not empty; leave it out to allow this call only")
	}
	delete(given, "pattern")
	web.WarnUnknown(w, given)
	return pattern, nil
}

// refuseCall serves POST /api/permissions/{id}/deny.
func (a *API) refuseCall(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	return a.settle(w, r, p, func(ctx context.Context, id string) error { return a.Asks.Deny(ctx, id, p.Actor()) })
}

// call returns the ask in the address; NotFound when it is not of a tool call.
func (a *API) call(r *http.Request, p auth.Principal) (ask.Ask, call, error) {
	found, err := a.Asks.Ask(r.Context(), r.PathValue("id"))
	if err != nil {
		return found, call{}, err
	}
	waiting, err := ask.View(found)
	return found, callOf(waiting, p), err
}

// settle responds with the call as it is after do. A second decision gets the first
// one's author.
func (a *API) settle(w http.ResponseWriter, r *http.Request, p auth.Principal, do func(context.Context, string) error) error {
	failed := do(r.Context(), r.PathValue("id"))
	if failed != nil && core.KindOf(failed) != core.Conflict {
		return failed
	}
	ask, c, err := a.call(r, p)
	if failed != nil {
		return overtaken(failed, ask, err)
	}
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, settledCall(ask, c))
}

// overtaken returns a conflict that names who decided, where that is known.
func overtaken(failed error, ask ask.Ask, err error) error {
	p := &web.Problem{Fault: web.Conflict, Detail: core.TextOf(failed), Err: failed, Extra: map[string]any{}}
	if err != nil || ask.Outcome() == "" {
		return p
	}
	p.Extra["decision"] = ask.Outcome()
	if ask.DecidedBy != "" {
		p.Extra["resolved_by"] = ask.DecidedBy
	}
	if !ask.DecidedAt.IsZero() {
		p.Extra["resolved_at"] = ask.DecidedAt
	}
	return p
}

// grants serves GET /api/permissions/grants.
func (a *API) grants(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	q := r.URL.Query()
	session, user := q.Get("session_id"), int64(0)
	if len(session) > 128 {
		return core.Errorf(core.Invalid, "session_id is over 128 bytes")
	}
	if q.Has("user_id") {
		var err error
		if user, err = strconv.ParseInt(q.Get("user_id"), 10, 64); err != nil || user < 1 {
			return core.Errorf(core.Invalid, "user_id must be a number from 1")
		}
	}
	rows, err := a.Grants.Grants(r.Context(), session, user)
	if err != nil {
		return err
	}
	if rows == nil {
		rows = []permission.GrantRow{}
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"grants": rows})
}

// revokeGrant serves DELETE /api/permissions/grants/{id}.
func (a *API) revokeGrant(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	if err := a.Grants.Revoke(r.Context(), r.PathValue("id"), p.Actor()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// answerQuestion serves POST /api/chat/{id}/answer.
func (a *API) answerQuestion(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	raw, err := web.ReadJSON(w, r, web.MaxJSON)
	if err != nil {
		return err
	}
	given, err := web.FieldsOf(raw)
	if err != nil {
		return err
	}
	var ask string
	if json.Unmarshal(given["id"], &ask) != nil || ask == "" {
		return web.FieldProblem(web.Invalid, "id", "the field id must be the id of the question")
	}
	answers := bytes.TrimSpace(given["answers"])
	if len(answers) == 0 || answers[0] != '{' && answers[0] != '"' {
		return web.FieldProblem(web.Invalid, "answers", "the field answers must be an object by question, or a text")
	}
	session, err := a.Sessions.Find(r, p)
	if err != nil {
		return err
	}
	if err := a.Answers.Answer(r.Context(), session, ask, answers, p.Actor()); err != nil {
		return err
	}
	delete(given, "id")
	delete(given, "answers")
	web.WarnUnknown(w, given)
	return web.WriteJSON(w, http.StatusOK, map[string]string{"id": ask, "session_id": session})
}
