package discordtest

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// A session is a stream of events, whatever connection carries it. Guarded by
// Server.mu.
type session struct {
	id      string
	bot     *bot
	intents int
	shard   [2]int
	seq     int64
	kept    []event // for RESUME, at most Options.Replay
	conn    *conn   // nil while the client is away
	left    time.Time
}

// An event is one dispatch that was sent, or would have been.
type event struct {
	seq  int64
	data []byte
}

// deflate returns payload compression ([gateway] "Payload Compression").
func deflate(b []byte) []byte {
	var buf bytes.Buffer
	w := zlib.NewWriter(&buf)
	w.Write(b)
	w.Close()
	return buf.Bytes()
}

type identify struct {
	Token      string          `json:"token"`
	Properties json.RawMessage `json:"properties"`
	Compress   bool            `json:"compress"`
	Shard      *[2]int         `json:"shard"`
	Intents    *int            `json:"intents"`
}

// bare returns a token as REST writes it, too: libraries send "Bot " here as well.
func bare(token string) string { return strings.TrimPrefix(token, "Bot ") }

// identify starts a session ([gateway] "Identifying").
func (c *conn) identify(raw json.RawMessage) {
	s := c.s
	var d identify
	if json.Unmarshal(raw, &d) != nil || len(d.Properties) == 0 || d.Properties[0] != '{' { // properties are required ([events] "Identify Structure")
		c.close(closeDecode, "Error while decoding payload.")
		return
	}
	e := GatewayEvent{Kind: "identify"}
	if d.Intents != nil {
		e.Intents = *d.Intents
	}
	b := s.byToken[bare(d.Token)]
	c.bot = b
	c.log(e)
	switch {
	case b == nil:
		c.close(closeAuth, "Authentication failed.")
	case d.Intents == nil || *d.Intents < 0 || *d.Intents&^allIntents != 0:
		c.close(closeIntents, "Invalid intent(s).")
	case *d.Intents&privileged&^b.allowed != 0:
		c.close(closeDisallowed, "Disallowed intent(s).")
	case d.Shard != nil && (d.Shard[1] < 1 || d.Shard[0] < 0 || d.Shard[0] >= d.Shard[1]):
		c.close(closeShard, "Invalid shard.")
	case !c.start(b):
	default:
		c.compress = d.Compress
		c.ready(b, d)
	}
}

// start spends from the limits on IDENTIFY: one per 5 seconds (else op 9), and
// 1,000 in 24 hours, after which every session ends and the token is reset.
func (c *conn) start(b *bot) bool {
	s := c.s
	now := s.clock.Now()
	b.forget(now)
	if len(b.starts) >= s.opt.Starts {
		s.resetToken(b)
		c.close(closeAuth, "Authentication failed.")
		return false
	}
	if !s.floodOff && now.Sub(b.lastID) < startEvery {
		c.log(GatewayEvent{Kind: "invalid"})
		c.send(opInvalid, false)
		return false
	}
	b.starts = append(b.starts, now)
	b.lastID = now
	return true
}

func (c *conn) ready(b *bot, d identify) {
	s := c.s
	b.expire(s.clock.Now(), s.opt.SessionLife)
	id := strconv.FormatUint(uint64(s.newID()), 16) + strings.ToLower(s.secret(16)) // unlike those before a restart
	ses := &session{id: id, bot: b, intents: *d.Intents, shard: [2]int{0, 1}, conn: c}
	if d.Shard != nil {
		ses.shard = *d.Shard
	}
	b.sessions[ses.id] = ses
	c.ses = ses
	c.log(GatewayEvent{Kind: "ready", Session: ses.id, Intents: ses.intents})
	s.emit(Change{Kind: ChangeBot, User: &b.account, Status: "online"})
	guilds := []map[string]any{}
	var mine []*guild
	for _, g := range s.guildsOf(b) {
		if ses.hears(g.id) {
			mine = append(mine, g)
			guilds = append(guilds, map[string]any{"id": g.id, "unavailable": true})
		}
	}
	r := map[string]any{"v": 10, "user": b.account.wire(), "guilds": guilds, "session_id": ses.id, "session_type": "normal", "private_channels": []any{},
		"resume_gateway_url": s.gatewayURL() + "/resume", "application": s.application(b)}
	if d.Shard != nil {
		r["shard"] = ses.shard
	}
	s.enqueue(ses, "READY", r)
	if ses.intents&IntentGuilds != 0 {
		for _, g := range mine {
			s.enqueue(ses, "GUILD_CREATE", s.wireGuild(g, b, true))
		}
	}
}

// expire forgets sessions that no one resumed in time.
func (b *bot) expire(now time.Time, life time.Duration) {
	for id, ses := range b.sessions {
		if ses.conn == nil && now.Sub(ses.left) >= life {
			delete(b.sessions, id)
		}
	}
}

// resume goes on with a session ([gateway] "Resuming"): the missed events in
// order, then RESUMED. A session that is gone, or has lost events that the
// client lacks, is op 9 with false; a sequence number never sent is 4007.
func (c *conn) resume(raw json.RawMessage) {
	s := c.s
	var d struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     *int64 `json:"seq"`
	}
	if json.Unmarshal(raw, &d) != nil || d.Seq == nil {
		c.close(closeDecode, "Error while decoding payload.")
		return
	}
	b := s.byToken[bare(d.Token)]
	c.bot = b
	c.log(GatewayEvent{Kind: "resume", Session: d.Session, SeqNo: *d.Seq, Resuming: c.resuming})
	if b == nil {
		c.close(closeAuth, "Authentication failed.")
		return
	}
	b.expire(s.clock.Now(), s.opt.SessionLife)
	ses := b.sessions[d.Session]
	switch {
	case ses == nil, len(ses.kept) > 0 && *d.Seq < ses.kept[0].seq-1:
		if ses != nil {
			delete(b.sessions, ses.id)
		}
		c.log(GatewayEvent{Kind: "invalid", Session: d.Session})
		c.send(opInvalid, false)
		return
	case *d.Seq > ses.seq || *d.Seq < 0:
		delete(b.sessions, ses.id)
		c.close(closeSeq, "Invalid seq.")
		return
	}
	c.carryOn(ses, *d.Seq)
}

// carryOn replays what came after seq on the new connection.
func (c *conn) carryOn(ses *session, seq int64) {
	s := c.s
	if ses.conn != nil { // the platform may not have noticed that the old one is dead
		ses.conn.close(closeUnknown, "Resumed elsewhere.")
	}
	ses.conn, c.ses = c, ses
	replayed := 0
	for _, e := range ses.kept {
		if e.seq > seq {
			c.push(frame{data: e.data})
			replayed++
		}
	}
	s.enqueue(ses, "RESUMED", map[string]any{"_trace": []string{}})
	c.log(GatewayEvent{Kind: "resumed", Session: ses.id, SeqNo: seq, Replayed: replayed})
	s.emit(Change{Kind: ChangeBot, User: &ses.bot.account, Status: "online"})
}

// hears reports whether an event of a guild (0: of none) is for the session's
// shard ([gateway] "Sharding").
func (ses *session) hears(guild ID) bool {
	if guild == 0 {
		return ses.shard[0] == 0
	}
	return int(uint64(guild)>>22%uint64(ses.shard[1])) == ses.shard[0]
}
