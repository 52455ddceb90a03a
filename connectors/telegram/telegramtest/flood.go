package telegramtest

import "time"

// The pacing of [faq] "My bot is hitting limits": in one chat no more than one
// message per second, with short bursts; in a group no more than 20 a minute;
// no more than about 30 a second over all chats. Drafts are typing actions and
// have a wider pace of their own (ours: the platform names none).
const (
	chatPace    = time.Second
	chatBurst   = 3
	groupPace   = 3 * time.Second
	groupBurst  = 20
	globalPace  = time.Second / 30
	globalBurst = 30
	draftPace   = 200 * time.Millisecond
	draftBurst  = 20
)

// A meter is one leaky bucket as the time at which it will be empty.
type meter struct{ empty time.Time }

// wait returns how long until one more event fits a pace with a burst; 0 is now.
func (m *meter) wait(now time.Time, pace time.Duration, burst int) time.Duration {
	full := now.Add(time.Duration(burst-1) * pace)
	if m.empty.After(full) {
		return m.empty.Sub(full)
	}
	return 0
}

func (m *meter) count(now time.Time, pace time.Duration) {
	if m.empty.Before(now) {
		m.empty = now
	}
	m.empty = m.empty.Add(pace)
}

// flood counts one shown message in c against all limits, or answers 429 with
// the seconds to wait. A refused message counts against none of them.
func (s *Server) flood(b *bot, c *chat, now time.Time) *apiError {
	if s.floodOff {
		return nil
	}
	wait := max(c.pace.wait(now, chatPace, chatBurst), b.pace.wait(now, globalPace, globalBurst))
	if c.group() {
		wait = max(wait, c.minute.wait(now, groupPace, groupBurst))
	}
	if wait > 0 {
		return tooMany(wait)
	}
	c.pace.count(now, chatPace)
	b.pace.count(now, globalPace)
	if c.group() {
		c.minute.count(now, groupPace)
	}
	return nil
}

func (s *Server) floodDraft(c *chat, now time.Time) *apiError {
	if s.floodOff {
		return nil
	}
	if wait := c.drafting.wait(now, draftPace, draftBurst); wait > 0 {
		return tooMany(wait)
	}
	c.drafting.count(now, draftPace)
	return nil
}

// SetFlood switches flood control on or off in mid-run.
func (s *Server) SetFlood(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.floodOff = !on
}
