package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/queue/burst"
	"gatehouse/core/store"
)

// A Turn is one claimed piece of work: usually one message, in mode collect
// several of one sender. Its exported fields are the handler's to read.
type Turn struct {
	Lane    string
	Epoch   int64
	Run     string // fixed at the first claim; "" on control turns
	Attempt int    // 1 at the first
	Rows    []core.Inbound
	Trust   core.Trust // min(stamped, present, ceilings)
	Sender  Admission  // of the first row, at the claim
	Control bool
	Work    any   // what Turns.Prepare left; the queue does not look inside
	Err     error // why Prepare refused the turn, for the user
	Taken   time.Time
	Waited  time.Duration // from the oldest row's arrival to the claim

	mu      sync.Mutex
	preview string
	stopped string // the session for which it is stopped
	seqs    []int64
	left    bool // its slot is free again
	// Of the slots: the running turn that it has displaced, and whether it never ran.
	before   *Turn
	canceled bool
	settled  bool
	cancel   context.CancelCauseFunc
}

// Preview returns the platform id of the preview in the chat, or "".
func (t *Turn) Preview() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.preview
}

// Seq returns the number of the first row, for keys of replies without a run.
func (t *Turn) Seq() int64 { return t.seqs[0] }

// Last returns the number of the turn's last message.
func (t *Turn) Last() int64 { return t.seqs[len(t.seqs)-1] }

// First returns the first row; every turn has one.
func (t *Turn) First() *core.Inbound { return &t.Rows[0] }

// claim takes waiting lanes while there are free slots, control lanes first.
func (q *Queue) claim(ctx context.Context, tx *store.Tx, u *unit) error {
	u.early = !q.slots.isOpen()
	for _, control := range []bool{true, false} {
		if err := q.claimKind(ctx, tx, u, control); err != nil {
			return err
		}
	}
	return nil
}

// claimKind takes waiting lanes of one kind.
func (q *Queue) claimKind(ctx context.Context, tx *store.Tx, u *unit, control bool) error {
	for {
		if !q.slots.hasRoom(control) {
			return nil
		}
		lanes, err := q.dueLanes(ctx, tx, control)
		if err != nil {
			return err
		}
		for _, l := range lanes {
			if !q.slots.reserve(control) {
				break
			}
			t, err := q.claimLane(ctx, tx, u, l, control)
			if t == nil || err != nil {
				q.slots.cancel(control)
				if err != nil {
					return err
				}
				continue
			}
			q.slots.begin(t)
			u.turns = append(u.turns, t)
		}
		if len(lanes) < maxClaimed {
			return nil
		}
	}
}

// claimWaiting claims for the poll loop. It writes only when a lane waits.
func (q *Queue) claimWaiting(ctx context.Context) error {
	now := q.o.Clock.Now()
	var waits bool
	err := q.db.Get(ctx, &waits, `SELECT EXISTS (SELECT 1 FROM lane WHERE pending = 1 AND owner = '' AND control IN (0, 1) AND `+due+`)
		OR EXISTS (SELECT 1 FROM lane WHERE owner <> '' AND owner <> $3 AND lease_until < $1)`, core.Stamp(now), q.far(now), q.o.Node)
	if err != nil || !waits {
		return err
	}
	return q.tx(ctx, &unit{}, func(tx *store.Tx) error {
		// A node with an expired lease is dead or suspended; the epoch of the
		// next claim fences it. This node keeps its own lanes in any case.
		_, err := tx.Exec(ctx, `UPDATE lane SET owner = '', pending = 1, not_before = $1 WHERE owner <> '' AND owner <> $2 AND lease_until < $3`,
			core.Stamp(tx.Time()), q.o.Node, core.Stamp(tx.Time()))
		return err
	})
}

// due selects lanes that may be claimed at $1. A later time than $2, the longest
// wait there is, was stamped before the clock was set back.
const due = `(not_before <= $1 OR not_before > $2)`

func (q *Queue) far(now time.Time) string {
	return core.Stamp(now.Add(max(10*time.Minute, 5*q.limits.rate().Per)))
}

// A dueLane is a lane that may be claimed.
type dueLane struct {
	Key     string `db:"key"`
	Epoch   int64  `db:"epoch"`
	Preview string `db:"preview"`
}

// maxClaimed is how many lanes dueLanes looks up.
const maxClaimed = 64

// dueLanes returns the lanes of a kind that may be claimed, the longest waiting
// first, at most maxClaimed.
func (q *Queue) dueLanes(ctx context.Context, tx *store.Tx, control bool) (lanes []dueLane, err error) {
	now := tx.Time()
	// A parameter for the limit would make SQLite plan the statement each time.
	err = tx.Select(ctx, &lanes, `SELECT key, epoch, preview FROM lane WHERE pending = 1 AND owner = '' AND control = $3 AND `+due+`
		ORDER BY not_before LIMIT 64`+tx.SkipLocked(), core.Stamp(now), q.far(now), control)
	return lanes, err
}

