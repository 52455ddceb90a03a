package main

import "fmt"

// stands changes what the bot is in a group.
func (s *script) stands(m []string) {
	sc, who, _ := s.actor(m[1])
	s.must(sc.(interface {
		place(who, verb, group string) error
	}).place(who, m[2], m[3]))
}

func (s *script) blocks(m []string) {
	sc, who, _ := s.actor(m[1])
	u := sc.(*telegramScene).people[who]
	if m[2] == "blocks" {
		u.Block()
	} else {
		u.Unblock()
	}
}

func (s *telegramScene) place(who, verb, group string) error {
	status := map[string]string{"removes": "kicked", "adds": "member", "promotes": "administrator"}[verb]
	s.groups[group].SetBot(s.w.sim.Bot(), s.people[who], status)
	return nil
}

func (s *discordScene) place(_, verb, group string) error {
	for _, c := range s.sim.Channels() {
		if c.ID != s.groups[group] {
			continue
		}
		return s.heard(func() error {
			switch g := s.sim.Guild(c.Guild); verb {
			case "removes":
				g.RemoveBot(s.sim.Bot())
			case "adds":
				g.AddBot(s.sim.Bot())
			default:
				return fmt.Errorf("nobody %s a bot on Discord", verb)
			}
			return nil
		})
	}
	return fmt.Errorf("no such server")
}
