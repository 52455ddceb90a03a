package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/core/llm/llmtest"
)

// A reminder that was set in a group ends with the group, and with the access of who set it.
func TestAReminderOfAGroupEndsWithTheGroupAndWithWhoSetIt(t *testing.T) {
	t.Parallel()
	for _, platform := range []string{"telegram", "discord"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, platform, nil)
			for _, step := range []string{"olga owns", "ada joins", "bob joins", "group Garden: olga ada bob", "group Kitchen: olga ada bob",
				"olga in Garden: /enable", "bot in Garden: This group is enabled", "olga in Kitchen: /enable", "bot in Kitchen: This group is enabled",
				"bob in Garden: /remind 20m roses", "bot in Garden: I will remind you", "ada in Kitchen: /remind 20m cake", "bot in Kitchen: I will remind you",
				"bob in Kitchen: /remind 20m bread", "bot in Kitchen: I will remind you", "olga in Garden: /disable", "quiet"} {
				s.step(step)
			}
			if err := s.w.app.pairing.People.BlockUser(t.Context(), "*", platform, s.ids["ada@"+platform], cli); err != nil {
				t.Fatal(err)
			}
			s.seen[platform+"/Garden"] = len(s.scenes[platform].read("Garden"))
			s.step("21 minutes pass")
			s.step("bot in Kitchen: bread")
			s.step("bot silent in Garden")
			for _, room := range []string{"Garden", "Kitchen", "dm:ada", "dm:bob", "dm:olga"} {
				for _, l := range s.scenes[platform].read(room) {
					if l.bot && strings.Contains(l.text, "⏰") && !strings.Contains(l.text, "bread") {
						t.Errorf("in %s the bot says %q", room, l.text)
					}
				}
			}
			if n := s.w.count(`SELECT count(*) FROM reminders`); n != 0 {
				t.Errorf("%d reminders are kept", n)
			}
		})
	}
}

// What no one asked for goes to the topic, thread or post that it is for, and nowhere else.
func TestRemindersDailyAgentsAndAlertsArriveInTheirThread(t *testing.T) {
	t.Parallel()
	for platform, rooms := range map[string][]string{"telegram": {"Garden/Tea"}, "discord": {"Garden/Tea", "Help/Spots"}} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, platform, nil)
			bot := s.scenes[platform].called()
			for _, step := range []string{"olga owns", "forum Garden: olga", "topic Tea in Garden", "topic Ferns in Garden", "olga in Garden: /enable", "bot in Garden: This group is enabled",
				"olga in Garden/Ferns: " + bot + " hello", "bot in Garden/Ferns: " + fakeSays} {
				s.step(step)
			}
			if slices.Contains(rooms, "Help/Spots") {
				s.step("board Help in Garden: pests")
				s.step("olga in Help posts Spots pests: Black spots.")
				s.step("olga in Help/Spots: /enable")
				s.step("bot in Help/Spots: This group is enabled")
			}
			var known []string
			for i, room := range rooms {
				s.step("olga in " + room + ": " + bot + " hello")
				s.step("bot in " + room + ": " + fakeSays)
				s.step("quiet")
				var chats []string
				if err := s.w.app.db.Select(t.Context(), &chats, `SELECT chat FROM chats WHERE thread <> '' AND bot = $1 ORDER BY chat`, platform); err != nil {
					t.Fatal(err)
				}
				chats = slices.DeleteFunc(chats, func(c string) bool {
					return slices.Contains(known, c) || i == 0 && s.w.count(`SELECT count(*) FROM runs WHERE chat = $1`, c) == 0
				})
				known = append(known, chats...)
				chat := ""
				for _, c := range chats { // the newest
					if s.w.count(`SELECT count(*) FROM runs r WHERE r.chat = $1 AND r.started = (SELECT max(started) FROM runs)`, c) > 0 {
						chat = c
					}
				}
				if chat == "" {
					t.Fatalf("no chat of %s is known", room)
				}
				s.step("olga in " + room + ": /remind 20m sencha")
				s.step("bot in " + room + ": I will remind you")
				agent := fmt.Sprintf("agent%d", i)
				s.w.agentFile(agent, "schedule: \"0 0 1 1 *\"\ndeliver: "+platform+"/"+chat)
				s.model.Script(llmtest.Say("The output of a day."))
				if _, err := s.w.app.schedule.Start(t.Context(), s.w.app.queue, agent, "", true, cli); err != nil {
					t.Fatal(err)
				}
				s.step("bot in " + room + ": The output of a day.")
				if status, _, body := s.w.sendAs(nil, platform, map[string]any{"chat": chat, "text": "An alert."}); status != 202 {
					t.Errorf("%d %s", status, body)
				}
				s.step("bot in " + room + ": An alert.")
				s.step("21 minutes pass")
				s.step("bot in " + room + ": sencha")
			}
			s.step("bot silent in Garden")
			s.step("bot silent in Garden/Ferns")
			for _, l := range s.scenes[platform].read("dm:olga") {
				for _, text := range []string{"sencha", "The output of a day.", "An alert."} {
					if l.bot && strings.Contains(l.text, text) {
						t.Errorf("in the direct chat the bot says %q", l.text)
					}
				}
			}
		})
	}
}
