package session

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Who has set a title. What a user has set stays until a user sets another.
const (
	TitleDefault = "default" // the first line of the first message
	TitleModel   = "model"
	TitleUser    = "user"
)

// SetTitle gives a session a title, as Title makes one of it, and reports whether
// that changed anything: a model's is back behind a user's, and behind a
// person's or a model's the default does. A user may want no title; an empty
// one from others changes nothing. No such session is core.NotFound, another
// source core.Invalid.
func (s *Store) SetTitle(ctx context.Context, tx *store.Tx, id, title, source string) (bool, error) {
	over := "'default'"
	switch source {
	case TitleDefault:
	case TitleModel:
		over = "'default', 'model'"
	case TitleUser:
		over = "'default', 'model', 'user'"
	default:
		return false, core.Errorf(core.Invalid, "a title is set by default, model or user")
	}
	if title = Title(title); title == "" && source != TitleUser {
		return false, nil
	}
	var was struct {
		Title  string `db:"title"`
		Source string `db:"title_source"`
	}
	err := tx.Get(ctx, &was, `SELECT coalesce(title, '') AS title, title_source FROM sessions WHERE id = $1`, id)
	if errors.Is(err, store.ErrNoRows) {
		return false, notFound()
	}
	if err != nil {
		return false, fmt.Errorf("set title: %w", err)
	}
	if was.Title == title && was.Source == source {
		return false, nil
	}
	n, err := tx.Exec(ctx, `UPDATE sessions SET title = $2, title_source = $3 WHERE id = $1 AND title_source IN (`+over+`)`, id, title, source)
	if err != nil {
		return false, fmt.Errorf("set title: %w", err)
	}
	if n == 0 {
		return false, nil
	}
	if err := s.indexHead(ctx, tx, id); err != nil {
		return false, err
	}
	return true, s.keepCurrent(ctx, tx, id)
}