// claimLane claims a lane that dueLanes returned in this transaction and fills a
// turn. It returns nil, and releases the lane, when no row is due.
func (q *Queue) claimLane(ctx context.Context, tx *store.Tx, u *unit, lane dueLane, control bool) (*Turn, error) {
	now := tx.Time()
	epoch := lane.Epoch + 1
	// The key alone is enough, because this transaction has read the row.
	// RETURNING would make SQLite build a temporary table.
	if _, err := tx.Exec(ctx, `UPDATE lane SET owner = $1, epoch = $2, lease_until = $3 WHERE key = $4`, q.o.Node, epoch, core.Stamp(now.Add(leaseTime)), lane.Key); err != nil {
		return nil, err
	}
	t := &Turn{Lane: lane.Key, Epoch: epoch, preview: lane.Preview, Control: control, Taken: now}
	wait, err := q.guarded(ctx, tx, u, t)
	if err != nil {
		return nil, err
	}
	if len(t.Rows) > 0 {
		return t, nil
	}
	return nil, q.release(ctx, tx, t, wait)
}

// take fills t with the first turn of the lane. Without one t.Rows stays empty,
// and wait is when the first row is due, or zero when there is none.
func (q *Queue) take(ctx context.Context, tx *store.Tx, u *unit, t *Turn) (wait time.Time, err error) {
	for {
		var rows []inboxRow
		err := tx.Select(ctx, &rows, inboxColumns+` WHERE lane = $1 AND state IN ('ready', 'limited') ORDER BY seq LIMIT 1`, t.Lane)
		if err != nil || len(rows) == 0 {
			return time.Time{}, err
		}
		first := &rows[0]
		if due, err := core.ParseStamp(first.Due); err != nil {
			return time.Time{}, err
		} else if first.State == "limited" && due.After(t.Taken) && due.Before(t.Taken.Add(max(5*q.limits.rate().Per, 10*burst.Wait))) {
			return due, nil
		}
		in, err := first.inbound()
		if err == nil && first.Attempts >= MaxAttempts {
			err = errors.New("the gateway ended five times while it worked on this")
			if err := errors.Join(q.notifyGaveUp(ctx, tx, &in, first.Seq, t.preview), clearPreview(ctx, tx, t.Lane)); err != nil {
				return time.Time{}, err
			}
			t.preview = ""
		}
		if err != nil {
			if err := q.deadLetter(ctx, tx, []int64{first.Seq}, err.Error()); err != nil {
				return time.Time{}, err
			}
			continue
		}
		if t.Sender, err = q.admission(ctx, tx, u, &in); err != nil {
			return time.Time{}, err
		}
		t.Trust = core.Least(first.Trust, t.Sender.Trust)
		if t.Trust == core.Stranger && in.Turn != nil {
			t.Err = core.Errorf(core.Denied, "the key or the access that asked for this was taken back")
		} else if t.Trust == core.Stranger {
			if err := q.refuse(ctx, tx, first.Seq); err != nil {
				return time.Time{}, err
			}
			continue
		}
		return time.Time{}, q.fill(ctx, tx, t, in, first)
	}
}

// newRun returns the id of a run. Ids ascend in time (RFC 9562, version 7), which
// keeps new rows together in the indexes: with random ids each message would
// touch, and each commit write, its own page of every index.
func newRun() string { return uuid.Must(uuid.NewV7()).String() } // panics when there is no randomness

// fill adds the first row to t and, where messages are collected, the rows that
// follow it.
func (q *Queue) fill(ctx context.Context, tx *store.Tx, t *Turn, in core.Inbound, first *inboxRow) error {
	t.Rows, t.seqs = []core.Inbound{in}, []int64{first.Seq}
	t.Run, t.Attempt, t.stopped = first.Run, first.Attempts+1, first.Stopped
	if received, err := core.ParseStamp(first.Received); err == nil {
		t.Waited = t.Taken.Sub(received)
	}
	if first.Run == "" && t.preview != "" { // of a turn that was given up: no other turn edits it
		t.preview = ""
		if err := clearPreview(ctx, tx, t.Lane); err != nil {
			return err
		}
	}
	if err := q.collect(ctx, tx, t, first); err != nil {
		return err
	}
	if t.Run == "" && !t.Control {
		t.Run = newRun()
	}
	for _, seq := range t.seqs {
		if _, err := tx.Exec(ctx, `UPDATE inbox SET run = $1, attempts = attempts + 1 WHERE seq = $2`, t.Run, seq); err != nil {
			return err
		}
	}
	if t.Control || t.Err != nil {
		return nil
	}
	if err := q.turns.Prepare(ctx, tx, t); core.KindOf(err) != core.Other {
		t.Err = err
	} else if err != nil {
		return err
	}
	return nil
}

