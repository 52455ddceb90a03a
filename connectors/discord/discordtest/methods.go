package discordtest

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// A wireChannel is a channel object ([channel] "Channel Structure").
type wireChannel struct {
	ID         ID             `json:"id"`
	Type       int            `json:"type"`
	Guild      ID             `json:"guild_id,omitzero"`
	Name       *string        `json:"name,omitempty"`
	Parent     ID             `json:"parent_id,omitzero"`
	Owner      ID             `json:"owner_id,omitzero"`
	Last       *ID            `json:"last_message_id"`
	Recipients []wireUser     `json:"recipients,omitempty"`
	Metadata   map[string]any `json:"thread_metadata,omitempty"`
	Overwrites []any          `json:"permission_overwrites,omitempty"`
	Flags      int            `json:"flags"`
	Applied    []ID           `json:"applied_tags,omitempty"`   // of a post
	Available  []Tag          `json:"available_tags,omitempty"` // of a forum
	New        bool           `json:"newly_created,omitempty"`  // [events] "Thread Create"
}

func (s *Server) wireChannel(c *channel, b *bot) *wireChannel {
	w := &wireChannel{ID: c.id, Type: c.kind, Guild: c.guild, Parent: c.parent, Owner: c.owner, Applied: c.applied, Available: c.tags}
	if c.lastID != 0 {
		w.Last = &c.lastID
	}
	if c.kind == DM {
		w.Recipients = []wireUser{s.account(c.user).wire()}
	} else if c.kind == GroupDM {
		for id := range c.people {
			w.Recipients = append(w.Recipients, s.account(id).wire())
		}
	} else {
		w.Name = &c.name
	}
	if c.thread() {
		w.Metadata = map[string]any{"archived": c.archived, "locked": c.locked, "auto_archive_duration": 1440, "archive_timestamp": stamp(c.made), "create_timestamp": stamp(c.made)}
	}
	return w
}

// wireGuild returns what GUILD_CREATE and GET guilds share; the extra fields are
// those of [events] "Guild Create Extra Fields".
func (s *Server) wireGuild(g *guild, b *bot, event bool) map[string]any {
	w := map[string]any{"id": g.id, "name": g.name, "owner_id": g.owner, "icon": nil, "roles": []any{}, "emojis": []any{}, "features": []string{}, "preferred_locale": "en-US"}
	if !event {
		return w
	}
	w["joined_at"], w["large"], w["unavailable"], w["member_count"] = stamp(g.members[b.account.ID]), false, false, len(g.members)
	w["members"] = []any{s.member(g, b.account.ID, true)} // only the bot without GUILD_PRESENCES
	w["channels"], w["threads"] = s.seen(g.channels, b), s.seen(g.threads, b)
	for _, key := range []string{"voice_states", "presences", "stage_instances", "guild_scheduled_events", "soundboard_sounds"} {
		w[key] = []any{}
	}
	return w
}

// seen returns the channels of a list that b sees; archived threads are not synced
// ([threads] "Active & Archived Threads").
func (s *Server) seen(list []ID, b *bot) []*wireChannel {
	out := []*wireChannel{}
	for _, id := range list {
		if c := s.channels[id]; c != nil && !c.archived && s.can(b, c, ViewChannel) {
			out = append(out, s.wireChannel(c, b))
		}
	}
	return out
}

func (s *Server) gatewayURL() string { return "ws://" + s.Addr() + "/gateway" }

func (s *Server) getGateway(*call) (any, *apiError) {
	return map[string]string{"url": s.gatewayURL()}, nil
}

// getGatewayBot implements [gateway] "Get Gateway Bot".
func (s *Server) getGatewayBot(c *call) (any, *apiError) {
	b := c.bot
	b.forget(c.now)
	reset := int64(0)
	if len(b.starts) > 0 {
		reset = b.starts[0].Add(startSpan).Sub(c.now).Milliseconds()
	}
	return map[string]any{"url": s.gatewayURL(), "shards": 1, "session_start_limit": map[string]any{
		"total": s.opt.Starts, "remaining": max(s.opt.Starts-len(b.starts), 0), "reset_after": reset, "max_concurrency": 1}}, nil
}

