// Package server answers the operator's command line: the endpoints of the HTTP
// API that it uses, and those that are for it alone. Every caller of its handler
// is the operator, so it is served on a socket that only the gateway's own user
// can open.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/configs/live"
	"gatehouse/core/attach"
	"gatehouse/core/erasure"
	"gatehouse/core/erasure/tasks"
	"gatehouse/core/jobs"
	"gatehouse/core/permission"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/tool/mcp"
	"gatehouse/core/vault"
	"gatehouse/pairing/codes"
	"gatehouse/pairing/people"
	"gatehouse/web"
	"gatehouse/web/account"
	"gatehouse/web/api/bots"
	"gatehouse/web/auth"
)

// Options of New. All are needed.
type Options struct {
	API      http.Handler // of web/api
	MCP      http.Handler // of web/mcp: its callers send a key
	DB       *store.DB
	Log      *slog.Logger
	Jobs     *jobs.Table
	Tasks    *tasks.Tasks
	Eraser   *erasure.Eraser
	Codes    *codes.Store
	Sessions *session.Store
	Vault    *vault.Vault
	Grants   Grants
	Files    *attach.Keeper
	Mail     bots.Mail
	Bots     Bots
	Users    Users
	Accounts *account.Store
	Admins   *auth.Admins

	Servers    func() []mcp.Health           // how the MCP servers are
	Limits     func() string                 // what limits isolated programs, for users
	InviteLink func(bot, code string) string // "" where a platform has no such links
	Settings   func(ctx context.Context) (*live.Report, error)

	Rebuild func(ctx context.Context, progress func(string)) (any, error) // of the search
	Retry   func(ctx context.Context, progress func(string)) (any, error) // of recordings that wait for their text
	Rotate  func(ctx context.Context, progress func(string)) (any, error) // the key of encrypted columns
}

type (
	// Grants are what was allowed in a session.
	Grants interface {
		Grants(ctx context.Context, session string, user int64) ([]permission.GrantRow, error)
	}
	// Users are those with access. Since returns when a user was added, and whether
	// there is one.
	Users interface {
		Since(ctx context.Context, q store.Queryer, user int64) (time.Time, bool, error)
		// Unlisted returns the names of users without access, such as those of accounts of the panel.
		Unlisted(ctx context.Context) (map[int64]string, error)
		// Everyone lists at most limit users, and Refer returns the one that a reference names.
		Everyone(ctx context.Context, limit int) ([]people.Listed, error)
		Refer(ctx context.Context, q store.Queryer, ref string) (people.Reference, error)
	}
	// Bots are the configured bots. Named finds one by its name, or by a platform's
	// or none where there is only one.
	Bots interface {
		Named(name string) (string, error)
	}
)

type server struct{ Options }

// New returns the handler.
func New(o Options) http.Handler {
	s := &server{o}
	mux := http.NewServeMux()
	for _, e := range s.endpoints() {
		h := e.handler
		if h == nil {
			h = o.API
		}
		mux.Handle(e.pattern, s.audited(e.name, h))
	}
	mux.Handle("/mcp", o.MCP)
	return mux
}

// An endpoint is one command's request. Its name is the subject of the audit
// entry that each request writes; without one none is written.
type endpoint struct {
	name, pattern string
	handler       http.Handler // nil: the API's
}

