package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/schedule/daily"
	"gatehouse/core/store"
)

var (
	dailyToken = regexp.MustCompile(`tok-[a-z0-9]+-end`)
	setToken   = regexp.MustCompile(`set-[0-9]+-end`)
)

// serveDailyModel answers a daily agent: first it calls WriteOutput with the token in the
// prompt, again where that was interrupted, then it says that it is done. Asked to set a
// reminder, it does so in the same way.
func serveDailyModel(w http.ResponseWriter, in *http.Request) {
	var req struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	_ = json.NewDecoder(in.Body).Decode(&req)
	token, name, results, again := "", "", 0, 0
	for _, m := range req.Messages {
		switch said := string(m.Content); {
		case m.Role == "user" && dailyToken.MatchString(said):
			token, name, results, again = dailyToken.FindString(said), "WriteOutput", 0, 0
		case m.Role == "user" && setToken.MatchString(said):
			token, name, results, again = setToken.FindString(said), "Remind", 0, 0
		case m.Role == "tool" && strings.Contains(said, "call it again"):
			results, again = results+1, again+1
		case m.Role == "tool":
			results++
		}
	}
	input := `{"content":"The output ` + token + `"}`
	if name == "Remind" {
		input = `{"in":"3d","text":"` + token + `"}`
	}
	delta := fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c-%s-%d","type":"function","function":{"name":%q,"arguments":%q}}]}`, token, results, name, input)
	finish := "tool_calls"
	if results > again || token == "" {
		delta, finish = `{"content":"Done."}`, "stop"
	}
	time.Sleep(20 * time.Millisecond)
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"echo\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
	w.(http.Flusher).Flush()
	time.Sleep(20 * time.Millisecond)
	fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"echo\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", finish)
}

// Kills of the crash test of the schedule: in CI, and at most. A vault has 64 daily agents.
const (
	scheduleKills     = 5
	mostScheduleKills = 50
)

// A scheduleRig is a gateway that is killed while daily agents and reminders are due and
// reminders are set.
type scheduleRig struct {
	t      *testing.T
	w      *world
	boss   *telegramtest.User
	dir    string
	exe    string
	env    map[string]string
	tokens []string // of daily agents: their names are in them
	due    []string // reminders that came due
	set    int      // reminders that were asked for
}

func newScheduleRig(t *testing.T) *scheduleRig {
	sim := telegramtest.New(telegramtest.Options{FloodOff: true})
	t.Cleanup(func() { _ = sim.Close() })
	model := httptest.NewServer(http.HandlerFunc(serveDailyModel))
	t.Cleanup(model.Close)
	r := &scheduleRig{t: t, dir: crashDir(t), exe: program(t)}
	r.w = newWorldOn(t, sim, r.dir, func(c *configs.Config) { c.Model, c.OpenaiBaseURL = "openai/echo", model.URL+"/v1" })
	r.boss = r.w.boss()
	r.w.replies(r.boss, "/remind 4d template")
	r.w.stop()
	r.env = settingsOf(r.w.cfg.VaultPath, model.URL+"/v1", "queue")
	r.env["TELEGRAM_TOKEN"], r.env["TELEGRAM_API_URL"] = sim.Token(), sim.URL()
	return r
}

// get returns the number that a query returns.
func (r *scheduleRig) get(query string, args ...any) (n int) {
	r.t.Helper()
	onDatabase(r.t, r.w.cfg.DatabasePath(), func(tx *store.Tx) error { return tx.Get(r.t.Context(), &n, query, args...) })
	return n
}

// comesDue has as many daily agents and a reminder come due while the gateway is down.
func (r *scheduleRig) comesDue(round, agents int) {
	r.t.Helper()
	onDatabase(r.t, r.w.cfg.DatabasePath(), func(tx *store.Tx) error {
		for i := range agents {
			name := fmt.Sprintf("r%da%d", round, i)
			r.tokens = append(r.tokens, "tok-"+name+"-end")
			r.w.put("Daily/.agents/"+name+".md", "---\nschedule: \"0:00\"\ndeliver: telegram/owner\n---\nWrite "+r.tokens[len(r.tokens)-1]+" for {date}.\n")
			if _, err := tx.Exec(r.t.Context(), `INSERT INTO schedule_agents (name, rule, since) VALUES ($1, '0:00 UTC', $2)`, name, core.Stamp(time.Now().Add(-48*time.Hour))); err != nil {
				return err
			}
		}
		text := fmt.Sprintf("due-%d-end", round)
		r.due = append(r.due, text)
		_, err := tx.Exec(r.t.Context(), `INSERT INTO reminders (user_id, made, bot, chat, thread, place, platform, sender, text, rule, zone, due, created)
			SELECT user_id, $1, bot, chat, thread, place, platform, sender, $1, '', zone, $2, created FROM reminders WHERE text = 'template'`, text, core.Stamp(time.Now().Add(-time.Minute)))
		return err
	})
}

// asks has the owner ask for a reminder, by the command and by the model in turns.
func (r *scheduleRig) asks() {
	token := fmt.Sprintf("set-%d-end", r.set)
	if r.set++; r.set%2 == 0 {
		r.boss.Send("/remind 3d " + token)
	} else {
		r.boss.Send("remind me of " + token)
	}
}

