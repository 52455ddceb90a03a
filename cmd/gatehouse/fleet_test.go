package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
)

// A park is a whole gateway with several bots of one platform, and the folder
// of its bots.yaml and tokens.
type park struct {
	*world
	dir string
}

// furtherToken is the token of the platform's n-th further bot, from 1.
func furtherToken(n int) string { return fmt.Sprintf("700000001%d:%s", n, strings.Repeat("b", 35)) }

// newPark starts one: bots.yaml is text, with tokens in files t1, t2 … beside
// it, of further bots of the platform or as given.
func newPark(t *testing.T, further int, text string, change func(*configs.Config), tokens ...string) *park {
	t.Helper()
	accounts := []telegramtest.BotAccount{{}}
	p := &park{dir: shortDir(t)}
	for n := range further {
		token := furtherToken(n + 1)
		accounts = append(accounts, telegramtest.BotAccount{Token: token, Name: fmt.Sprint("Further ", n+1), Username: fmt.Sprintf("further%d_bot", n+1)})
		p.write(t, fmt.Sprint("t", n+1), token)
	}
	for i, token := range tokens {
		p.write(t, fmt.Sprint("t", i+1), token)
	}
	p.write(t, "bots.yaml", text)
	sim := telegramtest.New(telegramtest.Options{FloodOff: true, Bots: accounts})
	t.Cleanup(func() { _ = sim.Close() })
	p.world = newWorldOn(t, sim, t.TempDir(), func(c *configs.Config) {
		c.BotsFile = filepath.Join(p.dir, "bots.yaml")
		if change != nil {
			change(c)
		}
	})
	return p
}

