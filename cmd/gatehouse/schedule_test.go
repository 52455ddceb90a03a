package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/schedule"
	"gatehouse/core/schedule/daily"
)

// newScheduleWorld is a world with a model and a clock that leaps.
func newScheduleWorld(t *testing.T, change ...func(*configs.Config)) (*world, *llmtest.Server, *leaps) {
	t.Helper()
	model := llmtest.New(t, llmtest.Options{Key: modelKey})
	sim := telegramtest.New(telegramtest.Options{FloodOff: true})
	t.Cleanup(func() { _ = sim.Close() })
	clock := &leaps{}
	// It is half past noon, so that no test runs over midnight.
	day := time.Now().UTC().Truncate(24 * time.Hour)
	clock.ahead = time.Until(day.Add(36*time.Hour + 30*time.Minute))
	w := newWorldAt(t, sim, t.TempDir(), clock, func(c *configs.Config) {
		c.Model, c.OpenaiBaseURL, c.OpenaiAPIKey = fakeModel, model.URL(), values.NewSecret(modelKey)
		for _, f := range change {
			f(c)
		}
	})
	t.Cleanup(func() { w.stop() }) // of the gateway that runs by then
	return w, model, clock
}

// agentFile writes the file of a daily agent and waits until the schedule knows it.
func (w *world) agentFile(name, head string) {
	w.t.Helper()
	w.put("Daily/.agents/"+name+".md", "---\n"+head+"\n---\nLook back at {date}, {user_name}.\n")
	w.app.schedule.Wake()
	w.until("the agent is known", func() bool {
		return w.count(`SELECT count(*) FROM schedule_agents WHERE name = $1`, name) == 1
	})
}

// ran waits for the end of an agent's newest run.
func (w *world) ran(name string, n int) schedule.Run {
	w.t.Helper()
	var last schedule.Run
	w.until(fmt.Sprintf("run %d of %s ended", n, name), func() bool {
		runs, err := w.app.schedule.History(w.t.Context(), name, 10)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(runs) > 0 {
			last = runs[0]
		}
		return len(runs) == n && last.Result != ""
	})
	return last
}

func (w *world) vaultText(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.cfg.VaultPath, filepath.FromSlash(name)))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestADailyAgentRunsAtItsTimeAndItsOutputIsDeliveredOnce(t *testing.T) {
	w, model, clock := newScheduleWorld(t)
	boss := w.boss()
	date := clock.Now().UTC().Format(time.DateOnly)
	w.put("Daily/"+date+".md", "Walked to the coffee shop.\n")
	w.agentFile("evening", "displayName: Evening\nschedule: \"12:45\"\ndeliver: telegram/owner\ntools: [read_journal, web_search]")
	model.Script(llmtest.CallTool("a", "ReadJournal", `{}`), llmtest.CallTool("b", "WriteOutput", `{"content":"A good **walk**."}`), llmtest.Say("I wrote it."))
	w.quiet()
	if n := model.Total(); n != 0 {
		t.Errorf("it ran before its time: %d calls", n)
	}
	clock.leap(15 * time.Minute)
	run := w.ran("evening", 1)
	if run.Result != daily.Completed || run.Output != "Daily/evening/"+date+".md" || run.Cause != daily.ByTime || run.Date != date {
		t.Errorf("the run is %+v", run)
	}
	if got := w.vaultText(run.Output); got != "A good **walk**.\n" {
		t.Errorf("the output is %q", got)
	}
	if m := w.hearsText(boss, "A good walk."); strings.Contains(m.Text, "**") {
		t.Errorf("delivered: %q", m.Text)
	}
	requests := model.Requests()
	first, second := string(requests[0].Body), string(requests[1].Body)
	if !strings.Contains(first, "Look back at "+date+", Olga.") || strings.Contains(first, `"Bash"`) || strings.Contains(first, `"ReadChatLog"`) || !strings.Contains(first, `"WriteOutput"`) {
		t.Errorf("the model was asked %s", first)
	}
	if !strings.Contains(second, "Walked to the coffee shop.") {
		t.Errorf("the journal was not read: %s", second)
	}
	var state map[string]any
	w.until("the state file is written", func() bool { return json.Unmarshal([]byte(w.vaultText("Daily/.evening/state.json")), &state) == nil })
	if state["agent"] != "evening" || state["sdk_session_id"] != run.Session || state["last_processed_date"] != date || state["run_count"] != 1.0 || state["model"] != fakeModel {
		t.Errorf("the state is %v", state)
	}
	if n := w.metric("gatehouse_schedule_runs_total", "agent", "evening", "result", "completed"); n != 1 {
		t.Errorf("%v runs are counted", n)
	}
	if at := w.metric("gatehouse_schedule_last_success_timestamp_seconds", "agent", "evening"); at < float64(run.Ended.Unix()) {
		t.Errorf("the last success is at %v", at)
	}
	_, one, _ := w.asked("GET", "/api/chat/"+run.Session, nil, nil)
	if one["title"] != "Evening · "+date || one["module"] != "daily" || one["source"] != "schedule" {
		t.Errorf("the session is %v", one)
	}
	// Neither a restart nor a further minute runs it again.
	w.stop()
	w.start()
	clock.leap(time.Minute)
	w.until("the schedule looked again", func() bool { return w.count(`SELECT count(*) FROM schedule_runs WHERE noted = 1`) == 1 })
	w.quiet()
	if n := w.count(`SELECT count(*) FROM schedule_runs`); n != 1 || len(w.said(boss.DM(), 0)) != 2 {
		t.Errorf("%d runs, the bot said %q", n, w.said(boss.DM(), 0))
	}
}

