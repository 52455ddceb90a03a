package phones

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core"
)

var discordCast = []member{
	{"Cleo", "cleo_c", "a stranger at first"},
	{"Dan", "dan.d", "another one"},
	{"Olga", "olga_owns", "owns the server, not the bot"},
}

// What the server of a fresh world has.
const (
	channelName = "general"
	threadName  = "Tea talk"
)

type discord struct {
	sim   *discordtest.Server
	guild *discordtest.Guild
}

// Discord returns the simulated Discord with users to play: Cleo, Dan and Olga, and
// the server they share with one channel and a thread in it, each made where
// it does not exist yet. A simulator that kept its state keeps its users.
func Discord(sim *discordtest.Server) (Platform, error) {
	people := sim.Users()
	if len(people) == 0 {
		for _, p := range discordCast {
			u, err := sim.AddUser(discordtest.Account{Name: p.name, Username: p.username})
			if err != nil {
				return nil, fmt.Errorf("people on Discord: %w", err)
			}
			people = append(people, u)
		}
	}
	for _, g := range sim.Guilds() {
		if g.Name == GroupTitle {
			return &discord{sim, sim.Guild(g.ID)}, nil
		}
	}
	owner := people[len(people)-1]
	g, err := sim.AddGuild(GroupTitle, owner, people[:len(people)-1]...)
	if err != nil {
		return nil, fmt.Errorf("server on Discord: %w", err)
	}
	channel, err := g.AddChannel(discordtest.Text, channelName)
	if err != nil {
		return nil, fmt.Errorf("channel on Discord: %w", err)
	}
	if _, err := owner.StartThread(channel, 0, threadName); err != nil {
		return nil, fmt.Errorf("thread on Discord: %w", err)
	}
	return &discord{sim, g}, nil
}

func (d *discord) World() World {
	w := World{Platform: "discord", Name: "Discord", Place: GroupTitle, Bot: d.person(d.sim.Bot().Account()), Limit: 2000,
		Menu: []string{"/new", "/status"}, People: []Person{}, Chats: d.shared()}
	users := d.sim.Users()
	for _, u := range users[:min(len(users), maxPhones)] {
		w.People = append(w.People, d.person(u.Account()))
		w.Chats = append(w.Chats, d.private(u))
	}
	return w
}

func (d *discord) person(a discordtest.Account) Person {
	return Person{ID: a.ID.String(), Name: a.Name, Username: a.Username, Note: note(discordCast, a.Username), Bot: a.Bot}
}

// shared returns the server's channels, each with its threads behind it. Forums are
// left out, their posts are not.
func (d *discord) shared() []Chat {
	all := d.sim.Channels()
	var out []Chat
	add := func(c discordtest.Channel, kind string) {
		if len(out) < maxChats {
			out = append(out, d.screen(Chat{ID: c.ID.String(), Kind: kind, Title: c.Name}, c.ID))
		}
	}
	for _, c := range all {
		if c.Guild != d.guild.ID() || c.Parent != 0 {
			continue
		}
		if c.Type == discordtest.Text {
			add(c, Shared)
		}
		for _, t := range all {
			if t.Parent == c.ID {
				add(t, Thread)
			}
		}
	}
	return out
}

func (d *discord) private(u *discordtest.User) Chat {
	return d.screen(Chat{ID: u.DM().String(), Kind: Private, Title: d.sim.Bot().Account().Name, Person: u.ID().String()}, u.DM())
}

// screen fills in what is in the chat.
func (d *discord) screen(c Chat, at discordtest.ID) Chat {
	v := d.sim.Screen(at)
	c.Messages = []Message{}
	for _, m := range last(v.Messages) {
		c.Messages = append(c.Messages, d.message(m))
	}
	for _, y := range v.Typing {
		c.Typing = append(c.Typing, d.typing(y))
	}
	return c
}

// Types of messages that the app words itself ([message] "Message Types").
const (
	threadCreated = 18
	threadStarter = 21
)

func (d *discord) message(m discordtest.Message) Message {
	out := Message{ID: m.ID.String(), From: d.person(m.From), At: m.At, Edited: m.Edits > 0}
	out.Text, out.Styles = readMarkup(m.Text, d.called)
	switch {
	case m.Type == threadCreated:
		out.Service = m.From.Name + " started a thread: " + m.Text
	case m.Type == threadStarter:
		out.Service = "The thread begins here"
	case m.Thinking:
		out.Text = "thinking…"
	}
	for _, row := range m.Buttons {
		if keys := keysOf(row); len(keys) > 0 {
			out.Buttons = append(out.Buttons, keys)
		}
	}
	if m.ReplyTo != 0 {
		text, _ := readMarkup(m.ReplyText, d.called)
		out.Answers = &Answered{m.ReplyName, text}
	}
	for _, f := range m.Attachments {
		out.File = strings.TrimSpace(out.File + " " + f.Filename)
	}
	for _, r := range m.Reactions {
		out.Reactions = append(out.Reactions, r.Emoji)
	}
	if m.OnlyFor != 0 {
		out.OnlyFor = m.OnlyFor.String()
	}
	return out
}

var looks = map[int]string{1: "primary", 3: "success", 4: "danger"} // [components] "Button Styles"