// finish has the gateway end all that is open. Reminders that were set are counted and
// deleted: a person has at most 50.
func (r *scheduleRig) finish() {
	r.t.Helper()
	c := startChild(r.t, r.dir, r.env, r.exe, "serve")
	c.says(r.t, `"serving"`)
	const open = `SELECT $1 - (SELECT count(*) FROM schedule_runs WHERE result <> '' AND noted = 1)
		+ (SELECT count(*) FROM outbox WHERE state IN ('ready', 'sending')) + (SELECT count(*) FROM inbox WHERE state NOT IN ('done', 'refused', 'dead'))
		+ (SELECT count(*) FROM reminders WHERE text LIKE 'due-%') + CASE WHEN (SELECT count(DISTINCT text) FROM reminders WHERE text LIKE 'set-%') < $2 THEN 1 ELSE 0 END`
	left := 1
	for end := time.Now().Add(patience); left > 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		left = r.get(open, len(r.tokens), r.set)
	}
	if left != 0 {
		r.t.Errorf("%d are open after %v\n%s", left, patience, c.tail())
	}
	c.signalStop(r.t)
	if n, texts := r.get(`SELECT count(*) FROM reminders WHERE text LIKE 'set-%'`), r.get(`SELECT count(DISTINCT text) FROM reminders WHERE text LIKE 'set-%'`); n != r.set || texts != r.set {
		r.t.Errorf("%d reminders with %d texts are set, want %d", n, texts, r.set)
	}
	onDatabase(r.t, r.w.cfg.DatabasePath(), func(tx *store.Tx) error {
		_, err := tx.Exec(r.t.Context(), `DELETE FROM reminders WHERE text LIKE 'set-%'`)
		return err
	})
	r.set = 0
}

// delivered returns how often a text was delivered.
func (r *scheduleRig) delivered(text string) (n int) {
	for _, said := range r.w.said(r.boss.DM(), 0) {
		if strings.Contains(said, text) {
			n++
		}
	}
	return n
}

// Whenever the gateway is killed, each agent that was due runs once for its date, its output
// is whole, and it is delivered once; each reminder that was asked for is set once, and
// delivered once when it is due. Only what was being sent at that moment may be unknown.
func TestCrashRunsEachDailyAgentAndDeliversEachReminderOnce(t *testing.T) {
	t.Parallel()
	rounds := min(number(t, "GATEHOUSE_TEST_ROUNDS", scheduleKills), mostScheduleKills)
	agents := min(daily.MaxAgents/rounds, 4)
	seed := number(t, "GATEHOUSE_TEST_SEED", int(time.Now().UnixNano()%1_000_000))
	t.Logf("%d kills; GATEHOUSE_TEST_SEED=%d repeats the random choices", rounds, seed)
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	r := newScheduleRig(t)
	day := time.Now().UTC().Format(time.DateOnly)
	for round := range rounds {
		if round%4 == 3 { // a run that five ends of the gateway interrupt is given up
			r.finish()
		}
		r.comesDue(round, agents)
		c := startChild(t, r.dir, r.env, r.exe, "serve")
		c.says(t, `"serving"`)
		r.asks()
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		c.kill()
		<-c.done
	}
	r.finish()
	unknown := r.get(`SELECT count(*) FROM outbox WHERE state = 'unknown'`)
	runs, good := r.get(`SELECT count(*) FROM schedule_runs`), r.get(`SELECT count(*) FROM schedule_runs WHERE result = 'completed' AND n = 1 AND date = $1`, day)
	if runs != len(r.tokens) || runs != good {
		t.Errorf("%d runs of %d agents, %d of them are good ones of %s", runs, len(r.tokens), good, day)
	}
	missing := 0
	for _, token := range r.tokens {
		name := strings.Split(token, "-")[1]
		said, output := r.delivered(token), r.w.vaultText("Daily/"+name+"/"+day+".md")
		if said > 1 || output != "The output "+token+"\n" {
			t.Errorf("%s was delivered %d times; the output is %q", name, said, output)
		}
		var state map[string]any
		if json.Unmarshal([]byte(r.w.vaultText("Daily/."+name+"/state.json")), &state) != nil || state["run_count"] != 1.0 {
			t.Errorf("the state of %s is %v", name, state)
		}
		missing += 1 - said
	}
	for _, text := range r.due {
		said := r.delivered(text)
		if said > 1 {
			t.Errorf("the reminder %s was delivered %d times", text, said)
		}
		missing += 1 - said
	}
	if missing > unknown {
		t.Errorf("%d outputs and reminders were not delivered, %d sends are unknown", missing, unknown)
	}
	t.Logf("%d runs and %d reminders, %d sends unknown, %d of them not delivered", runs, len(r.due), unknown, missing)
}

// signalStop ends the child by a signal.
func (c *child) signalStop(t *testing.T) {
	t.Helper()
	c.signal(t, os.Interrupt)
	if code := c.gone(t, patience); code != 0 {
		t.Fatalf("exit code %d\n%s", code, c.tail())
	}
}

// onDatabase runs f on a database.
func onDatabase(t *testing.T, path string, f func(tx *store.Tx) error) {
	t.Helper()
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Tx(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}
