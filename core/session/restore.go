package session

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"gatehouse/core"
	"gatehouse/core/session/sidecar"
	"gatehouse/core/store"
)

// orphan makes sess a session without an owner: visible to the operator only,
// sandboxed, and every tool call in it asks.
func orphan(sess *Session) {
	sess.User, sess.TrustLevel = 0, core.Sandboxed
	if !filepath.IsLocal(sess.WorkingDirectory) {
		sess.WorkingDirectory = ""
	}
	all := fieldsOf(sess.Metadata)
	for name := range all {
		if isPermissions(name) {
			delete(all, name)
		}
	}
	sess.Metadata = nil
	if len(all) > 0 {
		if b, err := json.Marshal(all); err == nil {
			sess.Metadata = b
		}
	}
}

// Restore inserts a session with the rows that its sidecar lists; side may be nil. A
// chat that has a conversation keeps it. A session that is not owned becomes the
// operator's: sandboxed, and every tool call in it asks.
func (s *Store) Restore(ctx context.Context, tx *store.Tx, sess Session, side *sidecar.Sidecar, owned bool) error {
	if !owned {
		orphan(&sess)
	}
	archived, metadata := 0, any(nil)
	if sess.Archived {
		archived = 1
	}
	if len(sess.Metadata) > 0 {
		metadata = string(sess.Metadata)
	}
	switch sess.TitleSource {
	case TitleModel, TitleUser:
	default:
		sess.TitleSource = TitleDefault
	}
	_, err := tx.Exec(ctx, `INSERT INTO sessions (id, title, module, source, working_directory, vault_root, model, message_count, archived,
			created_at, last_accessed, continued_from, agent_type, metadata, user_id, trust_level, title_source, workspace, project_id, chosen_model, original_id, scope)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)`,
		sess.ID, sess.Title, sess.Module, sess.Source, sess.WorkingDirectory, sess.VaultRoot, sess.Model, sess.MessageCount, archived,
		core.Stamp(sess.CreatedAt), core.Stamp(sess.LastAccessed), sess.ContinuedFrom, sess.AgentType, metadata, sess.User,
		sess.TrustLevel, sess.TitleSource, sess.Workspace, sess.Project, sess.ChosenModel, originalOf(sess.Metadata), string(scopeOf(&sess, side)))
	if err != nil || side == nil {
		return err
	}
	if err := keepList(ctx, tx, sess.ID, tagRows, nil, valid(side.Tags, maxTags, tagOf)); err != nil {
		return err
	}
	if err := keepList(ctx, tx, sess.ID, contextRows, nil, valid(side.Contexts, maxContexts, contextOf)); err != nil {
		return err
	}
	return s.rebind(ctx, tx, sess, side)
}

// scopeOf returns the scope of a session that is restored: its sidecar's, or that of the
// chat that an older sidecar names. An imported session was never in a group.
func scopeOf(sess *Session, side *sidecar.Sidecar) core.Scope {
	switch {
	case side != nil && (side.Scope == core.ScopeGroup || side.Place != ""):
		return core.ScopeGroup
	case side != nil && (side.Scope == core.ScopeDM || side.Chat != ""), originalOf(sess.Metadata) != nil, ownSource(sess.Source):
		return core.ScopeDM
	}
	return ""
}

// ownSource reports whether sessions of this source begin outside of chats.
func ownSource(source string) bool {
	switch source {
	case core.PanelSource, "gatehouse", "parachute", "claude-code", "claude", "chatgpt":
		return true
	}
	return core.OfSession(source)
}

// valid returns the first values of a list that may be kept.
func valid(list []string, most int, check func(string) (string, error)) (out []string) {
	for _, v := range list[:min(most, len(list))] {
		if v, err := check(v); err == nil && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// rebind gives a chat that has no conversation the one that its sidecar reports.
func (s *Store) rebind(ctx context.Context, tx *store.Tx, sess Session, side *sidecar.Sidecar) error {
	to := core.Address{Bot: side.Bot, Chat: side.Chat, Thread: side.Thread, Place: side.Place}
	if sess.User == 0 || to.Bot == "" || to.Chat == "" || core.OfSession(to.Bot) {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO chats (bot, chat, thread, place, session_id, kind, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (bot, chat) DO UPDATE SET session_id = excluded.session_id, updated_at = excluded.updated_at WHERE chats.session_id IS NULL`,
		to.Bot, to.Chat, to.Thread, to.Place, sess.ID, string(to.Scope()), core.Stamp(tx.Time()))
	if err != nil {
		return fmt.Errorf("bind chat: %w", err)
	}
	return nil
}
