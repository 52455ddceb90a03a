package telegramtest

import (
	"bytes"
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"time"
)

func (b *bot) endPoll(e *apiError) {
	if b.poll != nil {
		b.poll.end <- e
		b.poll = nil
	}
}

// clash ends the waiting poll with 409.
func (b *bot) clash(now time.Time, text string) {
	if b.poll == nil {
		return
	}
	b.endPoll(b.conflictNow(now, text))
}

func (b *bot) conflictNow(now time.Time, text string) *apiError {
	e := conflict(text)
	if now.Before(b.conflict) {
		e.late = conflictRest
	} else {
		b.conflict = now.Add(conflictRest)
	}
	return e
}

// getUpdates returns long polling as [api] getUpdates and [server] do_get_updates
// have it. A second request that has to wait ends the one that waits.
func (s *Server) getUpdates(c *call) (json.RawMessage, *apiError) {
	s.mu.Lock()
	b := c.bot
	if b.webhook != "" {
		e := b.conflictNow(c.now, "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
		s.mu.Unlock()
		return nil, e
	}
	offset := c.p.id("offset")
	limit := int(c.p.integer("limit", 100, 1, 100))
	timeout := min(time.Duration(c.p.integer("timeout", 0, 0, 1<<20))*time.Second, maxPolls)
	b.allow(c.p["allowed_updates"])
	limit, timeout = b.holdBack(offset, limit, timeout, c.now)
	page, n := b.page(offset, limit, c.now)
	if offset != 0 {
		s.Touch()
	}
	if n > 0 || timeout == 0 {
		s.mu.Unlock()
		return page, nil
	}
	b.clash(c.now, "terminated by other getUpdates request; make sure that only one bot instance is running")
	p := &poll{wake: make(chan struct{}, 1), end: make(chan *apiError, 1)}
	b.poll = p
	s.mu.Unlock()
	return s.await(c, p, max(offset, 0), limit, timeout)
}

// holdBack slows a bot that asks for the same again and again: within 3 s it
// waits 3 s, within half a second it gets one update ([server]
// process_get_updates_query).
func (b *bot) holdBack(offset int64, limit int, timeout time.Duration, now time.Time) (int, time.Duration) {
	if b.polled && offset == b.lastFrom {
		since := now.Sub(b.lastPoll)
		if timeout < 3*time.Second && since < 3*time.Second {
			timeout = 3 * time.Second
		}
		if since < 500*time.Millisecond {
			limit = 1
		}
	}
	b.polled, b.lastFrom, b.lastPoll = true, offset, now
	return limit, timeout
}

func (s *Server) await(c *call, p *poll, offset int64, limit int, timeout time.Duration) (json.RawMessage, *apiError) {
	late := s.clock.After(timeout)
	leave := func() (json.RawMessage, int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		page, n := json.RawMessage("[]"), 0
		if c.bot.poll == p {
			if page, n = c.bot.page(offset, limit, s.clock.Now()); n > 0 {
				c.bot.poll = nil
			}
		}
		return page, n
	}
	quit := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if c.bot.poll == p {
			c.bot.poll = nil
		}
	}
	for {
		select {
		case <-p.wake:
			if page, n := leave(); n > 0 {
				return page, nil
			}
		case e := <-p.end:
			return nil, e
		case <-late:
			page, _ := leave()
			quit()
			return page, nil
		case <-c.ctx.Done():
			quit()
			return json.RawMessage("[]"), nil
		case <-s.Closing():
			quit()
			return nil, errRestart
		}
	}
}

// page forgets what offset confirms and returns the next updates.
//
// [api]: "An update is considered confirmed as soon as getUpdates is called
// with an offset higher than its update_id. The negative offset can be
// specified to retrieve updates starting from -offset update from the end of
// the updates queue. All previous updates will be forgotten." The platform's
// server takes an offset far beyond the queue for a mistake and starts at the
// head ([td] TQueue.cpp get); the documentation promises no such mercy, so an
// offset kept over an idle week loses updates here.
func (b *bot) page(offset int64, limit int, now time.Time) (json.RawMessage, int) {
	b.expire(now)
	switch {
	case offset < 0:
		b.drop(max(len(b.queue)+int(max(offset, -maxUpdates)), 0))
	case offset > 0:
		b.drop(sort.Search(len(b.queue), func(i int) bool { return b.queue[i].id >= offset }))
	}
	var out bytes.Buffer
	out.WriteByte('[')
	n := 0
	for ; n < len(b.queue) && n < limit && out.Len() < maxPage; n++ {
		if n > 0 {
			out.WriteString(",\n")
		}
		out.Write(b.queue[n].data)
	}
	out.WriteByte(']')
	return out.Bytes(), n
}

// allow remembers allowed_updates: absent or unreadable keeps the last list,
// an empty one is the default set ([api] getUpdates; [server] get_allowed_update_types).
func (b *bot) allow(raw string) {
	var kinds []string
	if raw == "" || json.Unmarshal([]byte(raw), &kinds) != nil || kinds == nil {
		return
	}
	b.allowed = nil
	for _, k := range kinds {
		if k = strings.ToLower(k); slices.Contains(updateKinds, k) {
			b.allowed = append(b.allowed, k)
		}
	}
}
