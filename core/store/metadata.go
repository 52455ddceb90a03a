package store

import (
	"context"
	"encoding/json"
	"errors"

	"gatehouse/core"
)

// Metadata returns the value of key; "" and false without one.
func Metadata(ctx context.Context, q Queryer, key string) (string, bool, error) {
	var v string
	err := q.Get(ctx, &v, `SELECT coalesce(value, '') FROM metadata WHERE key = $1`, key)
	if errors.Is(err, ErrNoRows) {
		return "", false, nil
	}
	return v, err == nil, err
}

// SetMetadata stores value under key, over an older one.
func SetMetadata(ctx context.Context, tx *Tx, key, value string) error {
	_, err := tx.Exec(ctx, `INSERT INTO metadata (key, value, updated_at) VALUES ($1, $2, $3)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`,
		key, value, core.Stamp(tx.now))
	return err
}

// DeleteMetadata removes key; a missing one is no error.
func DeleteMetadata(ctx context.Context, tx *Tx, key string) error {
	_, err := tx.Exec(ctx, `DELETE FROM metadata WHERE key = $1`, key)
	return err
}

// Load returns the metadata of key, or "", for callers without a transaction.
func (d *DB) Load(ctx context.Context, key string) (string, error) {
	v, _, err := Metadata(ctx, d, key)
	return v, err
}

// Save sets the metadata of key in a transaction of its own.
func (d *DB) Save(ctx context.Context, key, value string) error {
	return d.Tx(ctx, func(tx *Tx) error { return SetMetadata(ctx, tx, key, value) })
}

// Audit is Audit in a transaction of its own.
func (d *DB) Audit(ctx context.Context, by core.Actor, action, subject string, detail map[string]any) error {
	return d.Tx(ctx, func(tx *Tx) error { return Audit(ctx, tx, by, action, subject, detail) })
}

// Audit appends an audit event (who did what to what) in the transaction of the
// change. detail holds ids only, never names or texts.
func Audit(ctx context.Context, tx *Tx, by core.Actor, action, subject string, detail map[string]any) error {
	var body any
	if len(detail) > 0 {
		b, err := json.Marshal(detail)
		if err != nil {
			return err
		}
		body = string(b)
	}
	_, err := tx.Exec(ctx, `INSERT INTO audit_events (at, user_id, via, action, subject, detail) VALUES ($1, $2, $3, $4, $5, $6)`,
		core.Stamp(tx.now), by.User, by.Via, action, subject, body)
	return err
}

// DeleteMetadataLike removes every key that begins with prefix and returns how many.
func DeleteMetadataLike(ctx context.Context, tx *Tx, prefix string) (int, error) {
	n, err := tx.Exec(ctx, `DELETE FROM metadata WHERE substr(key, 1, length($1)) = $1 AND $1 <> ''`, prefix)
	return int(n), err
}

// maxLike bounds what MetadataLike returns.
const maxLike = 1000

// MetadataLike returns the values of the first 1,000 keys that begin with prefix,
// by key.
func MetadataLike(ctx context.Context, q Queryer, prefix string) (map[string]string, error) {
	var rows []struct{ Key, Value string }
	err := q.Select(ctx, &rows, `SELECT key, coalesce(value, '') AS value FROM metadata WHERE substr(key, 1, length($1)) = $1 ORDER BY key LIMIT $2`, prefix, maxLike)
	values := make(map[string]string, len(rows))
	for _, r := range rows {
		values[r.Key] = r.Value
	}
	return values, err
}