func TestADailyAgentThatWasMissedIsMadeUpOnce(t *testing.T) {
	w, model, clock := newScheduleWorld(t)
	w.agentFile("x", `schedule: "12:00"`)
	w.agentFile("old", `schedule: "0 12 1 1 *"`)
	w.agentFile("off", `schedule: "12:00"`)
	w.stop()
	w.put("Daily/.agents/off.md", "---\nschedule: \"12:00\"\nschedule_enabled: false\n---\nx")
	clock.leap(3 * 24 * time.Hour) // three times were missed
	model.Script(llmtest.Say("Nothing to write."))
	w.start()
	run := w.ran("x", 1)
	if want := clock.Now().UTC().Format(time.DateOnly); run.Date != want || run.Cause != daily.Missed || run.Result != daily.CompletedNoOutput {
		t.Errorf("the run is %+v, want one of %s", run, want)
	}
	w.quiet()
	if n := w.count(`SELECT count(*) FROM schedule_runs`); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// A run by hand counts for its date, and what fails can be run again.
func TestADailyAgentIsRunByHand(t *testing.T) {
	w, model, clock := newScheduleWorld(t)
	w.agentFile("x", `schedule: "13:00"`)
	start := func(date string, force bool) (schedule.Run, error) {
		return w.app.schedule.Start(t.Context(), w.app.queue, "x", date, force, cli)
	}
	model.Script(llmtest.Reply{Status: 400})
	if _, err := start("", false); err != nil {
		t.Fatal(err)
	}
	if run := w.ran("x", 1); run.Result != daily.Failed || run.Error == "" || run.Cause != cli.String() {
		t.Errorf("the run is %+v", run)
	}
	model.Script(llmtest.Say("Nothing."))
	if _, err := start("", false); err != nil {
		t.Fatal(err)
	}
	if run := w.ran("x", 2); run.Result != daily.CompletedNoOutput || run.N != 2 {
		t.Errorf("the run is %+v", run)
	}
	if run, err := start("", false); err != nil || run.Result != daily.Skipped {
		t.Errorf("again: %+v, %v", run, err)
	}
	model.Script(llmtest.Say("Nothing."))
	if _, err := start("", true); err != nil {
		t.Fatal(err)
	}
	w.ran("x", 3)
	clock.leap(30 * time.Minute) // its time: the date was run
	if run := w.ran("x", 4); run.Result != daily.Skipped {
		t.Errorf("at its time: %+v", run)
	}
	for date, kind := range map[string]core.Kind{"2026-13-01": core.Invalid, "../x": core.Invalid, clock.Now().AddDate(0, 0, 2).Format(time.DateOnly): core.Invalid} {
		if _, err := start(date, false); core.KindOf(err) != kind {
			t.Errorf("%s: %v", date, err)
		}
	}
	if _, err := w.app.schedule.Start(t.Context(), w.app.queue, "../x", "", false, cli); core.KindOf(err) != core.Invalid {
		t.Errorf("a name that leads elsewhere: %v", err)
	}
}

// An agent has the trust and the model of its file, and not the owner's and the setting's.
func TestADailyAgentHasTheTrustAndTheModelOfItsFile(t *testing.T) {
	w, model, _ := newScheduleWorld(t)
	for name, trust := range map[string]string{"plain": "vault", "careful": "sandboxed"} {
		head := `schedule: "13:00"`
		if name == "careful" {
			head += "\ntrust_level: " + trust
		}
		w.agentFile(name, head)
		model.Script(llmtest.Say("Nothing."))
		if _, err := w.app.schedule.Start(t.Context(), w.app.queue, name, "", false, cli); err != nil {
			t.Fatal(err)
		}
		if run := w.ran(name, 1); run.Result != daily.CompletedNoOutput {
			t.Errorf("%+v", run)
		}
		if n := w.count(`SELECT count(*) FROM inbox WHERE bot = 'schedule' AND trust = $1`, trust); n != 1 {
			t.Errorf("%d runs of trust %s, want 1", n, trust)
		}
	}
	w.agentFile("other", "schedule: \"13:00\"\nmodel: openai/other-2")
	if _, err := w.app.schedule.Start(t.Context(), w.app.queue, "other", "", false, cli); err != nil {
		t.Fatal(err)
	}
	if run := w.ran("other", 1); !strings.Contains(run.Error, `model "openai/other-2" is not configured`) {
		t.Errorf("with a model of its own: %+v", run)
	}
}

// What its file does not open waits for the owner, in every chat with the owner, and ends
// as denied.
func TestWhatADailyAgentMayNotDoIsAskedOfTheOwner(t *testing.T) {
	w, model, clock := newScheduleWorld(t)
	boss := w.boss()
	w.put("Notes/a.md", "A note of the vault.\n")
	w.agentFile("x", "schedule: \"12:45\"\ntools: [read_file, write_file]")
	model.Script(llmtest.CallTool("a", "Read", `{"file_path":"Notes/a.md"}`), llmtest.CallTool("b", "Write", `{"file_path":"Notes/b.md","content":"x"}`), llmtest.Say("Done."))
	clock.leap(15 * time.Minute)
	m := w.hearsText(boss, "Notes/b.md")
	if body := string(model.Requests()[1].Body); !strings.Contains(body, "A note of the vault.") {
		t.Errorf("reading was asked: %s", body)
	}
	if len(m.Buttons) == 0 {
		m = w.hears(boss.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "Notes/b.md") && len(m.Buttons) > 0 })
	}
	if _, err := boss.Press(boss.DM(), m.ID, m.Buttons[0][0].CallbackData); err != nil {
		t.Fatal(err)
	}
	if run := w.ran("x", 1); run.Result != daily.CompletedNoOutput {
		t.Errorf("the run is %+v", run)
	}
	if got := w.vaultText("Notes/b.md"); got != "x" {
		t.Errorf("the approved file is %q", got)
	}
}

