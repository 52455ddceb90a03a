// Package pairing is the gate between strangers and bots: who may talk to
// which bot, in direct messages or in a group, and how somebody comes to be
// allowed. It owns the tables pairing_requests, users, identities, access,
// places, blocks, invites, link_codes and raises.
//
// There is one way to authorise (Book.judge) for every kind of update, and one
// function per decision (Approve, Deny, Block, Undo) behind panel, API, command
// line and chat. A person is (platform, the platform's immutable id); names are
// hostile text and never an identity. Whoever is not found is a stranger.
//
// The package is larger than others: its tables are one decision, and
// parting them would make a second way in.
package pairing

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Terms of the gate; the words for people are in core/texts.
const (
	CodeLife    = time.Hour           // a pairing code works this long, then the next message gets a new one
	RequestLife = 14 * 24 * time.Hour // a request waits this long for a decision
	CoolOff     = 7 * 24 * time.Hour  // silence after a denial or a revocation
	UndoFor     = 10 * time.Second    // a decision can be taken back this long
	ClaimLife   = 15 * time.Minute    // an owner's code works this long

	replyEvery  = 10 * time.Minute // at most one notice to a waiting stranger in this time
	maxHeld     = 5                // messages kept with one request
	maxPending  = 100              // requests that wait, per bot
	giveWay     = 24 * time.Hour   // when maxPending wait, only older ones make room
	newPerHour  = 200              // new requests per bot
	maxSeen     = 1000             // groups noted without anybody's decision, over all bots
	firstBytes  = 500              // of a stranger's first message, shown to the owner
	claimTries  = 5                // wrong owner codes before a person is silenced for claimSilent
	claimSilent = time.Hour
	claimVoid   = 50  // wrong tries by anybody that void the code
	maxTriers   = 200 // people whose wrong tries are remembered
)

// DM policies: what becomes of a direct message by somebody without access.
// People with access keep it under every policy. "" is PolicyPairing; an
// unknown word is PolicyDisabled.
const (
	PolicyPairing   = "pairing"   // a request, a code, a decision
	PolicyAllowlist = "allowlist" // the listed ids run at Policy.DMTrust; an empty list is nobody
	PolicyOpen      = "open"      // everybody runs at Policy.DMTrust
	PolicyDisabled  = "disabled"  // silence
)

// A Policy is how one bot treats people without access.
type Policy struct {
	Platform   string     // whose ids Allowed holds, and in whose name Revoke looks people up
	DM         string     // one of the Policy… words
	Allowed    []string   // platform ids, for PolicyAllowlist
	DMTrust    core.Trust // preset when approving, and the level of allowlist and open; Stranger = sandboxed
	GroupTrust core.Trust // preset level of an enabled group; Stranger = sandboxed
}

// A BotName is a configured bot.
type BotName struct{ Name, Platform string }

// Options of New.
type Options struct {
	Clock   core.Clock              // nil: the system's
	Log     *slog.Logger            // nil: none
	Metrics *Metrics                // nil: unregistered ones
	Policy  func(bot string) Policy // nil: PolicyPairing for every bot; asked inside transactions, so it must be quick
	Bots    func() []BotName        // nil: none known; lets a platform's name stand for its only bot
	// Merge gives what other packages keep of one user to another, when two
	// accounts turn out to be one person's; nil: nothing.
	Merge func(ctx context.Context, tx *store.Tx, from, to int64) error
	// Lapse ends what other packages keep of a raise that is over: what its person
	// was granted in its conversation at trust full since; nil: nothing.
	Lapse func(ctx context.Context, tx *store.Tx, session string, user int64, trust core.Trust, since time.Time) error
	// Text is what is said on a bot instead of the catalogue's text of that
	// name; "" or nil: nothing. It is asked inside transactions.
	Text func(bot, name string) string
	Ring func(topics ...string) // nil: nobody; told "pairing", "people" after commits that changed them; must not block
}

// Mail is the queue as the gate needs it; each call is made in a transaction.
type Mail interface {
	Post(ctx context.Context, tx *store.Tx, r core.Reply) error
	Free(ctx context.Context, tx *store.Tx, request string, trust core.Trust) (int, error)
	Discard(ctx context.Context, tx *store.Tx, request string) (int, error)
}

// Asks shows a request to the owner in chat, with buttons, and takes the
// buttons away when it is decided. Open is called again for a request whose
// decision was undone. outcome is a short sentence fit to be shown.
type Asks interface {
	Open(ctx context.Context, tx *store.Tx, r core.PairingRequest) error
	Close(ctx context.Context, tx *store.Tx, requestID, outcome string) error
}

// Runs stops what a person has running with a bot. It is called after the
// commit, on the store's writer: it must not wait for a transaction.
type Runs interface {
	AbortUser(bot string, user int64)
}

// A Book is the gate with its records. It is safe for concurrent use and keeps
// nothing in memory: every answer comes from the database.
type Book struct {
	db   *store.DB
	o    Options
	mail Mail
	asks Asks // may be nil
	runs Runs // may be nil
}

// New makes a Book over db. asks and runs may be nil (nobody is shown, nothing runs).
func New(db *store.DB, o Options, mail Mail, asks Asks, runs Runs) *Book {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil, nil)
	}
	if o.Policy == nil {
		o.Policy = func(string) Policy { return Policy{} }
	}
	if o.Bots == nil {
		o.Bots = func() []BotName { return nil }
	}
	if o.Text == nil {
		o.Text = func(string, string) string { return "" }
	}
	if o.Ring == nil {
		o.Ring = func(...string) {}
	}
	return &Book{db: db, o: o, mail: mail, asks: asks, runs: runs}
}

