package main

import (
	"fmt"
	"strings"

	"gatehouse/connectors/telegram/telegramtest"
)

// goes takes the script's platform away, or brings it back.
func (s *script) goes(m []string) {
	switch sc := s.scenes[s.platform].(type) {
	case *telegramScene:
		if m[1] == "away" {
			sc.w.sim.Down()
		} else {
			s.must(sc.w.sim.Up())
		}
	case *discordScene:
		if m[1] == "away" {
			sc.sim.Down()
		} else {
			s.must(sc.sim.Up())
		}
	}
}

// grows makes a basic group a supergroup, which has another id (Telegram).
func (s *script) grows(m []string) {
	sc := s.scenes["telegram"].(*telegramScene)
	sc.groups[m[1]] = sc.groups[m[1]].Migrate(sc.makers[m[1]])
	s.seen["telegram/"+m[1]] = 0 // the supergroup begins empty
}

func (s *telegramScene) basic(group string, members []string) {
	var others []*telegramtest.User
	for _, m := range members[1:] {
		others = append(others, s.people[m])
	}
	s.makers[group] = s.people[members[0]]
	s.groups[group] = s.w.sim.NewGroup(telegramtest.Basic, group, s.makers[group], others...)
}

// commands uses a slash command with its options: "model words=fake-2" (Discord).
func (s *script) commands(m []string) {
	sc, who, room := s.actor(m[1])
	d := sc.(*discordScene)
	name, rest, _ := strings.Cut(m[2], " ")
	options := map[string]any{}
	if key, value, ok := strings.Cut(rest, "="); ok {
		options[key] = value
	}
	s.must(d.heard(func() error {
		_, err := d.people[who].Slash(d.in(room), name, options)
		if err != nil {
			err = fmt.Errorf("/%s: %w", name, err)
		}
		return err
	}))
}
