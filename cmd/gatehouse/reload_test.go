package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
)

const support = "bots: [{name: support, platform: telegram, token_file: t1}]"

// friendOf is a person whom a further bot knows.
func (p *park) friendOf(bot string, n int, name string) *telegramtest.User {
	p.t.Helper()
	u := p.sim.NewUser(name)
	p.says(u, n, "hello")
	p.hearsFrom(n, u, "Your code is")
	p.approve(bot, fmt.Sprint(u.ID()))
	p.until("the first answer is sent", func() bool {
		return p.count(`SELECT count(*) FROM outbox WHERE bot = $1 AND key LIKE 'run:%' AND state = 'sent'`, bot) == 1
	})
	return u
}

// The old token is revoked, people go on writing, and a new one is put into the
// file: that bot alone is started anew, and every message is answered once.
func TestATokenIsRotatedWithoutARestartAndNothingIsLostOrDoubled(t *testing.T) {
	p := newPark(t, 1, support, nil)
	ada := p.friendOf("support", 1, "Ada")
	first := p.lives(p.sim.Bot().Token())
	fresh := p.sim.Bots()[1].Revoke()
	s := p.awaits("support", core.FailedPhase)
	if !strings.Contains(s.Reason, "refuses the token") {
		t.Errorf("%+v", s)
	}
	for i := range 5 {
		p.says(ada, 1, fmt.Sprintf("message %d: %s", i, tea))
	}
	p.write(t, "t1", fresh+"\n")
	p.awaits("support", core.Running)
	p.quiet()
	if in, out := p.count(`SELECT count(*) FROM inbox WHERE bot = 'support' AND state = 'done' AND kind = 'message'`),
		p.count(`SELECT count(*) FROM outbox WHERE bot = 'support' AND state <> 'sent'`); in != 6 || out != 0 {
		t.Errorf("%d messages taken in, want 6; %d replies not sent", in, out)
	}
	if n := p.lives(p.sim.Bot().Token()); n != first {
		t.Errorf("the other bot was started %d times, before that %d", n, first)
	}
	if r := p.sim.Requests(0, "getupdates"); r[len(r)-1].Status == 401 {
		t.Error("the old token is still used")
	}
	for _, r := range p.sim.Requests(0, "sendmessage") {
		if strings.Contains(p.log.String(), r.Token) {
			t.Fatal("a token is in the log")
		}
	}
}

// The same on the platform that connects instead of polling: what was written
// while the bot was out is read back.
func TestADiscordTokenIsRotatedWithoutARestart(t *testing.T) {
	t.Parallel()
	discord := discordtest.New(discordtest.Options{FloodOff: true})
	t.Cleanup(func() { _ = discord.Close() })
	p := newPark(t, 1, "bots: [{name: guild, platform: discord, token_file: t1, api_url: '"+discord.URL()+"'}]", nil, discord.Token())
	works := func() bool { s := p.state("guild").State; return s == core.Running || s == core.Degraded }
	p.until("the bot works", works)
	bob := discord.NewUser("Bob")
	bob.Send("hello")
	discordHears(p.world, discord, bob.DM(), "code")
	p.approve("guild", fmt.Sprint(uint64(bob.ID())))
	p.quiet()
	fresh := discord.Bot().Revoke()
	discord.Bot().Drop()
	p.awaits("guild", core.FailedPhase)
	for i := range 3 {
		bob.Send(fmt.Sprintf("message %d: %s", i, tea))
	}
	p.write(t, "t1", fresh)
	p.until("the bot works again", works)
	discordHears(p.world, discord, bob.DM(), "Public/tea.md")
	p.until("all are taken in", func() bool {
		return p.count(`SELECT count(*) FROM inbox WHERE bot = 'guild' AND state = 'done' AND kind = 'message'`) == 4
	})
	if n := p.count(`SELECT count(*) FROM outbox WHERE bot = 'guild' AND state IN ('failed', 'unknown')`); n != 0 {
		t.Errorf("%d replies were lost", n)
	}
}

func TestABadNewTokenFailsTheBotAndTheOldOneIsNotUsedOn(t *testing.T) {
	t.Parallel()
	p := newPark(t, 1, support, nil)
	ada := p.friendOf("support", 1, "Ada")
	for _, bad := range []string{"", "topsecret, and no token", "7000000011:" + strings.Repeat("z", 35)} {
		p.write(t, "t1", bad)
		s := p.awaits("support", core.FailedPhase)
		if !strings.Contains(s.Reason, "token") || strings.Contains(s.Reason, "topsecret") {
			t.Errorf("%q: %+v", bad, s)
		}
		failed := time.Now()
		p.says(ada, 1, "anybody there? "+bad)
		for _, r := range p.sim.Requests(0, "") {
			if r.Token == furtherToken(1) && r.At.After(failed) {
				t.Errorf("%q: the old token was used for %s", bad, r.Method)
			}
		}
		p.write(t, "t1", furtherToken(1))
		p.awaits("support", core.Running)
	}
	p.quiet()
	if n := p.count(`SELECT count(*) FROM inbox WHERE bot = 'support' AND state = 'done' AND kind = 'message'`); n != 4 {
		t.Errorf("%d messages were taken in, want 4", n)
	}
	if s := p.state("telegram"); s.State != core.Running {
		t.Errorf("the other bot: %+v", s)
	}
}

