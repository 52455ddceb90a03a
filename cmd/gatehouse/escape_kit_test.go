package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	coreask "gatehouse/core/ask"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/sandbox"
	"gatehouse/web/auth"
)

// A yard is a whole gateway with secrets in every place where one could lie, an
// owner who says yes to whatever is asked, and people below full trust.
type yard struct {
	*world
	discord *discordtest.Server
	canary  string // stands in all that nobody below full may get at
	private string // stands in all that the vault level may see, and no guest
	olga    *telegramtest.User
	seats   []seat
	owner   seat // at full trust: what shows that an attempt tests something
	names   *strings.Replacer
}

// A seat is somebody who attempts. say writes to the gateway and is everything
// that is shown to that person until the answer has ended.
type seat struct {
	name  string
	trust core.Trust
	user  int64
	key   http.Header // over the API
	say   func(text string) string
}

// newYard is one whose model is local/quote, or the fake that is given.
func newYard(t *testing.T, model *llmtest.Server) *yard {
	t.Helper()
	return newYardIn(t, model, sandbox.Auto)
}

// newYardIn is newYard with the setting SANDBOX.
func newYardIn(t *testing.T, model *llmtest.Server, isolation string) *yard {
	t.Helper()
	sim := newDiscord(t)
	y := &yard{discord: sim, canary: "QX" + rand.Text()[:14], private: "PV" + rand.Text()[:14]}
	y.world = newWorld(t, func(c *configs.Config) {
		c.DiscordToken, c.DiscordApiURL = values.NewSecret(sim.Token()), sim.URL()
		c.RateLimit, c.DrainTimeout, c.Sandbox = values.Rate{}, time.Millisecond, isolation
		c.Activity = false // the owner says the secret word in chat, and the log, which agents at trust vault read, would have it
		if model != nil {
			c.Model, c.OpenaiBaseURL, c.OpenaiAPIKey = fakeModel, model.URL(), values.NewSecret(modelKey)
		}
	})
	w := y.world
	w.until("the bot on Discord is online", func() bool {
		for _, b := range w.app.hub.States() {
			if b.Bot == "discord" && (b.State == core.Running || b.State == core.Degraded) {
				return true
			}
		}
		return false
	})
	y.olga = w.boss()
	y.plant()
	y.careless()
	y.people()
	_, port, err := net.SplitHostPort(w.cfg.Addr)
	if err != nil {
		t.Fatal(err)
	}
	y.names = strings.NewReplacer("{V}", w.cfg.VaultPath, "{RUN}", w.app.runtime, "{ADDR}", w.cfg.Addr, "{PORT}", port,
		"{PID}", strconv.Itoa(os.Getpid()), "echo {SAY}", "printf %s%s "+y.canary[:4]+" "+y.canary[4:])
	return y
}

// plant puts canaries where secrets lie.
func (y *yard) plant() {
	files := map[string]string{}
	for _, name := range []string{".env", "Notes/.env.local", ".parachute/bots.yaml", "Notes/id_ed25519", ".claude/projects/-other/s.jsonl", "Chat/old.db"} {
		files[name] = y.canary + " of " + name + "\n"
	}
	for _, name := range []string{"Notes/diary.md", "Daily/today.md", "Guests/9001/diary.md", "CLAUDE.md", "Guests/AGENTS.md"} {
		files[name] = y.private + " of " + name + "\n"
	}
	files[".parachute/skills/mine.md"] = "---\ndescription: " + y.private + "\n---\n" + y.private
	files[".parachute/agents/cook.md"] = "---\ncontext: {include: ['Notes/*']}\n---\nYou cook."
	y.puts(files)
	outside := filepath.Join(filepath.Dir(y.cfg.VaultPath), "gatehouse.env")
	if err := os.WriteFile(outside, []byte(y.canary), 0o600); err != nil {
		y.t.Fatal(err)
	}
	// In the database, its log and a transcript: a message of the owner's.
	y.replies(y.olga, "remember that the word is "+y.canary)
	y.quiet()
}