// startSpan and startEvery are [gateway] "Identifying" and "Rate Limiting".
const (
	startSpan  = 24 * time.Hour
	startEvery = 5 * time.Second
)

func (b *bot) forget(now time.Time) {
	b.starts = slices.DeleteFunc(b.starts, func(at time.Time) bool { return now.Sub(at) >= startSpan })
}

func (s *Server) getMe(c *call) (any, *apiError) {
	return struct {
		wireUser
		Verified bool `json:"verified"`
		MFA      bool `json:"mfa_enabled"`
	}{c.bot.account.wire(), true, true}, nil
}

func (s *Server) getUser(c *call) (any, *apiError) {
	id := c.id("user")
	if s.users[id] == nil && s.byBot[id] == nil {
		return nil, errUnknownUser
	}
	return s.account(id).wire(), nil
}

func (s *Server) getMyGuilds(c *call) (any, *apiError) {
	out := []map[string]any{}
	for _, g := range s.guildsOf(c.bot) {
		out = append(out, map[string]any{"id": g.id, "name": g.name, "icon": nil, "owner": false, "permissions": strconv.FormatUint(DefaultPermissions, 10), "features": []string{}})
	}
	return out, nil
}

// guildsOf returns a bot's guilds, oldest first.
func (s *Server) guildsOf(b *bot) []*guild {
	var out []*guild
	for _, g := range s.guilds {
		if _, in := g.members[b.account.ID]; in {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(x, y *guild) int { return cmp.Compare(x.id, y.id) })
	return out
}

func (s *Server) application(b *bot) map[string]any {
	flags := 0
	for intent, flag := range map[int]int{IntentContent: flagContent, IntentMembers: flagMembers, IntentPresences: flagPresences} {
		if b.allowed&intent != 0 {
			flags |= flag
		}
	}
	return map[string]any{"id": b.account.ID, "flags": flags}
}

func (s *Server) getApplication(c *call) (any, *apiError) {
	a := s.application(c.bot)
	a["name"], a["description"], a["bot"] = c.bot.account.Name, "", c.bot.account.wire()
	return a, nil
}

func (s *Server) guildOf(c *call) (*guild, *apiError) {
	g := s.guilds[c.id("guild")]
	if g == nil {
		return nil, errUnknownGuild
	}
	if _, in := g.members[c.bot.account.ID]; !in {
		return nil, errMissingAccess
	}
	return g, nil
}

func (s *Server) getGuild(c *call) (any, *apiError) {
	g, fault := s.guildOf(c)
	if fault != nil {
		return nil, fault
	}
	return s.wireGuild(g, c.bot, false), nil
}

func (s *Server) getGuildChannels(c *call) (any, *apiError) {
	g, fault := s.guildOf(c)
	if fault != nil {
		return nil, fault
	}
	return s.seen(g.channels, c.bot), nil
}

func (s *Server) getActiveThreads(c *call) (any, *apiError) {
	g, fault := s.guildOf(c)
	if fault != nil {
		return nil, fault
	}
	list := s.seen(g.threads, c.bot)
	slices.Reverse(list) // "ordered by their id, in descending order"
	return map[string]any{"threads": list, "members": []any{}}, nil
}

func (s *Server) getChannel(c *call) (any, *apiError) {
	ch, fault := s.readIn(c)
	if fault != nil {
		return nil, fault
	}
	return s.wireChannel(ch, c.bot), nil
}

// createDM implements [user] "Create DM": the DM that is there, or a new one.
func (s *Server) createDM(c *call) (any, *apiError) {
	if !c.f.has("recipient_id") {
		c.f.required("recipient_id")
	}
	id := c.f.id("recipient_id")
	if fault := c.f.check(); fault != nil {
		return nil, fault
	}
	if s.users[id] == nil { // another bot, or no one
		return nil, errRecipient
	}
	return s.wireChannel(s.dm(c.bot.account.ID, id), c.bot), nil
}

// triggerTyping implements [channel] "Trigger Typing Indicator".
func (s *Server) triggerTyping(c *call) (any, *apiError) {
	ch, fault := s.readIn(c)
	if fault != nil {
		return nil, fault
	}
	if fault := s.mayWrite(c.bot, ch); fault != nil {
		return nil, fault
	}
	s.types(ch, c.bot.account.ID)
	return nil, nil
}

// types shows that a user writes, and sends that to the other bots.
func (s *Server) types(ch *channel, by ID) {
	now := s.clock.Now()
	if ch.typing == nil {
		ch.typing = map[ID]time.Time{}
	}
	for id, until := range ch.typing {
		if now.After(until) {
			delete(ch.typing, id)
		}
	}
	ch.typing[by] = now.Add(typingLife)
	s.emit(Change{Kind: ChangeTyping, Channel: ch.id, Typing: &Typing{by, now.Add(typingLife)}})
	s.tell(ch, "TYPING_START", s.intent(ch, IntentTyping, IntentDirectTyping), func(*bot, bool) any {
		w := struct {
			Channel ID          `json:"channel_id"`
			Guild   ID          `json:"guild_id,omitzero"`
			User    ID          `json:"user_id"`
			At      int64       `json:"timestamp"`
			Member  *wireMember `json:"member,omitempty"`
		}{Channel: ch.id, Guild: ch.guild, User: by, At: now.Unix()}
		if g := s.guilds[ch.guild]; g != nil {
			w.Member = s.member(g, by, true)
		}
		return w
	})
}

// createReaction implements [message] "Create Reaction"; an emoji is Unicode, not a word.
func (s *Server) createReaction(c *call) (any, *apiError) { return s.reaction(c, true) }

func (s *Server) deleteReaction(c *call) (any, *apiError) { return s.reaction(c, false) }

func (s *Server) reaction(c *call, on bool) (any, *apiError) {
	ch, m, fault := s.find(c)
	if fault != nil {
		return nil, fault
	}
	name, err := url.PathUnescape(c.args["emoji"])
	if err != nil || name == "" || name[0] < 0x80 && name[0] > '9' {
		return nil, errUnknownEmoji
	}
	if on && !s.can(c.bot, ch, AddReactions|ReadHistory) {
		return nil, errPermissions
	}
	s.react(ch, m, c.bot.account.ID, name, on)
	return nil, nil
}

func (s *Server) react(ch *channel, m *message, by ID, name string, on bool) {
	next := slices.Clone(m.Reactions)
	i := slices.IndexFunc(next, func(r Reaction) bool { return r.Emoji == name })
	if i < 0 {
		if !on {
			return
		}
		next = append(next, Reaction{Emoji: name})
		i = len(next) - 1
	}
	if slices.Contains(next[i].By, by) == on {
		return
	}
	next[i].By = without(next[i].By, by)
	event := "MESSAGE_REACTION_REMOVE"
	if on {
		next[i].By = append(next[i].By, by)
		event = "MESSAGE_REACTION_ADD"
	}
	if len(next[i].By) == 0 {
		next = slices.Delete(next, i, i+1)
	}
	m.Reactions = next
	s.Touch()
	s.emitMessage(ChangeReaction, ch, m, s.clock.Now())
	s.tell(ch, event, s.intent(ch, IntentReactions, IntentDirectReactions), func(*bot, bool) any {
		w := map[string]any{"user_id": by, "channel_id": ch.id, "message_id": m.ID, "emoji": emoji(name), "burst": false, "type": 0, "message_author_id": m.Author}
		if g := s.guilds[ch.guild]; g != nil {
			w["guild_id"] = ch.guild
			if on {
				w["member"] = s.member(g, by, true)
			}
		}
		return w
	})
}

// startThread is [channel] "Start Thread from Message".
func (s *Server) startThreadFrom(c *call) (any, *apiError) {
	ch, m, fault := s.find(c)
	if fault != nil {
		return nil, fault
	}
	name := c.f.text("name")
	if !threadName(name) {
		c.f.badLength("name", 1, 100)
	}
	if fault := c.f.check(); fault != nil {
		return nil, fault
	}
	switch {
	case ch.kind != Text:
		return nil, errChannelType
	case !s.can(c.bot, ch, CreateThreads):
		return nil, errPermissions
	case s.channels[m.ID] != nil:
		return nil, errHasThread
	}
	c.status = http.StatusCreated
	return s.wireChannel(s.startThread(ch, m, c.bot.account.ID, name), c.bot), nil
}