// asksToWrite has the daily agent x ask its owner, boss, whether it may write Notes/b.md, which allow
// allows; then it writes an output.
func asksToWrite(t *testing.T) (w *world, model *llmtest.Server, clock *leaps, boss *telegramtest.User, allow func()) {
	t.Helper()
	w, model, clock = newScheduleWorld(t)
	boss = w.boss()
	w.agentFile("x", "schedule: \"12:45\"\ndeliver: telegram/owner\ntools: [write_file]")
	model.Script(llmtest.CallTool("a", "Write", `{"file_path":"Notes/b.md","content":"x"}`), llmtest.CallTool("b", "WriteOutput", `{"content":"The morning's message."}`), llmtest.Say("Done."))
	clock.leap(15 * time.Minute)
	m := w.hears(boss.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "Notes/b.md") && len(m.Buttons) > 0 })
	return w, model, clock, boss, func() {
		t.Helper()
		if _, err := boss.Press(boss.DM(), m.ID, m.Buttons[0][0].CallbackData); err != nil {
			t.Fatal(err)
		}
	}
}

// A run has the file of its agent as it was when the run began: it may be being saved when the run ends.
func TestADailyAgentWhoseFileIsBrokenWhileItRunsIsDelivered(t *testing.T) {
	w, _, _, boss, allow := asksToWrite(t)
	w.put("Daily/.agents/x.md", "---\nschedule: [\n---\n")
	allow()
	if run := w.ran("x", 1); run.Result != daily.Completed || run.Error != "" {
		t.Errorf("the run is %+v", run)
	}
	w.hearsText(boss, "The morning's message.")
}

