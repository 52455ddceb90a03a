package auth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth/backoff"
	"gatehouse/web/auth/link"
	"gatehouse/web/auth/password"
	"gatehouse/web/auth/proof"
)

// AdminName is the name the operator signs in with, unless it was changed.
const AdminName = "admin"

// Free wrong tries, and the longest wait after further ones: of one address, of
// one known device, and of all addresses together for one account.
const (
	freeAddress, mostAddress = 5, 15 * time.Minute
	freeDevice, mostDevice   = 5, 15 * time.Minute
	freeAccount, mostAccount = 10, time.Minute
)

// AdminOptions for NewAdmins; the zero value works.
type AdminOptions struct {
	Clock core.Clock   // nil: the system's
	Log   *slog.Logger // nil: none
	// Password is the configured one (ADMIN_PASSWORD); "" when there is none.
	Password string
	// Key signs what shows that a password was entered, and which devices are known. No backup may
	// have it. Nil: a random one of this process.
	Key proof.Key
	// Address is the address that wrong passwords are counted against; nil: all together.
	Address func(*http.Request) string
	// Secure reports whether a request came over TLS; nil: by r.TLS.
	Secure func(*http.Request) bool
}

// Admins are the accounts that may sign in to the panel, and their sessions.
type Admins struct {
	db      *store.DB
	clock   core.Clock
	log     *slog.Logger
	o       AdminOptions
	manager *scs.SessionManager
	hasher  *password.Hasher
	proofs  *proof.Proofs
	address *backoff.Counter
	names   *backoff.Counter    // of names without account: they look the same from outside
	devices *backoff.Counter    // of known devices, by their id, and of password changes
	waiting *backoff.RetryTimer // addresses that were asked to come back later
	ended   []func()            // OnEnd
	second  Second              // AskSecond; nil: none
	link    link.Link
}

// NewAdmins uses db.
func NewAdmins(db *store.DB, o AdminOptions) *Admins {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Address == nil {
		o.Address = func(*http.Request) string { return "" }
	}
	if o.Secure == nil {
		o.Secure = func(r *http.Request) bool { return r.TLS != nil }
	}
	return &Admins{db: db, clock: o.Clock, log: o.Log, o: o, manager: newManager(db, o.Clock), hasher: password.New(), proofs: proof.New(o.Key, o.Clock),
		address: backoff.New(o.Clock, freeAddress, mostAddress), names: backoff.New(o.Clock, freeAccount, mostAccount),
		devices: backoff.New(o.Clock, freeDevice, mostDevice), waiting: backoff.NewRetryTimer(o.Clock, mostAccount)}
}

type account struct {
	User        int64  `db:"user_id"`
	Name        string `db:"name"`
	Role        string `db:"role"`
	Hash        string `db:"argon2id"`
	MustChange  bool   `db:"must_change"`
	Used        bool   `db:"used"`
	Failed      int    `db:"failed"`
	LockedUntil string `db:"locked_until"`
}

const accountColumns = `SELECT user_id, name, role, argon2id, must_change, used, failed, locked_until FROM admin_accounts`

func (a *Admins) account(ctx context.Context, q store.Queryer, user int64) (acc account, ok bool, err error) {
	err = q.Get(ctx, &acc, accountColumns+` WHERE user_id = $1`, user)
	if errors.Is(err, store.ErrNoRows) {
		return account{}, false, nil
	}
	return acc, err == nil, err
}

// OnEnd has f called, after the commit, when sessions were ended or an account may do less. It is
// called before the first request.
func (a *Admins) OnEnd(f func()) { a.ended = append(a.ended, f) }

// Ended calls what OnEnd was given once tx is committed.
func (a *Admins) Ended(tx *store.Tx) {
	tx.OnCommit(func() {
		for _, f := range a.ended {
			f()
		}
	})
}
