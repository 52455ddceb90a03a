package phones

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
)

// GroupTitle is the group on Telegram, and the server on Discord, that
// everyone is in.
const GroupTitle = "Reading circle"

// A member of a cast is someone whom a fresh world begins with, and what their
// window reports of them.
type member struct{ name, username, note string }

// ownerName is the username, on Telegram, of who is meant to be the owner.
const ownerName = "olga_owns"

var telegramCast = []member{
	{"Ada", "ada_reads", "a stranger at first"},
	{"Ben", "ben_b", "another one"},
	{"Olga", ownerName, "the owner, after her /claim"},
}

func note(cast []member, username string) string {
	for _, c := range cast {
		if c.username == username {
			return c.note
		}
	}
	return ""
}

type telegram struct {
	sim   *telegramtest.Server
	group *telegramtest.Group
}

// Telegram returns the simulated Telegram with users to play: Ada, Ben and Olga,
// who is meant to be the owner, and the group they share, each made where it
// does not exist yet. A simulator that kept its state keeps its users.
func Telegram(sim *telegramtest.Server) (Platform, error) {
	people := sim.Users()
	if len(people) == 0 {
		for _, p := range telegramCast {
			u, err := sim.AddUser(telegramtest.Account{FirstName: p.name, Username: p.username, LanguageCode: "en"})
			if err != nil {
				return nil, fmt.Errorf("people on Telegram: %w", err)
			}
			people = append(people, u)
		}
	}
	slices.SortFunc(people, func(a, b *telegramtest.User) int { return int(a.ID() - b.ID()) })
	for _, c := range sim.Chats() {
		if c.Title == GroupTitle && len(c.Members) > 0 {
			return &telegram{sim, sim.Group(c.Chat)}, nil
		}
	}
	g, err := sim.AddGroup(telegramtest.Supergroup, GroupTitle, people[len(people)-1], people[:len(people)-1]...)
	if err != nil {
		return nil, fmt.Errorf("group on Telegram: %w", err)
	}
	return &telegram{sim, g}, nil
}

