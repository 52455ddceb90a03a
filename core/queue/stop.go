package queue

import (
	"context"
	"slices"

	"gatehouse/core/queue/halt"
	"gatehouse/core/store"
)

// Stop has turns of a session end when they begin, before a model is called: those of these messages, which wait
// or are claimed. A turn that by then is another session's is not stopped, nor one of which all messages are
// answered. What is written later is a turn of its own. It is stored, so that it is valid after a restart too.
func (q *Queue) Stop(ctx context.Context, tx *store.Tx, session string, messages []int64) error {
	for _, seq := range messages {
		if _, err := tx.Exec(ctx, `UPDATE inbox SET stopped = $1 WHERE seq = $2 AND state IN ('ready', 'limited')`, session, seq); err != nil {
			return err
		}
	}
	tx.OnCommit(func() { q.slots.stop(session, messages) })
	return nil
}

// stop tells the turns that are claimed, and were before their messages were marked.
func (s *slots) stop(session string, messages []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.running {
		if slices.ContainsFunc(t.seqs, func(seq int64) bool { return slices.Contains(messages, seq) }) {
			t.mu.Lock()
			t.stopped = session
			t.mu.Unlock()
		}
	}
}

// Stop is Queue.Stop for this turn alone, stored when it is returned to its lane.
func (t *Turn) Stop(session string, why halt.Cause) {
	t.mu.Lock()
	t.stopped = halt.Text(session, why)
	t.mu.Unlock()
}

// keepStop stores that t was stopped.
func (q *Queue) keepStop(ctx context.Context, tx *store.Tx, t *Turn) error {
	t.mu.Lock()
	stored := t.stopped
	t.mu.Unlock()
	if stored == "" {
		return nil
	}
	return q.Stop(ctx, tx, stored, t.seqs) // with its cause
}

// Stopped reports whether the turn of session was stopped, and why. A handler asks it when what it does can be
// canceled, so that a Stop meets one or the other.
func (t *Turn) Stopped(session string) (why halt.Cause, is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return halt.Of(t.stopped, session)
}
