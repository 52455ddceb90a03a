package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue/burst"
	"gatehouse/core/queue/recent"
	"gatehouse/core/store"
)

// Put stores a page of updates and its cursor in one transaction. When it returns nil the page may be
// confirmed to the platform. It skips known updates and asks the gate about new ones; a turn of the API
// that the gate drops, as its caller lost access, is core.Denied.
func (q *Queue) Put(ctx context.Context, page []core.Inbound, cursor *core.Cursor) error {
	if q.turns == nil {
		return core.Errorf(core.Busy, "the gateway is starting: try again in a moment")
	}
	began := q.o.Clock.Now()
	var counts [][3]string // bot, kind, outcome
	u := &unit{}
	err := q.tx(ctx, u, func(tx *store.Tx) error {
		counts = counts[:0]
		lanes := map[string]bool{} // bounded by the page
		for i := range page {
			in := page[i] // a copy: the caller may retry the page
			outcome, err := q.putGuarded(ctx, tx, u, &in, lanes)
			if err != nil {
				return err
			}
			counts = append(counts, [3]string{in.Bot, string(in.Kind), outcome})
		}
		if err := wake(ctx, tx, lanes); err != nil {
			return err
		}
		if cursor == nil {
			return nil
		}
		_, err := tx.Exec(ctx, `INSERT INTO cursors (name, value, updated_at) VALUES ($1, $2, $3)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`,
			cursor.Name, cursor.Value, core.Stamp(tx.Time()))
		return err
	})
	q.rejects.note(page, err)
	if err != nil {
		return err
	}
	for _, c := range counts {
		q.o.Metrics.Updated(c[0], c[1], c[2])
		if c[0] == core.APIBot && c[2] == "dropped" {
			err = core.Errorf(core.Denied, "the account or key may not chat any more")
		}
	}
	q.o.Metrics.Stage("ingest", q.o.Clock.Now().Sub(began))
	return err
}

// Cursor returns a stored cursor and when it last moved, or "" without one.
func (q *Queue) Cursor(ctx context.Context, name string) (string, time.Time, error) {
	var row struct {
		Value string `db:"value"`
		At    string `db:"updated_at"`
	}
	err := q.db.Get(ctx, &row, `SELECT value, updated_at FROM cursors WHERE name = $1`, name)
	if errors.Is(err, store.ErrNoRows) {
		return "", time.Time{}, nil
	}
	if err != nil {
		return "", time.Time{}, err
	}
	at, err := core.ParseStamp(row.At)
	return row.Value, at, err
}

// putOne stores one update and returns its outcome, a label value of gatehouse_updates_total.
func (q *Queue) putOne(ctx context.Context, tx *store.Tx, u *unit, in *core.Inbound, lanes map[string]bool) (string, error) {
	known, err := known(ctx, tx, in)
	if err != nil || known {
		return "repeat", err
	}
	if in.Malformed != "" {
		tx.OnCommit(func() { q.o.Ring(core.TopicQueue) })
		return "malformed", insert(ctx, tx, in, row{state: "dead", err: in.Malformed, keep: true})
	}
	if !in.Addressed && in.Kind == core.KindMessage && q.bursts.Any() {
		lane, err := q.moved.Of(ctx, tx, in)
		if err != nil {
			return "", err
		}
		if in.Addressed, err = q.bursts.Addressed(ctx, tx, in, lane); err != nil {
			return "", err
		}
	}
	u.admitted = nil
	v, err := q.turns.Admit(ctx, tx, in)
	if err != nil {
		return "", err
	}
	switch {
	case v.Action == core.Forget:
		return "blocked", nil
	case v.Action == core.Hold:
		return "held", insert(ctx, tx, in, row{state: "held", trust: v.Trust, request: v.Request, keep: true})
	case v.Action == core.Drop || v.Trust == core.Stranger:
		key := core.Inbound{Address: core.Address{Bot: in.Bot, Chat: in.Chat}, UpdateID: in.UpdateID, Kind: in.Kind, MessageID: in.MessageID, Edit: in.Edit, At: in.At}
		return "dropped", insert(ctx, tx, &key, row{state: "done", free: true}) // nothing else of a message that is not for the bot
	}
	switch in.Kind {
	case core.KindEdit, core.KindReaction, core.KindService:
		if _, err := reword(ctx, tx, in); err != nil {
			return "", err
		}
		if rate := q.limits.rate(); in.Kind == core.KindEdit && rate.N > 0 {
			if full, err := recent.Full(ctx, tx, in, rate.N*controlRoom, rate.Per); full || err != nil {
				return "noted", err
			}
		}
		return "noted", insert(ctx, tx, in, row{state: "done", trust: v.Trust})
	}
	u.admitted, u.fresh = in, v
	return q.putWork(ctx, tx, in, v, lanes)
}

