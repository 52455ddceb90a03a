package bus

import (
	"context"
	"time"
)

// AwaitEnd waits until the runs of a session that have their result (Seal) have ended, at most as
// long as patience. It returns at once when there is none, or when another run is in progress.
func (b *Bus) AwaitEnd(ctx context.Context, session string, patience time.Duration) {
	ending := b.ending(session)
	if len(ending) == 0 {
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, gone := range ending {
		select {
		case <-gone:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// ending returns what is closed at the end of each run of a session; none while one of them has
// no result yet.
func (b *Bus) ending(session string) (list []<-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.runs {
		if s.info.Session != session {
			continue
		}
		s.mu.Lock()
		sealed, closed := s.sealed, s.closed
		if sealed && !closed && s.gone == nil {
			s.gone = make(chan struct{})
		}
		gone := s.gone
		s.mu.Unlock()
		switch {
		case closed:
		case !sealed:
			return nil
		default:
			list = append(list, gone)
		}
	}
	return list
}
