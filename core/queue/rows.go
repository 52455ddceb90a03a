package queue

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// A Depth is how much of one bot's work waits, and for how long.
type Depth struct {
	Bot                                     string
	Ready, Held, Limited, Dead              int64
	OldestReady                             time.Duration // age of the oldest row that may run
	OutboxOpen, OutboxUnknown, OutboxFailed int64
	OutboxOldest                            time.Duration
}

// Depths has one entry per bot that has or had work, in name order.
func (q *Queue) Depths(ctx context.Context) ([]Depth, error) {
	now := q.o.Clock.Now()
	byBot := map[string]*Depth{} // bounded by the bots
	var order []string
	at := func(bot string) *Depth {
		if byBot[bot] == nil {
			byBot[bot] = &Depth{Bot: bot}
			order = append(order, bot)
		}
		return byBot[bot]
	}
	q.mu.Lock()
	for bot := range q.bots {
		at(bot)
	}
	q.mu.Unlock()
	var rows []struct {
		Bot    string `db:"bot"`
		State  string `db:"state"`
		N      int64  `db:"n"`
		Oldest string `db:"oldest"`
	}
	// Each on its partial index, so that finished rows are never touched. A plain
	// "GROUP BY bot" would tempt the engine to walk the index that begins with bot.
	err := q.db.Select(ctx, &rows, `SELECT min(bot) AS bot, state, count(*) AS n, min(received_at) AS oldest FROM inbox WHERE state IN ('ready', 'limited') GROUP BY bot || '', state
		UNION ALL SELECT min(bot), state, count(*), min(received_at) FROM inbox WHERE state = 'held' GROUP BY bot || '', state
		UNION ALL SELECT min(bot), state, count(*), min(received_at) FROM inbox WHERE state = 'dead' GROUP BY bot || '', state
		UNION ALL SELECT bot, 'out:open', count(*), min(created_at) FROM outbox WHERE state IN ('ready', 'sending') GROUP BY bot
		UNION ALL SELECT bot, 'out:' || state, count(*), min(created_at) FROM outbox WHERE state IN ('unknown', 'failed') GROUP BY bot, state`)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		d := at(r.Bot)
		oldest, err := core.ParseStamp(r.Oldest)
		if err != nil {
			return nil, err
		}
		age := max(0, now.Sub(oldest))
		switch r.State {
		case "ready":
			d.Ready, d.OldestReady = r.N, age
		case "limited":
			d.Limited = r.N
		case "held":
			d.Held = r.N
		case "dead":
			d.Dead = r.N
		case "out:open":
			d.OutboxOpen, d.OutboxOldest = r.N, age
		case "out:unknown":
			d.OutboxUnknown = r.N
		case "out:failed":
			d.OutboxFailed = r.N
		}
	}
	out := make([]Depth, 0, len(order))
	for _, bot := range order {
		out = append(out, *byBot[bot])
	}
	return out, nil
}

// A DeadRow is an update that was given up after its last try, or never understood.
type DeadRow struct {
	Seq                                        int64
	Bot, Chat, Sender, Name, Kind, Text, Error string
	Attempts                                   int
	ReceivedAt                                 time.Time
}

// Dead lists the newest dead rows.
func (q *Queue) Dead(ctx context.Context, limit int) ([]DeadRow, error) {
	var rows []inboxRow
	if err := q.db.Select(ctx, &rows, inboxColumns+` WHERE state = 'dead' ORDER BY seq DESC LIMIT $1`, limit); err != nil {
		return nil, err
	}
	out := make([]DeadRow, 0, len(rows))
	for _, r := range rows {
		in, _ := r.inbound() // a payload that cannot be read is shown without its text
		at, err := core.ParseStamp(r.Received)
		if err != nil {
			return nil, err
		}
		out = append(out, DeadRow{Seq: r.Seq, Bot: r.Bot, Chat: r.Chat, Sender: r.Sender, Name: in.From.Name, Kind: r.Kind,
			Text: core.CutRunes(in.Text, 500), Error: r.Error, Attempts: r.Attempts, ReceivedAt: at})
	}
	return out, nil
}

