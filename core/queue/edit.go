package queue

import (
	"context"
	"encoding/json"
	"errors"

	"gatehouse/core"
	"gatehouse/core/store"
)

// reword replaces the text and files of a message that no run has claimed yet by
// those of its edit. It accepts edits of the same sender only.
func reword(ctx context.Context, tx *store.Tx, in *core.Inbound) error {
	empty := in.Text == "" && in.Unsupported == "" && len(in.Files) == 0
	if in.Kind != core.KindEdit || in.MessageID == "" || empty || in.Command != "" {
		return nil
	}
	var r struct {
		Seq     int64  `db:"seq"`
		Payload string `db:"payload"`
	}
	err := tx.Get(ctx, &r, `SELECT seq, payload FROM inbox WHERE bot = $1 AND chat = $2 AND message_id = $3 AND edit = ''
		AND kind = 'message' AND message_id <> '' AND sender = $4 AND state IN ('ready', 'limited') AND run = ''`, in.Bot, in.Chat, in.MessageID, in.From.ID)
	if errors.Is(err, store.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	var was core.Inbound
	if err := json.Unmarshal([]byte(r.Payload), &was); err != nil {
		return nil // its own turn reports that it cannot be read
	}
	was.Text, was.Unsupported = in.Text, in.Unsupported
	if len(in.Files) > 0 { // they can be changed for others, too
		was.Files = in.Files
	}
	b, err := json.Marshal(&was)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE inbox SET payload = $1 WHERE seq = $2`, string(b), r.Seq)
	return err
}
