package session

import (
	"context"
	"encoding/json"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// TrustAutoIn reports whether tools go on without asking in the conversation
// of a chat; false where there is none.
func (s *Store) TrustAutoIn(ctx context.Context, q store.Queryer, addr core.Address) (bool, error) {
	var metadata []string
	err := q.Select(ctx, &metadata, `SELECT coalesce(s.metadata, '') FROM chats c JOIN sessions s ON s.id = c.session_id WHERE c.bot = $1 AND c.chat = $2`, addr.Bot, addr.Chat)
	if err != nil {
		return false, fmt.Errorf("session of chat: %w", err)
	}
	if len(metadata) == 0 {
		return false, nil
	}
	return (&Session{Metadata: json.RawMessage(metadata[0])}).TrustAuto(false), nil
}

// SetTrustAuto has the tools of a chat's conversation go on unasked, or ask
// again ("permissions": {"trust_auto": …} in its metadata). Conflict while the
// chat has no conversation. The caller has made sure that the owner wants it.
func (s *Store) SetTrustAuto(ctx context.Context, tx *store.Tx, addr core.Address, on bool) error {
	var rows []struct {
		ID       string `db:"id"`
		Metadata string `db:"metadata"`
	}
	err := tx.Select(ctx, &rows, `SELECT s.id AS id, coalesce(s.metadata, '') AS metadata FROM chats c JOIN sessions s ON s.id = c.session_id
		WHERE c.bot = $1 AND c.chat = $2`, addr.Bot, addr.Chat)
	if err != nil {
		return fmt.Errorf("session of chat: %w", err)
	}
	if len(rows) == 0 {
		return texts.Error(core.Conflict, "no_conversation_yet")
	}
	all, permissions := map[string]json.RawMessage{}, map[string]any{}
	if json.Unmarshal([]byte(rows[0].Metadata), &all) != nil || all == nil {
		all = map[string]json.RawMessage{}
	}
	if json.Unmarshal(all["permissions"], &permissions) != nil || permissions == nil {
		permissions = map[string]any{}
	}
	permissions["trust_auto"] = on
	if all["permissions"], err = json.Marshal(permissions); err != nil {
		return err
	}
	metadata, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE sessions SET metadata = $1 WHERE id = $2`, string(metadata), rows[0].ID); err != nil {
		return fmt.Errorf("trust of session: %w", err)
	}
	return s.keepCurrent(ctx, tx, rows[0].ID)
}