func (s *server) endpoints() []endpoint {
	own := func(name, pattern string, h web.Handler) endpoint {
		return endpoint{name, pattern, web.Serve(s.Log, web.WriteProblem, h)}
	}
	return []endpoint{
		{name: "pairing/list", pattern: "GET /api/bots/pairing"},
		{name: "pairing/approve", pattern: "POST /api/bots/pairing/{id}/approve"},
		{name: "pairing/deny", pattern: "POST /api/bots/pairing/{id}/deny"},
		{name: "pairing/block", pattern: "POST /api/bots/pairing/{id}/block"},
		{name: "pairing/revoke", pattern: "DELETE /api/bots/pairing/{bot}/{user_id}"},
		{name: "keys/list", pattern: "GET /api/keys"},
		{name: "keys/create", pattern: "POST /api/keys"},
		{name: "keys/rotate", pattern: "POST /api/keys/{id}/rotate"},
		{name: "keys/revoke", pattern: "DELETE /api/keys/{id}"},
		{name: "audit", pattern: "GET /api/audit"},
		{name: "export", pattern: "GET /api/chat/{id}/export.md"},
		{name: "search", pattern: "GET /api/search"},
		{pattern: "GET /api/projects"},
		{name: "import/start", pattern: "POST /api/import"},
		{pattern: "GET /api/import/{id}"},
		{name: "import/stop", pattern: "DELETE /api/import/{id}"},
		own("ping", "GET /control/limits", s.limits),
		own("ping", "GET /control/servers", s.servers),
		own("settings", "GET /control/settings", s.settings),
		own("claim", "POST /control/claim", s.claim),
		own("invite/create", "POST /control/invitations", s.invite),
		own("invite/list", "GET /control/invitations", s.invitations),
		own("invite/revoke", "DELETE /control/invitations/{id}", s.revokeInvitation),
		own("admins/list", "GET /control/accounts", s.accounts),
		own("admins/add", "POST /control/accounts", s.addAccount),
		own("admins/change", "PATCH /control/accounts/{name}", s.changeAccount),
		own("admins/reset", "POST /control/accounts/{name}/password", s.resetAccount),
		own("admins/remove", "DELETE /control/accounts/{name}", s.removeAccount),
		own("admins/totp-off", "DELETE /control/accounts/{name}/two-step", s.endTwoStep),
		own("admins/sessions", "GET /control/accounts/{name}/sessions", s.accountSessions),
		own("admins/sessions/end", "DELETE /control/accounts/{name}/sessions", s.endAccountSessions),
		own("send", "POST /control/messages", s.send),
		own("send/status", "GET /control/messages/{id}", s.sent),
		own("", "GET /control/sessions/{id}", s.session),
		own("explain", "GET /control/sessions/{id}/rules", s.rules),
		own("people/list", "GET /control/people", s.people),
		own("", "GET /control/user", s.refer),
		own("export/person", "GET /control/people/{ref}/export", s.exportPerson),
		own("forget/look", "GET /control/people/{ref}", s.person),
		own("forget", "POST /control/people/{ref}/forget", s.forget),
		own("reindex", "POST /control/reindex", s.reindex),
		own("reindex --search", "POST /control/reindex/search", s.rebuild),
		own("keys/content/rotate", "POST /control/content-key/rotate", s.rotateContentKey),
		own("voice retry", "POST /control/voice/retry", s.retryVoice),
		own("", "GET /control/jobs/{key}", s.job),
		own("", "GET /control/names", s.names),
	}
}

// audited has h answer the operator, after an audit entry.
func (s *server) audited(name string, h http.Handler) http.Handler {
	return web.Serve(s.Log, web.WriteProblem, func(w http.ResponseWriter, r *http.Request) error {
		if name != "" {
			err := s.DB.Tx(r.Context(), func(tx *store.Tx) error {
				return store.Audit(r.Context(), tx, control.By, "socket.request", name, nil)
			})
			if err != nil {
				return err
			}
		}
		h.ServeHTTP(w, auth.AsOperator(r, control.By.Via))
		return nil
	})
}

func (s *server) limits(w http.ResponseWriter, _ *http.Request) error {
	return web.WriteJSON(w, http.StatusOK, control.Limits{Text: s.Limits()})
}

func (s *server) servers(w http.ResponseWriter, _ *http.Request) error {
	list := []control.Server{}
	for _, h := range s.Servers() {
		list = append(list, control.Server{Name: h.Name, State: h.State, Since: h.Since, Next: h.Next, Error: h.Error})
	}
	return web.WriteJSON(w, http.StatusOK, list)
}

func (s *server) settings(w http.ResponseWriter, r *http.Request) error {
	report, err := s.Settings(r.Context())
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, report)
}
