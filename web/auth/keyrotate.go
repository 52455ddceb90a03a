package auth

import (
	"context"
	"crypto/subtle"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// MaxGrace bounds how long a key's old secret stays valid next to the new one.
const MaxGrace = 30 * 24 * time.Hour

// A KeyRotation reports what becomes of a key's present secret.
type KeyRotation struct {
	// OldExpiresAt is when the present secret ends; zero: at once, with all that the
	// key has running. A secret that an earlier rotation left valid ends at once.
	OldExpiresAt time.Time
	// May refuses the rotation by the key as it is; nil: everyone may.
	May func(was KeyRow) error
}

// Rotate gives a key a new secret, which is returned once and never again. Label, user,
// trust, scopes and end stay. Only the operator rotates the key of another user.
func (k *Keys) Rotate(ctx context.Context, id string, o KeyRotation, by core.Actor) (secret string, row KeyRow, err error) {
	err = k.db.Tx(ctx, func(tx *store.Tx) error {
		if row, err = owned(ctx, tx, id, by, "rotate"); err != nil {
			return err
		}
		if err := actsFor(row.User, by); err != nil {
			return err
		}
		if err := rotatable(ctx, tx, row, o); err != nil {
			return err
		}
		secret, row.OldExpiresAt = KeyPrefix+random(24), o.OldExpiresAt
		k.less(tx)
		detail := map[string]any{"old_secret": "ended"}
		if row.OldExpiresAt.IsZero() {
			k.end(tx, id)
		} else {
			detail["old_secret"] = core.Stamp(row.OldExpiresAt)
		}
		_, err := tx.Exec(ctx, `UPDATE api_keys SET old_sha256 = CASE WHEN $1 = '' THEN '' ELSE sha256 END, old_expires_at = $1, sha256 = $2 WHERE id = $3`,
			core.Stamp(row.OldExpiresAt), digest(secret), id)
		if err != nil {
			return err
		}
		return store.Audit(ctx, tx, by, "key.rotate", id, detail)
	})
	if err != nil {
		return "", KeyRow{}, err
	}
	return secret, row, nil
}

// rotatable returns why the key gets no new secret.
func rotatable(ctx context.Context, tx *store.Tx, was KeyRow, o KeyRotation) error {
	now := tx.Time()
	file, _, err := store.Metadata(ctx, tx, keyFileID)
	switch {
	case err != nil:
		return err
	case was.ID == file:
		return core.Errorf(core.Conflict, "this is the key of the key file for local tools: delete that file and restart the gateway, which then writes a new key")
	case !was.ExpiresAt.IsZero() && !now.Before(was.ExpiresAt):
		return core.Errorf(core.Conflict, "the key has expired: create a new one")
	case !o.OldExpiresAt.IsZero() && !o.OldExpiresAt.After(now):
		return core.Errorf(core.Invalid, "the old secret would have expired already: choose a later time, or none to end it at once")
	case o.OldExpiresAt.Sub(now) > MaxGrace:
		return core.Errorf(core.Invalid, "the old secret can stay valid for at most 30 days")
	case o.May != nil:
		return o.May(was)
	}
	return nil
}

// opens reports whether the secret with this digest opens the key now.
func (r keyRecord) opens(sum string, now time.Time) bool {
	return !r.over(now) && (same(r.SHA256, sum) || same(r.OldSHA256, sum) && !past(r.OldExpires, now))
}

// same compares two digests in constant time; "" equals nothing.
func same(a, b string) bool {
	return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// past reports whether the time stored in at has passed. An invalid time is.
func past(at string, now time.Time) bool {
	t, err := core.ParseStamp(at)
	return err != nil || !now.Before(t)
}
