package outbox

import (
	"context"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
)

// PreviewKey begins the key of a reply that deletes the preview behind an answer; the key of
// the answer follows.
const PreviewKey = "preview:"

// needless settles a deletion as sent that is not to be made, and reports whether it did: the
// id of its message was of another chat or account, or the answer that the message is a
// preview of was not sent, so that its readers have only the preview.
func (b *Outbox) needless(ctx context.Context, tx *store.Tx, out *core.Outgoing) (bool, error) {
	if !out.Empty() {
		return false, nil
	}
	if out.Replaces != "" {
		answer, ok := strings.CutPrefix(out.Answer, PreviewKey)
		if !ok {
			return false, nil
		}
		var failed bool
		err := tx.Get(ctx, &failed, `SELECT EXISTS (SELECT 1 FROM outbox WHERE key = $1 AND ordinal = 0 AND state = 'failed')`, answer)
		if err != nil || !failed {
			return false, err
		}
	}
	tx.OnCommit(func() { b.wakeChat(chatKey{out.Bot, out.Chat}) })
	_, err := tx.Exec(ctx, `UPDATE outbox SET state = 'sent', error = '', sent_at = $1 WHERE seq = $2`, core.Stamp(tx.Time()), out.Seq)
	return true, err
}
