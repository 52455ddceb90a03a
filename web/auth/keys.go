package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
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

// maxUsed bounds the uses that wait for Flush; further ones are written with
// the next use.
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
}

// A NewKey says what a key may do. Without scopes it may nothing.
type NewKey struct {
	Label  string
	User   int64
	Trust  core.Trust
	Scopes []string
}

// Keys are the API keys. Only their SHA-256 is stored: the secret has 192
// random bits, so that no slow hash is needed.
type Keys struct {
	db    *store.DB
	clock core.Clock
	log   *slog.Logger

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

// Create makes a key. The secret is returned once and never again.
func (k *Keys) Create(ctx context.Context, n NewKey, by core.Actor) (secret string, row KeyRow, err error) {
	err = k.db.Tx(ctx, func(tx *store.Tx) error {
		secret, row, err = create(ctx, tx, n, by)
		return err
	})
	return secret, row, err
}

func create(ctx context.Context, tx *store.Tx, n NewKey, by core.Actor) (string, KeyRow, error) {
	n.Label = core.CleanName(n.Label)
	if n.Label == "" {
		return "", KeyRow{}, core.Errorf(core.Invalid, "a key needs a label that says what it is for")
	}
	if n.Trust == core.Stranger {
		return "", KeyRow{}, core.Errorf(core.Invalid, "a key needs a trust level: sandboxed, vault or full")
	}
	for _, s := range n.Scopes {
		if !slices.Contains(Scopes(), s) {
			return "", KeyRow{}, core.Errorf(core.Invalid, "scope %q is not one of %s", s, strings.Join(Scopes(), ", "))
		}
	}
	secret := KeyPrefix + random(24)
	row := KeyRow{ID: random(9), Label: n.Label, User: n.User, Trust: n.Trust, Scopes: slices.Compact(slices.Sorted(slices.Values(n.Scopes))), CreatedAt: tx.Time()}
	_, err := tx.Exec(ctx, `INSERT INTO api_keys (id, label, sha256, user_id, trust_level, scopes, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		row.ID, row.Label, digest(secret), row.User, row.Trust, strings.Join(row.Scopes, " "), core.Stamp(row.CreatedAt))
	if err != nil {
		return "", KeyRow{}, err
	}
	return secret, row, store.Audit(ctx, tx, by, "key.create", row.ID, map[string]any{"user": row.User, "trust": row.Trust.String(), "scopes": row.Scopes})
}

// random is n random bytes as URL-safe text.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b)
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
}

func (r keyRecord) row() KeyRow {
	created, _ := core.ParseStamp(r.Created)
	used, _ := core.ParseStamp(r.LastUsed)
	return KeyRow{ID: r.ID, Label: r.Label, User: r.User, Trust: r.Trust, Scopes: strings.Fields(r.Scopes), CreatedAt: created, LastUsedAt: used}
}

// Find is the key with this secret. It is read from the store each time, so
// that a revoked key stops at once.
func (k *Keys) Find(ctx context.Context, secret string) (KeyRow, bool, error) {
	if !strings.HasPrefix(secret, KeyPrefix) || len(secret) > 128 || !utf8.ValidString(secret) {
		return KeyRow{}, false, nil
	}
	sum := digest(secret)
	var r keyRecord
	err := k.db.Get(ctx, &r, `SELECT id, label, sha256, user_id, trust_level, scopes, created_at, last_used_at FROM api_keys WHERE sha256 = $1`, sum)
	if errors.Is(err, store.ErrNoRows) {
		return KeyRow{}, false, nil
	}
	if err != nil || subtle.ConstantTimeCompare([]byte(r.SHA256), []byte(sum)) != 1 {
		return KeyRow{}, false, err
	}
	k.mu.Lock()
	if _, known := k.used[r.ID]; known || len(k.used) < maxUsed {
		k.used[r.ID] = k.clock.Now()
	}
	k.mu.Unlock()
	return r.row(), true, nil
}

// List shows the newest keys first, at most limit.
func (k *Keys) List(ctx context.Context, limit int) ([]KeyRow, error) {
	var rs []keyRecord
	err := k.db.Select(ctx, &rs, `SELECT id, label, sha256, user_id, trust_level, scopes, created_at, last_used_at FROM api_keys
		ORDER BY created_at DESC, id DESC LIMIT $1`, limit)
	rows := make([]KeyRow, len(rs))
	for i, r := range rs {
		rows[i] = r.row()
	}
	return rows, err
}

// Revoke removes a key: its next request and its queued turns are refused.
func (k *Keys) Revoke(ctx context.Context, id string, by core.Actor) error {
	return k.db.Tx(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, `DELETE FROM api_keys WHERE id = $1`, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return core.Errorf(core.NotFound, "there is no such key")
		}
		return store.Audit(ctx, tx, by, "key.revoke", id, nil)
	})
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
