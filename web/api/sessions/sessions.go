// Package sessions serves the sessions of the API: lists, one with its messages,
// tags and contexts, changes and deletion.
package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
	"gatehouse/web"
	"gatehouse/web/auth"
)

type (
	// Lists finds sessions.
	Lists interface {
		List(ctx context.Context, q Query) (rows []Row, next string, err error)
		// Count returns how many List would show without search, limit and paging.
		Count(ctx context.Context, q Query) (int, error)
	}
	// A Reader reads sessions. The caller has checked that the user may see them.
	Reader interface {
		Detail(ctx context.Context, id string) (session.Detail, error)
		Page(ctx context.Context, s session.Session, q transcript.PageQuery) (transcript.Page, error)
		Export(ctx context.Context, s session.Session) (string, error)
		Tags(ctx context.Context, user int64, all bool) ([]session.TagCount, error)
	}
	// Transcripts opens the files of sessions' transcripts.
	Transcripts interface {
		Transcript(ctx context.Context, s session.Session) (file io.ReadCloser, size int64, err error)
	}
	// An Editor changes and deletes sessions, each in one transaction with its
	// audit row. A Change for a version that is no more, and a deletion that is for
	// other versions (none: for any), is session.ErrChanged;
	// a session with a run that is going on is not deleted but core.Conflict.
	Editor interface {
		Update(ctx context.Context, id string, c session.Change, by core.Actor) (session.Detail, error)
		Delete(ctx context.Context, id string, versions []string, by core.Actor) error
	}
	// Failures returns why a session's newest turn failed; nil if it did not.
	Failures interface {
		LastError(ctx context.Context, session string) (*LastError, error)
	}
)

// A LastError is why the newest turn of a session has no answer.
type LastError struct {
	Kind    string    `json:"kind"`    // the code of the event error
	Message string    `json:"message"` // the error text that its sender got
	Run     string    `json:"run_id"`
	At      time.Time `json:"at"`
	// For the operator and admins alone.
	Provider string `json:"provider_message,omitempty"` // what the provider, or the failing part, reported
	Setting  string `json:"setting,omitempty"`          // to check
	Advice   string `json:"what_to_do,omitempty"`
}

// Options for New; all are needed.
type Options struct {
	Finder      *Finder
	Lists       Lists
	Reader      Reader
	Editor      Editor
	Transcripts Transcripts
	Failures    Failures
}

// An API serves the routes of sessions.
type API struct {
	Options
	exports *web.Slots // an export is in memory until its reader has it
}

// New returns an API.
func New(o Options) *API { return &API{Options: o, exports: web.NewSlots(MaxExports)} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /api/chat":                    a.list,
		"GET /api/chat/count":              a.count,
		"GET /api/chat/{id}":               a.readSession,
		"PATCH /api/chat/{id}":             a.changeSession,
		"DELETE /api/chat/{id}":            a.deleteSession,
		"POST /api/chat/{id}/archive":      a.archive(true),
		"POST /api/chat/{id}/unarchive":    a.archive(false),
		"GET /api/chat/{id}/messages":      a.messages,
		"GET /api/chat/{id}/export.md":     a.export,
		"GET /api/chat/{id}/transcript":    a.transcript,
		"GET /api/chat/{id}/tags":          a.tags,
		"POST /api/chat/{id}/tags":         a.addTags,
		"DELETE /api/chat/{id}/tags/{tag}": a.removeTag,
		"GET /api/tags":                    a.tagCounts,
		"GET /api/tags/{tag}/sessions":     a.byTag,
		"GET /api/chat/{id}/contexts":      a.contexts,
		"PUT /api/chat/{id}/contexts":      a.setContexts,
		"POST /api/chat/{id}/contexts":     a.addContexts,
		"DELETE /api/chat/{id}/contexts":   a.removeContext,
		"GET /api/contexts/sessions":       a.byContext,
	}
}

// A detail is a session as it is read alone.
type detail struct {
	Row
	TitleSource string          `json:"title_source"`
	Tags        []string        `json:"tags"`
	Contexts    []string        `json:"contexts"`
	Metadata    json.RawMessage `json:"metadata"`
	LastError   *LastError      `json:"last_error,omitempty"` // of GET alone
}

func detailOf(d session.Detail) detail {
	if len(d.Metadata) == 0 || d.Metadata[0] != '{' {
		d.Metadata = json.RawMessage("{}")
	}
	return detail{Row: RowOf(d.Session), TitleSource: d.TitleSource, Tags: d.Tags, Contexts: d.Contexts, Metadata: d.Metadata}
}

// RowOf returns a session as lists show it.
func RowOf(s session.Session) Row {
	return Row{
		ID: s.ID, Title: s.Title, Module: s.Module, Source: s.Source, WorkingDirectory: s.WorkingDirectory, Model: s.Model, ChosenModel: s.ChosenModel,
		MessageCount: s.MessageCount, Archived: s.Archived, CreatedAt: s.CreatedAt, LastAccessed: s.LastAccessed,
		ContinuedFrom: s.ContinuedFrom, AgentType: s.AgentType, Workspace: s.Workspace, Project: s.Project, ParaID: s.ParaID, User: s.User, Trust: s.TrustLevel,
	}
}

// readSession serves GET /api/chat/{id}.
func (a *API) readSession(w http.ResponseWriter, r *http.Request) error {
	p, d, err := a.Finder.Found(r, auth.ScopeRead, auth.ScopeChat)
	if err != nil {
		return err
	}
	limit, err := web.QueryNumber(r.URL.Query(), "limit", 50, 1, 200)
	if err != nil {
		return err
	}
	page, err := a.Reader.Page(r.Context(), d.Session, transcript.PageQuery{Limit: limit})
	if err != nil {
		return err
	}
	whole := detailOf(d)
	if whole.LastError, err = a.lastError(r.Context(), p, d.ID); err != nil {
		return err
	}
	w.Header().Set("ETag", etag(d))
	return web.WriteJSON(w, http.StatusOK, struct {
		detail
		messagePage
	}{whole, pageOf(page, d.User == core.Operator)})
}

