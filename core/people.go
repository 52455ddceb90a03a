package core

import (
	"strconv"
	"time"
)

// An Actor is who decided something, for audit rows and for "X was first".
type Actor struct {
	User int64  `json:"user"` // users.id; 1 is the operator; 0 is the program itself
	Via  string `json:"via"`  // "panel", "chat", "api", "cli", "upkeep"
}

// String names an actor for other users: ids only, never a name.
func (a Actor) String() string {
	name := "user " + strconv.FormatInt(a.User, 10)
	switch a.User {
	case 0:
		name = "the gateway"
	case Operator:
		name = "operator"
	}
	if a.Via != "" {
		name += " via " + a.Via
	}
	return name
}

// Operator is the id of user 1, who owns the gateway.
const Operator int64 = 1

// A Person is a user to be deleted, with all ids that tables use.
type Person struct {
	User       int64 // 0: never let in
	Identities []Identity
	Names      []string  // as platforms showed them
	Chats      []Address // direct chats with bots
	Requests   []string  // ids of pairing requests
	Sessions   []string  // their own sessions
}

// An Identity is a user as one platform knows them.
type Identity struct {
	Platform string
	ID       string
	Bots     []string // of that platform
}

// A PairingRequest is a stranger's wish to talk to a bot (table pairing_requests).
type PairingRequest struct {
	ID                 string    `json:"id" db:"id"`
	Bot                string    `json:"bot" db:"bot"`
	Platform           string    `json:"platform" db:"platform"`
	PlatformUserID     string    `json:"platform_user_id" db:"platform_user_id"`
	Display            string    `json:"platform_user_display" db:"platform_user_display"`
	PlatformChatID     string    `json:"platform_chat_id" db:"platform_chat_id"`
	Scope              Scope     `json:"scope" db:"scope"`
	Place              string    `json:"place" db:"place"`
	Status             string    `json:"status" db:"status"` // pending, approved, denied, expired
	Blocked            bool      `json:"blocked,omitempty"`  // denied by a block
	Revoked            bool      `json:"revoked,omitempty"`  // approved first; an approval gives access again
	Code               string    `json:"code" db:"code"`
	CodeExpiresAt      time.Time `json:"code_expires_at"`
	ExpiresAt          time.Time `json:"expires_at"`
	ApprovedTrustLevel Trust     `json:"approved_trust_level,omitempty" db:"approved_trust_level"`
	CreatedAt          time.Time `json:"created_at"`
	ResolvedAt         time.Time `json:"resolved_at,omitzero"`
	ResolvedBy         string    `json:"resolved_by,omitempty" db:"resolved_by"`
	FirstMessage       string    `json:"first_message"` // the held request's text, cut to 500 bytes
	Held               int       `json:"held"`          // messages waiting with it
}

// Ref returns what names r at now to those who decide about it: its code while that is valid,
// else its id.
func (r *PairingRequest) Ref(now time.Time) string {
	if r.Status == "pending" && now.Before(r.CodeExpiresAt) {
		return r.Code
	}
	return r.ID
}

// An Approval holds the terms of an approval. The zero Trust means the
// bot's preset; the zero ExpiresAt means without end; "" Scope means as asked.
type Approval struct {
	Trust     Trust     `json:"trust_level"`
	Scope     Scope     `json:"scope,omitempty"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Most is the highest level that may come of it, also of a preset; Stranger: no bound of its own.
	Most Trust `json:"-"`
}

// An AccessRow is one thing a user may do (tables access, users, identities).
type AccessRow struct {
	ID             int64     `json:"id"`
	Bot            string    `json:"bot"`
	User           int64     `json:"user_id"`
	Display        string    `json:"display"`
	Role           Role      `json:"role"`
	Platform       string    `json:"platform"`
	PlatformUserID string    `json:"platform_user_id"`
	Scope          Scope     `json:"scope"`
	Place          string    `json:"place"`
	Trust          Trust     `json:"trust_level"`
	ExpiresAt      time.Time `json:"expires_at,omitzero"`
	By             string    `json:"by"`
	At             time.Time `json:"at"`
}

// A Phase is how a connector is.
type Phase string

const (
	Stopped      Phase = "stopped"
	Starting     Phase = "starting"
	Running      Phase = "running"
	Degraded     Phase = "degraded" // works, but badly: a second poller, a slow platform
	Reconnecting Phase = "reconnecting"
	FailedPhase  Phase = "failed" // will not come back on its own; Reason reports what to do
)

// Phases in order, for metrics with every label value present.
var Phases = [...]Phase{Stopped, Starting, Running, Degraded, Reconnecting, FailedPhase}

// A BotState is what the panel, the API and readiness show for one bot.
type BotState struct {
	Bot         string    `json:"bot"`
	Platform    string    `json:"platform"`
	State       Phase     `json:"state"`
	Reason      string    `json:"reason,omitempty"` // for an operator; never a token
	Since       time.Time `json:"since"`
	LastSuccess time.Time `json:"last_success,omitzero"` // last exchange the platform answered well
	LastError   string    `json:"last_error,omitempty"`
	Username    string    `json:"username,omitempty"` // the bot's own name on the platform, once known
}

// An AccessPreview is what a user would see and do after access is approved.
type AccessPreview struct {
	Agent, Model string   // who answers, with what
	Files        int      // readable files
	AtLeast      bool     // there are more: not all were visited
	Examples     []string // of these files
	Tools        []string // offered to their turns
	Unasked      []string // actions that need no approval
	Asks         []string // actions that wait for the operator's approval
}