func number[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

func (t *telegram) World() World {
	bot := t.sim.Bot()
	w := World{Platform: "telegram", Name: "Telegram", Place: GroupTitle, Bot: t.person(bot.Account()), Limit: 4096,
		Menu: []string{}, People: []Person{}, Chats: []Chat{t.shared()}}
	users := t.sim.Users()
	slices.SortFunc(users, func(a, b *telegramtest.User) int { return int(a.ID() - b.ID()) })
	for _, u := range users[:min(len(users), maxPhones)] {
		w.People = append(w.People, t.person(u.Account()))
		w.Chats = append(w.Chats, t.private(u))
	}
	for _, c := range bot.Commands() {
		w.Menu = append(w.Menu, "/"+c.Command)
	}
	return w
}

func (t *telegram) person(a telegramtest.Account) Person {
	return Person{ID: number(a.ID), Name: a.Name(), Username: a.Username, Note: note(telegramCast, a.Username), Bot: a.IsBot, Owner: a.Username == ownerName}
}

func (t *telegram) shared() Chat {
	return t.screen(Chat{ID: number(t.group.ID()), Kind: Shared, Title: GroupTitle}, t.group.Conversation())
}

func (t *telegram) private(u *telegramtest.User) Chat {
	return t.screen(Chat{ID: number(u.ID()), Kind: Private, Title: t.sim.Bot().Account().Name(), Person: number(u.ID())}, u.DM())
}

// screen fills in what is in the chat.
func (t *telegram) screen(c Chat, at telegramtest.Conversation) Chat {
	v := t.sim.Screen(at)
	c.Messages = []Message{}
	for _, m := range last(v.Messages) {
		c.Messages = append(c.Messages, t.message(m))
	}
	for _, d := range v.Drafts {
		c.Drafts = append(c.Drafts, draftOf(d))
	}
	for _, y := range v.Typing {
		c.Typing = append(c.Typing, t.typing(y))
	}
	return c
}

func (t *telegram) message(m telegramtest.Message) Message {
	out := Message{ID: number(m.ID), From: t.person(m.From), At: m.At, Edited: m.Edits > 0, Text: m.Text, Styles: stylesOf(m.Entities),
		File: m.File, Forward: m.Forward, Service: m.Service}
	for _, row := range m.Buttons {
		var keys []Button
		for _, b := range row {
			keys = append(keys, Button{Text: b.Text, Data: b.CallbackData, URL: b.URL})
		}
		out.Buttons = append(out.Buttons, keys)
	}
	if m.ReplyTo != 0 {
		out.Answers = &Answered{m.ReplyName, m.ReplyText}
		if m.Quote != "" {
			out.Answers.Text = m.Quote
		}
	}
	for _, r := range m.Reactions {
		out.Reactions = append(out.Reactions, r.Emoji...)
	}
	return out
}

func stylesOf(list []telegramtest.Entity) (out []Style) {
	for _, e := range list {
		out = append(out, Style{e.Type, e.Offset, e.Length, e.URL, e.Language})
	}
	return out
}

func draftOf(d telegramtest.Draft) Draft {
	return Draft{number(d.ID), d.Text, stylesOf(d.Entities), d.Until}
}

func (t *telegram) typing(y telegramtest.Typing) Typing {
	out := Typing{By: t.sim.Bot().Account().Name(), ID: number(y.Bot)}
	if y.Action != "" {
		out.Until = y.Until
	}
	return out
}

func (t *telegram) Changes(ctx context.Context) iter.Seq[Change] {
	return shown(t.sim.Subscribe(ctx, maxBehind), t.change)
}

// change is false for what the page does not show, such as other bots' chats.
func (t *telegram) change(c telegramtest.Change) (Change, bool) {
	out := Change{Platform: "telegram", Kind: string(c.Kind), Chat: number(c.Chat)}
	if c.Bot != 0 && c.Bot != t.sim.Bot().Account().ID {
		return out, false
	}
	if c.Message != nil {
		m := t.message(*c.Message)
		out.Message = &m
	}
	switch c.Kind {
	case telegramtest.ChangeMessage, telegramtest.ChangeEdit:
	case telegramtest.ChangeReaction:
		out.Kind = ChangeEdit
	case telegramtest.ChangeDelete:
		out.ID = number(c.MessageID)
	case telegramtest.ChangeDraft:
		if c.Draft != nil {
			d := draftOf(*c.Draft)
			out.Draft = &d
		}
	case telegramtest.ChangeTyping:
		y := t.typing(*c.Typing)
		out.Typing = &y
	case telegramtest.ChangeAnswer:
		out.Kind, out.Text, out.Person = ChangeNote, c.Answer.Text, &Person{ID: number(c.Answer.User)}
		return out, c.Answer.Text != ""
	case telegramtest.ChangeUser:
		p := t.person(*c.User)
		out.Kind, out.Person = ChangePerson, &p
		if u := t.sim.User(c.User.ID); u != nil {
			out.Chats = []Chat{t.shared(), t.private(u)}
		}
	default:
		return out, false
	}
	return out, true
}

func (t *telegram) Act(a Action) error {
	if a.Form != "" {
		return core.Errorf(core.NotFound, "there are no forms on Telegram")
	}
	id, _ := strconv.ParseInt(a.From, 10, 64)
	u := t.sim.User(id)
	if u == nil {
		return core.Errorf(core.NotFound, "there is no such person")
	}
	to := u.DM()
	if a.Chat != "" && a.Chat != a.From {
		chat, err := strconv.ParseInt(a.Chat, 10, 64)
		if err != nil {
			return core.Errorf(core.NotFound, "there is no such chat")
		}
		to = telegramtest.Conversation{Chat: chat}
	}
	if a.Message != "" {
		m, _ := strconv.Atoi(a.Message)
		_, err := u.Press(to, m, a.Data)
		return err
	}
	reply, err := strconv.Atoi(a.ReplyTo)
	if a.ReplyTo != "" && err != nil {
		return core.Errorf(core.NotFound, "there is no such message")
	}
	_, err = u.Post(to, telegramtest.Outgoing{Text: a.Text, ReplyTo: reply})
	return err
}

func (t *telegram) Add(name string) (Person, error) {
	if err := roomFor(name, len(t.sim.Users())); err != nil {
		return Person{}, err
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(name), " ")
	u, err := t.sim.AddUser(telegramtest.Account{FirstName: first, LastName: strings.TrimSpace(rest), LanguageCode: "en"})
	if err != nil {
		return Person{}, err
	}
	t.group.Join(u)
	return t.person(u.Account()), nil
}

func roomFor(name string, people int) error {
	switch {
	case people >= maxPhones:
		return core.Errorf(core.Invalid, "%d people are enough", maxPhones)
	case len(name) > maxName:
		return core.Errorf(core.Invalid, "a name is shorter")
	}
	return nil
}