// lastError returns the session's LastError as p may read it.
func (a *API) lastError(ctx context.Context, p auth.Principal, id string) (*LastError, error) {
	last, err := a.Failures.LastError(ctx, id)
	if err != nil || last == nil {
		return nil, err
	}
	seen := *last
	if !p.Governs() {
		seen.Provider, seen.Setting, seen.Advice = "", "", ""
	}
	return &seen, nil
}

func etag(d session.Detail) string { return `"` + d.Version() + `"` }

// matching returns the versions that If-Match names (RFC 9110, section 13.1.1); none
// for "*" and without the header. Weak ones match nothing.
func matching(r *http.Request) (versions []string, given bool) {
	header := strings.Join(r.Header.Values("If-Match"), ",")
	if strings.TrimSpace(header) == "" {
		return nil, false
	}
	versions = []string{"none"}
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" {
			return nil, true
		}
		if len(tag) > 2 && tag[0] == '"' && tag[len(tag)-1] == '"' {
			versions = append(versions, tag[1:len(tag)-1])
		}
	}
	return versions, true
}

// update changes the session in the address.
func (a *API) update(r *http.Request, p auth.Principal, id string, c session.Change) (session.Detail, error) {
	if c.If == nil {
		c.If, _ = matching(r)
	}
	c.Trust = p.Trust
	d, err := a.Editor.Update(r.Context(), id, c, p.Actor())
	return d, changed(err)
}

// changed returns err, or a 412 for a change meant for another version.
func changed(err error) error {
	if errors.Is(err, session.ErrChanged) {
		return &web.Problem{Fault: web.PreconditionFailed, Detail: core.TextOf(err), Err: err}
	}
	return err
}

func writeDetail(w http.ResponseWriter, d session.Detail) error {
	w.Header().Set("ETag", etag(d))
	return web.WriteJSON(w, http.StatusOK, detailOf(d))
}

// owner reports whether p may say what is permitted in d: the gateway's owner,
// with a key that reaches as far as the session does.
func owner(p auth.Principal, d session.Detail) bool {
	return p.User == core.Operator && p.Has(auth.ScopeAdmin) && (p.Key == "" || p.Trust >= d.TrustLevel)
}

// changeSession serves PATCH /api/chat/{id}.
func (a *API) changeSession(w http.ResponseWriter, r *http.Request) error {
	p, d, err := a.Finder.Found(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	if _, named := matching(r); !named {
		return web.Refuse(web.MatchRequired, "name in If-Match the version to change")
	}
	given, err := web.ReadFields(w, r)
	if err != nil {
		return err
	}
	c, err := readChange(given)
	if err != nil {
		return err
	}
	c.Owner = owner(p, d)
	if d, err = a.update(r, p, d.ID, c); err != nil {
		return err
	}
	web.WarnUnknown(w, given)
	return writeDetail(w, d)
}

// fixed are fields of a session that no change reaches; to ignore them would
// look as if it had.
var fixed = []string{"id", "source", "message_count", "created_at", "last_accessed", "continued_from", "user_id", "trust_level", "title_source", "para_id", "chosen_model", "tags", "contexts"}

// readChange takes out of given what it knows.
func readChange(given map[string]json.RawMessage) (c session.Change, err error) {
	for _, name := range fixed {
		if _, there := given[name]; there {
			return c, web.FieldProblem(web.UnsupportedField, name, "the field "+name+" cannot be changed here")
		}
	}
	for _, f := range []struct {
		name string
		dest any
		kind string
		most int
	}{
		{"title", &c.Title, "string", 4000}, {"archived", &c.Archived, "boolean", 16}, {"module", &c.Module, "string", 1200},
		{"working_directory", &c.WorkingDirectory, "string", 24_000}, {"model", &c.Model, "string", 1200},
		{"agent_type", &c.AgentType, "string", 1200}, {"workspace", &c.Workspace, "string", 1200}, {"project_id", &c.Project, "string", 1200}, {"metadata", &c.Metadata, "object", 64 << 10},
	} {
		value, there := given[f.name]
		if !there {
			continue
		}
		if len(value) > f.most {
			return c, web.FieldProblem(web.TooLarge, f.name, fmt.Sprintf("the field %s is over %d bytes", f.name, f.most))
		}
		if json.Unmarshal(value, f.dest) != nil {
			return c, web.FieldProblem(web.Invalid, f.name, "the field "+f.name+" must be a "+f.kind)
		}
		delete(given, f.name)
	}
	if c.Title != nil && len([]rune(*c.Title)) > 1000 {
		return c, web.FieldProblem(web.TooLarge, "title", "the field title is over 1000 characters")
	}
	return c, nil
}

// archive serves POST /api/chat/{id}/archive and …/unarchive.
func (a *API) archive(yes bool) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		p, d, err := a.Finder.Found(r, auth.ScopeChat)
		if err != nil {
			return err
		}
		if d, err = a.update(r, p, d.ID, session.Change{Archived: &yes}); err != nil {
			return err
		}
		return writeDetail(w, d)
	}
}

// deleteSession serves DELETE /api/chat/{id}.
func (a *API) deleteSession(w http.ResponseWriter, r *http.Request) error {
	p, d, err := a.Finder.Found(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	want, _ := matching(r)
	if err := changed(a.Editor.Delete(r.Context(), d.ID, want, p.Actor())); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
