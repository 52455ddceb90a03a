package discordtest

import (
	"encoding/json"
	"time"
)

// tell dispatches an event to every bot that sees the channel.
func (s *Server) tell(c *channel, name string, intent int, build func(b *bot, content bool) any) {
	for _, b := range s.bots {
		if len(b.sessions) > 0 && s.can(b, c, ViewChannel) {
			s.dispatch(b, name, c.guild, intent, func(content bool) any { return build(b, content) })
		}
	}
}

// dispatch sends an event to a bot's sessions that asked for it: those with
// the intent (0: any), of the guild's shard. build is called with
// whether the session may read the content of messages, at most once for each answer.
func (s *Server) dispatch(b *bot, name string, guild ID, intent int, build func(content bool) any) {
	b.expire(s.clock.Now(), s.opt.SessionLife)
	var made [2]json.RawMessage
	for _, ses := range b.sessions {
		if intent != 0 && ses.intents&intent == 0 || !ses.hears(guild) {
			continue
		}
		content := ses.intents&IntentContent != 0
		at := map[bool]int{true: 1}[content]
		if made[at] == nil {
			raw, err := json.Marshal(build(content))
			if err != nil {
				return // an extra field that is no JSON
			}
			made[at] = raw
		}
		s.enqueue(ses, name, made[at])
	}
}

// sendGuild is GUILD_CREATE for a guild that a bot is new in.
func (s *Server) sendGuild(b *bot, g *guild) {
	s.dispatch(b, "GUILD_CREATE", g.id, IntentGuilds, func(bool) any { return s.wireGuild(g, b, true) })
}

// enqueue numbers an event, keeps it for RESUME and sends it.
func (s *Server) enqueue(ses *session, name string, d any) {
	ses.seq++
	b, err := json.Marshal(struct {
		T  string `json:"t"`
		S  int64  `json:"s"`
		Op int    `json:"op"`
		D  any    `json:"d"`
	}{name, ses.seq, opDispatch, d})
	if err != nil {
		return
	}
	s.enqueueRaw(ses, b, name != "READY" && name != "RESUMED")
}

func (s *Server) enqueueRaw(ses *session, b []byte, disturbed bool) {
	if len(ses.kept) >= s.opt.Replay {
		ses.kept[0] = event{}
		ses.kept = ses.kept[1:]
	}
	ses.kept = append(ses.kept, event{ses.seq, b})
	if ses.conn == nil {
		return
	}
	f := frame{data: b}
	d := &ses.bot.disturb
	if disturbed && d.hold > 0 {
		d.held = append(d.held, f)
		if len(d.held) < d.hold {
			return
		}
		for i := len(d.held) - 1; i >= 0; i-- {
			ses.conn.push(d.held[i])
		}
		d.hold, d.held = 0, nil
		return
	}
	ses.conn.push(f)
}

// A disturbance is what goes wrong on a bot's gateway connections. Guarded by
// Server.mu.
type disturbance struct {
	deaf   bool
	frozen bool
	slow   time.Duration
	hold   int
	held   []frame
}
