package queue

import (
	"context"
	"encoding/json"
	"errors"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Reword applies an edit to a message that is held with a pairing request. It
// returns the messages held with the request, oldest first, or none if in is not
// the edit of a waiting message.
func (q *Queue) Reword(ctx context.Context, tx *store.Tx, request string, in *core.Inbound) (held []core.Inbound, err error) {
	done, err := reword(ctx, tx, in)
	if done {
		_, held, err = heldWith(ctx, tx, request)
	}
	return held, err
}

// reword replaces the text and files of a message that no run has claimed yet by
// those of its edit, and reports whether it did. It accepts edits of the same
// sender only, and none from before the last one: a platform repeats updates.
func reword(ctx context.Context, tx *store.Tx, in *core.Inbound) (done bool, err error) {
	empty := in.Text == "" && in.Unsupported == "" && len(in.Files) == 0
	if in.Kind != core.KindEdit || in.MessageID == "" || empty || in.Command != "" {
		return false, nil
	}
	var r inboxRow
	err = tx.Get(ctx, &r, inboxColumns+` WHERE bot = $1 AND chat = $2 AND message_id = $3 AND edit = ''
		AND kind = 'message' AND message_id <> '' AND sender = $4 AND state IN ('ready', 'limited', 'held') AND run = ''`, in.Bot, in.Chat, in.MessageID, in.From.ID)
	if errors.Is(err, store.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	was, err := r.inbound()
	if err != nil || in.Edit < was.Edit {
		return false, nil // its own turn reports that it cannot be read
	}
	was.Text, was.Unsupported, was.Edit = in.Text, in.Unsupported, in.Edit
	if len(in.Files) > 0 { // they can be changed for others, too
		was.Files = in.Files
	}
	b, err := json.Marshal(&was)
	if err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, `UPDATE inbox SET payload = $1 WHERE seq = $2`, string(b), r.Seq)
	return err == nil, err
}
