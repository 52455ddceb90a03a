package codes

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Expire deletes expired codes and wrong tries.
func (s *Store) Expire(ctx context.Context, tx *store.Tx) error {
	_, open, err := s.openClaim(ctx, tx)
	if err != nil {
		return err
	}
	if !open {
		if err := store.DeleteMetadata(ctx, tx, claimKey); err != nil {
			return err
		}
	}
	for _, q := range []string{`DELETE FROM invites WHERE expires_at <= $1 OR uses_left <= 0`, `DELETE FROM link_codes WHERE expires_at <= $1`} {
		if _, err := tx.Exec(ctx, q, core.Stamp(tx.Time())); err != nil {
			return err
		}
	}
	_, there, err := store.Metadata(ctx, tx, triersKey)
	if err != nil || !there {
		return err
	}
	tries, _, err := s.triers(ctx, tx, core.Peer{})
	if err != nil {
		return err
	}
	if len(tries) == 0 {
		return store.DeleteMetadata(ctx, tx, triersKey)
	}
	return saveJSON(ctx, tx, triersKey, tries)
}

// Forget deletes the codes of a user and their wrong tries.
func (s *Store) Forget(ctx context.Context, tx *store.Tx, p core.Person) error {
	for _, id := range p.Identities {
		if err := s.forgetTries(ctx, tx, core.Peer{Platform: id.Platform, ID: id.ID}); err != nil {
			return err
		}
	}
	if p.User == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `DELETE FROM link_codes WHERE user_id = $1`, p.User); err != nil {
		return err
	}
	return s.Withdraw(ctx, tx, p.User)
}

// Withdraw ends the invitations that a user made, who may let no one in any more. Who used one stays.
func (s *Store) Withdraw(ctx context.Context, tx *store.Tx, user int64) error {
	n, err := tx.Exec(ctx, `DELETE FROM invites WHERE "by" = $1`, user)
	if err == nil && n > 0 {
		s.o.Changes.Decided(tx, "", "", core.TopicPeople)
	}
	return err
}

// forgetTries deletes an account's wrong tries.
func (s *Store) forgetTries(ctx context.Context, tx *store.Tx, p core.Peer) error {
	tries, _, err := s.triers(ctx, tx, core.Peer{})
	if err != nil {
		return err
	}
	if _, there := tries[personKey(p)]; !there {
		return nil
	}
	delete(tries, personKey(p))
	return saveJSON(ctx, tx, triersKey, tries)
}

// Move rewrites a group's id when the platform gave it a new one.
func (s *Store) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	if _, err := tx.Exec(ctx, `UPDATE invites SET place = $1 WHERE bot = $2 AND place = $3`, to, bot, from); err != nil {
		return fmt.Errorf("move group: %w", err)
	}
	return nil
}