// A token of another account under the old name: its updates have numbers of
// their own, and the place in the old account's is not lost.
func TestATokenOfAnotherAccountStartsAfresh(t *testing.T) {
	t.Parallel()
	p := newPark(t, 2, support, nil)
	ada := p.friendOf("support", 1, "Ada")
	p.sim.Bots()[2].SetNextUpdateID(5)
	p.write(t, "t1", furtherToken(2))
	p.until("the other account answers to the name", func() bool { return p.state("support").Username == "further2_bot" })
	p.says(ada, 2, tea) // the same person, known to the bot of this name
	p.hearsFrom(2, ada, "Public/tea.md")
	p.stop() // the same across a stop
	p.write(t, "t1", furtherToken(1))
	p.start()
	defer p.stop()
	for i := range 2 {
		p.says(ada, 1, fmt.Sprint("back again ", i))
	}
	p.until("all are taken in", func() bool {
		return p.count(`SELECT count(*) FROM inbox WHERE bot = 'support' AND state = 'done' AND kind = 'message'`) == 4
	})
	if n := p.count(`SELECT count(*) FROM cursors WHERE name LIKE 'telegram:700000001%'`); n != 2 {
		t.Errorf("%d cursors, want one for each of the two accounts", n)
	}
}

func TestABrokenFileOfBotsKeepsTheOldSetAndSaysFileAndLine(t *testing.T) {
	t.Parallel()
	p := newPark(t, 2, support, nil)
	ada := p.friendOf("support", 1, "Ada")
	before := p.getMes()
	p.write(t, "bots.yaml", support+"\nbats: topsecret\n")
	where := filepath.Join(p.dir, "bots.yaml") + ":2"
	p.until("the state says it", func() bool { return strings.Contains(p.state("support").Reason, where) })
	if _, body := p.call("GET", "/api/bots/status", nil); !strings.Contains(body, where) {
		t.Errorf("the API says %s", body)
	}
	if log := p.log.String(); !strings.Contains(log, where) || strings.Contains(log, "topsecret") {
		t.Error("the log does not say where, or says too much")
	}
	p.says(ada, 1, tea)
	p.hearsFrom(1, ada, "Public/tea.md")
	if s, n := p.state("support"), p.getMes(); s.State != core.Running || n != before {
		t.Errorf("%+v, %d calls of getMe, before %d", s, n, before)
	}
	// Mended, with one bot more; then with one less.
	p.write(t, "bots.yaml", "bots:\n- {name: support, platform: telegram, token_file: t1}\n- {name: more, platform: telegram, token_file: t2}\n")
	p.awaits("more", core.Running)
	p.until("the reason is gone", func() bool { return p.state("support").Reason == "" })
	p.friendOf("more", 2, "Ben")
	p.write(t, "bots.yaml", "bots: [{name: more, platform: telegram, token_file: t2}]")
	p.until("a bot that is gone has no state", func() bool { return p.state("support").Bot == "" })
	_, metrics := p.call("GET", "/metrics", nil)
	if strings.Contains(metrics, `gatehouse_poll_last_success_timestamp_seconds{bot="support"}`) || !strings.Contains(metrics, `gatehouse_deliveries_total{bot="more",outcome="unknown"} 0`) {
		t.Error("the metrics do not follow the bots")
	}
	p.write(t, "bots.yaml", "bots: [{name: more, platform: telegram, token_file: t2}, {name: support, platform: telegram, token_file: t1}]")
	p.awaits("support", core.Running)
	p.says(ada, 1, "and again: "+tea) // who was let in still is
	p.until("she is answered", func() bool {
		return p.count(`SELECT count(*) FROM outbox WHERE bot = 'support' AND key LIKE 'run:%' AND state = 'sent'`) == 3
	})
}

// Kubernetes changes a mounted secret by renaming one link over another; the
// files' own names and links stay as they are.
func TestATokenBehindSwappedLinksIsSeen(t *testing.T) {
	t.Parallel()
	p := newPark(t, 1, "", nil)
	mount := filepath.Join(p.dir, "mount")
	swap := func(version, token string) {
		t.Helper()
		dir := filepath.Join(mount, ".."+version)
		for _, err := range []error{os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600),
			os.Symlink(".."+version, filepath.Join(mount, "..data_tmp")), os.Rename(filepath.Join(mount, "..data_tmp"), filepath.Join(mount, "..data"))} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	swap("1", furtherToken(1))
	if err := os.Symlink(filepath.Join("..data", "token"), filepath.Join(mount, "token")); err != nil {
		t.Fatal(err)
	}
	p.write(t, "bots.yaml", "bots: [{name: support, platform: telegram, token_file: mount/token}]")
	p.awaits("support", core.Running)
	fresh := p.sim.Bots()[1].Revoke()
	p.awaits("support", core.FailedPhase)
	swap("2", fresh)
	p.awaits("support", core.Running)
}

// A hangup has them read again where nothing tells of a change; on the built
// program, as a service manager sends it.
func TestAHangupHasBotsReadAgainAndDoesNotEndTheGateway(t *testing.T) {
	sim := newSim(t)
	h := newHome(t, sim)
	delete(h.env, "GATEHOUSE_TELEGRAM_TOKEN")
	token := filepath.Join(h.dir, "token")
	if err := os.WriteFile(token, []byte(sim.Token()), 0o600); err != nil {
		t.Fatal(err)
	}
	h.env["GATEHOUSE_TELEGRAM_TOKEN_FILE"] = token
	s := h.serve(nil)
	s.sees(func() bool { return sim.Bot().Polling() })
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.says("asked to read bots and tokens again")
	fresh := sim.Bot().Revoke()
	s.says("the platform refuses it")
	if err := os.WriteFile(token, []byte(fresh), 0o600); err != nil { // in place, not by rename
		t.Fatal(err)
	}
	s.sees(func() bool { return sim.Bot().Polling() })
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := s.end(); code != exitClean {
		t.Errorf("exit %d", code)
	}
}