// Who deletes the file wants the agent to stop, also the run that has begun.
func TestADailyAgentWhoseFileIsDeletedWhileItRunsEnds(t *testing.T) {
	w, model, clock, _, allow := asksToWrite(t)
	if err := os.Remove(filepath.Join(w.cfg.VaultPath, "Daily/.agents/x.md")); err != nil {
		t.Fatal(err)
	}
	clock.leap(2 * time.Second) // what a run may do is looked up once a second
	allow()
	if run := w.ran("x", 1); run.Result != daily.Failed || run.Output != "" {
		t.Errorf("the run is %+v", run)
	}
	if _, err := os.Stat(filepath.Join(w.cfg.VaultPath, "Notes/b.md")); err == nil {
		t.Error("the approved file was written")
	}
	w.quiet()
	for _, table := range []string{"outbox WHERE body LIKE '%morning%'", "schedule_runs WHERE output <> ''"} {
		if n := w.count(`SELECT count(*) FROM ` + table); n != 0 {
			t.Errorf("%d rows of %s", n, table)
		}
	}
	if n := model.Total(); n != 1 {
		t.Errorf("%d calls of the model, want 1", n)
	}
}

// What no one answers is denied after two minutes, and the agent goes on.
func TestWhatADailyAgentAsksAndNoOneAnswersIsDenied(t *testing.T) {
	t.Parallel()
	w, model, clock := newScheduleWorld(t)
	boss := w.boss()
	w.agentFile("x", "schedule: \"12:45\"\ntools: [write_file]")
	model.Script(llmtest.CallTool("a", "Write", `{"file_path":"Notes/b.md","content":"x"}`), llmtest.Say("It was not allowed."))
	clock.leap(15 * time.Minute)
	w.hearsText(boss, "Notes/b.md")
	clock.leap(2 * time.Minute)
	if run := w.ran("x", 1); run.Result != daily.CompletedNoOutput {
		t.Errorf("the run is %+v", run)
	}
	requests := model.Requests()
	if body := string(requests[len(requests)-1].Body); !strings.Contains(body, "No one answered within 120 seconds") {
		t.Errorf("the model was told %s", body)
	}
	if _, err := os.Stat(filepath.Join(w.cfg.VaultPath, "Notes/b.md")); err == nil {
		t.Error("the file was written")
	}
}

// A breaking writes a broken file for the agent before its message is stored.
type breaking struct{ w *world }

func (b breaking) Put(ctx context.Context, page []core.Inbound, cursor *core.Cursor) error {
	b.w.put("Daily/.agents/x.md", "---\nschedule: \"25:99\"\n---\nx")
	return b.w.app.queue.Put(ctx, page, cursor)
}