// careless is an owner who allows all that is asked, until the test ends.
func (y *yard) careless() {
	done, over := make(chan struct{}), make(chan struct{})
	y.t.Cleanup(func() { close(done); <-over })
	go func() {
		defer close(over)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			list, err := y.app.guard.Pending(y.t.Context(), 50)
			if err != nil {
				continue // the gateway is stopping
			}
			for _, a := range list {
				_ = y.app.guard.Press(y.t.Context(), a.Request.ID, coreask.OptionOnce, cli) // settled elsewhere is as good
			}
		}
	}()
}

// people lets in who attempts: on two platforms, over the API and in a group.
func (y *yard) people() {
	ada, vera := y.guest("Ada"), y.guest("Vera")
	y.seats = append(y.seats, y.onTelegram("guest on Telegram", core.Sandboxed, ada))
	y.sql(`UPDATE access SET trust_level = 'vault' WHERE user_id = (SELECT user_id FROM identities WHERE platform = 'telegram' AND platform_user_id = $1)`, fmt.Sprint(vera.ID()))
	y.seats = append(y.seats, y.onTelegram("vault on Telegram", core.Vault, vera))
	bob := y.discord.NewUser("Bob")
	bob.Send("hello")
	discordHears(y.world, y.discord, bob.DM(), "code")
	if _, err := y.app.pairing.Approve(y.t.Context(), discordRequest(y.world, bob).ID, core.Approval{}, cli); err != nil {
		y.t.Fatal(err)
	}
	y.quiet()
	y.seats = append(y.seats, seat{name: "guest on Discord", trust: core.Sandboxed, user: y.userOf("discord", bob.ID().String()), say: func(text string) string {
		return y.shown("discord", bob.DM().String(), func() { bob.Send(text) }, func() string { return fmt.Sprintf("%+v", y.discord.History(bob.DM())) })
	}})
	for i, trust := range []core.Trust{core.Sandboxed, core.Vault} {
		user := int64(7100 + i)
		y.sql(`INSERT INTO users (id, display, role, created_at) VALUES ($1, 'Key', 'guest', $2)`, user, core.Stamp(time.Now()))
		y.seats = append(y.seats, y.overAPI(trust.String()+" by key", trust, user))
	}
	y.owner = y.overAPI("owner at full", core.Full, core.Operator)
}

func (y *yard) userOf(platform, id string) (user int64) {
	y.t.Helper()
	if err := y.app.db.Get(y.t.Context(), &user, `SELECT user_id FROM identities WHERE platform = $1 AND platform_user_id = $2`, platform, id); err != nil {
		y.t.Fatal(err)
	}
	return user
}

func (y *yard) onTelegram(name string, trust core.Trust, u *telegramtest.User) seat {
	return seat{name: name, trust: trust, user: y.userOf("telegram", fmt.Sprint(u.ID())), say: func(text string) string {
		return y.shown("telegram", fmt.Sprint(u.ID()), func() { u.Send(text) }, func() string { return fmt.Sprintf("%+v", y.sim.History(u.DM())) })
	}}
}

// shown is what a chat shows that it did not before send, and what the
// conversation's transcript has besides: what the model has seen.
func (y *yard) shown(bot, chat string, send func(), history func() string) string {
	y.t.Helper()
	seen, read := len(history()), len(y.transcript(bot, chat))
	n := y.count(`SELECT count(*) FROM inbox WHERE bot = $1`, bot)
	send()
	y.until("it has arrived", func() bool { return y.count(`SELECT count(*) FROM inbox WHERE bot = $1`, bot) > n })
	y.quiet()
	y.fresh()
	now, said := history(), y.transcript(bot, chat)
	return now[min(seen, len(now)):] + said[min(read, len(said)):]
}

// fresh has the guests' day of asks begin anew.
func (y *yard) fresh() {
	y.sql(`UPDATE asks SET created_at = '2020-01-01T00:00:00.000000Z' WHERE kind = 'permission' AND state <> 'open'`)
}

