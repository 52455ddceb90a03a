package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/store"
)

// KeyPrefix begins every key, so that scanners for leaked secrets know it.
const KeyPrefix = "gh_"

// MaxKeys bounds the keys that there may be.
const MaxKeys = 1000

// maxUsed bounds the uses that wait for Flush; further ones are written with the next use.
const maxUsed = 1024

// A KeyRow is a key without its secret.
type KeyRow struct {
	ID         string     `json:"id"`
	Label      string     `json:"label"`
	User       int64      `json:"user_id"`
	Trust      core.Trust `json:"trust_level"`
	Scopes     []string   `json:"scopes"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt time.Time  `json:"last_used_at,omitzero"` // late by at most a minute
	ExpiresAt  time.Time  `json:"expires_at,omitzero"`   // zero: without end
	// OldExpiresAt is when the secret before the present one expires; zero: there is none.
	OldExpiresAt time.Time `json:"old_expires_at,omitzero"`
}

// A NewKey describes a key. Without scopes it may do nothing.
type NewKey struct {
	Label  string
	User   int64
	Trust  core.Trust
	Scopes []string
	// ExpiresAt is when it opens nothing any more; zero: never.
	ExpiresAt time.Time
}

// Keys are the API keys. Only their SHA-256 is stored: the secret has 192
// random bits, so that no slow hash is needed.
type Keys struct {
	db    *store.DB
	clock core.Clock
	log   *slog.Logger
	ended func(id string) // OnEnd; nil: none
	// changed are called when keys may do less or have ended, after the commit.
	changed []func()

	mu   sync.Mutex
	used map[string]time.Time // id → last use not yet written; at most maxUsed
}

// NewKeys uses db; nil clock and log are the system's and none.
func NewKeys(db *store.DB, clock core.Clock, log *slog.Logger) *Keys {
	if clock == nil {
		clock = core.System{}
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Keys{db: db, clock: clock, log: log, used: map[string]time.Time{}}
}

// OnEnd has f notified of each key that is revoked or may chat no more, and of each that
// has expired when Expire looks. f is called after the commit, on the store's writer: it
// must not wait for a transaction. Call it before the keys are used.
func (k *Keys) OnEnd(f func(id string)) { k.ended = f }

// Create makes a key. The secret is returned once and never again. Only the operator makes one of
// another user.
func (k *Keys) Create(ctx context.Context, n NewKey, by core.Actor) (secret string, row KeyRow, err error) {
	if err := actsFor(n.User, by); err != nil {
		return "", KeyRow{}, err
	}
	err = k.db.Tx(ctx, func(tx *store.Tx) error {
		if err := room(ctx, tx); err != nil {
			return err
		}
		secret, row, err = create(ctx, tx, n, by)
		return err
	})
	return secret, row, err
}

func create(ctx context.Context, tx *store.Tx, n NewKey, by core.Actor) (string, KeyRow, error) {
	label, scopes, err := described(n.Label, n.Scopes)
	if err != nil {
		return "", KeyRow{}, err
	}
	if n.Trust == core.Stranger {
		return "", KeyRow{}, core.Errorf(core.Invalid, "a key needs a trust level: sandboxed, vault or full")
	}
	if !n.ExpiresAt.IsZero() && !n.ExpiresAt.After(tx.Time()) {
		return "", KeyRow{}, core.Errorf(core.Invalid, "the key would have expired already")
	}
	secret := KeyPrefix + random(24)
	row := KeyRow{ID: keyID(), Label: label, User: n.User, Trust: n.Trust, Scopes: scopes, CreatedAt: tx.Time().UTC(), ExpiresAt: n.ExpiresAt}
	_, err = tx.Exec(ctx, `INSERT INTO api_keys (id, label, sha256, user_id, trust_level, scopes, created_at, expires_at, made_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		row.ID, row.Label, digest(secret), row.User, row.Trust, strings.Join(row.Scopes, " "), core.Stamp(row.CreatedAt), core.Stamp(row.ExpiresAt), by.User)
	if err != nil {
		return "", KeyRow{}, err
	}
	return secret, row, store.Audit(ctx, tx, by, "key.create", row.ID, map[string]any{"user": row.User, "trust": row.Trust.String(), "scopes": row.Scopes})
}

// described returns a label and scopes as they are stored, or what is wrong.
func described(label string, scopes []string) (string, []string, error) {
	if label = core.CleanName(label); label == "" {
		return "", nil, core.Errorf(core.Invalid, "a key needs a label that describes its use")
	}
	for _, s := range scopes {
		if !slices.Contains(Scopes(), s) {
			return "", nil, core.Errorf(core.Invalid, "scope %q is not one of %s", s, strings.Join(Scopes(), ", "))
		}
	}
	kept := append([]string{}, scopes...) // none is an empty list
	slices.Sort(kept)
	return label, slices.Compact(kept), nil
}

// room refuses a key beyond MaxKeys.
func room(ctx context.Context, tx *store.Tx) error {
	var n int
	if err := tx.Get(ctx, &n, `SELECT count(*) FROM api_keys`); err != nil {
		return err
	}
	if n >= MaxKeys {
		return core.Errorf(core.Conflict, "there are %d keys already: revoke some first", n)
	}
	return nil
}

// random returns n random bytes as URL-safe text.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b)
}

// keyID returns a new id that no command line takes for a flag.
func keyID() string {
	for {
		if id := random(9); id[0] != '-' {
			return id
		}
	}
}

func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

