// Package pairing is the gate between strangers and bots: it decides who may talk
// to which bot, in direct messages or in a group, and keeps the requests of
// strangers with the decisions about them. It owns the table pairing_requests.
//
// There is one way to authorise (Gate.judge) for every kind of update, and one
// function per decision (Approve, Deny, Block, Undo) behind panel, API, command
// line and chat. A sender who is not found is a stranger.
//
// The packages below keep what the gate reads: people has users, accounts and
// access, places has groups, codes has what is typed to be let in, and bots has
// what is configured.
package pairing

import (
	"context"
	"log/slog"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/bots"
	"gatehouse/pairing/codes"
	"gatehouse/pairing/people"
	"gatehouse/pairing/places"
)

// Durations and limits of the gate; its texts are in core/texts.
const (
	CodeLife    = time.Hour           // a pairing code works this long, then the next message gets a new one
	RequestLife = 14 * 24 * time.Hour // a request waits this long for a decision
	CoolOff     = 7 * 24 * time.Hour  // silence after a denial or a revocation

	replyEvery  = 10 * time.Minute // at most one notice to a waiting stranger in this time
	maxHeld     = 5                // messages kept with one request
	maxTaken    = 10               // messages and edits of them taken for one request
	cardEvery   = 30 * time.Second // at most one edit of what shows a request to the owner in this time
	maxPending  = 100              // requests that wait, per bot
	showWaiting = 10               // of them are shown to a new owner in chat
	giveWay     = 24 * time.Hour   // when maxPending wait, only older ones make room
	newPerHour  = 200              // new requests per bot
	firstBytes  = 500              // of a stranger's first message, shown to the owner
)

// Options of New.
type Options struct {
	Clock   core.Clock   // nil: the system's
	Log     *slog.Logger // nil: none
	Metrics *Metrics     // nil: unregistered ones
	Bots    bots.Bots
	// Merge gives what other packages keep of one user to another, when two
	// accounts turn out to be one user's; nil: nothing.
	Merge func(ctx context.Context, tx *store.Tx, from, to int64) error
	// Ungrant ends what a user was granted in conversations, in the transaction that ends
	// their access to a bot or begins one after it; nil: nothing was granted.
	Ungrant func(ctx context.Context, tx *store.Tx, user int64) error
	// Text returns a bot's own text instead of the catalogue's text of that name,
	// or "". It is called inside transactions; may be nil.
	Text func(bot, name string) string
	Ring func(topics ...core.Topic) // called with core.TopicPairing, core.TopicPeople after commits that changed them; must not block; may be nil
}

// Mail is the queue as the gate needs it; each call is made in a transaction.
type Mail interface {
	Post(ctx context.Context, tx *store.Tx, r core.Reply) error
	Free(ctx context.Context, tx *store.Tx, request string, trust core.Trust) (int, error)
	Discard(ctx context.Context, tx *store.Tx, request string) (int, error)
	// Reword applies an edit to a message held with a request and returns what is
	// held with it, oldest first; none if in edits none of these messages.
	Reword(ctx context.Context, tx *store.Tx, request string, in *core.Inbound) ([]core.Inbound, error)
}

// Asks shows a request to the owner in chat, with buttons, and removes the buttons when
// it is decided. Open is called again after a decision was undone, and where the owner
// has a new chat; a chat that shows the request already gets no other. outcome is a
// short sentence for users.
type Asks interface {
	// Open returns false where some of these chats do not show the request, as too many
	// questions wait.
	Open(ctx context.Context, tx *store.Tx, r core.PairingRequest) (everywhere bool, err error)
	// Withdraw ends what is shown in chats whose user has lost the right to decide.
	Withdraw(ctx context.Context, tx *store.Tx) error
	// Update shows the request with its first message as it was edited. n ascends with
	// the edits of the request, from 1.
	Update(ctx context.Context, tx *store.Tx, r core.PairingRequest, n int) error
	Close(ctx context.Context, tx *store.Tx, requestID, outcome string) error
}

// Runs stops what a user has running with a bot. It is called after the
// commit, on the store's writer: it must not wait for a transaction.
type Runs interface {
	AbortUser(bot string, user int64)
}

// A Gate decides who may talk to which bot. It is safe for concurrent use and
// keeps nothing in memory: every answer comes from the database.
type Gate struct {
	People *people.Store
	Places *places.Store
	Codes  *codes.Store

	db       *store.DB
	clock    core.Clock
	log      *slog.Logger
	metrics  *Metrics
	bots     bots.Bots
	requests *requests
	notices  notices
	changes  changes
}

// New returns a Gate over db. asks and runs may be nil: then requests are shown
// to no one, and nothing runs.
func New(db *store.DB, o Options, mail Mail, asks Asks, runs Runs) *Gate {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil, nil)
	}
	if o.Text == nil {
		o.Text = func(string, string) string { return "" }
	}
	if o.Ring == nil {
		o.Ring = func(...core.Topic) {}
	}
	g := &Gate{db: db, clock: o.Clock, log: o.Log, metrics: o.Metrics, bots: o.Bots}
	g.notices = notices{mail: mail, text: o.Text, log: o.Log}
	g.changes = changes{bots: o.Bots, metrics: o.Metrics, ring: o.Ring, runs: runs}
	g.requests = &requests{db: db, mail: mail, asks: asks, changes: g.changes}
	g.Places = places.New(db, o.Bots, g.changes, o.Log)
	g.People = people.New(db, o.Clock, o.Bots, g.Places, g.requests, g.changes, o.Ungrant)
	g.Codes = codes.New(db, codes.Options{Clock: o.Clock, Log: o.Log, Bots: o.Bots, People: g.People,
		Requests: g.requests, Notices: g.notices, Changes: g.changes, Merge: o.Merge})
	return g
}

// Post posts the named text to an address, as it is worded for that bot.
func (g *Gate) Post(ctx context.Context, tx *store.Tx, to core.Address, key, name string, w texts.Words) error {
	return g.notices.Post(ctx, tx, to, key, name, w)
}

// HasOwner reports whether the operator has an account on a chat platform.
func (g *Gate) HasOwner(ctx context.Context) (bool, error) { return g.People.HasOwner(ctx, g.db) }

// Requests lists at most limit requests (1,000 at most), newest first, denied
// ones by their decision. status is pending, approved, denied, expired, or "" for all.
func (g *Gate) Requests(ctx context.Context, status string, limit int) ([]core.PairingRequest, error) {
	return g.requests.Requests(ctx, status, limit)
}

// Request returns one request by its id, or core.NotFound.
func (g *Gate) Request(ctx context.Context, id string) (core.PairingRequest, error) {
	return g.requests.Request(ctx, id)
}

// Prune deletes old requests; see KeepRequests.
func (g *Gate) Prune(ctx context.Context) (int, error) { return g.requests.Prune(ctx) }