func TestADailyAgentWhoseFileCannotBeUsedDoesNotRun(t *testing.T) {
	w, model, clock := newScheduleWorld(t)
	w.agentFile("x", `schedule: "12:45"`)
	if _, err := w.app.schedule.Start(t.Context(), breaking{w}, "x", "", false, cli); core.KindOf(err) != core.Conflict {
		t.Errorf("started: %v", err)
	}
	w.agentFile("other", `schedule: "12:50"`)
	model.Script(llmtest.Say("Nothing."))
	clock.leap(20 * time.Minute)
	w.ran("other", 1)
	w.quiet()
	if n := model.Total(); n != 1 || w.count(`SELECT count(*) FROM schedule_runs WHERE agent = 'x'`) != 0 {
		t.Errorf("%d calls of the model", n)
	}
	w.logged("Daily/.agents/x.md", "hours are 0 to 23")
}

func TestTheOutputOfADailyAgentIsNotDeliveredToAnAdmin(t *testing.T) {
	t.Parallel()
	w, model, clock := newScheduleWorld(t)
	w.boss()
	ada := w.guest("Ada")
	w.sql(`UPDATE users SET role = 'admin' WHERE id = $1`, w.user(ada))
	w.sql(`UPDATE access SET chat = '' WHERE user_id = $1`, core.Operator) // the owner has no direct chat with this bot
	w.agentFile("x", "schedule: \"12:45\"\ndeliver: telegram/owner")
	model.Script(llmtest.Say("A private reflection of the owner."))
	clock.leap(15 * time.Minute)
	run := w.ran("x", 1)
	w.quiet()
	if n := w.count(`SELECT count(*) FROM outbox WHERE body LIKE '%private reflection%'`); n != 0 {
		t.Errorf("%d messages have the output", n)
	}
	if !strings.Contains(run.Error, "was not delivered") {
		t.Errorf("the run says %q", run.Error)
	}
}

func TestARunReplacesTheOutputOfItsOwnDateAlone(t *testing.T) {
	t.Parallel()
	w, model, clock := newScheduleWorld(t)
	w.boss()
	date := clock.Now().UTC().Format(time.DateOnly)
	w.put("Daily/x/2026-01-05.md", "An output of before.\n")
	w.put("Daily/x/"+date+".md", "An older output of today.\n")
	w.agentFile("x", `schedule: "12:45"`)
	model.Script(llmtest.CallTool("a", "WriteOutput", `{"date":"2026-01-05","content":"Gone."}`), llmtest.CallTool("b", "WriteOutput", `{"content":"New."}`), llmtest.Say("Done."))
	clock.leap(15 * time.Minute)
	w.ran("x", 1)
	if got := w.vaultText("Daily/x/2026-01-05.md"); got != "An output of before.\n" {
		t.Errorf("the output of another date is %q", got)
	}
	if got := w.vaultText("Daily/x/" + date + ".md"); got != "New.\n" {
		t.Errorf("the output of its date is %q", got)
	}
}

func TestTheOwnerListsAndRunsDailyAgentsInChat(t *testing.T) {
	w, model, _ := newScheduleWorld(t)
	boss, ada := w.boss(), w.guest("Ada")
	if m := w.replies(boss, "/agents daily"); !strings.Contains(m.Text, "no daily agents") {
		t.Errorf("without agents: %q", m.Text)
	}
	w.agentFile("x", "displayName: Evening\nschedule: \"21:30\"")
	w.put("Daily/.agents/bad.md", "---\nschedule: \"25:99\"\n---\nx")
	if m := w.replies(ada, "/agents daily"); strings.Contains(m.Text, "Evening") {
		t.Errorf("a guest reads %q", m.Text)
	}
	list := w.replies(boss, "/agents daily")
	for _, want := range []string{"Evening: next", "21:30 UTC", "bad.md:2", "hours are 0 to 23"} {
		if !strings.Contains(list.Text, want) {
			t.Errorf("the list does not say %q: %q", want, list.Text)
		}
	}
	model.Script(llmtest.Say("Nothing."))
	if _, err := boss.Press(boss.DM(), list.ID, list.Buttons[0][0].CallbackData); err != nil {
		t.Fatal(err)
	}
	w.hearsText(boss, "x is running for")
	w.ran("x", 1)
}