type keyRecord struct {
	ID       string     `db:"id"`
	Label    string     `db:"label"`
	SHA256   string     `db:"sha256"`
	User     int64      `db:"user_id"`
	Trust    core.Trust `db:"trust_level"`
	Scopes   string     `db:"scopes"`
	Created  string     `db:"created_at"`
	LastUsed string     `db:"last_used_at"`
	Expires  string     `db:"expires_at"`

	OldSHA256  string `db:"old_sha256"`
	OldExpires string `db:"old_expires_at"`
}

const keyColumns = `SELECT id, label, sha256, user_id, trust_level, scopes, created_at, last_used_at, expires_at, old_sha256, old_expires_at FROM api_keys`

// over reports whether the key has expired. An invalid time has expired.
func (r keyRecord) over(now time.Time) bool {
	return r.Expires != "" && past(r.Expires, now)
}

func (r keyRecord) row() KeyRow {
	created, _ := core.ParseStamp(r.Created)
	used, _ := core.ParseStamp(r.LastUsed)
	expires, _ := core.ParseStamp(r.Expires)
	old, _ := core.ParseStamp(r.OldExpires)
	return KeyRow{ID: r.ID, Label: r.Label, User: r.User, Trust: r.Trust, Scopes: strings.Fields(r.Scopes), CreatedAt: created, LastUsedAt: used, ExpiresAt: expires, OldExpiresAt: old}
}

// Find returns the key with this secret, unless it has expired. It is read from the
// store each time, so that a revoked key stops at once.
func (k *Keys) Find(ctx context.Context, secret string) (KeyRow, bool, error) {
	if !strings.HasPrefix(secret, KeyPrefix) || len(secret) > 128 || !utf8.ValidString(secret) {
		return KeyRow{}, false, nil
	}
	sum := digest(secret)
	var r keyRecord
	err := k.db.Get(ctx, &r, keyColumns+` WHERE sha256 = $1 OR old_sha256 = $1`, sum)
	if errors.Is(err, store.ErrNoRows) {
		return KeyRow{}, false, nil
	}
	if err != nil || !r.opens(sum, k.clock.Now()) {
		return KeyRow{}, false, err
	}
	k.mu.Lock()
	k.use(r.ID, k.clock.Now())
	k.mu.Unlock()
	return r.row(), true, nil
}

// List shows the newest keys first, at most limit.
func (k *Keys) List(ctx context.Context, limit int) ([]KeyRow, error) {
	var rs []keyRecord
	err := k.db.Select(ctx, &rs, keyColumns+` ORDER BY created_at DESC, id DESC LIMIT $1`, limit)
	rows := make([]KeyRow, len(rs))
	for i, r := range rs {
		rows[i] = r.row()
	}
	return rows, err
}

// keepExpired is how long a key that has expired is still shown.
const keepExpired = 30 * 24 * time.Hour

// Expire reports to OnEnd the keys that have expired, removes those that did so
// 30 days ago, and returns how many it removed; upkeep calls it now and then. It
// removes the old secrets that have expired, too.
func (k *Keys) Expire(ctx context.Context) (n int, err error) {
	err = k.db.Tx(ctx, func(tx *store.Tx) error {
		n = 0
		if _, err := tx.Exec(ctx, `UPDATE api_keys SET old_sha256 = '', old_expires_at = '' WHERE old_expires_at <> '' AND old_expires_at <= $1`, core.Stamp(tx.Time())); err != nil {
			return err
		}
		var rs []keyRecord
		if err := tx.Select(ctx, &rs, keyColumns+` WHERE expires_at <> ''`); err != nil { // at most MaxKeys
			return err
		}
		for _, r := range rs {
			if !r.over(tx.Time()) {
				continue
			}
			k.end(tx, r.ID)
			if !r.over(tx.Time().Add(-keepExpired)) {
				continue
			}
			if _, err := tx.Exec(ctx, `DELETE FROM api_keys WHERE id = $1`, r.ID); err != nil {
				return err
			}
			n++
			if err := store.Audit(ctx, tx, core.Actor{Via: "upkeep"}, "key.expire", r.ID, nil); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// Forget removes a user's keys, and those that the user made for others, never the operator's, and
// calls OnEnd for each.
func (k *Keys) Forget(ctx context.Context, tx *store.Tx, user int64) error {
	if user <= 0 || user == core.Operator {
		return nil
	}
	var rs []keyRecord
	if err := tx.Select(ctx, &rs, keyColumns+` WHERE user_id = $1 OR made_by = $1`, user); err != nil {
		return err
	}
	for _, r := range rs {
		k.end(tx, r.ID)
		if err := store.Audit(ctx, tx, core.Actor{Via: "gateway"}, "key.revoke", r.ID, map[string]any{"user": r.User}); err != nil {
			return err
		}
	}
	k.less(tx)
	_, err := tx.Exec(ctx, `DELETE FROM api_keys WHERE user_id = $1 OR made_by = $1`, user)
	return err
}

// Flush writes when keys were last used, all in one transaction.
func (k *Keys) Flush(ctx context.Context) error {
	k.mu.Lock()
	used := k.used
	k.used = map[string]time.Time{}
	k.mu.Unlock()
	if len(used) == 0 {
		return nil
	}
	return k.db.Tx(ctx, func(tx *store.Tx) error {
		for id, at := range used {
			if _, err := tx.Exec(ctx, `UPDATE api_keys SET last_used_at = $1 WHERE id = $2 AND last_used_at < $1`, core.Stamp(at), id); err != nil {
				return err
			}
		}
		return nil
	})
}

// Run flushes once a minute until ctx ends, and then once more.
func (k *Keys) Run(ctx context.Context) error {
	for core.Sleep(ctx, k.clock, time.Minute) {
		if err := k.Flush(ctx); err != nil {
			k.log.Error("last use of API keys", "err", err)
		}
	}
	last, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	return k.Flush(last)
}
