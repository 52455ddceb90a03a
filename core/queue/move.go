package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/core/store"
)

// Move lets what waits in and for a chat follow it to its new id: replies, and
// messages that are not answered yet. Edits become new messages and answers
// quote nothing: ids of messages do not move along. What is being answered
// finishes under the old id, and its replies follow when the platform reports the new id.
// Call it after the sessions' Move, which decides the line.
func (q *Queue) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	if from == to {
		return nil
	}
	if err := q.outbox.Move(ctx, tx, bot, from, to); err != nil {
		return err
	}
	return q.moveMessages(ctx, tx, bot, from, to)
}

// moveMessages moves the rows that are not claimed. Rows behind a claimed one
// stay in its lane, to keep their order.
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
		line, held, err := laneOf(ctx, tx, r.Seq)
		if err != nil {
			return err
		}
		if held && r.Attempts > 0 {
			continue // it is being answered
		}
		in.Chat, in.MessageID, in.ReplyTo = to, "", ""
		if in.Place == from {
			in.Place = to
		}
		lane, err := q.o.Lane(ctx, tx, &in)
		if err != nil {
			return fmt.Errorf("move messages: %w", err)
		}
		control := strings.HasSuffix(line, controlLane)
		if control {
			lane += controlLane
		}
		if held { // what is being answered there goes on with the same conversation
			lane = line
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

// laneOf returns the lane of a row, and whether it is claimed.
func laneOf(ctx context.Context, tx *store.Tx, seq int64) (lane string, held bool, err error) {
	var l struct {
		Lane string `db:"lane"`
		Held bool   `db:"held"`
	}
	err = tx.Get(ctx, &l, `SELECT i.lane, EXISTS (SELECT 1 FROM lane l WHERE l.key = i.lane AND l.owner <> '') AS held FROM inbox i WHERE i.seq = $1`, seq)
	if err != nil {
		return "", false, fmt.Errorf("move messages: %w", err)
	}
	return l.Lane, l.Held, nil
}