// Retry gives a dead row its tries back. NotFound without such a row; Invalid
// for an update that could not be understood: it would fail the same way.
func (q *Queue) Retry(ctx context.Context, seq int64, by core.Actor) error {
	return q.tx(ctx, &unit{}, func(tx *store.Tx) error {
		in, err := q.deadRow(ctx, tx, seq)
		if err != nil {
			return err
		}
		if in.Malformed != "" {
			return core.Errorf(core.Invalid, "this update could not be decoded; trying again would fail the same way: dismiss it")
		}
		lane, err := q.o.Lane(ctx, tx, in)
		if err != nil {
			return err
		}
		// Messages that were one turn are that turn again: one by one, the second
		// would meet the answer of the first under their one run.
		if _, err := tx.Exec(ctx, `UPDATE inbox SET state = 'ready', attempts = 0, error = '', due = '', lane = $1
			WHERE seq = $2 OR state = 'dead' AND run <> '' AND run = (SELECT run FROM inbox WHERE seq = $2)`, lane, seq); err != nil {
			return err
		}
		tx.OnCommit(func() { q.o.Ring("queue") })
		if err := store.Audit(ctx, tx, by, "queue.retry", "", map[string]any{"row": seq}); err != nil {
			return err
		}
		return q.wake(ctx, tx, map[string]bool{lane: false})
	})
}

// Dismiss gives a dead row up for good. NotFound without such a row.
func (q *Queue) Dismiss(ctx context.Context, seq int64, by core.Actor) error {
	return q.db.Tx(ctx, func(tx *store.Tx) error {
		if _, err := q.deadRow(ctx, tx, seq); err != nil {
			return err
		}
		if err := q.refuse(ctx, tx, seq); err != nil {
			return err
		}
		tx.OnCommit(func() { q.o.Ring("queue") })
		return store.Audit(ctx, tx, by, "queue.dismiss", "", map[string]any{"row": seq})
	})
}

func (q *Queue) deadRow(ctx context.Context, tx *store.Tx, seq int64) (*core.Inbound, error) {
	var r inboxRow
	err := tx.Get(ctx, &r, inboxColumns+` WHERE seq = $1 AND state = 'dead'`, seq)
	if errors.Is(err, store.ErrNoRows) {
		if err := store.Already(ctx, tx, "row", seq, map[string]string{"queue.retry": "tried again", "queue.dismiss": "dismissed"}); err != nil {
			return nil, err
		}
		return nil, core.Errorf(core.NotFound, "no dead message has the number %d: somebody may have been first", seq)
	}
	if err != nil {
		return nil, err
	}
	in, err := r.inbound()
	if err != nil {
		in.Malformed = err.Error()
	}
	return &in, nil
}

// A SendRow is a reply whose delivery needs a person's eye.
type SendRow struct {
	Seq                                int64
	Bot, Chat, Key, Text, State, Error string
	Attempts                           int
	CreatedAt                          time.Time
}

// Unsure lists the newest replies that may or may not have arrived, or were refused.
func (q *Queue) Unsure(ctx context.Context, limit int) ([]SendRow, error) {
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
	}
	err := q.db.Select(ctx, &rows, `SELECT seq, bot, chat, key, body, state, error, attempts, created_at FROM outbox
		WHERE state IN ('unknown', 'failed') ORDER BY seq DESC LIMIT $1`, limit)
	if err != nil {
		return nil, err
	}
	out := make([]SendRow, 0, len(rows))
	for _, r := range rows {
		var p core.Part
		_ = json.Unmarshal([]byte(r.Body), &p) // shown without its text when unreadable
		at, err := core.ParseStamp(r.Created)
		if err != nil {
			return nil, err
		}
		out = append(out, SendRow{Seq: r.Seq, Bot: r.Bot, Chat: r.Chat, Key: r.Key, Text: core.CutRunes(p.Text, 500),
			State: r.State, Error: r.Error, Attempts: r.Attempts, CreatedAt: at})
	}
	return out, nil
}

// SendAgain sends an unknown or failed reply once more, without a mark: a
// person has looked. NotFound when it is neither (any more).
func (q *Queue) SendAgain(ctx context.Context, seq int64, by core.Actor) error {
	return q.decideSend(ctx, seq, by, "queue.send_again", `UPDATE outbox SET state = 'ready', error = '', not_before = '', replaces = '' WHERE seq = $1`)
}