// A run counts against the owner's budget: where that is used up, no model is called.
func TestADailyAgentEndsWithoutAModelWhereTheOwnersBudgetIsUsedUp(t *testing.T) {
	t.Parallel()
	w, model, clock := newScheduleWorld(t, func(c *configs.Config) { c.BudgetUserDay = values.Budget{Tokens: 60_000} })
	boss := w.boss()
	w.replies(boss, "hello")
	w.quiet()
	w.sql(`UPDATE usage SET input = 59900 WHERE user_id = $1`, core.Operator)
	asked := model.Total()
	w.agentFile("x", "displayName: Evening\nschedule: \"12:45\"\ndeliver: telegram/owner")
	clock.leap(15 * time.Minute)
	const used = "your budget for today (60000 tokens) is used up"
	if run := w.ran("x", 1); run.Result != daily.Failed || !strings.Contains(run.Error, used) || run.Output != "" {
		t.Errorf("the run is %+v", run)
	}
	w.quiet()
	if n := model.Total() - asked; n != 0 {
		t.Errorf("%d calls of the model", n)
	}
	for _, result := range []string{"error", "completed", "completed_no_output"} {
		if n := w.metric("gatehouse_schedule_runs_total", "agent", "x", "result", result); n > 0 != (result == "error") {
			t.Errorf("%v runs ended with %s", n, result)
		}
	}
	if n := w.metric("gatehouse_budget_refusals_total", "scope", "user"); n != 1 {
		t.Errorf("%v refusals are counted, want one: a run without a budget is not tried again", n)
	}
	if m := w.replies(boss, "/agents daily"); !strings.Contains(m.Text, used) {
		t.Errorf("the owner is not told why: %q", m.Text)
	}
	model.Script(llmtest.Say("Nothing to write."))
	clock.leap(24 * time.Hour)
	if run := w.ran("x", 2); run.Result != daily.CompletedNoOutput {
		t.Errorf("the next day: %+v", run)
	}
}

// The state file is for other programs: all of it is of the last run that ended, but the date
// that was last completed, the number of runs, and when the first was created.
func TestTheStateFileOfADailyAgentIsOfItsLastRun(t *testing.T) {
	t.Parallel()
	w, model, clock := newScheduleWorld(t)
	w.boss()
	w.agentFile("x", "schedule: \"12:45\"")
	state := func(n int) (s map[string]any) {
		t.Helper()
		w.until(fmt.Sprintf("the state file has run %d", n), func() bool {
			s = nil
			return json.Unmarshal([]byte(w.vaultText("Daily/.x/state.json")), &s) == nil && s["run_count"] == float64(n)
		})
		return s
	}
	stamp := func(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05Z") }
	want := func(got map[string]any, last, completed, first schedule.Run, n float64) {
		t.Helper()
		diff := cmp.Diff(map[string]any{
			"agent": "x", "backend": "gatehouse", "sdk_session_id": last.Session, "model": last.Model, "last_run_at": stamp(last.Ended),
			"last_processed_date": completed.Date, "run_count": n, "created_at": stamp(first.Created),
		}, got)
		if diff != "" || last.Session == "" {
			t.Errorf("after run %v (-want +got):\n%s", n, diff)
		}
	}
	model.Script(llmtest.CallTool("a", "WriteOutput", `{"content":"A good day."}`), llmtest.Say("Done."))
	clock.leap(15 * time.Minute)
	first := w.ran("x", 1)
	want(state(1), first, first, first, 1)
	if first.Model != fakeModel || first.Result != daily.Completed {
		t.Errorf("the first run is %+v", first)
	}
	model.Script(llmtest.Say("Nothing to write."))
	clock.leap(24 * time.Hour)
	second := w.ran("x", 2)
	want(state(2), second, second, first, 2)
	if second.Session == first.Session || second.Date == first.Date || stamp(second.Ended) == stamp(first.Ended) {
		t.Errorf("the second run is %+v, the first was %+v", second, first)
	}
	model.Script(llmtest.Reply{Status: 400})
	clock.leap(24 * time.Hour)
	third := w.ran("x", 3)
	want(state(3), third, second, first, 3)
}
