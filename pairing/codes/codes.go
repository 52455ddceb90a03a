// Package codes makes and redeems the codes that are typed in chat: the owner's
// claim (/claim), invitations (/pair, /start) and links of a second account
// (/link). It owns the tables invites and link_codes, and in metadata the claim
// code and the wrong tries.
package codes

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/bots"
	"gatehouse/pairing/people"
)

// How long codes are valid.
const (
	ClaimLife  = 15 * time.Minute   // an owner's code
	LinkLife   = 10 * time.Minute   // a code that links a second account
	InviteLife = 7 * 24 * time.Hour // an invitation, where no other time is given
)

// Rule is the label with which wrong codes are counted as denied.
const Rule = "claim"

// A Sender is what the gate knows of an account that typed a code.
type Sender struct {
	User    int64 // 0: none
	Role    core.Role
	Allowed bool // has access already
	Silent  bool // by the bot's policy gets no answer
}

type (
	// Notices posts texts in the transaction.
	Notices interface {
		Post(ctx context.Context, tx *store.Tx, to core.Address, key, name string, w texts.Words) error
		Reply(ctx context.Context, tx *store.Tx, in *core.Inbound, key, name string, w texts.Words) error
	}
	// Requests are the pairing requests, as codes change them.
	Requests interface {
		// LetIn approves the sender's pending requests for direct messages.
		LetIn(ctx context.Context, tx *store.Tx, in *core.Inbound, trust core.Trust, by core.Actor, outcome string) error
		// ShowWaiting shows the requests that wait at the bot to an owner who was not
		// in its chats before. It reports whether there are more than it shows.
		ShowWaiting(ctx context.Context, tx *store.Tx, bot string) (more bool, err error)
		// Withdraw ends what is shown to users who no longer decide about requests.
		Withdraw(ctx context.Context, tx *store.Tx) error
		// TurnedAway reports whether the sender was denied after a time.
		TurnedAway(ctx context.Context, tx *store.Tx, in *core.Inbound, since string) (bool, error)
	}
	// Changes reports what was decided, after the commit.
	Changes interface {
		Decided(tx *store.Tx, bot, decision string, topics ...core.Topic)
		Denied(tx *store.Tx, rule string)
	}
)

// Options of New; all but Merge must be set.
type Options struct {
	Clock    core.Clock
	Log      *slog.Logger
	Bots     bots.Bots
	People   *people.Store
	Requests Requests
	Notices  Notices
	Changes  Changes
	// Merge gives what other packages keep of one user to another, when two
	// accounts turn out to be one user's; nil: nothing.
	Merge func(ctx context.Context, tx *store.Tx, from, to int64) error
}

// A Store is the tables of codes. It is safe for concurrent use.
type Store struct {
	db *store.DB
	o  Options
}

// New returns a Store over db.
func New(db *store.DB, o Options) *Store { return &Store{db: db, o: o} }

// alphabet of codes: no 0 and O, no 1 and I, so that a code survives being read aloud.
const alphabet = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"

// Random returns n random characters, five bits each.
func Random(n int) string {
	buf := make([]byte, n)
	_, _ = rand.Read(buf) // never fails: crypto/rand ends the program instead
	for i := range buf {
		buf[i] = alphabet[int(buf[i])%len(alphabet)]
	}
	return string(buf)
}

// Plain returns a code as it was typed in the form that is stored.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '-' || unicode.IsSpace(r):
			return -1
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		}
		return r
	}, s)
}

func hash(code string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(code)))
	return hex.EncodeToString(sum[:])
}
