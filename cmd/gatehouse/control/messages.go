package control

import (
	"encoding/json"
	"time"

	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/store"
	"gatehouse/core/tool/mcp/entry"
	"gatehouse/pairing/codes"
	"gatehouse/pairing/people"
	"gatehouse/web/account"
	"gatehouse/web/api/bots/post"
	"gatehouse/web/auth"
)

// By is the command line as audit entries name it.
var By = core.Actor{User: core.Operator, Via: "cli"}

// Bodies of requests and answers that more than the socket's server needs to
// know. Those of the HTTP API are as docs/api.md describes them.

type (
	// Limits is the answer of GET /control/limits.
	Limits struct {
		Text string `json:"text"` // what limits isolated programs, for users
	}
	// Accounts is the answer of GET /control/accounts.
	Accounts struct {
		Accounts []account.Account `json:"accounts"`
	}
	// An AccountTerms is the body of POST /control/accounts, and of PATCH with what changes.
	AccountTerms struct {
		Name string `json:"name,omitempty"`
		Role string `json:"role,omitempty"`
	}
	// Sessions is the answer of GET /control/accounts/{name}/sessions.
	Sessions struct {
		Sessions []auth.SessionRow `json:"sessions"`
	}
	// Ended is the answer where sessions were ended.
	Ended struct {
		Ended int `json:"ended"`
	}
	// A NewPassword is the answer where an account gets a one-time password.
	NewPassword struct {
		Account  account.Account `json:"account"`
		Password string          `json:"password"`
	}
	// A Server is how the gateway finds one MCP server; GET /control/servers
	// answers with all, at most 2 × entry.MaxServers + 1.
	Server = entry.State
	// A ClaimRequest is the body of POST /control/claim; a ClaimCode is its answer.
	ClaimRequest struct {
		Replace bool `json:"replace"`
	}
	ClaimCode struct {
		Code      string    `json:"code,omitempty"`
		ExpiresAt time.Time `json:"expires_at,omitzero"`
	}
	// A NewInvitation is the answer of POST /control/invitations. The body of the
	// request is a codes.Invitation.
	NewInvitation struct {
		Code       string           `json:"code"`
		Link       string           `json:"link"` // "" where the platform has none
		Invitation codes.Invitation `json:"invitation"`
	}
	// Invitations is the answer of GET /control/invitations.
	Invitations struct {
		Invitations []codes.Invitation `json:"invitations"`
	}
	// A Message is the body of POST /control/messages. Its ID is the caller's own
	// name for it, and Files are not used. The answer is a post.Posted.
	Message struct {
		post.Unasked
		Attached []File `json:"attached,omitempty"`
	}
	// A File goes along with a message.
	File struct {
		Name string `json:"name"`
		Data []byte `json:"data"`
	}
	// Session is the answer of GET /control/sessions/{id}, for an id or the beginning of one.
	Session struct {
		ID string `json:"id"`
	}
	// SessionRules is the answer of GET /control/sessions/{id}/rules.
	SessionRules struct {
		Metadata json.RawMessage       `json:"metadata,omitempty"`
		Grants   []permission.GrantRow `json:"grants"`
	}
	// People is the answer of GET /control/people.
	People struct {
		People []people.Listed `json:"people"`
		More   bool            `json:"more"` // there are more than are listed
	}
	// Person is the answer of GET /control/people/{ref}.
	Person struct {
		Names    []string `json:"names"` // and accounts
		Sessions int      `json:"sessions"`
	}
	// A Reference is the answer of GET /control/user?ref=.
	Reference = people.Reference
	// A Job is the answer of what takes long: it is followed by its key.
	Job struct {
		Key string `json:"job"`
	}
	// A JobState is the answer of GET /control/jobs/{key}, which waits a second for
	// the job's end. A failed job's error is that of the request.
	JobState struct {
		Running  bool            `json:"running"`
		Progress string          `json:"progress,omitempty"`
		Result   json.RawMessage `json:"result,omitempty"`
	}
)

// Answers of the HTTP API.
type (
	// Requests is the answer of GET /api/bots/pairing.
	Requests struct {
		Requests []core.PairingRequest `json:"requests"`
	}
	// A Key is one in the answers below, without its secret.
	Key = auth.KeyRow
	// Keys is the answer of GET /api/keys.
	Keys struct {
		Keys []Key `json:"keys"`
	}
	// A NewKey is the answer of POST /api/keys.
	NewKey struct {
		Secret string `json:"key,omitempty"`
		Record Key    `json:"record"`
	}
	// AuditLog is the answer of GET /api/audit.
	AuditLog struct {
		Events []store.AuditEvent `json:"events"`
		Next   string             `json:"next_cursor"`
	}
)