// Settle takes an unknown or failed reply as done with.
func (q *Queue) Settle(ctx context.Context, seq int64, by core.Actor) error {
	return q.decideSend(ctx, seq, by, "queue.settle", `UPDATE outbox SET state = 'sent', sent_at = created_at WHERE seq = $1`)
}

func (q *Queue) decideSend(ctx context.Context, seq int64, by core.Actor, action, query string) error {
	return q.db.Tx(ctx, func(tx *store.Tx) error {
		var key struct {
			Bot  string `db:"bot"`
			Chat string `db:"chat"`
		}
		err := tx.Get(ctx, &key, `SELECT bot, chat FROM outbox WHERE seq = $1 AND state IN ('unknown', 'failed')`, seq)
		if errors.Is(err, store.ErrNoRows) {
			if err := store.Already(ctx, tx, "row", seq, map[string]string{"queue.send_again": "sent again", "queue.settle": "settled"}); err != nil {
				return err
			}
			return core.Errorf(core.NotFound, "no unsettled reply has the number %d: somebody may have been first", seq)
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, query, seq); err != nil {
			return err
		}
		tx.OnCommit(func() { q.kick(chatKey{key.Bot, key.Chat}); q.o.Ring("queue") })
		return store.Audit(ctx, tx, by, action, "", map[string]any{"row": seq})
	})
}

// A LaneRow is a chat's line with work in it.
type LaneRow struct {
	Key, Owner            string
	Ready                 int
	NotBefore, LeaseUntil time.Time
}

// Lanes lists lanes that wait or are held, the longest waiting first.
func (q *Queue) Lanes(ctx context.Context, limit int) ([]LaneRow, error) {
	var rows []struct {
		Key   string `db:"key"`
		Owner string `db:"owner"`
		Not   string `db:"not_before"`
		Until string `db:"lease_until"`
		Ready int    `db:"ready"`
	}
	err := q.db.Select(ctx, &rows, `SELECT key, owner, not_before, lease_until,
			(SELECT count(*) FROM inbox WHERE inbox.lane = l.key AND state IN ('ready', 'limited')) AS ready
		FROM (SELECT key, owner, not_before, lease_until FROM lane WHERE pending = 1 AND owner = ''
			UNION ALL SELECT key, owner, not_before, lease_until FROM lane WHERE owner <> '') AS l ORDER BY not_before LIMIT $1`, limit)
	if err != nil {
		return nil, err
	}
	out := make([]LaneRow, 0, len(rows))
	for _, r := range rows {
		l := LaneRow{Key: r.Key, Owner: r.Owner, Ready: r.Ready}
		if l.NotBefore, err = core.ParseStamp(r.Not); err != nil {
			return nil, err
		}
		if l.LeaseUntil, err = core.ParseStamp(r.Until); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// pruneBatch bounds one deletion, so that upkeep never holds the writer for long.
const pruneBatch = 1000

// Prune removes rows that are only remembered: finished updates and sent
// replies older than 48 h, lanes idle without work. It returns how many.
func (q *Queue) Prune(ctx context.Context) (int, error) {
	total := 0
	before := core.Stamp(q.o.Clock.Now().Add(-keepFinished))
	for _, query := range []string{
		`DELETE FROM inbox WHERE seq IN (SELECT seq FROM inbox WHERE state IN ('done', 'refused') AND received_at < $1 LIMIT $2)`,
		`DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox WHERE state = 'sent' AND sent_at < $1 LIMIT $2)`,
		`DELETE FROM inbox WHERE seq IN (SELECT seq FROM inbox WHERE state = 'dead' AND $1 <> '' AND seq <= (SELECT seq FROM inbox WHERE state = 'dead' ORDER BY seq DESC LIMIT 1 OFFSET 10000) LIMIT $2)`,
	} {
		for {
			var n int64
			err := q.db.Tx(ctx, func(tx *store.Tx) (err error) {
				n, err = tx.Exec(ctx, query, before, pruneBatch)
				return err
			})
			if err != nil {
				return total, err
			}
			if total += int(n); n < pruneBatch {
				break
			}
		}
	}
	return total, nil
}
