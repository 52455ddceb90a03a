package permission

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/tool"
	"gatehouse/core/vault"
)

// A Verdict is what becomes of a call.
type Verdict uint8

// Verdicts. The zero value is no.
const (
	Deny Verdict = iota
	MustAsk
	Allow
)

// A Decision is what becomes of one tool call, and why.
type Decision struct {
	Verdict   Verdict
	Rule      string                // which rule decided: one of Rules
	Text      string                // for the model and for people: why
	Suggested []core.SuggestedGrant // of an ask: what may be granted beyond this once
	Commands  []string              // of a shell: the simple commands that it runs
}

// A Show shows asks to the owner in chat and replaces them by their outcome;
// both inside the transaction that opens or settles them.
type Show interface {
	Open(ctx context.Context, tx *store.Tx, a Ask, req core.PermissionRequest, p Profile) error
	Close(ctx context.Context, tx *store.Tx, a Ask, outcome string) error
}

// GuardOptions are what a Guard stands on; DB and Desk must be given.
type GuardOptions struct {
	DB      *store.DB
	Desk    *Desk
	Vault   *vault.Vault // its .parachuteignore counts; nil: none
	Clock   core.Clock   // nil: the system's
	Log     *slog.Logger // nil: none
	Metrics *Metrics     // nil: counted nowhere
	Show    Show         // nil: the panel and the API show asks
}

// A Guard decides what tool calls may do. It owns the table tool_grants and is
// safe for concurrent use.
type Guard struct{ o GuardOptions }

// NewGuard makes a Guard.
func NewGuard(o GuardOptions) *Guard { return &Guard{o: o} }

// Bounds are what no grant opens, for tool.Turn: the deny list with the lines
// of .parachuteignore, the write-deny list below full, and the trust's own area.
func (g *Guard) Bounds(p Profile) (mayRead, mayWrite func(name string) bool) { return p.Bounds(nil) }

// Decide says what becomes of a call, asking nobody. It changes nothing.
func (g *Guard) Decide(ctx context.Context, q store.Queryer, p Profile, t tool.Tool, input json.RawMessage, a tool.Access) (Decision, error) {
	return Decision{}, nil
}

// Allow decides a call and asks where a person has to be asked: it opens an
// ask, emits core.PermissionRequest, calls waiting(true), and waits until
// somebody decides, 120 s are over or ctx ends; then it calls waiting(false)
// and emits PermissionResolved. The Decision is Allow or Deny. The error is
// ctx's, or ours.
func (g *Guard) Allow(ctx context.Context, p Profile, t tool.Tool, callID string, input json.RawMessage, a tool.Access, emit func(core.Event), waiting func(bool)) (Decision, error) {
	return Decision{}, nil
}

// Ask asks the sender what the model wants to know and waits 300 s; without an
// answer it is {}. It emits core.UserQuestion. Denied where nobody can answer.
func (g *Guard) Ask(ctx context.Context, p Profile, questions json.RawMessage, emit func(core.Event), waiting func(bool)) (json.RawMessage, error) {
	return nil, nil
}

// Grant lets the call of an open ask go on. An empty pattern means this once;
// else it is one of the suggested grants or narrower, and calls that it covers
// go on unasked in this session for this person at this trust, until it is
// revoked. The caller has made sure that by is owner or admin. Conflict when
// somebody was first.
func (g *Guard) Grant(ctx context.Context, askID, pattern string, by core.Actor) error { return nil }

// Deny refuses the call of an open ask. The caller has made sure that by is
// owner or admin.
func (g *Guard) Deny(ctx context.Context, askID string, by core.Actor) error { return nil }

// Answer answers a question of Ask; only the person who was asked may.
func (g *Guard) Answer(ctx context.Context, askID string, answers json.RawMessage, by core.Actor) error {
	return nil
}

// A GrantRow is one tool grant that stands.
type GrantRow struct {
	ID      string     `json:"id" db:"id"`
	Session string     `json:"session_id" db:"session_id"`
	User    int64      `json:"user_id" db:"user_id"`
	Trust   core.Trust `json:"trust_level" db:"trust"`
	Kind    string     `json:"kind" db:"kind"` // read, write, bash
	Pattern string     `json:"pattern" db:"pattern"`
	By      string     `json:"by" db:"granted_by"`
	At      time.Time  `json:"at"`
}

// Grants are the grants of a session ("" all) and user (0 all), newest first,
// at most 1000.
func (g *Guard) Grants(ctx context.Context, session string, user int64) ([]GrantRow, error) {
	return nil, nil
}

// Revoke takes a grant back: from the next call on it covers nothing.
func (g *Guard) Revoke(ctx context.Context, id string, by core.Actor) error { return nil }

// A Waiting is an ask that waits for the owner, as the panel and the API show it.
type Waiting struct {
	Request core.PermissionRequest `json:"request"`
	Session string                 `json:"session_id"`
	Run     string                 `json:"run_id"`
	User    int64                  `json:"user_id"` // for whom the call is
	Trust   core.Trust             `json:"trust_level"`
}

// Pending are the asks that wait for the owner, oldest first.
func (g *Guard) Pending(ctx context.Context, limit int) ([]Waiting, error) { return nil, nil }

// Expire ends asks whose time is over, which a process left that has ended,
// and says how many; at most 100 at a time.
func (g *Guard) Expire(ctx context.Context) (int, error) { return 0, nil }

// Forget removes what a user was granted.
func (g *Guard) Forget(ctx context.Context, tx *store.Tx, user int64) error { return nil }

// An Offer says whether a tool is offered, and if not, why in plain words.
type Offer struct {
	OK  bool
	Why string
}

// Offered is the trust matrix: which tool a turn is offered. isolation says
// that there is a sandbox for what needs one.
func Offered(p Profile, t tool.Tool, isolation bool) Offer { return Offer{OK: true} }

// Bounds are what no grant opens, by name as tool.Turn's Name makes it. ignore
// are lines of .parachuteignore.
func (p Profile) Bounds(ignore []string) (mayRead, mayWrite func(name string) bool) {
	return func(string) bool { return false }, func(string) bool { return false }
}

// Metrics are the guard's counters.
type Metrics struct{}
