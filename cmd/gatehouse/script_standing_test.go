package main

import (
	"fmt"
	"testing"
)

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

// A group that threw the bot out while the gateway was away, on Discord for so
// long that the session ended, is disabled at the next start, which the log and
// the owner hear of once; one that it is still in goes on.
func TestAGroupThatThrewTheBotOutConcurrentlyIsDisabledAndTheOwnerHears(t *testing.T) {
	t.Parallel()
	for _, platform := range []string{"telegram", "discord"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, platform, nil)
			for _, step := range []string{"olga owns", "group Garden: olga", "group Kitchen: olga", "olga in Garden: /enable all", "bot in Garden: I answer every message",
				"olga in Kitchen: /enable all", "bot in Kitchen: I answer every message", "quiet"} {
				s.step(step)
			}
			s.w.stop()
			s.step("olga removes the bot from Garden")
			if d, ok := s.scenes[platform].(*discordScene); ok {
				s.w.until("the platform has noticed that the bot is away", func() bool { return !d.sim.Bot().Online() })
				d.sim.Bot().EndSessions()
			}
			s.w.start()
			s.step("bot to olga: I was removed from")
			s.step("quiet")
			s.step("bot silent to olga")
			if n := s.w.count(`SELECT count(*) FROM audit_events WHERE action = 'place.disable'`); n != 1 {
				t.Errorf("the log has it %d times", n)
			}
			s.step("olga in Kitchen: hello")
			s.step("bot in Kitchen: " + fakeSays)
		})
	}
}