// putWork stores an update that may start a turn.
func (q *Queue) putWork(ctx context.Context, tx *store.Tx, in *core.Inbound, a Admission, lanes map[string]bool) (string, error) {
	if in.Kind == core.KindMessage && a.Answer {
		in.Kind = core.KindAnswer
	}
	lane, err := q.moved.Of(ctx, tx, in)
	if err != nil {
		return "", err
	}
	control := in.Kind == core.KindAnswer && !a.Awaited || in.Kind == core.KindCallback || a.Control
	end := ""
	if control {
		end = core.ControlLane
	} else if a.Shows {
		if end, err = passes(ctx, tx, in, lane); err != nil {
			return "", err
		}
	}
	lane += end
	r := row{lane: lane, state: "ready", trust: a.Trust, keep: true}
	if in.Turn != nil {
		r.run = in.Turn.Run
	}
	outcome, further := "ready", false
	if in.Kind == core.KindMessage && !core.OfSession(in.Bot) {
		if r.burst, further, err = q.bursts.Join(ctx, tx, in, lane); err != nil {
			return "", err
		}
		r.free = further
	}
	rate := q.limits.rate() // once: it may be changed at any time
	if !further && in.Kind == core.KindMessage && !core.OfSession(in.Bot) && rate.N > 0 {
		if outcome, err = q.limits.message(ctx, tx, in, &r, rate); err != nil {
			return "", err
		}
	}
	if (in.Kind == core.KindCommand || in.Kind == core.KindCallback) && !core.OfSession(in.Bot) && rate.N > 0 {
		if outcome, err = q.limits.command(ctx, tx, in, &r, rate, control); err != nil {
			return "", err
		}
	}
	if r.burst != "" && !further && r.state == "ready" {
		r.state, r.due = "limited", core.Stamp(tx.Time().Add(burst.Wait))
	}
	if err := insert(ctx, tx, in, r); err != nil {
		return "", err
	}
	if r.state != "refused" {
		lanes[lane] = end != ""
	} else if h := q.currentHandler(); in.Kind == core.KindCallback && h != nil {
		tx.OnCommit(func() { h.Refused(in) })
	}
	if in.Kind == core.KindMessage && !core.OfSession(in.Bot) && r.state != "refused" && q.slots.runs(lane) {
		tx.OnCommit(func() { q.currentHandler().Behind(in, lane, a) })
	}
	return outcome, nil
}

// passes returns the end of the lane of a command that only shows something. Behind an earlier
// command of its sender it waits in the chat's lane, as it is to show what that one changes.
func passes(ctx context.Context, tx *store.Tx, in *core.Inbound, lane string) (end string, err error) {
	var behind bool
	err = tx.Get(ctx, &behind, `SELECT EXISTS (SELECT 1 FROM inbox WHERE lane = $1 AND state IN ('ready', 'limited') AND kind = 'command' AND sender = $2)`, lane, in.From.ID)
	if err != nil || behind {
		return "", err
	}
	return core.ShowsLane, nil
}

func known(ctx context.Context, tx *store.Tx, in *core.Inbound) (bool, error) {
	var found bool
	const update = `SELECT EXISTS (SELECT 1 FROM inbox WHERE bot = $1 AND update_id = $2)`
	if in.Kind != core.KindMessage || in.MessageID == "" {
		err := tx.Get(ctx, &found, update, in.Bot, in.UpdateID)
		return found, err
	}
	err := tx.Get(ctx, &found, update+` OR EXISTS (SELECT 1 FROM inbox WHERE bot = $1 AND chat = $3 AND message_id = $4 AND edit = $5
		AND kind = 'message' AND message_id <> '')`, in.Bot, in.UpdateID, in.Chat, in.MessageID, in.Edit)
	return found, err
}

// row is what insert adds to an update.
type row struct {
	lane, state, request, run, due, err, burst string
	trust                                      core.Trust
	free                                       bool // does not count against the rate: no use of the bot, or a further part of an album
	keep                                       bool // keep the payload
}

