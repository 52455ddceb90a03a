package main

import "testing"

// A message that was being sent when the gateway ended, and of which nobody knows whether
// it has arrived, is not left at that: its chat is told, once, and anyone there can have
// it shown again, once.
func TestAMessageThatMayBeMissingIsToldAndShownAgain(t *testing.T) {
	t.Parallel()
	for _, platform := range []string{"telegram", "discord"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, platform, nil)
			for _, step := range []string{
				"olga owns", "ada joins", "group Garden: olga ada", "olga in Garden: /enable vault", "bot in Garden: This group is enabled", "quiet",
			} {
				s.step(step)
			}
			for i, place := range []struct{ ask, room, press string }{
				{"ada: hello", "to ada", "ada"},
				{s.fill("ada in Garden: {bot} hello"), "in Garden", "olga in Garden"},
			} {
				s.step(place.ask)
				s.step("bot " + place.room + ": " + fakeSays)
				s.step("quiet")
				// An answer that the gateway began to send before it was killed, some time ago.
				s.w.exec(`INSERT INTO outbox (bot, chat, thread, place, key, ordinal, body, state, attempts, created_at, sent_at)
					SELECT bot, chat, thread, place, $1, 0, '{"text":"The lost words."}', 'sending', 1, created_at, '2020-01-01T00:00:00.000000Z'
					FROM outbox WHERE seq = (SELECT max(seq) FROM outbox WHERE key LIKE 'run:%')`, []string{"run:lost", "run:lost too"}[i])
				s.step("the gateway starts anew")
				s.step("bot " + place.room + ": may be missing")
				s.step("quiet")
				s.step("the gateway starts anew") // it is not told again
				s.step("quiet")
				sc, who, room := s.actor(place.press)
				notice := s.about(sc, room, "may be missing")
				for range 3 {
					if err := sc.press(who, room, notice.id, 0); err != nil {
						break // it is gone already
					}
				}
				s.step("bot " + place.room + ": The lost words.")
				s.step("bot edits " + place.room + ": I have sent it again")
				s.step("quiet")
				lost := 0
				for _, l := range sc.read(room) {
					if l.bot && l.text == "The lost words." {
						lost++
					}
				}
				if lost != 1 {
					t.Errorf("%s it was shown %d times", place.room, lost)
				}
			}
			if n := s.w.count(`SELECT count(*) FROM outbox WHERE state = 'unknown'`); n != 0 {
				t.Errorf("%d messages are still of unknown outcome", n)
			}
		})
	}
}