// EnsureOperator makes user 1, who owns the gateway, at the first start.
func (b *Book) EnsureOperator(ctx context.Context) error {
	err := b.db.Tx(ctx, func(tx *store.Tx) error { return b.operator(ctx, tx) })
	if err != nil {
		return fmt.Errorf("ensure operator: %w", err)
	}
	return nil
}

func (b *Book) operator(ctx context.Context, tx *store.Tx) error {
	n, err := tx.Exec(ctx, `INSERT INTO users (id, display, role, created_at) VALUES ($1, 'operator', 'owner', $2) ON CONFLICT (id) DO NOTHING`,
		core.Operator, core.Stamp(tx.Time()))
	if err != nil {
		return err
	}
	if n == 1 {
		return store.Audit(ctx, tx, core.Actor{Via: "upkeep"}, "user.create", "1", nil)
	}
	var role string
	if err := tx.Get(ctx, &role, `SELECT role FROM users WHERE id = $1`, core.Operator); err != nil {
		return err
	}
	if role != "owner" {
		return core.Errorf(core.Conflict, "user 1 in this database is not the owner but %s; it was not made by this program", role)
	}
	return nil
}

// bot resolves a configured bot's name, or a platform's name that stands for
// its only bot. A name that is neither is returned as it is.
func (b *Book) bot(name string) (string, error) {
	var only string
	for _, x := range b.o.Bots() {
		if x.Name == name {
			return name, nil
		}
		if x.Platform == name {
			if only != "" {
				return "", core.Errorf(core.Invalid, "there are several bots on %s: name one of them", name)
			}
			only = x.Name
		}
	}
	if only != "" {
		return only, nil
	}
	return name, nil
}

func (b *Book) configured(bot string) bool {
	return slices.ContainsFunc(b.o.Bots(), func(x BotName) bool { return x.Name == bot })
}

// platform is the bot's; a bot without a known one is named like its platform.
func (b *Book) platform(bot string) string {
	if p := b.o.Policy(bot).Platform; p != "" {
		return p
	}
	for _, x := range b.o.Bots() {
		if x.Name == bot {
			return x.Platform
		}
	}
	return bot
}

// after has the panel told and the counter moved once the transaction is in.
func (b *Book) after(tx *store.Tx, bot, decision string, topics ...string) {
	tx.OnCommit(func() {
		if decision != "" && b.configured(bot) { // other names would be labels without bound
			b.o.Metrics.decisions.WithLabelValues(bot, decision).Inc()
		}
		b.o.Ring(topics...)
	})
}

func (b *Book) abort(tx *store.Tx, bot string, user int64) {
	if b.runs != nil && user != 0 {
		tx.OnCommit(func() { b.runs.AbortUser(bot, user) })
	}
}

func (b *Book) closeAsk(ctx context.Context, tx *store.Tx, id, outcome string) error {
	if b.asks == nil {
		return nil
	}
	return b.asks.Close(ctx, tx, id, outcome)
}

func (b *Book) openAsk(ctx context.Context, tx *store.Tx, r core.PairingRequest) error {
	if b.asks == nil {
		return nil
	}
	return b.asks.Open(ctx, tx, r)
}

// post says the named text to an address, as it is written for that bot.
func (b *Book) post(ctx context.Context, tx *store.Tx, to core.Address, key, name string, w texts.Words) error {
	w.Bot = to.Bot
	return b.send(ctx, tx, core.Reply{Address: to, Key: key}, name, "", w)
}

// reply answers in: in the place that stands in the chat for that, and for its
// sender alone where it was asked so.
func (b *Book) reply(ctx context.Context, tx *store.Tx, in *core.Inbound, key, name string, w texts.Words) error {
	w.Bot = in.Bot
	return b.send(ctx, tx, core.Reply{Address: in.Address, Key: key, Replaces: in.Slot}, name, in.Aside, w)
}

func (b *Book) send(ctx context.Context, tx *store.Tx, r core.Reply, name, aside string, w texts.Words) error {
	part, err := b.say(r.Bot, name, w)
	if err != nil {
		return err
	}
	part.Aside, r.Parts = aside, []core.Part{part}
	if err := b.mail.Post(ctx, tx, r); err != nil {
		return fmt.Errorf("post %s: %w", name, err)
	}
	return nil
}

// say is the bot's own text, else the catalogue's: also where the own one can
// no longer be said, so that nobody is left without a word.
func (b *Book) say(bot, name string, w texts.Words) (core.Part, error) {
	o, editable := texts.Find(name)
	if body := b.o.Text(bot, name); editable && body != "" {
		part, err := texts.SayOwn(o, body, w)
		if err == nil {
			return part, nil
		}
		b.o.Log.Error("a text that was set in the panel can't be said; the default is", "bot", bot, "text", name, "err", err)
	}
	return texts.Say(name, w)
}

// who names an actor for other people: ids only, never a name.
func who(by core.Actor) string { return by.String() }

// preset is t, or sandboxed where nothing is set; nobody is given full in chat.
func preset(t core.Trust) core.Trust { return core.Least(core.Vault, max(core.Sandboxed, t)) }

// grantable is the level to give: the asked one, or preset when none is asked.
func grantable(asked, fallback core.Trust) (core.Trust, error) {
	switch {
	case asked == core.Stranger:
		return preset(fallback), nil
	case asked > core.Vault:
		return core.Stranger, texts.Error(core.Invalid, "no_full")
	}
	return asked, nil
}
