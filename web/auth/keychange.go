package auth

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
)

// A KeyChange is what may be changed of a key: never its secret, whose it is,
// or its trust. Nil stays as it is.
type KeyChange struct {
	Label  *string
	Scopes *[]string
	// May refuses a change, by the key as it was and what it may in addition;
	// nil: it is let pass.
	May func(was KeyRow, added []string) error
}

// Change changes a key: its next request is held against the new scopes, and so
// is a turn of its that waits. Its streams that need a scope which was taken end, and
// what a key runs that may not chat any more (OnEnd). The operator's keys are the operator's alone to
// change, and so is to give another user's key more scopes.
func (k *Keys) Change(ctx context.Context, id string, c KeyChange, by core.Actor) (row KeyRow, err error) {
	err = k.db.Tx(ctx, func(tx *store.Tx) error {
		row, err = k.change(ctx, tx, id, c, by)
		return err
	})
	return row, err
}

func (k *Keys) change(ctx context.Context, tx *store.Tx, id string, c KeyChange, by core.Actor) (KeyRow, error) {
	was, err := owned(ctx, tx, id, by, "change")
	if err != nil {
		return KeyRow{}, err
	}
	label, scopes := was.Label, was.Scopes
	if c.Label != nil {
		label = *c.Label
	}
	if c.Scopes != nil {
		scopes = *c.Scopes
	}
	now := was
	if now.Label, now.Scopes, err = described(label, scopes); err != nil {
		return KeyRow{}, err
	}
	added, taken := without(now.Scopes, was.Scopes), without(was.Scopes, now.Scopes)
	if c.May != nil {
		if err := c.May(was, added); err != nil {
			return KeyRow{}, err
		}
	}
	if len(added) > 0 {
		if err := actsFor(was.User, by); err != nil {
			return KeyRow{}, err
		}
	}
	if now.Label == was.Label && len(added)+len(taken) == 0 {
		return was, nil
	}
	if _, err := tx.Exec(ctx, `UPDATE api_keys SET label = $1, scopes = $2 WHERE id = $3`, now.Label, strings.Join(now.Scopes, " "), id); err != nil {
		return KeyRow{}, err
	}
	if slices.Contains(taken, ScopeChat) {
		k.end(tx, id)
	}
	if len(taken) > 0 {
		k.less(tx)
	}
	detail := map[string]any{"scopes": now.Scopes}
	if now.Label != was.Label {
		detail["label"] = "changed"
	}
	return now, store.Audit(ctx, tx, by, "key.change", id, detail)
}

// without returns list less what is in less.
func without(list, less []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(less, s) })
}

// owned returns a key that by may do verb to: the operator's keys are the operator's.
func owned(ctx context.Context, tx *store.Tx, id string, by core.Actor, verb string) (KeyRow, error) {
	var r keyRecord
	err := tx.Get(ctx, &r, keyColumns+` WHERE id = $1`, id)
	if errors.Is(err, store.ErrNoRows) {
		return KeyRow{}, core.Errorf(core.NotFound, "there is no such key")
	}
	if err == nil && r.User == core.Operator && by.User != core.Operator && by.User != 0 {
		err = core.Errorf(core.Denied, "only the owner can %s the owner's keys", verb)
	}
	return r.row(), err
}

// actsFor returns why by may not have a secret with which one acts for user, or have it do more. What a
// person makes who is an admin today is theirs: it ends when they are none.
func actsFor(user int64, by core.Actor) error {
	if by.User == user || by.User == core.Operator || by.User == 0 {
		return nil
	}
	return core.Errorf(core.Denied, "only the owner can do this with a key of another user: whoever has its secret acts for that user")
}

// Revoke removes a key: its next request and its queued turns are refused, and
// OnEnd is called. The operator's keys are the operator's alone to revoke.
func (k *Keys) Revoke(ctx context.Context, id string, by core.Actor) error {
	return k.db.Tx(ctx, func(tx *store.Tx) error {
		if _, err := owned(ctx, tx, id, by, "revoke"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM api_keys WHERE id = $1`, id); err != nil {
			return err
		}
		k.end(tx, id)
		k.less(tx)
		return store.Audit(ctx, tx, by, "key.revoke", id, nil)
	})
}

func (k *Keys) end(tx *store.Tx, id string) {
	if k.ended != nil {
		tx.OnCommit(func() { k.ended(id) })
	}
}

// less has open streams checked once tx is committed: a key may do less.
func (k *Keys) less(tx *store.Tx) {
	for _, f := range k.changed {
		tx.OnCommit(f)
	}
}
