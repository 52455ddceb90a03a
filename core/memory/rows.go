package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/memory/detect"
	"gatehouse/core/memory/score"
	"gatehouse/core/sealed"
	"gatehouse/core/sealed/columns"
	"gatehouse/core/store"
)

type row struct {
	ID         string  `db:"correction_id"`
	User       int64   `db:"user_id"`
	Number     int     `db:"number"`
	Type       string  `db:"type"`
	Scope      string  `db:"scope"`
	ScopeRef   string  `db:"scope_ref"`
	Text       string  `db:"corrective_instruction"`
	Canonical  string  `db:"canonical_query"`
	About      string  `db:"about"`
	Domain     string  `db:"domain"`
	Confidence float64 `db:"confidence"`
	Class      string  `db:"decay_class"`
	Pinned     bool    `db:"pinned"`
	Delta      int     `db:"score_delta"`
	Via        string  `db:"extracted_via"`
	Status     string  `db:"status"`
	Superseded string  `db:"superseded_by"`
	Conflicts  string  `db:"conflicts_with"`
	Card       string  `db:"card"`
	Expires    string  `db:"expires_at"`
	Session    string  `db:"session_id"`
	Model      string  `db:"model_id"`
	Uses       int     `db:"uses"`
	Emphasis   int     `db:"emphasis"`
	Followed   int     `db:"followed"`
	Used       string  `db:"used_at"`
	Created    string  `db:"created_at"`
	Updated    string  `db:"updated_at"`
}

const selectRows = `SELECT correction_id, user_id, number, type, scope, scope_ref, corrective_instruction, canonical_query, about, domain, confidence, decay_class, pinned, score_delta,
	extracted_via, status, superseded_by, conflicts_with, card, expires_at, session_id, model_id, uses, emphasis, followed, used_at, created_at, updated_at FROM corrections `

// Columns that are encrypted.
const (
	columnText      = "corrective_instruction"
	columnCanonical = "canonical_query"
	columnAbout     = "about"
)

const table = "corrections"

func place(column, row string) sealed.Place {
	return sealed.Place{Table: table, Column: column, Row: row}
}

// Columns returns the encrypted columns.
func Columns() (all []columns.Column) {
	for _, name := range []string{columnText, columnCanonical, columnAbout} {
		all = append(all, columns.Column{Table: table, Name: name, Row: "correction_id"})
	}
	return append(all, columns.Column{Table: recoveryTable, Name: recoveryColumn, Row: "prompt_id"})
}

// open returns the correction of a row.
func (s *Store) open(r *row) (Correction, error) {
	c := Correction{ID: r.ID, User: r.User, Number: r.Number, Type: detect.Type(r.Type), Scope: detect.Scope(r.Scope), ScopeRef: r.ScopeRef, Domain: r.Domain, Confidence: r.Confidence,
		Class: score.Class(r.Class), Pinned: r.Pinned, ScoreDelta: r.Delta, Via: r.Via, Status: Status(r.Status), Superseded: r.Superseded, Conflicts: r.Conflicts, Card: Card(r.Card),
		ExpiresAt: core.TimeOf(r.Expires), Session: r.Session, Model: r.Model, Uses: r.Uses, Emphasis: r.Emphasis, Followed: r.Followed, UsedAt: core.TimeOf(r.Used),
		CreatedAt: core.TimeOf(r.Created), UpdatedAt: core.TimeOf(r.Updated)}
	var err error
	for _, x := range []struct {
		column, sealed string
		to             *string
	}{{columnText, r.Text, &c.Text}, {columnCanonical, r.Canonical, &c.Canonical}, {columnAbout, r.About, &c.About}} {
		if x.sealed == "" {
			continue
		}
		if *x.to, err = s.o.Box.Open(place(x.column, r.ID), x.sealed); err != nil {
			return c, fmt.Errorf("correction %s: %w", r.ID, err)
		}
	}
	return c, nil
}

// seal returns the encrypted texts of c.
func (s *Store) seal(c *Correction) (text, canonical, about string, err error) {
	if text, err = s.o.Box.Seal(place(columnText, c.ID), c.Text); err != nil {
		return
	}
	if canonical, err = s.o.Box.Seal(place(columnCanonical, c.ID), c.Canonical); err != nil || c.About == "" {
		return
	}
	about, err = s.o.Box.Seal(place(columnAbout, c.ID), c.About)
	return
}

// rows returns the corrections that a condition selects. One whose text cannot be
// decrypted is left out and logged, so that it costs its user that one alone.
func (s *Store) rows(ctx context.Context, q store.Queryer, where string, args ...any) ([]Correction, error) {
	var rows []row
	if err := q.Select(ctx, &rows, selectRows+where, args...); err != nil {
		return nil, fmt.Errorf("corrections: %w", err)
	}
	out := make([]Correction, 0, len(rows))
	for i := range rows {
		c, err := s.open(&rows[i])
		if err != nil {
			s.o.Log.Error("a correction is left out: its text cannot be decrypted", "correction", rows[i].ID, "user", rows[i].User, "err", err)
			continue
		}
		out = append(out, c)
	}
	return out, nil
}

