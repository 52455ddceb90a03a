package inspect

import (
	"context"
	"encoding/json"
	"time"

	"gatehouse/core"
)

// A DeadRow is a dead letter: an update that failed in its last attempt, or that
// could not be decoded.
type DeadRow struct {
	Seq                                        int64
	Bot, Chat, Sender, Name, Kind, Text, Error string
	Attempts                                   int
	ReceivedAt                                 time.Time
}

// Dead returns the newest dead letters, at most limit.
func (r *Reader) Dead(ctx context.Context, limit int) ([]DeadRow, error) {
	var rows []struct {
		Seq      int64  `db:"seq"`
		Bot      string `db:"bot"`
		Chat     string `db:"chat"`
		Kind     string `db:"kind"`
		Sender   string `db:"sender"`
		Payload  string `db:"payload"`
		Attempts int    `db:"attempts"`
		Error    string `db:"error"`
		Received string `db:"received_at"`
	}
	if err := r.db.Select(ctx, &rows, `SELECT seq, bot, chat, kind, sender, coalesce(payload, '') AS payload, attempts, error, received_at FROM inbox WHERE state = 'dead' ORDER BY seq DESC LIMIT $1`, limit); err != nil {
		return nil, err
	}
	out := make([]DeadRow, 0, len(rows))
	for _, row := range rows {
		var in core.Inbound
		_ = json.Unmarshal([]byte(row.Payload), &in) // a payload that cannot be read is shown without its text
		at, err := core.ParseStamp(row.Received)
		if err != nil {
			return nil, err
		}
		out = append(out, DeadRow{Seq: row.Seq, Bot: row.Bot, Chat: row.Chat, Sender: row.Sender, Name: in.From.Name, Kind: row.Kind,
			Text: core.CutRunes(in.Text, 500), Error: row.Error, Attempts: row.Attempts, ReceivedAt: at})
	}
	return out, nil
}

// A SendRow is a reply that the operator must decide on, or that is being retried.
type SendRow struct {
	Seq                                int64
	Bot, Chat, Key, Text, State, Error string
	Attempts                           int
	CreatedAt, NotBefore               time.Time
}

// Unsure returns the newest replies with an unknown outcome, or that were
// refused, at most limit.
func (r *Reader) Unsure(ctx context.Context, limit int) ([]SendRow, error) {
	return r.sends(ctx, unsure, limit)
}

// Retrying returns the replies that were not sent at their last try and will be tried again, the oldest
// first, at most limit.
func (r *Reader) Retrying(ctx context.Context, limit int) ([]SendRow, error) {
	return r.sends(ctx, retrying, limit)
}

const (
	sendColumns = `SELECT seq, bot, chat, key, body, state, error, attempts, created_at, not_before FROM outbox`
	unsure      = sendColumns + ` WHERE state IN ('unknown', 'failed') ORDER BY seq DESC LIMIT $1`
	retrying    = sendColumns + ` WHERE state IN ('ready', 'sending') AND error <> '' ORDER BY seq LIMIT $1`
)

func (r *Reader) sends(ctx context.Context, query string, limit int) ([]SendRow, error) {
	var rows []struct {
		Seq      int64  `db:"seq"`
		Bot      string `db:"bot"`
		Chat     string `db:"chat"`
		Key      string `db:"key"`
		Body     string `db:"body"`
		State    string `db:"state"`
		Error    string `db:"error"`
		Attempts int    `db:"attempts"`
		Created  string `db:"created_at"`
		Not      string `db:"not_before"`
	}
	if err := r.db.Select(ctx, &rows, query, limit); err != nil {
		return nil, err
	}
	out := make([]SendRow, 0, len(rows))
	for _, row := range rows {
		var p core.Part
		_ = json.Unmarshal([]byte(row.Body), &p) // shown without its text when unreadable
		at, err := core.ParseStamp(row.Created)
		if err != nil {
			return nil, err
		}
		out = append(out, SendRow{Seq: row.Seq, Bot: row.Bot, Chat: row.Chat, Key: row.Key, Text: core.CutRunes(p.Text, 500),
			State: row.State, Error: row.Error, Attempts: row.Attempts, CreatedAt: at, NotBefore: core.TimeOf(row.Not)})
	}
	return out, nil
}

// A LaneRow is a lane that has work.
type LaneRow struct {
	Key, Owner            string
	Ready                 int
	NotBefore, LeaseUntil time.Time
}

// Lanes returns lanes that wait or are claimed, the longest waiting first, at
// most limit.
func (r *Reader) Lanes(ctx context.Context, limit int) ([]LaneRow, error) {
	var rows []struct {
		Key   string `db:"key"`
		Owner string `db:"owner"`
		Not   string `db:"not_before"`
		Until string `db:"lease_until"`
		Ready int    `db:"ready"`
	}
	err := r.db.Select(ctx, &rows, `SELECT key, owner, not_before, lease_until,
			(SELECT count(*) FROM inbox WHERE inbox.lane = l.key AND state IN ('ready', 'limited')) AS ready
		FROM (SELECT key, owner, not_before, lease_until FROM lane WHERE pending = 1 AND owner = ''
			UNION ALL SELECT key, owner, not_before, lease_until FROM lane WHERE owner <> '') AS l ORDER BY not_before LIMIT $1`, limit)
	if err != nil {
		return nil, err
	}
	out := make([]LaneRow, 0, len(rows))
	for _, row := range rows {
		l := LaneRow{Key: row.Key, Owner: row.Owner, Ready: row.Ready}
		if l.NotBefore, err = core.ParseStamp(row.Not); err != nil {
			return nil, err
		}
		if l.LeaseUntil, err = core.ParseStamp(row.Until); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}
