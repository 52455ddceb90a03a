package main

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
)

// A scene is one platform as a script sees it. A room is where people write:
// a direct chat with the bot ("dm:NAME"), a group, or a topic in it ("GROUP/TOPIC").
type scene interface {
	join(name string) (id string)                       // a new account
	gather(group string, members []string, topics bool) // a group with the bot in it
	topic(group, name string) error                     // a topic or thread of the group's maker
	post(who, room string, p post) error
	edit(who, room, message, text string) error
	react(who, room, message, emoji string) error
	press(who, room string, message string, button int) error
	read(room string) []line
	drafts(room string) []line      // what the bot is writing there
	told(who, room string) []string // what they alone were shown on presses
	called() string                 // how people address the bot
}

// A post is what a person sends.
type post struct {
	text, replyTo string
	from          string // who wrote it elsewhere: it is forwarded
	files         []enclosed
}

type enclosed struct {
	name string
	data []byte
}

// A line is a message as it stands in a room.
type line struct {
	id, text, replyTo string
	bot               bool
	buttons           []string // labels, in reading order
	reactions         string
	files             []string // names, or "photo"
	content           string   // of the last document of the bot's
	private           bool     // shown to one person alone
}

// telegramScene is the first simulator.
type telegramScene struct {
	w      *world
	people map[string]*telegramtest.User
	groups map[string]*telegramtest.Group
	topics map[string]int                // by room
	makers map[string]*telegramtest.User // of groups
	asked  map[string]string             // who pressed a button, by query
}

func (s *telegramScene) join(name string) string {
	s.people[name] = s.w.sim.NewUser(strings.ToUpper(name[:1]) + name[1:])
	return fmt.Sprint(s.people[name].ID())
}

func (s *telegramScene) gather(group string, members []string, topics bool) {
	var others []*telegramtest.User
	for _, m := range members[1:] {
		others = append(others, s.people[m])
	}
	kind := telegramtest.Supergroup
	if topics {
		kind = telegramtest.Forum
	}
	s.makers[group] = s.people[members[0]]
	s.groups[group] = s.w.sim.NewGroup(kind, group, s.makers[group], others...)
}

func (s *telegramScene) topic(group, name string) error {
	s.topics[group+"/"+name] = s.groups[group].NewTopic(s.makers[group], name)
	return nil
}

func (s *telegramScene) in(room string) telegramtest.Conversation {
	if name, ok := strings.CutPrefix(room, "dm:"); ok {
		return s.people[name].DM()
	}
	group, _, _ := strings.Cut(room, "/")
	return s.groups[group].Conversation()
}

// post sends a message; of several files each is one of an album.
func (s *telegramScene) post(who, room string, p post) error {
	to, _ := strconv.Atoi(p.replyTo)
	m := telegramtest.Outgoing{Text: p.text, Thread: s.topics[room], ReplyTo: to}
	if p.from != "" {
		m.Forward = s.people[p.from].ID()
	}
	if len(p.files) > 1 {
		m.Album = "album of " + p.files[0].name
	}
	for i := range max(1, len(p.files)) {
		if i > 0 {
			m.Text = "" // the app puts the caption to the first
		}
		if len(p.files) > 0 {
			f := p.files[i]
			m.File = &telegramtest.File{Kind: "document", Name: f.name, Data: f.data}
			if kind, ok := map[string]string{".png": "photo", ".oga": "voice"}[path.Ext(f.name)]; ok {
				m.File.Kind = kind
			}
		}
		if _, err := s.people[who].Post(s.in(room), m); err != nil {
			return err
		}
	}
	return nil
}

func (s *telegramScene) edit(who, room, message, text string) error {
	id, _ := strconv.Atoi(message)
	_, err := s.people[who].Edit(s.in(room), id, text)
	return err
}

func (s *telegramScene) react(who, room, message, emoji string) error {
	id, _ := strconv.Atoi(message)
	return s.people[who].React(s.in(room), id, emoji)
}

func (s *telegramScene) press(who, room string, message string, button int) error {
	for _, m := range s.w.sim.History(s.in(room)) {
		if fmt.Sprint(m.ID) != message {
			continue
		}
		for _, row := range m.Buttons {
			for _, b := range row {
				if button--; button < 0 {
					query, err := s.people[who].Press(s.in(room), m.ID, b.CallbackData)
					s.asked[query] = who
					return err
				}
			}
		}
	}
	return fmt.Errorf("the button is gone")
}

func (s *telegramScene) read(room string) (out []line) {
	for _, m := range s.w.sim.History(s.in(room)) {
		if m.Thread != s.topics[room] || m.Service != "" {
			continue
		}
		l := line{id: fmt.Sprint(m.ID), text: m.Text, bot: m.FromBot(), replyTo: fmt.Sprint(m.ReplyTo)}
		for _, row := range m.Buttons {
			for _, b := range row {
				l.buttons = append(l.buttons, b.Text)
			}
		}
		for _, r := range m.Reactions {
			l.reactions += strings.Join(r.Emoji, "")
		}
		if m.File != "" {
			l.files = []string{strings.TrimPrefix(m.File, "document ")}
		}
		if kind, name, ok := strings.Cut(m.File, " "); ok && l.bot {
			l.content = string(s.w.sim.Sent(kind, name))
		}
		out = append(out, l)
	}
	return out
}

