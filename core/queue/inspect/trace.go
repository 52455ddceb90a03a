package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// A Step is one update on its way: how far it has come, and why no further.
type Step struct {
	Seq                            int64
	Bot, UpdateID, MessageID, Chat string
	Sender, Kind, State            string
	Request, Run, Error            string
	Attempts                       int
	SentAt, ReceivedAt, Due        time.Time
}

// A Sent is one part of a reply.
type Sent struct {
	Seq                            int64
	Bot, Chat, Key, State, Error   string
	Text, MessageID                string
	Ordinal, Attempts              int
	CreatedAt, SentAt, NotBeforeAt time.Time
}

// AddressOf returns where a run's first message is to be answered by now: its chat may
// have got another id since. It returns store.ErrNoRows for a run without messages.
func AddressOf(ctx context.Context, q store.Queryer, run string) (core.Address, error) {
	var body string
	if err := q.Get(ctx, &body, `SELECT payload FROM inbox WHERE run = $1 AND payload IS NOT NULL ORDER BY seq LIMIT 1`, run); err != nil {
		return core.Address{}, err
	}
	var in core.Inbound
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		return core.Address{}, fmt.Errorf("message of run %s: %w", run, err)
	}
	return in.Address, nil
}

type stepRow struct {
	Seq      int64  `db:"seq"`
	Bot      string `db:"bot"`
	Update   string `db:"update_id"`
	Message  string `db:"message_id"`
	Chat     string `db:"chat"`
	Sender   string `db:"sender"`
	Kind     string `db:"kind"`
	State    string `db:"state"`
	Request  string `db:"request"`
	Run      string `db:"run"`
	Error    string `db:"error"`
	Attempts int    `db:"attempts"`
	SentAt   string `db:"sent_at"`
	Received string `db:"received_at"`
	Due      string `db:"due"`
}

const stepColumns = `SELECT seq, bot, update_id, message_id, chat, sender, kind, state, request, run, error, attempts, sent_at, received_at, due FROM inbox `

func (r stepRow) step() (Step, error) {
	s := Step{Seq: r.Seq, Bot: r.Bot, UpdateID: r.Update, MessageID: r.Message, Chat: r.Chat, Sender: r.Sender, Kind: r.Kind, State: r.State,
		Request: r.Request, Run: r.Run, Error: r.Error, Attempts: r.Attempts}
	var errs [3]error
	s.SentAt, errs[0] = core.ParseStamp(r.SentAt)
	s.ReceivedAt, errs[1] = core.ParseStamp(r.Received)
	s.Due, errs[2] = core.ParseStamp(r.Due)
	return s, errors.Join(errs[:]...)
}

// Update returns the update of a bot with that id, or core.NotFound. Finished
// updates are stored for 48 h.
func (r *Reader) Update(ctx context.Context, bot, id string) (Step, error) {
	var row stepRow
	err := r.db.Get(ctx, &row, stepColumns+`WHERE bot = $1 AND update_id = $2`, bot, id)
	if errors.Is(err, store.ErrNoRows) {
		return Step{}, core.Errorf(core.NotFound, "%s knows no update %s; finished ones are kept for 48 hours", bot, id)
	}
	if err != nil {
		return Step{}, fmt.Errorf("update: %w", err)
	}
	return row.step()
}

// maxSteps bounds the updates of one run and the waiting ones of a list.
const maxSteps = 100

// UpdatesOf returns the updates that a run answers, in order.
func (r *Reader) UpdatesOf(ctx context.Context, run string) ([]Step, error) {
	return r.steps(ctx, stepColumns+`WHERE run = $1 AND run <> '' ORDER BY seq LIMIT $2`, run, maxSteps)
}

// Stalled returns updates that are held for a decision on their sender or that
// are rate-limited, the oldest first.
func (r *Reader) Stalled(ctx context.Context, limit int) ([]Step, error) {
	limit = min(limit, maxSteps)
	held, err := r.steps(ctx, stepColumns+`WHERE state = 'held' AND request <> '' ORDER BY request, seq LIMIT $1`, limit)
	if err != nil {
		return nil, err
	}
	limited, err := r.steps(ctx, stepColumns+`WHERE state IN ('ready', 'limited') AND state = 'limited' ORDER BY lane, seq LIMIT $1`, limit)
	return append(held, limited...), err
}

func (r *Reader) steps(ctx context.Context, query string, args ...any) ([]Step, error) {
	var rows []stepRow
	if err := r.db.Select(ctx, &rows, query, args...); err != nil {
		return nil, fmt.Errorf("updates: %w", err)
	}
	out := make([]Step, 0, len(rows))
	for _, r := range rows {
		s, err := r.step()
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// RepliesOf returns the parts of what was stored to be sent under a key, such as
// "run:" and a run's id, in their order. Sent ones are remembered for 48 h.
func (r *Reader) RepliesOf(ctx context.Context, key string) ([]Sent, error) {
	var rows []struct {
		Seq      int64  `db:"seq"`
		Bot      string `db:"bot"`
		Chat     string `db:"chat"`
		Key      string `db:"key"`
		Ordinal  int    `db:"ordinal"`
		Body     string `db:"body"`
		State    string `db:"state"`
		Error    string `db:"error"`
		Attempts int    `db:"attempts"`
		Message  string `db:"platform_message_id"`
		Created  string `db:"created_at"`
		Sent     string `db:"sent_at"`
		Not      string `db:"not_before"`
	}
	err := r.db.Select(ctx, &rows, `SELECT seq, bot, chat, key, ordinal, body, state, error, attempts, platform_message_id, created_at, sent_at, not_before
		FROM outbox WHERE key = $1 ORDER BY ordinal LIMIT $2`, key, maxSteps)
	if err != nil {
		return nil, fmt.Errorf("replies: %w", err)
	}
	out := make([]Sent, 0, len(rows))
	for _, r := range rows {
		var p core.Part
		_ = json.Unmarshal([]byte(r.Body), &p) // shown without its text when unreadable
		s := Sent{Seq: r.Seq, Bot: r.Bot, Chat: r.Chat, Key: r.Key, State: r.State, Error: r.Error, Text: core.CutRunes(p.Text, 500),
			MessageID: r.Message, Ordinal: r.Ordinal, Attempts: r.Attempts}
		var errs [3]error
		s.CreatedAt, errs[0] = core.ParseStamp(r.Created)
		s.SentAt, errs[1] = core.ParseStamp(r.Sent)
		s.NotBeforeAt, errs[2] = core.ParseStamp(r.Not)
		if err := errors.Join(errs[:]...); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}
