package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Move lets replies to a chat, and messages that are not answered yet, follow it to its new
// id. Edits become new messages and answers quote nothing: ids of messages do not move along.
// The present attempt at an answer goes on under the old id, and its replies follow when the
// platform reports the new id. Call it after the sessions' Move, which decides the line.
func (q *Queue) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	if from == to {
		return nil
	}
	if err := q.outbox.Move(ctx, tx, bot, from, to); err != nil {
		return err
	}
	return q.moveMessages(ctx, tx, bot, from, to)
}

// moveMessages moves the rows. A claimed one and those behind it stay in their lane.
func (q *Queue) moveMessages(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	var rows []inboxRow
	err := tx.Select(ctx, &rows, inboxColumns+` WHERE state IN ('ready', 'limited', 'held', 'dead') AND bot = $1 AND chat = $2 ORDER BY seq`, bot, from)
	if err != nil {
		return fmt.Errorf("move messages: %w", err)
	}
	lanes := map[string]bool{}
	for _, r := range rows {
		in, err := r.inbound()
		if err != nil {
			continue // it cannot be answered there either
		}
		held, err := q.Held(ctx, tx, r.Lane)
		if err != nil {
			return fmt.Errorf("move messages: %w", err)
		}
		if held && r.Attempts > 0 { // it is being answered: another attempt has no preview there
			if _, err := tx.Exec(ctx, `UPDATE lane SET preview = '' WHERE key = $1`, r.Lane); err != nil {
				return fmt.Errorf("move messages: %w", err)
			}
		}
		in.Chat, in.MessageID, in.ReplyTo = to, "", ""
		if in.Place == from {
			in.Place = to
		}
		lane, control, err := q.laneNow(ctx, tx, &in, r.Lane)
		if err != nil {
			return fmt.Errorf("move messages: %w", err)
		}
		if held { // what is being answered there goes on with the same conversation
			lane = r.Lane
		}
		body, err := json.Marshal(in)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE inbox SET chat = $1, lane = $2, message_id = '', payload = $3 WHERE seq = $4`, to, lane, string(body), r.Seq); err != nil {
			return fmt.Errorf("move messages: %w", err)
		}
		if !held && (r.State == "ready" || r.State == "limited") {
			lanes[lane] = control
		}
	}
	if len(lanes) == 0 {
		return nil
	}
	tx.OnCommit(q.ring)
	return wake(ctx, tx, lanes)
}

// laneNow returns the lane of a stored update that was in the lane was, and
// whether it is a control lane, which a control turn keeps.
func (q *Queue) laneNow(ctx context.Context, tx *store.Tx, in *core.Inbound, was string) (lane string, control bool, err error) {
	if lane, err = q.o.Lane(ctx, tx, in); err != nil || !strings.HasSuffix(was, controlLane) {
		return lane, false, err
	}
	return lane + controlLane, true, nil
}