func (s *telegramScene) drafts(room string) (out []line) {
	for _, d := range s.w.sim.Screen(s.in(room)).Drafts {
		if d.Thread == s.topics[room] {
			out = append(out, line{text: d.Text, bot: true})
		}
	}
	return out
}

func (s *telegramScene) called() string { return "@" + s.w.sim.Bot().Account().Username }

// discordScene is the second.
type discordScene struct {
	w      *world
	sim    *discordtest.Server
	people map[string]*discordtest.User
	groups map[string]discordtest.ID // channels and, by room, threads
	makers map[string]*discordtest.User
	forms  map[string]discordtest.ID // by person: what opened their last one
}

func (s *discordScene) join(name string) string {
	s.people[name] = s.sim.NewUser(strings.ToUpper(name[:1]) + name[1:])
	return s.people[name].ID().String()
}

func (s *discordScene) gather(group string, members []string, _ bool) {
	var others []*discordtest.User
	for _, m := range members[1:] {
		others = append(others, s.people[m])
	}
	s.makers[group] = s.people[members[0]]
	s.groups[group] = s.sim.NewGuild(group, s.makers[group], others...).NewChannel("general")
}

func (s *discordScene) topic(group, name string) (err error) {
	s.groups[group+"/"+name], err = s.makers[group].StartThread(s.groups[group], 0, name)
	return err
}

func (s *discordScene) in(room string) discordtest.ID {
	if name, ok := strings.CutPrefix(room, "dm:"); ok {
		return s.people[name].DM()
	}
	return s.groups[room]
}

// mention writes text with a mention of whom, whose name is named by then.
func (s *discordScene) mention(who, room, text, whom, named string) error {
	s.people[whom] = s.sim.NewUser(named)
	return s.post(who, room, post{text: text + s.people[whom].Mention()})
}

// mention writes text with a mention of whom, whose name is named by then.
func (s *telegramScene) mention(who, room, text, whom, named string) error {
	_, err := s.people[who].Post(s.in(room), telegramtest.Outgoing{Text: text + named, Entities: []telegramtest.Entity{
		{Type: "text_mention", Offset: len(text), Length: len(named), User: &telegramtest.Account{ID: s.people[whom].ID(), FirstName: named}}}})
	return err
}

// heard waits until the gateway has stored what somebody does; before that a
// bot that says nothing has only not heard of it.
func (s *discordScene) heard(do func() error) error {
	before := s.sim.Bot().Dispatched()
	if err := do(); err != nil || !s.sim.Bot().Online() {
		return err
	}
	s.w.until("it is stored", func() bool {
		var raw string
		var at struct{ Seq int64 }
		err := s.w.app.db.Get(s.w.t.Context(), &raw, `SELECT value FROM cursors WHERE name = $1`, "discord:"+s.sim.Bot().ID().String())
		return err == nil && json.Unmarshal([]byte(raw), &at) == nil && at.Seq > before
	})
	return nil
}

func (s *discordScene) post(who, room string, p post) error {
	if strings.HasPrefix(p.text, "/") && p.from == "" && !strings.HasPrefix(room, "dm:") { // there a command is typed behind a mention
		p.text = s.called() + " " + p.text
	}
	m := discordtest.Outgoing{Text: p.text}
	if p.from != "" {
		text, _ := json.Marshal(p.text)
		m = discordtest.Outgoing{Extra: map[string]json.RawMessage{"message_reference": json.RawMessage(`{"type":1,"message_id":"9"}`),
			"message_snapshots": json.RawMessage(`[{"message":{"content":` + string(text) + `}}]`)}}
	}
	for _, f := range p.files {
		m.Files = append(m.Files, discordtest.File{Name: f.name, Data: f.data})
		if path.Ext(f.name) == ".oga" {
			m.Extra = map[string]json.RawMessage{"flags": json.RawMessage("8192")} // IS_VOICE_MESSAGE
		}
	}
	m.ReplyTo, _ = discordtest.ParseID(p.replyTo)
	return s.heard(func() error { _, err := s.people[who].Post(s.in(room), m); return err })
}

func (s *discordScene) edit(who, room, message, text string) error {
	id, _ := discordtest.ParseID(message)
	return s.heard(func() error { _, err := s.people[who].Edit(s.in(room), id, text); return err })
}

func (s *discordScene) react(who, room, message, emoji string) error {
	id, _ := discordtest.ParseID(message)
	return s.heard(func() error { return s.people[who].React(s.in(room), id, emoji) })
}

func (s *discordScene) read(room string) (out []line) {
	for _, m := range s.sim.History(s.in(room)) {
		l := line{id: m.ID.String(), text: asSeen.Replace(m.Text), bot: m.FromBot(), replyTo: m.ReplyTo.String(), private: m.OnlyFor != 0}
		each(m, func(label, _ string, _ ...string) { l.buttons = append(l.buttons, label) })
		for _, r := range m.Reactions {
			l.reactions += r.Emoji
		}
		for _, f := range m.Attachments {
			if l.files = append(l.files, f.Filename); path.Ext(f.Filename) == ".png" {
				l.files = append(l.files, "photo")
			}
			if l.bot {
				l.content = download(f.URL)
			}
		}
		out = append(out, l)
	}
	return out
}

// drafts: a preview is a message there.
func (s *discordScene) drafts(string) []line { return nil }

// asSeen takes out of the platform's Markdown what people do not see of it.
var asSeen = strings.NewReplacer("`", "", `\`, "")

func (s *discordScene) called() string { return s.sim.Bot().Mention() }
