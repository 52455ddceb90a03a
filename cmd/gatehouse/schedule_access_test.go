package main

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/schedule/daily"
)

// What a daily agent wrote is of the owner's vault: it goes to no one who has no access at the
// time, whoever has talked to the bot before.
func TestTheOutputOfADailyAgentIsNotDeliveredToWhoHasNoAccess(t *testing.T) {
	t.Parallel()
	for _, platform := range []string{"telegram", "discord"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, platform, nil)
			for _, step := range []string{"olga owns", "ada joins", "group Garden: olga ada", "olga in Garden: /enable", "bot in Garden: This group is enabled",
				"ada in Garden: " + s.scenes[platform].called() + " hello", "bot in Garden: " + fakeSays, "quiet"} {
				s.step(step)
			}
			w, ada := s.w, s.ids["ada@"+platform]
			var user int64
			var dm, group string
			for _, q := range []struct {
				to    any
				query string
			}{
				{&user, `SELECT user_id FROM identities WHERE platform = $1 AND platform_user_id = '` + ada + `'`},
				{&dm, `SELECT chat FROM access WHERE scope = 'dm' AND user_id <> 1 AND bot = $1`},
				{&group, `SELECT chat FROM chats WHERE place <> '' AND bot = $1`},
			} {
				if err := w.app.db.Get(t.Context(), q.to, q.query, platform); err != nil {
					t.Fatal(err)
				}
			}
			w.agentFile("person", "schedule: \"0 0 1 1 *\"\ndeliver: "+platform+"/"+dm)
			w.agentFile("place", "schedule: \"0 0 1 1 *\"\ndeliver: "+platform+"/"+group)
			runs := map[string]int{}
			run := func(when, agent string, delivered bool) {
				t.Helper()
				secret := fmt.Sprintf("A private reflection, %s.", when)
				s.model.Script(llmtest.Say(secret))
				if _, err := w.app.schedule.Start(t.Context(), w.app.queue, agent, "", true, cli); err != nil {
					t.Fatal(err)
				}
				runs[agent]++
				got := w.ran(agent, runs[agent])
				w.quiet()
				n := w.count(`SELECT count(*) FROM outbox WHERE body LIKE '%` + secret + `%'`)
				if delivered != (n == 1) || delivered != (got.Error == "") || !delivered && !strings.Contains(got.Error, "was not delivered") || got.Result != daily.CompletedNoOutput {
					t.Errorf("%s: %d messages have the output of %s, the run is %+v", when, n, agent, got)
				}
			}
			ok := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			people := w.app.pairing.People
			give := func() {
				t.Helper()
				ok(people.GiveAccess(t.Context(), user, platform, "", core.Approval{Trust: core.Sandboxed}, cli))
			}
			run("let in", "person", true)
			run("enabled", "place", true)
			_, err := people.Revoke(t.Context(), platform, ada, cli)
			ok(err)
			run("revoked", "person", false)
			give()
			s.step("ada: hello again") // the bot learns again where to write
			s.step("bot to ada: " + fakeSays)
			run("let in again", "person", true)
			w.sql(`UPDATE access SET expires_at = '2026-01-01T00:00:00.000Z' WHERE user_id = $1`, user)
			run("expired", "person", false)
			w.sql(`UPDATE access SET expires_at = '' WHERE user_id = $1`, user)
			run("prolonged", "person", true)
			ok(people.BlockUser(t.Context(), "*", platform, ada, cli))
			run("blocked", "person", false)
			s.step("olga in Garden: /disable")
			s.step("quiet")
			run("disabled", "place", false)
			s.step("olga in Garden: /enable")
			s.step("quiet")
			run("enabled again", "place", true)
		})
	}
}