func insert(ctx context.Context, tx *store.Tx, in *core.Inbound, r row) error {
	var payload any
	if r.keep {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		payload = string(b)
	}
	_, err := tx.Exec(ctx, `INSERT INTO inbox (bot, update_id, chat, lane, kind, message_id, edit, sender, trust, payload,
			state, request, run, error, sent_at, due, counts, received_at, burst)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
		in.Bot, in.UpdateID, in.Chat, r.lane, string(in.Kind), in.MessageID, in.Edit, in.From.ID, r.trust, payload,
		r.state, r.request, r.run, r.err, core.Stamp(in.At), r.due, !r.free, core.Stamp(tx.Time()), r.burst)
	return err
}

// wake marks lanes as having work, in sorted order. An idle lane joins the end: they are claimed by
// not_before. A new one begins with an epoch that no deleted lane of the key had (maintenance).
func wake(ctx context.Context, tx *store.Tx, lanes map[string]bool) error {
	now, epoch := core.Stamp(tx.Time()), tx.Time().UnixMilli()
	for _, k := range slices.Sorted(maps.Keys(lanes)) {
		_, err := tx.Exec(ctx, `INSERT INTO lane (key, ver, pending, not_before, control, epoch) VALUES ($1, 1, 1, $2, $3, $4)
			ON CONFLICT (key) DO UPDATE SET ver = lane.ver + 1, pending = 1,
				not_before = CASE WHEN lane.pending = 1 OR lane.owner <> '' THEN lane.not_before ELSE excluded.not_before END`, k, now, lanes[k], epoch)
		if err != nil {
			return err
		}
	}
	return nil
}

// heldWith returns the rows held with a pairing request, oldest first, and their messages.
func heldWith(ctx context.Context, tx *store.Tx, request string) (rows []inboxRow, held []core.Inbound, err error) {
	err = tx.Select(ctx, &rows, inboxColumns+` WHERE request = $1 AND state = 'held' ORDER BY seq`, request)
	held = make([]core.Inbound, len(rows))
	for i := 0; i < len(rows) && err == nil; i++ {
		held[i], err = rows[i].inbound()
	}
	return rows, held, err
}

// Free makes the rows held with a pairing request ready, stamped with trust. It
// returns how many.
func (q *Queue) Free(ctx context.Context, tx *store.Tx, request string, trust core.Trust) (int, error) {
	lanes := map[string]bool{}
	rows, held, err := heldWith(ctx, tx, request)
	if err != nil {
		return 0, err
	}
	for i, r := range rows {
		lane, err := q.moved.Of(ctx, tx, &held[i])
		if err != nil {
			return 0, err
		}
		if _, err := tx.Exec(ctx, `UPDATE inbox SET state = 'ready', trust = $1, lane = $2, request = '' WHERE seq = $3`, trust, lane, r.Seq); err != nil {
			return 0, err
		}
		lanes[lane] = false
	}
	tx.OnCommit(q.ring)
	return len(rows), wake(ctx, tx, lanes)
}

// Discard refuses the rows held with a pairing request. It returns how many.
func (q *Queue) Discard(ctx context.Context, tx *store.Tx, request string) (int, error) {
	n, err := tx.Exec(ctx, `UPDATE inbox SET state = 'refused', payload = NULL, request = '' WHERE request = $1 AND state = 'held'`, request)
	return int(n), err
}

const inboxColumns = `SELECT seq, bot, chat, lane, kind, sender, trust, coalesce(payload, '') AS payload, state, run, attempts, due, error, received_at, burst, stopped FROM inbox`

type inboxRow struct {
	Seq      int64      `db:"seq"`
	Bot      string     `db:"bot"`
	Chat     string     `db:"chat"`
	Lane     string     `db:"lane"`
	Kind     string     `db:"kind"`
	Sender   string     `db:"sender"`
	Trust    core.Trust `db:"trust"`
	Payload  string     `db:"payload"`
	State    string     `db:"state"`
	Run      string     `db:"run"`
	Attempts int        `db:"attempts"`
	Due      string     `db:"due"`
	Error    string     `db:"error"`
	Received string     `db:"received_at"`
	Burst    string     `db:"burst"`
	Stopped  string     `db:"stopped"`
}

func (r *inboxRow) inbound() (core.Inbound, error) {
	var in core.Inbound
	if err := json.NewDecoder(strings.NewReader(r.Payload)).Decode(&in); err != nil {
		return in, fmt.Errorf("inbox row %d: %w", r.Seq, err)
	}
	return in, nil
}
