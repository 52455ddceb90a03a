package telegramtest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"gatehouse/connectors/simulator"
)

// What the state file holds. Files that users attached are not in it: their
// ids are unknown after a restart, which the platform allows itself too.
type savedState struct {
	// Clean is false in a file written while the server ran: some numbers may
	// have been given out after it was written, so a load skips ahead.
	Clean   bool        `json:"clean"`
	NextID  int64       `json:"next_id"`
	QueryID int64       `json:"query_id"`
	Bots    []savedBot  `json:"bots"`
	Users   []Account   `json:"users"`
	Chats   []savedChat `json:"chats"`
	Saved   time.Time   `json:"saved"`
}

type savedBot struct {
	ID       int64                `json:"id"`
	NextID   int64                `json:"next_update"`
	LastPush time.Time            `json:"last_push"`
	NextMsg  int                  `json:"next_message"`
	Allowed  []string             `json:"allowed,omitempty"`
	Commands map[string][]Command `json:"commands,omitempty"`
	Queue    []savedUpdate        `json:"queue,omitempty"`
}

type savedUpdate struct {
	ID      int64     `json:"id"`
	Data    []byte    `json:"data"` // may be malformed on purpose: not JSON in JSON
	Expires time.Time `json:"expires"`
}

type savedChat struct {
	Conversation
	Kind     string           `json:"kind"`
	Title    string           `json:"title,omitempty"`
	Forum    bool             `json:"forum,omitempty"`
	Members  map[int64]string `json:"members,omitempty"`
	Topics   map[int]string   `json:"topics,omitempty"`
	NextMsg  int              `json:"next_message,omitempty"`
	Started  bool             `json:"started,omitempty"`
	Blocked  bool             `json:"blocked,omitempty"`
	Migrated int64            `json:"migrated,omitempty"`
	Messages []savedMessage   `json:"messages"`
}

type savedMessage struct {
	Wire      *wireMessage       `json:"wire"`
	Shown     time.Time          `json:"shown"`
	Edited    time.Time          `json:"edited,omitzero"`
	Edits     int                `json:"edits,omitempty"`
	Service   string             `json:"service,omitempty"`
	Reactions map[int64][]string `json:"reactions,omitempty"`
}

// snapshot returns what the state file holds.
func (s *Server) snapshot(clean bool) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := savedState{Clean: clean, NextID: s.nextID, QueryID: s.queryID, Saved: s.clock.Now()}
	for _, b := range s.bots {
		v := savedBot{ID: b.account.ID, NextID: b.nextID, LastPush: b.lastPush, NextMsg: b.nextMsg, Allowed: b.allowed, Commands: b.commands}
		for _, u := range b.queue {
			v.Queue = append(v.Queue, savedUpdate{u.id, u.data, u.expires})
		}
		out.Bots = append(out.Bots, v)
	}
	for _, u := range s.users {
		out.Users = append(out.Users, u.account)
	}
	for at, c := range s.chats {
		v := savedChat{Conversation: at, Kind: c.kind, Title: c.title, Forum: c.forum, Members: c.members, Topics: c.topics,
			NextMsg: c.nextMsg, Started: c.started, Blocked: c.blocked, Migrated: c.migrated, Messages: make([]savedMessage, len(c.messages))}
		for i, m := range c.messages {
			v.Messages[i] = savedMessage{&m.wire, m.shown, m.edited, m.edits, m.service, m.reactions}
		}
		out.Chats = append(out.Chats, v)
	}
	return json.Marshal(out)
}

// load reads the state file. A missing one is a fresh world.
func (s *Server) load() error {
	var in savedState
	if found, err := s.Load(&in); err != nil || !found {
		return err
	}
	skip := 0
	if !in.Clean {
		skip = simulator.SkipAhead
	}
	s.nextID, s.queryID = in.NextID+int64(skip), in.QueryID+int64(skip)
	for _, v := range in.Bots {
		s.loadBot(v, skip)
	}
	for _, a := range in.Users {
		s.users[a.ID] = &User{s: s, id: a.ID, account: a}
		if a.Username != "" {
			s.names[strings.ToLower(a.Username)] = a.ID
		}
	}
	for _, v := range in.Chats {
		if v.Bot == 0 || s.byBot[v.Bot] != nil {
			s.loadChat(v, skip)
		}
	}
	return nil
}

func (s *Server) loadBot(v savedBot, skip int) {
	b := s.byBot[v.ID]
	if b == nil {
		return // a bot that was removed
	}
	b.nextID, b.lastPush, b.nextMsg, b.allowed = v.NextID, v.LastPush, v.NextMsg+skip, v.Allowed
	if b.nextID > 0 {
		b.nextID += int64(skip)
	}
	if v.Commands != nil {
		b.commands = v.Commands
	}
	for _, u := range v.Queue {
		b.queue = append(b.queue, update{u.ID, u.Data, u.Expires})
	}
}

func (s *Server) loadChat(v savedChat, skip int) {
	c := &chat{at: v.Conversation, kind: v.Kind, title: v.Title, forum: v.Forum, members: v.Members, topics: v.Topics, index: map[int]*message{},
		nextMsg: v.NextMsg, started: v.Started, blocked: v.Blocked, migrated: v.Migrated}
	if c.nextMsg > 0 {
		c.nextMsg += skip
	}
	if c.forum && c.topics == nil {
		c.topics = map[int]string{}
	}
	for _, m := range v.Messages[max(len(v.Messages)-maxHistory, 0):] {
		if m.Wire == nil {
			continue
		}
		s.put(c, &message{wire: *m.Wire, shown: m.Shown, edited: m.Edited, edits: m.Edits, service: m.Service, reactions: m.Reactions})
	}
	s.chats[c.at] = c
	c.messages = slices.Clip(c.messages)
}