// keysOf returns buttons, and menus of which one entry is chosen.
func keysOf(row []discordtest.Button) (out []Button) {
	for _, b := range row {
		key := Button{Text: b.Label, Data: b.CustomID, URL: b.URL, Look: looks[b.Style], Disabled: b.Disabled}
		if b.Type != 2 {
			key.Text = b.Placeholder
		}
		for _, o := range b.Options {
			key.Menu = append(key.Menu, Item{o.Label, o.Value})
		}
		if b.Type == 2 || len(key.Menu) > 0 {
			out = append(out, key)
		}
	}
	return out
}

// formOf returns what a press has opened.
func formOf(i *discordtest.Interaction) *Form {
	f := &Form{ID: i.ID.String(), Title: i.Modal.Title}
	for _, x := range i.Modal.Fields {
		f.Fields = append(f.Fields, Field{x.CustomID, x.Label, x.Description, x.Placeholder, x.Value, x.Lines, x.Required, x.Most})
	}
	return f
}

// called returns how the app shows a mention of a user, or of a channel.
func (d *discord) called(sign byte, id string) string {
	n, err := discordtest.ParseID(id)
	if err != nil {
		return ""
	}
	if sign == '#' {
		for _, c := range d.sim.Channels() {
			if c.ID == n {
				return "#" + c.Name
			}
		}
		return "#unknown"
	}
	if bot := d.sim.Bot().Account(); bot.ID == n {
		return "@" + bot.Name
	}
	if u := d.sim.User(n); u != nil {
		return "@" + u.Account().Name
	}
	return "@unknown-user"
}

func (d *discord) typing(y discordtest.Typing) Typing {
	return Typing{By: strings.TrimPrefix(d.called('@', y.By.String()), "@"), ID: y.By.String(), Until: y.Until}
}

func (d *discord) Changes(ctx context.Context) iter.Seq[Change] {
	return shown(d.sim.Subscribe(ctx, maxBehind), d.change)
}

// change is false for what the page does not show.
func (d *discord) change(c discordtest.Change) (Change, bool) {
	out := Change{Platform: "discord", Kind: string(c.Kind), Chat: c.Channel.String()}
	if c.Message != nil {
		m := d.message(*c.Message)
		out.Message = &m
	}
	switch c.Kind {
	case discordtest.ChangeMessage, discordtest.ChangeEdit:
	case discordtest.ChangeReaction:
		out.Kind = ChangeEdit
	case discordtest.ChangeDelete:
		out.ID = c.MessageID.String()
	case discordtest.ChangeTyping:
		y := d.typing(*c.Typing)
		out.Typing = &y
	case discordtest.ChangeInteraction:
		out.Kind, out.Person = ChangeNote, &Person{ID: c.Interaction.User.String()}
		if c.Interaction.State == discordtest.StateModal && c.Interaction.Modal != nil {
			out.Kind, out.Form = ChangeForm, formOf(c.Interaction)
			return out, true
		}
		out.Text = "This interaction failed"
		return out, c.Interaction.State == discordtest.StateFailed
	case discordtest.ChangeUser:
		p := d.person(*c.User)
		out.Kind, out.Person = ChangePerson, &p
		if u := d.sim.User(c.User.ID); u != nil {
			out.Chats = append(d.shared(), d.private(u))
		}
	case discordtest.ChangeChannel:
		out.Kind, out.Chats = ChangeChat, d.shared()
		return out, c.Guild == d.guild.ID()
	default:
		return out, false
	}
	return out, true
}

func (d *discord) Act(a Action) error {
	id, _ := discordtest.ParseID(a.From)
	u := d.sim.User(id)
	if u == nil {
		return core.Errorf(core.NotFound, "there is no such person")
	}
	at := u.DM()
	ids := []*discordtest.ID{&at, new(discordtest.ID), new(discordtest.ID)}
	for i, text := range []string{a.Chat, a.Message, a.ReplyTo} {
		if text == "" {
			continue
		}
		n, err := discordtest.ParseID(text)
		if err != nil {
			return core.Errorf(core.NotFound, "there is no such chat or message")
		}
		*ids[i] = n
	}
	if a.Form != "" {
		id, _ := discordtest.ParseID(a.Form)
		_, err := u.Submit(id, a.Fields)
		return err
	}
	if a.Message != "" {
		var values []string
		if a.Value != "" {
			values = []string{a.Value}
		}
		_, err := u.Press(at, *ids[1], a.Data, values...)
		return err
	}
	_, err := u.Post(at, discordtest.Outgoing{Text: d.mentions(a.Text), ReplyTo: *ids[2]})
	return err
}

var atName = core.Pattern(`@[A-Za-z0-9_.]{2,32}`)

// mentions makes names with an at sign into mentions, as the app does when a
// name is chosen from its list.
func (d *discord) mentions(text string) string {
	ids := map[string]discordtest.ID{}
	for _, u := range d.sim.Users() {
		ids[strings.ToLower(u.Account().Username)] = u.ID()
	}
	bot := d.sim.Bot()
	ids[strings.ToLower(bot.Account().Username)] = bot.ID()
	return atName().ReplaceAllStringFunc(text, func(name string) string {
		bare := strings.TrimRight(name[1:], ".")
		id, ok := ids[strings.ToLower(bare)]
		if !ok {
			return name
		}
		return "<@" + id.String() + ">" + name[1+len(bare):]
	})
}

func (d *discord) Add(name string) (Person, error) {
	if err := roomFor(name, len(d.sim.Users())); err != nil {
		return Person{}, err
	}
	u, err := d.sim.AddUser(discordtest.Account{Name: strings.TrimSpace(name)})
	if err != nil {
		return Person{}, err
	}
	d.guild.Join(u)
	return d.person(u.Account()), nil
}