// write replaces a file of the folder whole, as editors and deployments do.
func (p *park) write(t testing.TB, name, text string) {
	t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func (p *park) state(bot string) core.BotState {
	for _, s := range p.app.fleet.States() {
		if s.Bot == bot {
			return s
		}
	}
	return core.BotState{}
}

func (p *park) awaits(bot string, phase core.Phase) core.BotState {
	p.t.Helper()
	p.until(bot+" is "+string(phase), func() bool { return p.state(bot).State == phase })
	return p.state(bot)
}

// says has a person write to the n-th bot of the platform.
func (p *park) says(u *telegramtest.User, n int, text string) {
	p.t.Helper()
	if _, err := u.Post(u.With(p.sim.Bots()[n]), telegramtest.Outgoing{Text: text}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *park) hearsFrom(n int, u *telegramtest.User, text string) telegramtest.Message {
	p.t.Helper()
	return p.hears(u.With(p.sim.Bots()[n]), func(m telegramtest.Message) bool { return strings.Contains(m.Text, text) })
}

// approve lets somebody in who has asked one bot.
func (p *park) approve(bot, user string) core.PairingRequest {
	p.t.Helper()
	rs, err := p.app.pairing.Requests(p.t.Context(), "pending", 100)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, r := range rs {
		if r.Bot == bot && r.PlatformUserID == user {
			done, err := p.app.pairing.Approve(p.t.Context(), r.ID, core.Approval{}, cli)
			if err != nil {
				p.t.Fatal(err)
			}
			return done
		}
	}
	p.t.Fatalf("%s has asked %s for nothing: %+v", user, bot, rs)
	return core.PairingRequest{}
}

const tea = "How long should green tea brew?"

// Two bots of one platform and one of another, each with a door of its own.
func TestAccessOnOneBotIsNoneOnAnother(t *testing.T) {
	t.Parallel()
	discord := discordtest.New(discordtest.Options{FloodOff: true})
	t.Cleanup(func() { _ = discord.Close() })
	p := newPark(t, 1, "bots:\n- {name: support, platform: telegram, token_file: t1, dm_trust: vault}\n- {name: guild, platform: discord, token: "+discord.Token()+", api_url: '"+discord.URL()+"'}\n", nil)
	for _, bot := range []string{"telegram", "support", "guild"} {
		p.until(bot+" works", func() bool { s := p.state(bot).State; return s == core.Running || s == core.Degraded })
	}
	ada, id := p.sim.NewUser("Ada"), ""
	id = fmt.Sprint(ada.ID())
	p.says(ada, 0, tea)
	p.hearsFrom(0, ada, "Your code is")
	p.approve("telegram", id)
	p.hearsFrom(0, ada, "Public/tea.md")

	p.says(ada, 1, tea)
	p.hearsFrom(1, ada, "Your code is")
	if n := p.count(`SELECT count(*) FROM outbox WHERE bot = 'support' AND key LIKE 'run:%'`); n != 0 {
		t.Errorf("%d answers of a bot that knows nobody", n)
	}
	if r := p.approve("support", id); r.ApprovedTrustLevel != core.Vault {
		t.Errorf("approved at %s, the bot's preset is vault", r.ApprovedTrustLevel)
	}
	p.hearsFrom(1, ada, "tea.md")

	bob := discord.NewUser("Bob")
	bob.Send(tea)
	discordHears(p.world, discord, bob.DM(), "code")
	p.approve("guild", fmt.Sprint(uint64(bob.ID())))
	discordHears(p.world, discord, bob.DM(), "Public/tea.md")

	// The panel's API and the command line know each by its name.
	if err := p.overSocket("DELETE", "/api/bots/pairing/telegram/"+id, nil, nil); err != nil {
		t.Fatal(err)
	}
	p.says(ada, 1, "and white tea?")
	p.until("the other bot still answers", func() bool {
		return p.count(`SELECT count(*) FROM outbox WHERE bot = 'support' AND key LIKE 'run:%' AND state = 'sent'`) == 2
	})
	p.says(ada, 0, "and here?")
	p.until("the first one refuses", func() bool {
		return p.count(`SELECT count(*) FROM inbox WHERE bot = 'telegram' AND state = 'done'`) == 2
	})
	if n := p.count(`SELECT count(*) FROM outbox WHERE bot = 'telegram' AND key LIKE 'run:%'`); n != 1 {
		t.Errorf("%d answers from the bot that took its access back", n)
	}
	code, body := p.call("GET", "/api/bots/status", nil)
	var status struct{ Bots []core.BotState }
	if err := json.Unmarshal([]byte(body), &status); err != nil || code != http.StatusOK || len(status.Bots) != 3 || status.Bots[1].Platform != "telegram" || status.Bots[1].Username != "further1_bot" {
		t.Errorf("%d %s", code, body)
	}
	if code, body := p.call("POST", "/api/bots/support/test", nil); code != http.StatusOK || !strings.Contains(body, "further1_bot") {
		t.Errorf("%d %s", code, body)
	}
	_, metrics := p.call("GET", "/metrics", nil)
	for _, want := range []string{`gatehouse_connector_state{bot="support",state="running"} 1`, `gatehouse_deliveries_total{bot="guild",outcome="sent"}`, `gatehouse_poll_last_success_timestamp_seconds{bot="support"}`, `gatehouse_discord_resumes_total{bot="guild",result="resumed"} 0`, `gatehouse_pairing_total{bot="support",decision="approved"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
}

func TestEachBotHasAPolicyOfItsOwn(t *testing.T) {
	p := newPark(t, 4, `bots:
- {name: asks, platform: telegram, token_file: t1, dm_policy: pairing}
- {name: lists, platform: telegram, token_file: t2, dm_policy: allowlist, allowed_users: [1]}
- {name: everybody, platform: telegram, token_file: t3, dm_policy: open}
- {name: nobody, platform: telegram, token_file: t4, dm_policy: disabled}
`, nil)
	ada := p.sim.NewUser("Ada")
	for n := 1; n <= 4; n++ {
		p.says(ada, n, tea)
	}
	p.hearsFrom(1, ada, "Your code is")
	p.hearsFrom(3, ada, "Public/tea.md")
	p.until("the other two have dropped it", func() bool {
		return p.count(`SELECT count(*) FROM inbox WHERE bot IN ('lists', 'nobody') AND state = 'done'`) == 2
	})
	if n := p.count(`SELECT count(*) FROM outbox WHERE bot IN ('lists', 'nobody')`); n != 0 {
		t.Errorf("%d messages from bots that let nobody in", n)
	}
	// A policy that changes holds at once, and no bot is started anew for it.
	before := p.getMes()
	p.write(t, "bots.yaml", fmt.Sprintf("bots:\n- {name: lists, platform: telegram, token_file: t2, dm_policy: allowlist, allowed_users: [%d]}\n", ada.ID()))
	p.until("the list is read", func() bool {
		return len(p.app.bots.Policy("lists").Allowed) == 1 && p.app.bots.Policy("lists").Allowed[0] != "1"
	})
	p.says(ada, 2, tea)
	p.hearsFrom(2, ada, "Public/tea.md")
	if after := p.getMes(); after != before {
		t.Errorf("bots were started anew: %d, then %d calls of getMe", before, after)
	}
	p.until("bots that are gone have stopped", func() bool { return len(p.app.hub.States()) == 2 })
}

func (p *park) getMes() int { return len(p.sim.Requests(0, "getme")) }

// lives counts how often a bot was started: each asks who it is, once.
func (p *park) lives(token string) (n int) {
	for _, r := range p.sim.Requests(0, "getme") {
		if r.Token == token {
			n++
		}
	}
	return n
}
