// Package moved gives the messages of a chat its new id, and keeps their order: while
// messages wait in the lane of the old id, new ones join them there.
package moved

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"gatehouse/core"
	"gatehouse/core/store"
)

// maxJoined bounds the chats that are remembered. Beyond it the longest known is
// forgotten: its next message is not ordered behind those under the old id.
const maxJoined = 1024

// Lanes returns the lanes of updates. It is safe for concurrent use.
//
// What it knows of chats that moved is in memory, so that a message of any other chat
// costs no statement. Load finds it again after a start, because each unfinished row has
// the lane of the old id with the chat of the new one. Two nodes would have to read it
// at each message instead.
type Lanes struct {
	lane func(ctx context.Context, tx *store.Tx, in *core.Inbound) (string, error)

	mu     sync.Mutex
	joined map[string]joined // by the lane of the new id; at most maxJoined
	last   int64
}

// A joined is the lane of an old id. n ascends with each move.
type joined struct {
	lane string
	n    int64
}

// New returns Lanes over lane, which returns the lane of an update by its address alone.
func New(lane func(ctx context.Context, tx *store.Tx, in *core.Inbound) (string, error)) *Lanes {
	return &Lanes{lane: lane, joined: map[string]joined{}}
}

// Of returns the lane of an update: that of the chat's old id until nothing waits and
// nothing runs there, then its own. For a chat that did not move it adds no statement.
func (l *Lanes) Of(ctx context.Context, tx *store.Tx, in *core.Inbound) (string, error) {
	lane, err := l.lane(ctx, tx, in)
	if err != nil {
		return "", err
	}
	old, ok := l.of(lane)
	if !ok {
		return lane, nil
	}
	works, err := works(ctx, tx, old.lane)
	if err != nil || works {
		return old.lane, err
	}
	tx.OnCommit(func() { l.part(lane, old.n) })
	return lane, nil
}

// Load finds the chats that moved while their messages were answered. Call it before the
// first Of.
func (l *Lanes) Load(ctx context.Context, tx *store.Tx) error {
	var rows []struct{ Bot, Chat, Lane string }
	if err := tx.Select(ctx, &rows, `SELECT DISTINCT bot, chat, lane FROM inbox WHERE state IN ('ready', 'limited') ORDER BY lane, bot, chat`); err != nil {
		return fmt.Errorf("lanes of moved chats: %w", err)
	}
	for _, r := range rows {
		at := core.Address{Bot: r.Bot, Chat: r.Chat}
		if was := r.Lane; was != core.LaneOf(at) && core.LaneEnd(was) == "" {
			now, err := l.lane(ctx, tx, &core.Inbound{Address: at})
			if err != nil {
				return fmt.Errorf("lane of a moved chat: %w", err)
			}
			l.join(now, was)
		}
	}
	return nil
}

// join has the messages of lane wait behind those of another lane. It may be called in a
// transaction that fails: then nothing waits there, or it is the same chat.
func (l *Lanes) join(lane, other string) {
	if lane == other {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.joined[lane]; !known && len(l.joined) >= maxJoined {
		l.forgetOldest()
	}
	l.last++
	l.joined[lane] = joined{other, l.last}
}

// forgetOldest makes room. The caller holds l.mu.
func (l *Lanes) forgetOldest() {
	oldest, first := "", int64(math.MaxInt64)
	for lane, j := range l.joined {
		if j.n < first {
			oldest, first = lane, j.n
		}
	}
	delete(l.joined, oldest)
}

func (l *Lanes) of(lane string) (joined, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j, ok := l.joined[lane]
	return j, ok
}

// part ends a join, unless the chat moved again since.
func (l *Lanes) part(lane string, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.joined[lane].n == n {
		delete(l.joined, lane)
	}
}

// works reports whether messages of the lane wait or are being answered.
func works(ctx context.Context, tx *store.Tx, lane string) (works bool, err error) {
	if _, err := claimed(ctx, tx, lane); err != nil { // on PostgreSQL, another may just be adding one
		return false, err
	}
	err = tx.Get(ctx, &works, `SELECT EXISTS (SELECT 1 FROM inbox WHERE lane = $1 AND state IN ('ready', 'limited'))`, lane)
	return works, err
}

// claimed reports whether a turn of the lane runs, and locks the lane's row.
func claimed(ctx context.Context, tx *store.Tx, lane string) (claimed bool, err error) {
	err = tx.Get(ctx, &claimed, `SELECT owner <> '' FROM lane WHERE key = $1`+tx.ForUpdate(), lane)
	if errors.Is(err, store.ErrNoRows) {
		return false, nil
	}
	return claimed, err
}
