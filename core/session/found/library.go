package found

import (
	"context"

	"gatehouse/core/index"
	"gatehouse/core/index/document"
	"gatehouse/core/index/search"
)

// Texts returns what was written in conversations.
type Texts interface {
	Text(ctx context.Context, p index.Place) (string, error)
}

// A Library has a model embed documents, and conversations with the texts of their
// transcripts (embedding.Library).
type Library struct {
	*document.Store
	Texts Texts
}

// PendingAfter returns at most limit passages that the model has not embedded and that
// follow one which it has returned. What is not in its transcript any more is not pending.
func (l Library) PendingAfter(ctx context.Context, model int64, after document.Passage, limit int) (list []document.Passage, err error) {
	for len(list) < limit {
		next, err := l.Store.PendingAfter(ctx, model, after, limit-len(list))
		if err != nil || len(next) == 0 {
			return list, err
		}
		after = next[len(next)-1]
		var blank []document.Passage
		for _, p := range next {
			if p.Type == search.Session {
				p.Text, err = l.Texts.Text(ctx, index.Place{Session: p.Content, File: p.Path, Field: p.Field, Index: p.Index, Length: p.Length, Piece: p.Piece})
			}
			switch {
			case err != nil:
				return nil, err
			case p.Type == search.Session && p.Text == "":
				blank = append(blank, p)
			default:
				list = append(list, p)
			}
		}
		if len(blank) > 0 {
			err = l.Embed(ctx, model, blank, make([][]float32, len(blank)))
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}