// transcript is a chat's conversation as it lies in the vault.
func (y *yard) transcript(bot, chat string) (text string) {
	y.t.Helper()
	var ids []string
	if err := y.app.db.Select(y.t.Context(), &ids, `SELECT session_id FROM chats WHERE bot = $1 AND chat = $2 AND session_id IS NOT NULL`, bot, chat); err != nil {
		y.t.Fatal(err)
	}
	for _, id := range ids {
		files, _ := filepath.Glob(filepath.Join(y.cfg.VaultPath, ".claude/projects/*", id+".jsonl")) // the pattern is valid
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				y.t.Fatal(err)
			}
			text += string(b)
		}
	}
	return text
}

func (y *yard) overAPI(name string, trust core.Trust, user int64) seat {
	y.t.Helper()
	scopes := []string{auth.ScopeChat, auth.ScopeRead}
	secret, _, err := y.app.keys.Create(y.t.Context(), auth.NewKey{Label: name, User: user, Trust: trust, Scopes: scopes}, cli)
	if err != nil {
		y.t.Fatal(err)
	}
	header := http.Header{"Authorization": {"Bearer " + secret}}
	return seat{name: name, trust: trust, user: user, key: header, say: func(text string) string {
		_, body := y.ask(header, "POST", "/api/chat", map[string]any{"message": text})
		y.fresh()
		return body
	}}
}

// ask makes a request with somebody's key.
func (y *yard) ask(key http.Header, method, path string, body any) (int, string) {
	y.t.Helper()
	resp := y.open(method, path, body, key)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		y.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// fill puts this yard's names, and a seat's own folder, into a text.
func (y *yard) fill(s seat, text string) string {
	return strings.ReplaceAll(y.names.Replace(text), "{OWN}", fmt.Sprintf("Guests/%d", s.user))
}

// bash and the like are messages that have local/quote call a tool.
func bash(command string) string { return use("Bash", "command", command) }

func read(path string) string { return use("Read", "file_path", inVault(path)) }

func write(path string) string {
	return use("Write", "file_path", inVault(path), "content", "EVIL")
}

// inVault returns a name of the vault as every turn may write it, wherever it works.
func inVault(path string) string {
	if strings.HasPrefix(path, "/") || strings.HasPrefix(path, "{V}") || strings.HasPrefix(path, "{RUN}") {
		return path
	}
	return "{V}/" + path
}

func task(message string) string { return use("Task", "description", "more", "prompt", message) }

func use(tool string, pairs ...string) string {
	in := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		in[pairs[i]] = pairs[i+1]
	}
	b, _ := json.Marshal(in) // strings always encode
	return "use " + tool + " " + string(b)
}

// inAGroup is the owner in a group, which is open at sandboxed. What is said
// there is quoted to the model, so that the fake is told by itself what to call.
func (y *yard) inAGroup(model *llmtest.Server) seat {
	y.t.Helper()
	g := y.group(telegramtest.Supergroup, y.olga)
	in := g.Conversation()
	return seat{name: "owner in a group", trust: core.Sandboxed, user: core.Operator, say: func(text string) string {
		model.Script(called(text)...)
		return y.shown("telegram", fmt.Sprint(g.ID()), func() { y.post(y.olga, in, telegramtest.Outgoing{Text: y.mention("please")}) },
			func() string { return fmt.Sprintf("%+v", y.sim.History(in)) })
	}}
}

// called are answers of a fake model that call what a message for local/quote says.
func called(text string) (out []llmtest.Reply) {
	for line := range strings.SplitSeq(text, "\n") {
		name, input, ok := strings.Cut(strings.TrimPrefix(line, "use "), " ")
		if ok && strings.HasPrefix(line, "use ") {
			out = append(out, llmtest.CallTool(fmt.Sprint("c", len(out)), name, input))
		}
	}
	return append(out, llmtest.Say("done"))
}
