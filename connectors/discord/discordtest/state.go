package discordtest

import (
	"encoding/json"
	"strings"
	"time"

	"gatehouse/connectors/simulator"
)

// What the state file holds. Sessions, interactions, nonces and the bytes of
// files are not in it: after a restart RESUME gets op 9, as after an outage of
// the platform.
type savedState struct {
	Addr     string         `json:"addr,omitempty"`
	LastID   ID             `json:"last_id"`
	Bots     []savedBot     `json:"bots"`
	Users    []Account      `json:"users"`
	Guilds   []savedGuild   `json:"guilds"`
	Channels []savedChannel `json:"channels"`
	Saved    time.Time      `json:"saved"`
	Clean    bool           `json:"clean"`
}

type savedBot struct {
	ID       ID               `json:"id"`
	Token    string           `json:"token"`
	Was      string           `json:"was"` // the token in the options then: another one there replaces it
	Commands map[ID][]command `json:"commands,omitempty"`
}

type savedGuild struct {
	ID       ID               `json:"id"`
	Name     string           `json:"name"`
	Owner    ID               `json:"owner"`
	Made     time.Time        `json:"made"`
	Members  map[ID]time.Time `json:"members"`
	Channels []ID             `json:"channels"`
	Threads  []ID             `json:"threads,omitempty"`
	Perms    map[ID]uint64    `json:"perms,omitempty"`
}

type savedChannel struct {
	Channel
	Owner    ID            `json:"owner,omitzero"`
	Opened   bool          `json:"opened,omitempty"`
	Closed   bool          `json:"closed,omitempty"`
	Locked   bool          `json:"locked,omitempty"`
	Tags     []Tag         `json:"tags,omitempty"`
	Applied  []ID          `json:"applied,omitempty"`
	Made     time.Time     `json:"made"`
	Perms    map[ID]uint64 `json:"perms,omitempty"`
	Messages []*message    `json:"messages"`
}

// snapshot returns what the state file holds.
func (s *Server) snapshot(clean bool) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := savedState{Addr: s.Addr(), LastID: s.lastID, Saved: s.clock.Now(), Clean: clean}
	for _, b := range s.bots {
		out.Bots = append(out.Bots, savedBot{b.account.ID, b.token, b.given, b.commands})
	}
	for _, u := range s.users {
		out.Users = append(out.Users, u.account)
	}
	for _, g := range s.guilds {
		out.Guilds = append(out.Guilds, savedGuild{g.id, g.name, g.owner, g.made, g.members, g.channels, g.threads, g.perms})
	}
	for _, c := range s.channels {
		if c.kind == GroupDM {
			continue // only tests have them
		}
		out.Channels = append(out.Channels, savedChannel{Channel{c.id, c.kind, c.guild, c.parent, c.name, c.bot, c.user, c.archived},
			c.owner, c.opened, c.closed, c.locked, c.tags, c.applied, c.made, c.perms, c.messages})
	}
	return json.Marshal(out)
}

// load reads the state file. A missing one is a fresh world.
func (s *Server) load() error {
	var in savedState
	if found, err := s.Load(&in); err != nil || !found {
		return err
	}
	s.last, s.lastID = in.Addr, in.LastID
	if !in.Clean {
		s.lastID += simulator.SkipAhead
	}
	for _, v := range in.Bots {
		s.loadBot(v)
	}
	for _, a := range in.Users {
		s.users[a.ID] = &User{s: s, id: a.ID, account: a}
		s.names[strings.ToLower(a.Username)] = a.ID
	}
	for _, v := range in.Guilds {
		s.loadGuild(v)
	}
	for _, v := range in.Channels {
		s.loadChannel(v)
	}
	return nil
}

// loadBot keeps a token that was reset, as long as the options give the same one as then.
func (s *Server) loadBot(v savedBot) {
	b := s.byBot[v.ID]
	if b == nil {
		return // a bot that was removed
	}
	if v.Was == b.given && s.byToken[v.Token] == nil {
		delete(s.byToken, b.token)
		b.token = v.Token
		s.byToken[v.Token] = b
	}
	if v.Commands != nil {
		b.commands = v.Commands
	}
}

func (s *Server) loadGuild(v savedGuild) {
	g := &guild{v.ID, v.Name, v.Owner, v.Made, v.Members, v.Channels, v.Threads, v.Perms}
	if g.members == nil {
		g.members = map[ID]time.Time{}
	}
	s.guilds[g.id] = g
}

func (s *Server) loadChannel(v savedChannel) {
	if v.Type == DM && s.byBot[v.Bot] == nil {
		return
	}
	c := &channel{id: v.ID, kind: v.Type, guild: v.Guild, parent: v.Parent, name: v.Name, owner: v.Owner, bot: v.Bot, user: v.User, opened: v.Opened,
		closed: v.Closed, archived: v.Archived, locked: v.Locked, tags: v.Tags, applied: v.Applied, made: v.Made, perms: v.Perms, index: map[ID]*message{}}
	for _, m := range v.Messages[max(len(v.Messages)-maxHistory, 0):] {
		if m != nil {
			s.put(c, m)
		}
	}
	s.channels[c.id] = c
	if c.kind == DM {
		s.direct[pair{c.bot, c.user}] = c.id
	}
}
