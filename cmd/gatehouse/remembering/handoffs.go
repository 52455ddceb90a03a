package remembering

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/memory"
	"gatehouse/core/memory/backup"
	"gatehouse/core/memory/handoff"
	"gatehouse/core/session"
	"gatehouse/core/store"
)

// Handoffs are texts with which another tool continues a session.
type Handoffs struct {
	DB    *store.DB
	Notes *backup.Store
	Store *memory.Store // nil: nothing is remembered
}

// Markdown returns the newest note on a session. Its user also gets what is remembered of
// them, if the session is not of a group. It is core.NotFound if there is no note.
func (h Handoffs) Markdown(ctx context.Context, s session.Session, reader int64) (text string, err error) {
	b, ok, err := h.Notes.Newest(ctx, h.DB, s.ID, "")
	if err != nil {
		return "", err
	}
	if !ok {
		return "", core.Errorf(core.NotFound, "there is no context backup of this session yet")
	}
	if h.Store != nil && reader == s.User && s.Scope != core.ScopeGroup {
		if text, err = h.Store.Recovery(ctx, reader, b.Model, memory.Place{Session: s.ID, Project: s.Project}); err != nil {
			return "", err
		}
	}
	return handoff.Markdown(s.Title, b.Model, b.At, b.Text, text), nil
}
