package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/queue/halt"
	"gatehouse/core/store"
)

// Of rows that wait. "bot || ”" has SQLite take their index, and not that of all of the bot.
const (
	queued      = `SELECT count(*) FROM (SELECT 1 FROM inbox WHERE lane > '' AND state IN ('ready', 'limited') AND bot || '' = $1 AND sender = $2 AND kind = 'message' LIMIT $3) AS waiting`
	waitingRows = `SELECT seq, kind, bot, stopped, CASE kind WHEN 'command' THEN coalesce(payload, '') ELSE '' END AS payload FROM inbox
		WHERE lane > '' AND state IN ('ready', 'limited') AND kind IN ('message', 'command')
		AND (bot || '' IN ($1, $2) AND chat = $3 OR bot || '' = $4 AND chat = $5) ORDER BY seq LIMIT $6`
	waiting = `SELECT EXISTS (SELECT 1 FROM inbox WHERE lane > '' AND state IN ('ready', 'limited') AND bot || '' = $1 AND chat = $2 AND $3 IN ('', sender) AND $4 IN ('', run))`
)

// Stored returns the message id and chat of a stored update. found is false for
// an update that is not stored, or not any more.
func (r *Reader) Stored(ctx context.Context, bot, update string) (message, chat string, found bool, err error) {
	var row struct {
		Message string `db:"message_id"`
		Chat    string `db:"chat"`
	}
	err = r.db.Get(ctx, &row, `SELECT message_id, chat FROM inbox WHERE bot = $1 AND update_id = $2`, bot, update)
	if errors.Is(err, store.ErrNoRows) {
		return "", "", false, nil
	}
	if err != nil {
		return "", "", false, fmt.Errorf("what was stored: %w", err)
	}
	return row.Message, row.Chat, true, nil
}

// Queued returns how many messages of the sender wait or are being answered,
// counted up to most.
func (r *Reader) Queued(ctx context.Context, bot, sender string, most int) (n int, err error) {
	err = r.db.Get(ctx, &n, queued, bot, sender, most)
	if err != nil {
		return 0, fmt.Errorf("what waits of a sender: %w", err)
	}
	return n, nil
}

// Waits reports whether a turn in a chat waits or is being answered: of the sender and of run,
// each "" for any.
func (r *Reader) Waits(ctx context.Context, bot, chat, sender, run string) (waits bool, err error) {
	err = r.db.Get(ctx, &waits, waiting, bot, chat, sender, run)
	if err != nil {
		return false, fmt.Errorf("whether a turn waits: %w", err)
	}
	return waits, nil
}

// maxWaiting bounds the rows that Waiting returns.
const maxWaiting = 1000

// Waiting returns the rows of messages that wait or are being answered in a conversation: those of its own,
// which came over HTTP, by the panel or by the schedule, and those of the chat that it is bound to, at, which may be
// zero; the oldest first, at most 1,000. What was written in the chat behind a command that leaves the
// conversation is another's. Those that are stopped (Queue.Stop, Turn.Stop) do not count.
func Waiting(ctx context.Context, q store.Queryer, session string, at core.Address, leaves func(command string) bool) (messages []int64, err error) {
	var rows []struct {
		Seq     int64  `db:"seq"`
		Kind    string `db:"kind"`
		Bot     string `db:"bot"`
		Stopped string `db:"stopped"`
		Payload string `db:"payload"`
	}
	err = q.Select(ctx, &rows, waitingRows, core.APIBot, core.ScheduleBot, session, at.Bot, at.Chat, maxWaiting)
	if err != nil {
		return nil, fmt.Errorf("what waits in a conversation: %w", err)
	}
	left := false
	for _, r := range rows {
		own := core.OfSession(r.Bot)
		if r.Kind == string(core.KindCommand) {
			var in core.Inbound
			left = left || !own && json.Unmarshal([]byte(r.Payload), &in) == nil && leaves(in.Command)
		} else if _, stopped := halt.Of(r.Stopped, session); (own || !left) && !stopped {
			messages = append(messages, r.Seq)
		}
	}
	return messages, nil
}

// WaitingOf returns the rows of messages of a run that wait or are being answered.
func WaitingOf(ctx context.Context, q store.Queryer, run string) (messages []int64, err error) {
	err = q.Select(ctx, &messages, `SELECT seq FROM inbox WHERE run = $1 AND run <> '' AND state IN ('ready', 'limited') ORDER BY seq LIMIT $2`, run, maxWaiting)
	if err != nil {
		return nil, fmt.Errorf("what waits of a run: %w", err)
	}
	return messages, nil
}

// A Try is a message whose turn has failed, or was cut, and waits for its next attempt.
type Try struct {
	Seq    int64  `db:"seq"`
	Run    string `db:"run"`
	Sender string `db:"sender"` // as the platform names them
}

// Tries returns the messages of a lane, in front of row before, whose turns have begun and are not
// answered: of run, "" for any. One of them may be being answered again. At most 1,000.
func Tries(ctx context.Context, q store.Queryer, bot, lane, run string, before int64) (tries []Try, err error) {
	err = q.Select(ctx, &tries, `SELECT seq, run, sender FROM inbox WHERE lane = $1 AND state IN ('ready', 'limited') AND bot = $2 AND run <> '' AND $3 IN ('', run) AND attempts > 0 AND seq < $4 ORDER BY seq LIMIT $5`,
		lane, bot, run, before, maxWaiting)
	if err != nil {
		return nil, fmt.Errorf("what is tried again: %w", err)
	}
	return tries, nil
}

// Backlog returns how many messages of the lane wait; those of run, which is being answered, do
// not. run is "" for none.
func (r *Reader) Backlog(ctx context.Context, lane, run string) (n int, err error) {
	err = r.db.Get(ctx, &n, `SELECT count(*) FROM inbox WHERE lane = $1 AND state IN ('ready', 'limited') AND (run = '' OR run <> $2)`, lane, run)
	return n, err
}
