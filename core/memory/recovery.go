package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/memory/block"
	"gatehouse/core/memory/detect"
	"gatehouse/core/sealed"
	"gatehouse/core/store"
)

// Limits of a recovery prompt.
const (
	maxRecovery  = 6_000 // bytes of its corrections
	recoveryAge  = 24 * time.Hour
	recoveryLook = 15 * time.Minute // between deletions of old ones
)

// The encrypted column of recovery prompts.
const (
	recoveryTable  = "recovery_prompts"
	recoveryColumn = "prompt_text"
)

func recoveryPlace(id string) sealed.Place {
	return sealed.Place{Table: recoveryTable, Column: recoveryColumn, Row: id}
}

// Recovery returns what is remembered of a user, for a model that starts without the
// memory, as Markdown; "" where nothing is. What applies everywhere is stored for the model,
// and made again when a correction has changed or after a day. What applies only at the
// place is added.
func (s *Store) Recovery(ctx context.Context, user int64, model string, at Place) (string, error) {
	if user <= 0 {
		return "", nil
	}
	p, err := s.load(ctx, user)
	if err != nil {
		return "", err
	}
	var here []*Correction
	for _, c := range p.all {
		if c.Scope != detect.Global && at.in(c) {
			here = append(here, c)
		}
	}
	text, err := s.recovery(ctx, user, model, p)
	if err != nil || text == "" && len(here) == 0 {
		return "", err
	}
	var b strings.Builder
	b.WriteString("## REMEMBERED OF THE PERSON\n" + block.Head)
	b.WriteString(text)
	left := maxRecovery
	list(&b, "For this conversation, before the others", here, &left)
	return strings.TrimSpace(b.String()), nil
}

// recovery returns the stored prompt of a user and a model, or makes it.
func (s *Store) recovery(ctx context.Context, user int64, model string, p *person) (string, error) {
	var everywhere []*Correction
	for _, c := range p.all {
		if c.Scope == detect.Global {
			everywhere = append(everywhere, c)
		}
	}
	if len(everywhere) == 0 {
		return "", nil
	}
	var r struct {
		ID   string `db:"prompt_id"`
		Text string `db:"prompt_text"`
		At   string `db:"generated_at"`
		Hash string `db:"corrections_hash"`
	}
	err := s.o.DB.Get(ctx, &r, `SELECT prompt_id, prompt_text, generated_at, corrections_hash FROM recovery_prompts WHERE user_id = $1 AND model_id = $2`, user, model)
	switch {
	case errors.Is(err, store.ErrNoRows):
	case err != nil:
		return "", fmt.Errorf("recovery prompt: %w", err)
	case r.Hash == hashOf(everywhere) && s.o.Clock.Now().Sub(core.TimeOf(r.At)) < recoveryAge:
		return s.o.Box.Open(recoveryPlace(r.ID), r.Text)
	}
	return s.renew(ctx, user, model)
}

// renew makes the prompt of a user and a model from what is in force as it is stored, so that
// no deletion comes between.
func (s *Store) renew(ctx context.Context, user int64, model string) (text string, err error) {
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		rows, err := s.rows(ctx, tx, `WHERE user_id = $1 AND status = 'active' AND scope = 'global' AND corrective_instruction <> ''`, user)
		if err != nil {
			return err
		}
		all := make([]*Correction, len(rows))
		for i := range rows {
			all[i] = &rows[i]
		}
		text = compose(all, model)
		id := uuid.NewString()
		closed, err := s.o.Box.Seal(recoveryPlace(id), text)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM recovery_prompts WHERE user_id = $1 AND model_id = $2`, user, model); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO recovery_prompts (prompt_id, model_id, user_id, prompt_text, generated_at, corrections_hash) VALUES ($1, $2, $3, $4, $5, $6)`,
			id, model, user, closed, core.Stamp(tx.Time()), hashOf(all))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("recovery prompt: %w", err)
	}
	return text, nil
}

// hashOf returns the SHA-256 of what a prompt of these corrections depends on, in any order.
func hashOf(all []*Correction) string {
	lines := make([]string, len(all))
	for i, c := range all {
		lines[i] = strings.Join([]string{c.ID, c.Text, string(c.Scope), strconv.FormatBool(c.Pinned)}, "\x00")
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\x01")))
	return hex.EncodeToString(sum[:])
}

// compose returns the corrections as sections, those of the model's own answers apart.
func compose(all []*Correction, model string) string {
	var standing, own, rest []*Correction
	for _, c := range all {
		switch {
		case c.Pinned || c.everywhere():
			standing = append(standing, c)
		case c.Model == model && (c.Type == detect.Factual || c.Type == detect.Failure):
			own = append(own, c)
		default:
			rest = append(rest, c)
		}
	}
	var b strings.Builder
	left := maxRecovery
	list(&b, "For every answer", standing, &left)
	list(&b, "Corrections of answers by "+model, own, &left)
	list(&b, "Facts and decisions", rest, &left)
	return b.String()
}

// list writes a section of corrections, the most important first, while left bytes last.
func list(b *strings.Builder, title string, all []*Correction, left *int) {
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b *Correction) int {
		if a.Pinned != b.Pinned {
			if a.Pinned {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.importance(), a.importance()), cmp.Compare(a.Number, b.Number))
	})
	b.WriteString("\n### " + title + "\n")
	for i, c := range all {
		line := c.line() + "\n"
		if *left -= len(line); *left < 0 {
			fmt.Fprintf(b, "- %d more are left out.\n", len(all)-i)
			return
		}
		b.WriteString(line)
	}
}

// invalidate deletes the recovery prompts of a user: a correction has changed or is gone.
func (s *Store) invalidate(ctx context.Context, tx *store.Tx, user int64) error {
	_, err := tx.Exec(ctx, `DELETE FROM recovery_prompts WHERE user_id = $1`, user)
	return err
}

// oldRecovery deletes prompts that are too old to be used.
func (s *Store) oldRecovery(ctx context.Context) (n int, err error) {
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		gone, err := tx.Exec(ctx, `DELETE FROM recovery_prompts WHERE generated_at < $1`, core.Stamp(tx.Time().Add(-recoveryAge)))
		n = int(gone)
		return err
	})
	return n, err
}