func clearPreview(ctx context.Context, tx *store.Tx, lane string) error {
	_, err := tx.Exec(ctx, `UPDATE lane SET preview = '' WHERE key = $1`, lane)
	return err
}

// collect adds the rows that belong to the turn of the first one: those with its
// run id (a retry has the same rows) or, where messages are collected, the next
// messages of the same sender up to a command of the control lane, maxCollect and collectBytes.
func (q *Queue) collect(ctx context.Context, tx *store.Tx, t *Turn, first *inboxRow) error {
	in := &t.Rows[0]
	if t.Control || in.Kind != core.KindMessage || in.Turn != nil || alone(in) {
		return nil
	}
	all := first.Run != "" || t.Sender.Collect
	if !all && first.Burst == "" {
		return nil
	}
	var rows []inboxRow
	err := tx.Select(ctx, &rows, inboxColumns+` WHERE lane = $1 AND state IN ('ready', 'limited') AND seq > $2 ORDER BY seq LIMIT 9`, t.Lane, first.Seq) // maxCollect - 1
	if err != nil {
		return err
	}
	stop := int64(0)
	if len(rows) > 0 && first.Run == "" { // what was written behind a /stop is not stopped by it
		err := tx.Get(ctx, &stop, `SELECT coalesce(min(seq), 0) FROM inbox WHERE lane = $1 AND state IN ('ready', 'limited') AND kind = 'command' AND seq > $2`, t.Lane+core.ControlLane, first.Seq)
		if err != nil {
			return err
		}
	}
	size := len(in.Text)
	for i := range rows {
		r := &rows[i]
		if !all && r.Burst != first.Burst {
			break
		}
		if stop != 0 && r.Seq > stop && (r.Burst == "" || r.Burst != first.Burst) {
			break
		}
		if r.Kind != string(core.KindMessage) || r.Sender != first.Sender || r.Run != first.Run || r.Stopped != first.Stopped || r.State != "ready" || r.Trust != first.Trust {
			break
		}
		next, err := r.inbound()
		if err != nil || next.Turn != nil || alone(&next) {
			break
		}
		if size += len(next.Text); size > collectBytes {
			break
		}
		t.Rows, t.seqs = append(t.Rows, next), append(t.seqs, r.Seq)
	}
	return nil
}

// alone reports whether a message is never collected with others: one of an
// unsupported kind, because its standard reply would leave the others unread, and one
// that is answered again.
func alone(in *core.Inbound) bool { return in.Unsupported != "" && in.Text == "" || in.Again != "" }

// release releases the lane of t. The lane stays pending while it has rows. It
// returns ErrFenced when the lane has another owner.
func (q *Queue) release(ctx context.Context, tx *store.Tx, t *Turn, until time.Time) error {
	if until.IsZero() {
		until = tx.Time()
	}
	if hold := tx.ForUpdate(); hold != "" { // another node may just be putting something into it
		if _, err := tx.Exec(ctx, `SELECT ver FROM lane WHERE key = $1`+hold, t.Lane); err != nil {
			return err
		}
	}
	if err := q.keepStop(ctx, tx, t); err != nil {
		return err
	}
	n, err := tx.Exec(ctx, `UPDATE lane SET owner = '', lease_until = '', not_before = $1,
			pending = CASE WHEN EXISTS (SELECT 1 FROM inbox WHERE inbox.lane = $2 AND state IN ('ready', 'limited')) THEN 1 ELSE 0 END
		WHERE key = $2 AND epoch = $3 AND owner = $4`, core.Stamp(until), t.Lane, t.Epoch, q.o.Node)
	if err == nil && n == 0 {
		return ErrFenced
	}
	return err
}

func (q *Queue) refuse(ctx context.Context, tx *store.Tx, seq int64) error {
	return q.giveUp(ctx, tx, `UPDATE inbox SET state = 'refused', payload = NULL, error = coalesce(nullif($1, ''), error) WHERE seq = $2 RETURNING run`, seq, "")
}

// giveUp ends a row by query, and the run of the row.
func (q *Queue) giveUp(ctx context.Context, tx *store.Tx, query string, seq int64, why string) error {
	var run string
	if err := tx.Get(ctx, &run, query, core.CutRunes(why, 500), seq); err != nil {
		return err
	}
	if run == "" || q.turns == nil {
		return nil
	}
	return q.turns.Ended(ctx, tx, run)
}

// deadLetter makes rows dead letters: they keep their payload, and the operator
// may retry them from the panel.
func (q *Queue) deadLetter(ctx context.Context, tx *store.Tx, seqs []int64, why string) error {
	for _, seq := range seqs {
		if err := q.giveUp(ctx, tx, `UPDATE inbox SET state = 'dead', error = $1 WHERE seq = $2 RETURNING run`, seq, why); err != nil {
			return err
		}
	}
	tx.OnCommit(func() { q.o.Ring(core.TopicQueue) })
	q.o.Log.WarnContext(ctx, "message given up", "rows", seqs, "why", why)
	return nil
}
