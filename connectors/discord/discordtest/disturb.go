package discordtest

import (
	"encoding/json"
	"time"

	"gatehouse/core"
)

// live calls f for each of the bot's open connections.
func (b Bot) live(f func(c *conn)) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	for c := range b.s.conns {
		if c.bot == b.b && !c.closed {
			f(c)
		}
	}
}

// Online reports whether the bot has a session with a connection.
func (b Bot) Online() bool {
	online := false
	b.live(func(c *conn) { online = online || c.ses != nil })
	return online
}

// Dispatched returns the number of the last event that the bot's session was sent;
// 0 while there is none.
func (b Bot) Dispatched() int64 {
	last := int64(0)
	b.live(func(c *conn) {
		if c.ses != nil {
			last = max(last, c.ses.seq)
		}
	})
	return last
}

// Drop cuts the bot's connections without a close code; sessions stay.
func (b Bot) Drop() { b.live(func(c *conn) { c.drop("by the test") }) }

// Hangup closes the bot's connections with a code, such as 4000. With 4007 and
// 4009 the sessions end too ("start a new one", [codes]).
func (b Bot) Hangup(code int, text string) {
	b.live(func(c *conn) {
		if code == closeSeq || code == closeTimeout || code == closeNoIdentify {
			c.closeSession(code, text)
			return
		}
		c.close(code, text)
	})
}

// Reconnect asks for a new connection (op 7); after 5 seconds the old one is
// closed ([events] "Reconnect": "a few seconds after").
func (b Bot) Reconnect() {
	s := b.s
	b.live(func(c *conn) {
		c.log(GatewayEvent{Kind: "reconnect"})
		c.send(opReconnect, nil)
		late := s.clock.After(5 * time.Second)
		s.Go(func() {
			select {
			case <-late:
				s.mu.Lock()
				defer s.mu.Unlock()
				c.close(closeUnknown, "Reconnect.")
			case <-c.done:
			case <-s.Closing():
			}
		})
	})
}

// Invalidate means that the session is invalid (op 9). With resumable false it
// is gone.
func (b Bot) Invalidate(resumable bool) {
	b.live(func(c *conn) {
		c.log(GatewayEvent{Kind: "invalid"})
		c.send(opInvalid, resumable)
		if ses := c.ses; ses != nil {
			c.detach()
			if !resumable {
				delete(b.b.sessions, ses.id)
			}
		}
	})
}

// AskHeartbeat sends op 1: the bot has to beat at once ([gateway] "Heartbeat Requests").
func (b Bot) AskHeartbeat() { b.live(func(c *conn) { c.send(opHeartbeat, nil) }) }

// Deafen keeps heartbeats from being acknowledged, while everything else goes
// on: a client that misses an ACK has to reconnect ([gateway] "Heartbeat Interval").
func (b Bot) Deafen(on bool) { b.disturb(func(d *disturbance) { d.deaf = on }) }

// Freeze stops all traffic of open connections, as a firewall that forgot them does.
// After Freeze(false) the queued events are sent.
func (b Bot) Freeze(on bool) {
	b.disturb(func(d *disturbance) { d.frozen = on })
	b.live(func(c *conn) { c.ring() })
}

// Slow waits before each frame to the bot; 0 ends it.
func (b Bot) Slow(each time.Duration) { b.disturb(func(d *disturbance) { d.slow = each }) }

// Shuffle holds back the next n events and sends them in reverse.
func (b Bot) Shuffle(n int) { b.disturb(func(d *disturbance) { d.hold, d.held = n, nil }) }

func (b Bot) disturb(f func(d *disturbance)) {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	f(&b.b.disturb)
}

// InjectRaw sends a frame as it is, JSON or not. It has no sequence number of
// the session's.
func (b Bot) InjectRaw(text string) { b.live(func(c *conn) { c.push(frame{data: []byte(text)}) }) }

// Dispatch sends an event of any name with any data, numbered like others and
// to every session: unknown events, events with malformed objects. data that
// is no JSON is core.Invalid.
func (b Bot) Dispatch(name string, data json.RawMessage) error {
	if !json.Valid(data) {
		return core.Errorf(core.Invalid, "the data is no JSON: send it with InjectRaw")
	}
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	for _, ses := range b.b.sessions {
		b.s.enqueue(ses, name, data)
	}
	return nil
}

// EndSessions forgets the bot's sessions while it is away: RESUME gets op 9.
func (b Bot) EndSessions() {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	for id, ses := range b.b.sessions {
		if ses.conn == nil {
			delete(b.b.sessions, id)
		}
	}
}
