package moved

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
)

type row struct {
	Seq      int64  `db:"seq"`
	Lane     string `db:"lane"`
	Payload  string `db:"payload"`
	State    string `db:"state"`
	Attempts int    `db:"attempts"`
}

// Move gives the unfinished messages of a chat its new id. It returns the lanes that have
// work now; the value is true for those that pass by a chat's turns. Messages stay in the lane of the old id
// while one of them, or an API request in the same conversation, is being answered, and
// later ones join them. Edits become new messages and answers quote nothing: ids of
// messages do not move along.
func (l *Lanes) Move(ctx context.Context, tx *store.Tx, bot, from, to string) (woken map[string]bool, err error) {
	m := &move{ctx: ctx, tx: tx, from: from, to: to, woken: map[string]bool{}}
	if m.lane, err = l.lane(ctx, tx, &core.Inbound{Address: core.Address{Bot: bot, Chat: to}}); err != nil {
		return nil, fmt.Errorf("move messages: %w", err)
	}
	if m.was, err = l.lane(ctx, tx, &core.Inbound{Address: core.Address{Bot: bot, Chat: from}}); err != nil {
		return nil, fmt.Errorf("move messages: %w", err)
	}
	if before, ok := l.of(m.was); ok { // the chat moves for the second time
		m.was = before.lane
	}
	if m.stays, err = claimed(ctx, tx, m.was); err != nil {
		return nil, fmt.Errorf("move messages: %w", err)
	}
	if err := m.rows(bot); err != nil {
		return nil, fmt.Errorf("move messages: %w", err)
	}
	if m.stays {
		l.join(m.lane, m.was)
	}
	return m.woken, nil
}

// A move is a chat that gets another id.
type move struct {
	ctx       context.Context
	tx        *store.Tx
	from, to  string
	was, lane string          // of the chat's turns
	stays     bool            // a turn runs in was
	woken     map[string]bool // at most the lanes of the chat
}

// rows moves the chat's messages, then the API requests that wait in its lane.
func (m *move) rows(bot string) error {
	var rows []row
	if err := m.tx.Select(m.ctx, &rows, `SELECT seq, lane, coalesce(payload, '') AS payload, state, attempts FROM inbox
		WHERE state IN ('ready', 'limited', 'held', 'dead') AND bot = $1 AND chat = $2 ORDER BY seq`, bot, m.from); err != nil {
		return err
	}
	for i := range rows {
		if err := m.row(&rows[i]); err != nil {
			return err
		}
	}
	if m.stays || m.was == m.lane {
		return nil
	}
	n, err := m.tx.Exec(m.ctx, `UPDATE inbox SET lane = $1 WHERE lane = $2 AND state IN ('ready', 'limited')`, m.lane, m.was)
	if n > 0 {
		m.woken[m.lane] = false
	}
	return err
}

func (m *move) row(r *row) error {
	var in core.Inbound
	if json.NewDecoder(strings.NewReader(r.Payload)).Decode(&in) != nil {
		return nil // it cannot be answered there either
	}
	if m.stays && r.Lane == m.was && r.Attempts > 0 { // it is being answered: another attempt has no preview there
		if _, err := m.tx.Exec(m.ctx, `UPDATE lane SET preview = '' WHERE key = $1`, r.Lane); err != nil {
			return err
		}
	}
	in.Chat, in.MessageID, in.ReplyTo = m.to, "", ""
	if in.Place == m.from {
		in.Place = m.to
	}
	end := core.LaneEnd(r.Lane)
	stays := m.stays && strings.TrimSuffix(r.Lane, end) == m.was
	if !stays && end != "" {
		var err error
		if stays, err = claimed(m.ctx, m.tx, r.Lane); err != nil { // it is being handled
			return err
		}
	}
	lane := r.Lane
	if !stays {
		lane = m.lane + end
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if _, err := m.tx.Exec(m.ctx, `UPDATE inbox SET chat = $1, lane = $2, message_id = '', payload = $3 WHERE seq = $4`, m.to, lane, string(body), r.Seq); err != nil {
		return err
	}
	if !stays && (r.State == "ready" || r.State == "limited") {
		m.woken[lane] = end != ""
	}
	return nil
}