// find returns a correction of a user by its id, or its number in digits.
func (s *Store) find(ctx context.Context, q store.Queryer, user int64, ref string) (Correction, error) {
	var r row
	where, arg := `WHERE user_id = $1 AND correction_id = $2`, any(ref)
	if n, ok := number(ref); ok {
		where, arg = `WHERE user_id = $1 AND number = $2`, n
	}
	err := q.Get(ctx, &r, selectRows+where, user, arg)
	if errors.Is(err, store.ErrNoRows) || user <= 0 {
		return Correction{}, core.Errorf(core.NotFound, "there is no correction %s", core.CutRunes(core.Visible(ref), 40))
	}
	if err != nil {
		return Correction{}, fmt.Errorf("correction: %w", err)
	}
	return s.open(&r)
}

// number returns the number that a reference is, or false.
func number(ref string) (n int, ok bool) {
	ref = strings.TrimPrefix(ref, "#")
	if ref == "" || len(ref) > 6 {
		return 0, false
	}
	for _, d := range ref {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int(d-'0')
	}
	return n, true
}

// insert stores c as the next of its user, unless there is one of its source; created
// reports which.
func (s *Store) insert(ctx context.Context, tx *store.Tx, c *Correction, source string) (created bool, err error) {
	if lock := tx.ForUpdate(); lock != "" { // numbers are given by one at a time
		var ids []string
		if err := tx.Select(ctx, &ids, `SELECT correction_id FROM corrections WHERE user_id = $1 ORDER BY number DESC LIMIT 1`+lock, c.User); err != nil {
			return false, fmt.Errorf("lock corrections: %w", err)
		}
	}
	if err := tx.Get(ctx, &c.Number, `SELECT coalesce(max(number), 0) + 1 FROM corrections WHERE user_id = $1`, c.User); err != nil {
		return false, fmt.Errorf("number a correction: %w", err)
	}
	text, canonical, about, err := s.seal(c)
	if err != nil {
		return false, err
	}
	c.CreatedAt, c.UpdatedAt = tx.Time(), tx.Time()
	n, err := tx.Exec(ctx, `INSERT INTO corrections (correction_id, user_id, number, type, scope, scope_ref, corrective_instruction, canonical_query, about, domain, confidence, decay_class,
			pinned, extracted_via, status, conflicts_with, card, expires_at, source, session_id, model_id, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $22) ON CONFLICT (source) DO NOTHING`,
		c.ID, c.User, c.Number, string(c.Type), string(c.Scope), c.ScopeRef, text, canonical, about, c.Domain, c.Confidence, string(c.Class), flag(c.Pinned), c.Via, string(c.Status), c.Conflicts,
		string(c.Card), core.Stamp(c.ExpiresAt), source, c.Session, c.Model, core.Stamp(c.CreatedAt))
	if err != nil || n == 0 {
		return false, err
	}
	s.changed(tx, c.User)
	return true, s.note(ctx, tx, c, Event{Kind: EventCreated, Session: c.Session, Model: c.Model})
}

// save stores what can change of c.
func (s *Store) save(ctx context.Context, tx *store.Tx, c *Correction, e Event) error {
	text, canonical, about, err := s.seal(c)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE corrections SET type = $1, scope = $2, scope_ref = $3, corrective_instruction = $4, canonical_query = $5, about = $6, domain = $7, confidence = $8, decay_class = $9,
			pinned = $10, status = $11, superseded_by = $12, conflicts_with = $13, card = $14, expires_at = $15, emphasis = $16, followed = $17, updated_at = $18, extracted_via = $19
		WHERE correction_id = $20`,
		string(c.Type), string(c.Scope), c.ScopeRef, text, canonical, about, c.Domain, c.Confidence, string(c.Class), flag(c.Pinned), string(c.Status), c.Superseded, c.Conflicts, string(c.Card),
		core.Stamp(c.ExpiresAt), c.Emphasis, c.Followed, core.Stamp(c.UpdatedAt), c.Via, c.ID)
	if err != nil {
		return fmt.Errorf("save a correction: %w", err)
	}
	if err := s.invalidate(ctx, tx, c.User); err != nil {
		return err
	}
	s.changed(tx, c.User)
	return s.note(ctx, tx, c, e)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// expired reports whether the card or the undo of c has ended.
func (c *Correction) expired(now time.Time) bool {
	return !c.ExpiresAt.IsZero() && !now.Before(c.ExpiresAt)
}
