package main

import (
	"fmt"
	"slices"
	"strings"

	"gatehouse/connectors/discord/discordtest"
)

// opens presses a button that opens a form, as there are on Discord.
func (s *script) opens(m []string) {
	sc, who, room := s.actor(m[1])
	id, at := s.button(sc, room, m[2])
	s.must(sc.(*discordScene).open(who, room, id, at))
}

func (s *script) fills(m []string) {
	sc, who, _ := s.actor(m[1])
	s.must(sc.(*discordScene).fill(who, strings.Split(m[2], " | ")))
}

// each calls f with what a person can press under a message: buttons, and the
// entries of menus.
func each(m discordtest.Message, f func(label, id string, values ...string)) {
	for _, row := range m.Buttons {
		for _, b := range row {
			if b.Type == 2 {
				f(b.Label, b.CustomID)
			}
			for _, o := range b.Options {
				f(o.Label, b.CustomID, o.Value)
			}
		}
	}
}

func (s *discordScene) press(who, room string, message string, button int) error {
	_, err := s.use(who, room, message, button)
	return err
}

func (s *discordScene) use(who, room string, message string, button int) (id discordtest.ID, err error) {
	err = fmt.Errorf("the button is gone")
	for _, m := range s.sim.History(s.in(room)) {
		if m.ID.String() == message {
			each(m, func(_, custom string, values ...string) {
				if button--; button == -1 {
					id, err = s.people[who].Press(s.in(room), m.ID, custom, values...)
				}
			})
		}
	}
	return id, err
}

func (s *discordScene) open(who, room string, message string, button int) error {
	id, err := s.use(who, room, message, button)
	if err != nil {
		return err
	}
	s.w.until("a form opens", func() bool {
		i, _ := s.sim.Interaction(id)
		return i.Modal != nil
	})
	s.forms[who] = id
	return nil
}

func (s *discordScene) fill(who string, fields []string) error {
	values := map[string]string{}
	for i, text := range fields {
		values[fmt.Sprint(i)] = text
	}
	_, err := s.people[who].Submit(s.forms[who], values)
	return err
}

// boards makes a forum.
func (s *script) boards(m []string) {
	sc := s.scenes[s.platform].(*discordScene)
	for _, c := range sc.sim.Channels() {
		if c.ID == sc.groups[m[2]] {
			g := sc.sim.Guild(c.Guild)
			sc.groups[m[1]] = g.NewForum(m[1])
			s.must(g.SetTags(sc.groups[m[1]], strings.Fields(m[3])...))
		}
	}
}

// publishes begins a post in a forum.
func (s *script) publishes(m []string) {
	sc, who, forum := s.actor(m[1])
	d := sc.(*discordScene)
	text := strings.ReplaceAll(m[4], "{bot}", d.called())
	s.must(d.heard(func() (err error) {
		d.groups[forum+"/"+m[2]], err = d.people[who].NewPost(d.groups[forum], m[2], discordtest.Outgoing{Text: text}, m[3])
		return err
	}))
}

// choosesSeveral takes entries of a menu at once.
func (s *script) choosesSeveral(m []string) {
	sc, who, room := s.actor(m[1])
	d := sc.(*discordScene)
	labels := strings.Split(m[2], " + ")
	id, _ := s.button(sc, room, labels[0])
	for _, msg := range d.sim.History(d.in(room)) {
		if msg.ID.String() != id {
			continue
		}
		menu, values := "", []string{}
		each(msg, func(label, custom string, value ...string) {
			if len(value) > 0 && slices.Contains(labels, label) {
				menu, values = custom, append(values, value...)
			}
		})
		_, err := d.people[who].Press(d.in(room), msg.ID, menu, values...)
		s.must(err)
	}
}
