package memory

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Tables returns the tables with data of users.
func (s *Store) Tables() []string {
	return []string{"corrections", "correction_events", "recovery_prompts"}
}

// Forget deletes the memory of a user.
func (s *Store) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if r.User <= 0 {
		return nil
	}
	for _, table := range []string{"correction_events", "corrections", "recovery_prompts"} {
		if _, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE user_id = $1`, r.User); err != nil {
			return err
		}
	}
	s.changed(tx, r.User)
	return nil
}

// Merge gives one user's memory to another: its numbers go on from the other's.
func (s *Store) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	for _, user := range []int64{from, to} {
		if err := s.invalidate(ctx, tx, user); err != nil {
			return err
		}
	}
	var last int
	if err := tx.Get(ctx, &last, `SELECT coalesce(max(number), 0) FROM corrections WHERE user_id = $1`, to); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE corrections SET user_id = $1, number = number + $2 WHERE user_id = $3`, to, last, from); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE correction_events SET user_id = $1 WHERE user_id = $2`, to, from)
	s.changed(tx, from)
	s.changed(tx, to)
	return err
}

// Exports returns the statements of an export.
func (s *Store) Exports() []store.Export {
	return []store.Export{
		{Name: "corrections", Query: `SELECT correction_id, number, type, scope, scope_ref, corrective_instruction, canonical_query, about, domain, confidence, decay_class, pinned, extracted_via, status, superseded_by, session_id, model_id, uses, created_at, updated_at FROM corrections WHERE user_id = $1 ORDER BY number DESC LIMIT $2`, Open: s.readable},
		{Name: "correction_events", Query: `SELECT correction_id, kind, run, session_id, model_id, at FROM correction_events WHERE user_id = $1 ORDER BY id DESC LIMIT $2`},
		{Name: "recovery_prompts", Query: `SELECT prompt_id, model_id, prompt_text, generated_at FROM recovery_prompts WHERE user_id = $1 ORDER BY generated_at DESC LIMIT $2`, Open: func(row map[string]any) (err error) {
			id, _ := row["prompt_id"].(string)
			text, _ := row[recoveryColumn].(string)
			row[recoveryColumn], err = s.o.Box.Open(recoveryPlace(id), text)
			return err
		}},
	}
}

// readable decrypts the texts of an exported row.
func (s *Store) readable(row map[string]any) error {
	id, _ := row["correction_id"].(string)
	for _, column := range []string{columnText, columnCanonical, columnAbout} {
		sealed, _ := row[column].(string)
		if sealed == "" {
			continue
		}
		text, err := s.o.Box.Open(place(column, id), sealed)
		if err != nil {
			return err
		}
		row[column] = text
	}
	return nil
}
