package main

import (
	"encoding/json"
	"fmt"
	"io"
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
	"gatehouse/core/store"
)

var dailyToken = regexp.MustCompile(`tok-[a-z0-9]+-end`)

// serveDailyModel answers a daily agent: first it calls WriteOutput with the token in the
// prompt, again where that was interrupted, then it says that it is done.
func serveDailyModel(w http.ResponseWriter, in *http.Request) {
	b, _ := io.ReadAll(in.Body)
	token := dailyToken.FindString(string(b))
	delta := fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c%d","type":"function","function":{"name":"WriteOutput","arguments":%q}}]}`, strings.Count(string(b), `"role":"tool"`), `{"content":"The output `+token+`"}`)
	finish := "tool_calls"
	if strings.Count(string(b), `"role":"tool"`) > strings.Count(string(b), "call it again") {
		delta, finish = `{"content":"Done."}`, "stop"
	}
	time.Sleep(20 * time.Millisecond)
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"echo\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
	w.(http.Flusher).Flush()
	time.Sleep(20 * time.Millisecond)
	fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"echo\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", finish)
}

// Whenever the gateway is killed, each agent that was due runs once for its date, its output
// is whole, and it is delivered once; only what was being sent at that moment may be
// unknown.
func TestCrashRunsEachDailyAgentOnce(t *testing.T) {
	t.Parallel()
	const agents = 4
	rounds := min(number(t, "GATEHOUSE_TEST_ROUNDS", 6), 16)
	seed := number(t, "GATEHOUSE_TEST_SEED", int(time.Now().UnixNano()%1_000_000))
	t.Logf("%d kills; GATEHOUSE_TEST_SEED=%d repeats the random choices", rounds, seed)
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	sim := telegramtest.New(telegramtest.Options{FloodOff: true})
	t.Cleanup(func() { _ = sim.Close() })
	model := httptest.NewServer(http.HandlerFunc(serveDailyModel))
	t.Cleanup(model.Close)
	dir := crashDir(t)
	w := newWorldOn(t, sim, dir, func(c *configs.Config) { c.Model, c.OpenaiBaseURL = "openai/echo", model.URL+"/v1" })
	boss := w.boss()
	w.stop()
	env := settingsOf(w.cfg.VaultPath, model.URL+"/v1", "queue")
	env["TELEGRAM_TOKEN"], env["TELEGRAM_API_URL"] = sim.Token(), sim.URL()
	exe := program(t)
	day := time.Now().UTC().Format(time.DateOnly)
	var tokens []string
	// finish has the gateway run all agents and end all that is open.
	finish := func() {
		c := startChild(t, dir, env, exe, "serve")
		c.says(t, `"serving"`)
		open := 1
		for end := time.Now().Add(patience); open > 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			onDatabase(t, w.cfg.DatabasePath(), func(tx *store.Tx) error {
				return tx.Get(t.Context(), &open, `SELECT $1 - (SELECT count(*) FROM schedule_runs WHERE result <> '' AND noted = 1) + (SELECT count(*) FROM outbox WHERE state IN ('ready', 'sending'))`, len(tokens))
			})
		}
		c.signalStop(t)
	}
	for round := range rounds {
		if round%4 == 3 { // a run that five ends of the gateway interrupt is given up
			finish()
		}
		onDatabase(t, w.cfg.DatabasePath(), func(tx *store.Tx) error {
			for i := range agents {
				name := fmt.Sprintf("r%da%d", round, i)
				tokens = append(tokens, "tok-"+name+"-end")
				w.put("Daily/.agents/"+name+".md", "---\nschedule: \"0:00\"\ndeliver: telegram/owner\n---\nWrite "+tokens[len(tokens)-1]+" for {date}.\n")
				if _, err := tx.Exec(t.Context(), `INSERT INTO schedule_agents (name, rule, since) VALUES ($1, '0:00 UTC', $2)`, name, core.Stamp(time.Now().Add(-48*time.Hour))); err != nil {
					return err
				}
			}
			return nil
		})
		c := startChild(t, dir, env, exe, "serve")
		c.says(t, `"serving"`)
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		c.kill()
		<-c.done
	}
	finish()
	var unknown, runs, good int
	onDatabase(t, w.cfg.DatabasePath(), func(tx *store.Tx) error {
		if err := tx.Get(t.Context(), &unknown, `SELECT count(*) FROM outbox WHERE state = 'unknown'`); err != nil {
			return err
		}
		if err := tx.Get(t.Context(), &runs, `SELECT count(*) FROM schedule_runs`); err != nil {
			return err
		}
		return tx.Get(t.Context(), &good, `SELECT count(*) FROM schedule_runs WHERE result = 'completed' AND n = 1 AND date = $1`, day)
	})
	if runs != len(tokens) || runs != good {
		t.Errorf("%d runs of %d agents, %d of them are good ones of %s", runs, len(tokens), good, day)
	}
	missing := 0
	for _, token := range tokens {
		name := strings.Split(token, "-")[1]
		said := 0
		for _, text := range w.said(boss.DM(), 0) {
			if strings.Contains(text, token) {
				said++
			}
		}
		output := w.vaultText("Daily/" + name + "/" + day + ".md")
		if said > 1 || output != "The output "+token+"\n" {
			t.Errorf("%s was delivered %d times; the output is %q", name, said, output)
		}
		var state map[string]any
		if json.Unmarshal([]byte(w.vaultText("Daily/."+name+"/state.json")), &state) != nil || state["run_count"] != 1.0 {
			t.Errorf("the state of %s is %v", name, state)
		}
		missing += 1 - said
	}
	if missing > unknown {
		t.Errorf("%d outputs were not delivered, %d sends are unknown", missing, unknown)
	}
	t.Logf("%d runs, %d sends unknown, %d of them not delivered", runs, unknown, missing)
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
