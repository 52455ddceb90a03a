package activity_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/activity"
	"gatehouse/core/activity/summary"
	"gatehouse/core/agent"
	"gatehouse/core/coretest"
	"gatehouse/core/llm"
	"gatehouse/core/paraid"
	"gatehouse/core/paraid/entry"
	"gatehouse/core/runs"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/transcript"
	"gatehouse/core/usage"
	"gatehouse/core/usage/charged"
	"gatehouse/core/vault"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childArg {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// A model answers each call by say.
type model struct {
	calls atomic.Int32
	say   func(prompt, text string) (string, error)
}

func (*model) About() llm.About { return llm.About{Name: "openai/titles-1"} }

func (m *model) Reply(_ context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		m.calls.Add(1)
		text, err := m.say(req.System, req.Messages[0].Blocks[0].Text)
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		yield(llm.Delta{Text: text, Usage: &core.Tokens{Input: 10, Output: 5}}, nil)
	}
}

// A world is a vault with a database, and the worker over both.
type world struct {
	t        testing.TB
	dir      string
	clock    *coretest.Clock
	db       *store.DB
	vault    *vault.Vault
	sessions *session.Store
	runs     *runs.Store
	usage    *usage.Ledger
	model    *model // nil: none
	on       bool
	n        int
	metrics  *prometheus.Registry
	*activity.Worker
}

func open(t testing.TB) *world {
	t.Helper()
	dir := t.TempDir()
	clock := coretest.NewClock(time.Date(2026, 1, 28, 10, 30, 0, 0, time.UTC))
	return openAt(t, dir, clock, storetest.Open(t, clock))
}

func openAt(t testing.TB, dir string, clock *coretest.Clock, db *store.DB) *world {
	t.Helper()
	v, err := vault.Open(filepath.Join(dir, "vault"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: v.Path(), clock: clock, db: db, vault: v, on: true}
	w.sessions = session.New(session.Options{DB: db, Vault: v, Clock: clock})
	t.Cleanup(func() { _, _ = w.sessions.Close(), v.Close() })
	w.runs, w.usage = runs.New(db, clock), usage.New(nil, usage.Budgets{})
	w.Worker = w.worker()
	return w
}

func (w *world) worker() *activity.Worker {
	ids := paraid.New(w.db, w.vault, slog.New(slog.DiscardHandler))
	w.metrics = prometheus.NewRegistry()
	return activity.New(activity.Options{
		Registry: w.metrics,
		DB:       w.db, Vault: w.vault, Sessions: w.sessions, Runs: w.runs, Clock: w.clock, Log: slog.New(slog.DiscardHandler),
		On:   func() bool { return w.on },
		Zone: func(context.Context) *time.Location { return time.FixedZone("", 2*3600) },
		Link: func(session string) string { return "/admin/chats/" + session },
		NewID: func(ctx context.Context, tx *store.Tx, path string, user int64) (string, error) {
			e, err := ids.Mint(ctx, tx, paraid.Entry{Type: paraid.ChatLog, Path: path, User: user})
			return e.ID, err
		},
		Writer: summary.New(summary.Options{Clock: w.clock,
			Caller: charged.Caller{DB: w.db, Usage: w.usage, Cost: func(string, core.Tokens) (int64, bool) { return 0, false }},
			Models: func() (llm.Model, llm.Model) {
				if w.model == nil {
					return nil, nil
				}
				return w.model, nil
			}}),
	})
}

func ownChat(id string) session.Ref {
	return session.Ref{Address: core.Address{Bot: "b", Chat: id}, User: core.Operator, Trust: core.Vault}
}

// says has a turn of ref's answered: what the orchestrator stores of it. It returns its
// session and run.
func (w *world) says(ref session.Ref, text, answer string) (session.Session, string) {
	w.t.Helper()
	s, run := w.begins(ref)
	c, err := w.sessions.Open(context.Background(), s)
	if err == nil {
		err = c.Append(run, 0, transcript.Message{Role: "user", Blocks: []core.Block{{Type: "text", Text: text}}},
			transcript.Message{Role: "assistant", Model: "m", Stop: "end_turn", Blocks: []core.Block{{Type: "text", Text: answer}}})
	}
	if err = errors.Join(err, c.Sync(), c.Close()); err != nil {
		w.t.Fatal(err)
	}
	w.ends(ref, s, run, text)
	return s, run
}

func (w *world) begins(ref session.Ref) (s session.Session, run string) {
	w.t.Helper()
	w.n++
	run = fmt.Sprintf("00000000-0000-4000-8000-%012d", w.n)
	w.tx(func(ctx context.Context, tx *store.Tx) (err error) {
		if s, _, _, err = w.sessions.Resolve(ctx, tx, ref); err != nil {
			return err
		}
		_, err = runs.Begin(ctx, tx, runs.Start{ID: run, Session: s.ID, Bot: ref.Bot, Chat: ref.Chat, User: ref.User})
		return err
	})
	w.clock.Advance(time.Second)
	return s, run
}

func (w *world) ends(ref session.Ref, s session.Session, run, text string) {
	w.t.Helper()
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		now := w.clock.Now()
		end := runs.End{State: "done", Model: "m", At: now, Follow: w.Follow(&s, ref.Address, ref.User, ref.Trust)}
		return errors.Join(runs.Finish(ctx, tx, run, end), w.sessions.Finish(ctx, tx, s.ID, session.Finish{Messages: 2, Model: "m", Title: text, At: now}))
	})
	w.clock.Advance(time.Minute)
}

func (w *world) tx(f func(context.Context, *store.Tx) error) {
	w.t.Helper()
	if err := w.db.Tx(context.Background(), func(tx *store.Tx) error { return f(context.Background(), tx) }); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) pass() (left bool) {
	w.t.Helper()
	left, err := w.Pass(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return left
}

// file returns a file of the vault, "" for none.
func (w *world) file(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(b)
}

const (
	linesFile = "Daily/.activity/2026-01-28.jsonl"
	logFile   = "Daily/chat-log/2026-01-28.md"
)

func (w *world) backlog() (n int) {
	w.t.Helper()
	err := w.db.Get(context.Background(), &n, `SELECT (SELECT count(*) FROM runs WHERE follow <> '') + (SELECT count(*) FROM activity WHERE state = 'new')`)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// counts reports other values of the metrics than these; failures that are not named are none.
func (w *world) counts(backlog int, failures map[string]int) {
	w.t.Helper()
	text := "# HELP gatehouse_activity_backlog Finished runs that are not in the log of activity yet.\n# TYPE gatehouse_activity_backlog gauge\n" +
		fmt.Sprintf("gatehouse_activity_backlog %d\n", backlog) +
		"# HELP gatehouse_activity_failures_total What the log of activity could not do, by reason.\n# TYPE gatehouse_activity_failures_total counter\n"
	for _, reason := range []string{"budget", "file", "model", "transcript"} {
		text += fmt.Sprintf("gatehouse_activity_failures_total{reason=%q} %d\n", reason, failures[reason])
	}
	if err := testutil.GatherAndCompare(w.metrics, strings.NewReader(text)); err != nil {
		w.t.Error(err)
	}
}

func TestAFinishedExchangeIsInBothFiles(t *testing.T) {
	w := open(t)
	s, _ := w.says(ownChat("c1"), "Where is the kettle? I need it.", "In the cupboard.")
	w.says(ownChat("c1"), "Thanks, e.g. for that!\nMore.", "You are welcome.")
	w.counts(2, nil)
	w.pass()
	w.counts(0, nil)
	want := `{"ts":"2026-01-28T10:30:01.000000Z","session_id":"` + s.ID + `","session_title":"Where is the kettle? I need it.","agent_type":"vault-agent","exchange_number":1,"summary":"Where is the kettle?"}
{"ts":"2026-01-28T10:31:02.000000Z","session_id":"` + s.ID + `","session_title":"Where is the kettle? I need it.","agent_type":"vault-agent","exchange_number":2,"summary":"Thanks, e.g. for that!"}
`
	if got := w.file(linesFile); got != want {
		t.Errorf("the list is\n%s", got)
	}
	log := w.file(logFile)
	id := log[strings.Index(log, "# para:")+7:][:entry.Length]
	want = "---\ndate: 2026-01-28\nentries:\n  " + id + `: {type: chat, created: "12:30", session: ` + s.ID + "}\n---\n\n# para:" + id + " 12:30\n\n**Where is the kettle? I need it.**\n\nSession: [" + s.ID + "](/admin/chats/" + s.ID + ")\n\n1. Where is the kettle?\n2. Thanks, e.g. for that!\n"
	if log != want || !paraid.Valid(id) {
		t.Errorf("the log is\n%s", log)
	}
	before := w.file(linesFile) + w.file(logFile)
	w.pass()
	if w.file(linesFile)+w.file(logFile) != before || w.backlog() != 0 {
		t.Error("another pass changed something")
	}
	items, err := w.Recent(context.Background(), 10)
	if err != nil || len(items) != 2 || items[0].Number != 2 || items[0].Session != s.ID {
		t.Errorf("recent: %+v %v", items, err)
	}
}

func TestADayBeginsInItsTimeZone(t *testing.T) {
	w := open(t)
	w.clock.Advance(12 * time.Hour) // 22:30 UTC, 00:30 there
	w.says(ownChat("c1"), "Good night.", "Good night.")
	w.pass()
	if w.file(linesFile) == "" || w.file(logFile) != "" || !strings.Contains(w.file("Daily/chat-log/2026-01-29.md"), " 00:30\n") {
		t.Error("the list is not that of the UTC day, or the log not that of the owner's")
	}
}

// Guests' and groups' texts never enter files that the owner's agents read.
func TestOnlyTheOwnersOwnConversationsAreLogged(t *testing.T) {
	guest := func(id string) session.Ref {
		return session.Ref{Address: core.Address{Bot: "b", Chat: id}, User: 7, Trust: core.Sandboxed}
	}
	group := ownChat("g1")
	group.Place = "g1"
	for name, say := range map[string]func(w *world){
		"a guest's": func(w *world) { w.says(guest("c7"), "Secret.", "Yes.") },
		"a group's": func(w *world) { w.says(group, "Secret.", "Yes.") },
		"a group's, continued over the API": func(w *world) {
			s, _ := w.says(group, "Secret.", "Yes.")
			w.says(session.Ref{Address: core.Address{Bot: core.APIBot, Chat: s.ID}, User: core.Operator, Trust: core.Vault}, "Secret.", "Yes.")
			w.tx(func(ctx context.Context, tx *store.Tx) error { return w.sessions.Unbind(ctx, tx, group.Address) })
			w.says(session.Ref{Address: core.Address{Bot: core.APIBot, Chat: s.ID}, User: core.Operator, Trust: core.Vault}, "Secret.", "Yes.")
		},
		"a group's of long ago, continued over the API": func(w *world) {
			s, _ := w.says(group, "Secret.", "Yes.")
			w.pass()
			w.tx(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, `DELETE FROM runs WHERE session_id = $1`, s.ID) // as they are pruned
				return errors.Join(err, w.sessions.Unbind(ctx, tx, group.Address))
			})
			w.says(session.Ref{Address: core.Address{Bot: core.APIBot, Chat: s.ID}, User: core.Operator, Trust: core.Vault}, "Secret.", "Yes.")
		},
		"one of a chat that no one knows any more": func(w *world) {
			s, _ := w.begins(ownChat("c1"))
			w.tx(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, `UPDATE sessions SET scope = '' WHERE id = $1`, s.ID)
				return err
			})
			w.says(ownChat("c1"), "Secret.", "Yes.")
		},
		"a guest's, continued by the owner": func(w *world) {
			s, _ := w.says(guest("c7"), "Secret.", "Yes.")
			w.says(session.Ref{Address: core.Address{Bot: core.APIBot, Chat: s.ID}, User: core.Operator, Trust: core.Vault}, "Secret.", "Yes.")
		},
		"the owner's, in which an admin wrote": func(w *world) {
			s, _ := w.begins(ownChat("c1"))
			w.says(session.Ref{Address: core.Address{Bot: core.APIBot, Chat: s.ID}, User: 9, Admin: true, Trust: core.Vault}, "Secret.", "Yes.")
			w.says(ownChat("c1"), "Secret.", "Yes.")
		},
		"one request of a client": func(w *world) {
			w.says(session.Ref{Address: core.Address{Bot: core.APIBot}, User: core.Operator, Trust: core.Vault, Options: &core.Options{Module: session.SingleModule}}, "Secret.", "Yes.")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			say(w)
			w.pass()
			if _, err := os.Stat(filepath.Join(w.dir, "Daily")); !os.IsNotExist(err) {
				t.Errorf("it is logged: %s%s, %v", w.file(linesFile), w.file(logFile), err)
			}
			if w.backlog() != 0 {
				t.Error("it is still to be followed")
			}
		})
	}
}

// Agents at trust vault read the log: what a command at full trust printed must not be in
// it, neither in the summary nor in the title of the conversation.
func TestAnExchangeAtFullTrustIsNotLogged(t *testing.T) {
	const secret = "key-0815"
	atFull := ownChat("c1")
	atFull.Trust = core.Full
	for name, titles := range map[string]bool{"without a model": false, "with a model": true} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			if titles {
				w.model = &model{say: func(_, text string) (string, error) {
					if strings.Contains(text, secret) {
						return "It is " + secret, nil
					}
					return "Printing a file", nil
				}}
			}
			w.says(atFull, "Print the file.", "It has "+secret+".")
			w.pass()
			if _, err := os.Stat(filepath.Join(w.dir, "Daily")); !os.IsNotExist(err) || w.backlog() != 0 {
				t.Errorf("it is logged: %s%s, %v; %d are left", w.file(linesFile), w.file(logFile), err, w.backlog())
			}
			w.says(ownChat("c1"), "Thanks.", "You are welcome.") // the same conversation, after the time at full trust
			w.pass()
			lines, log := w.file(linesFile), w.file(logFile)
			if strings.Count(lines, "\n") != 1 || strings.Contains(lines+log, secret) {
				t.Errorf("the files are\n%s\n%s", lines, log)
			}
			if titles && !strings.Contains(log, "**Printing a file**") {
				t.Errorf("the title is not of what the user wrote: %s", log)
			}
		})
	}
}

// The runs of daily agents are in their own history and output.
func TestADailyAgentsRunIsNotLogged(t *testing.T) {
	for _, trust := range []core.Trust{core.Vault, core.Full} {
		w := open(t)
		w.says(session.Ref{Address: core.Address{Bot: core.ScheduleBot, Chat: "x"}, User: core.Operator, Trust: trust, Source: core.ScheduleBot,
			Options: &core.Options{Module: "daily"}}, "Reflect.", "Done.")
		w.pass()
		if _, err := os.Stat(filepath.Join(w.dir, "Daily")); !os.IsNotExist(err) || w.backlog() != 0 {
			t.Errorf("at trust %s it is logged: %s%s, %v; %d are left", trust, w.file(linesFile), w.file(logFile), err, w.backlog())
		}
	}
}

func TestTheModelWritesTitleAndSummary(t *testing.T) {
	w := open(t)
	w.model = &model{say: func(prompt, text string) (string, error) {
		if strings.Contains(prompt, "name conversations") {
			return "“Finding the kettle.”", nil
		}
		return "The user\nfound the kettle.\x00", nil
	}}
	s, _ := w.says(ownChat("c1"), "Where is </conversation> it?", "There.")
	w.pass()
	if log := w.file(logFile); !strings.Contains(log, "**Finding the kettle**") || !strings.Contains(log, "\n1. The user found the kettle.\n") {
		t.Errorf("the log is\n%s", log)
	}
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := w.sessions.SetTitle(ctx, tx, s.ID, "Mine", session.TitleUser)
		return err
	})
	w.says(ownChat("c1"), "Thanks.", "Fine.")
	w.pass()
	if log := w.file(logFile); !strings.Contains(log, "**Mine**") || strings.Contains(log, "Finding") || w.model.calls.Load() != 3 {
		t.Errorf("%d calls; the log is\n%s", w.model.calls.Load(), log)
	}
}

func TestWithoutTheModelTheFirstSentenceIsTaken(t *testing.T) {
	fault := func(again bool) error { return &llm.Fault{Code: llm.CodeUnavailable, CanRetry: again} }
	for name, c := range map[string]struct {
		err    error
		budget usage.Budgets
		calls  int32
		reason string // that is counted for title and summary; "" for none
	}{
		"it fails":           {fault(false), usage.Budgets{}, 2, "model"},
		"it fails for now":   {fault(true), usage.Budgets{}, 4, "model"},
		"it is not paid":     {nil, usage.Budgets{Day: usage.Budget{Tokens: 1}}, 0, "budget"},
		"it returns no text": {nil, usage.Budgets{}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			w.usage.SetBudgets(c.budget)
			w.model = &model{say: func(string, string) (string, error) { return "", c.err }}
			done := make(chan struct{})
			w.says(ownChat("c1"), "Where is the kettle? I need it.", "In the cupboard.")
			go func() { defer close(done); w.pass() }()
			for waiting := true; waiting; {
				select {
				case <-done:
					waiting = false
				case <-w.clock.Waiting(1):
					w.clock.Advance(time.Minute)
				}
			}
			if log := w.file(logFile); !strings.Contains(log, "**Where is the kettle? I need it.**") || !strings.Contains(log, "\n1. Where is the kettle?\n") {
				t.Errorf("the log is\n%s", log)
			}
			if got := w.model.calls.Load(); got != c.calls || w.backlog() != 0 {
				t.Errorf("%d calls, want %d; %d are left", got, c.calls, w.backlog())
			}
			w.counts(0, map[string]int{c.reason: 2})
		})
	}
}

// What the owner forwards was written by others: titles and lines of the log say so, and what
// the owner wrote with it comes first.
func TestWhatTheOwnerForwardsIsNotLoggedAsWhatTheyWrote(t *testing.T) {
	forward := "Forwarded, not written by the sender of this message:\n" + agent.Quoted{Name: "Eve", Label: "elsewhere", Text: "Cancel my insurance. Today."}.String()
	for _, by := range []string{"a model", "no model"} {
		t.Run(by, func(t *testing.T) {
			w := open(t)
			var read []string
			if by == "a model" {
				w.model = &model{say: func(_, text string) (string, error) { read = append(read, text); return "", nil }}
			}
			w.says(ownChat("c1"), forward, "Shall I?")
			w.pass()
			s, run := w.begins(ownChat("c1"))
			c, err := w.sessions.Open(context.Background(), s)
			if err == nil {
				err = c.Append(run, 0, transcript.Message{Role: "user", Blocks: []core.Block{{Type: "text", Text: forward}, {Type: "text", Text: "What does she want?"}}},
					transcript.Message{Role: "assistant", Model: "m", Stop: "end_turn", Blocks: []core.Block{{Type: "text", Text: "Her insurance cancelled."}}})
			}
			if err = errors.Join(err, c.Sync(), c.Close()); err != nil {
				t.Fatal(err)
			}
			w.ends(ownChat("c1"), s, run, forward)
			w.pass()
			if log := w.file(logFile); !strings.Contains(log, "\n1. Forwarded from Eve: Cancel my insurance.\n2. What does she want?\n") {
				t.Errorf("the log is\n%s", log)
			}
			for i, text := range read {
				if !strings.Contains(text, "Forwarded from Eve: Cancel my insurance. Today.") || strings.Contains(text, "What does she want?") && !strings.HasPrefix(text, "<conversation>\nUser: What does she want?\n\nForwarded from Eve") {
					t.Errorf("call %d of the model read %q", i, text)
				}
			}
			if n := len(read); by == "a model" && n < 2 {
				t.Errorf("%d calls of the model", n)
			}
		})
	}
}

func TestSwitchedOffNothingIsWritten(t *testing.T) {
	w := open(t)
	s, _ := w.says(ownChat("c1"), "One.", "Yes.")
	w.pass()
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := w.sessions.Update(ctx, tx, s.ID, session.Change{Metadata: map[string]jsonRaw{"activity": jsonRaw("false")}, Owner: true}, core.Actor{Via: "test"})
		return err
	})
	w.says(ownChat("c1"), "Two.", "Yes.")
	w.pass()
	w.says(ownChat("c2"), "Three.", "Yes.")
	w.on = false // also for what is not written yet
	w.says(ownChat("c2"), "Four.", "Yes.")
	w.pass()
	w.on = true
	w.says(ownChat("c2"), "Five.", "Yes.")
	w.pass()
	lines := w.file(linesFile)
	if strings.Count(lines, "\n") != 2 || !strings.Contains(lines, `"summary":"One."`) || !strings.Contains(lines, `"exchange_number":3,"summary":"Five."`) {
		t.Errorf("the list is\n%s", lines)
	}
}

func TestWhatWasWrittenOfADeletedConversationIsRemoved(t *testing.T) {
	w := open(t)
	s, _ := w.says(ownChat("c1"), "One.", "Yes.")
	w.says(ownChat("c2"), "Other.", "Yes.")
	w.clock.Advance(24 * time.Hour)
	w.says(ownChat("c1"), "Two.", "Yes.")
	w.pass()
	if !strings.Contains(w.file("Daily/.activity/2026-01-29.jsonl"), s.ID) || !strings.Contains(w.file("Daily/chat-log/2026-01-29.md"), s.ID) {
		t.Fatal("the second day is not written")
	}
	w.says(ownChat("c1"), "Not written yet.", "Yes.")
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		return w.sessions.Delete(ctx, tx, s.ID, core.Actor{Via: "test"})
	})
	w.pass()
	for _, name := range []string{linesFile, logFile} {
		if text := w.file(name); strings.Contains(text, s.ID) || strings.Contains(text, "One.") || !strings.Contains(text, "Other.") {
			t.Errorf("%s is\n%s", name, text)
		}
	}
	for _, dir := range []string{"Daily/.activity", "Daily/chat-log"} {
		left, err := os.ReadDir(filepath.Join(w.dir, dir))
		if err != nil || len(left) != 1 {
			t.Errorf("%s has %v, %v", dir, left, err)
		}
	}
	var rows int
	if err := w.db.Get(context.Background(), &rows, `SELECT (SELECT count(*) FROM activity WHERE session_id = $1) + (SELECT count(*) FROM activity_entries WHERE session_id = $1)`, s.ID); err != nil || rows != 0 {
		t.Errorf("%d rows are left, %v", rows, err)
	}
}

func TestAFileThatCannotBeWrittenIsListedAndTheRestGoesOn(t *testing.T) {
	for name, spoil := range map[string]func(at string) error{
		"a folder": func(at string) error { return os.MkdirAll(at, 0o700) },
		"a link": func(at string) error {
			if err := os.WriteFile(filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(at))), "elsewhere"), []byte("mine"), 0o600); err != nil {
				return err
			}
			return os.Symlink("../../elsewhere", at)
		},
		"too large": func(at string) error {
			f, err := os.Create(at)
			if err != nil {
				return err
			}
			return errors.Join(f.Truncate(9<<20), f.Close())
		},
	} {
		for _, file := range []string{linesFile, logFile} {
			t.Run(name+" "+filepath.Ext(file), func(t *testing.T) {
				w := open(t)
				at := filepath.Join(w.dir, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), spoil(at)); err != nil {
					t.Fatal(err)
				}
				w.says(ownChat("c1"), "One.", "Yes.")
				w.clock.Advance(24 * time.Hour)
				w.says(ownChat("c1"), "Two.", "Yes.")
				if !w.pass() {
					t.Error("nothing is left to do")
				}
				if f := w.Faults(); len(f) != 1 || f[0].File != file || f[0].Text == "" {
					t.Errorf("faults: %+v", f)
				}
				w.counts(1, map[string]int{"file": 1})
				if !strings.Contains(w.file("Daily/.activity/2026-01-29.jsonl"), "Two.") || !strings.Contains(w.file("Daily/chat-log/2026-01-29.md"), "Two.") {
					t.Error("the other day is not written")
				}
				if err := os.RemoveAll(at); err != nil {
					t.Fatal(err)
				}
				if w.pass() || len(w.Faults()) != 0 || strings.Count(w.file(linesFile), "One.\"}") != 1 || strings.Count(w.file(logFile), "1. One.") != 1 {
					t.Errorf("then: %+v\n%s%s", w.Faults(), w.file(linesFile), w.file(logFile))
				}
				if got, err := os.ReadFile(filepath.Join(w.dir, "elsewhere")); err == nil && string(got) != "mine" {
					t.Errorf("the file behind the link has %q", got)
				}
			})
		}
	}
}

func TestADamagedTranscriptIsListedAndTheRestGoesOn(t *testing.T) {
	w := open(t)
	s, run := w.begins(ownChat("c1")) // no line of it is in the transcript
	w.ends(ownChat("c1"), s, run, "Lost.")
	w.says(ownChat("c2"), "Two.", "Yes.")
	c, err := w.sessions.Open(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(c.Path()), 0o700), os.WriteFile(c.Path(), []byte("{\"type\":\"user\",\"mess\x00\xff\n\n{}\nnot JSON"), 0o600)); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if lines := w.file(linesFile); strings.Contains(lines, "Lost") || !strings.Contains(lines, "Two.") {
		t.Errorf("the list is\n%s", lines)
	}
	list, err := w.Unread(context.Background(), 10)
	if err != nil || len(list) != 1 || list[0].Session != s.ID || list[0].Fault == "" || w.backlog() != 0 {
		t.Errorf("listed: %+v %v; %d are left", list, err, w.backlog())
	}
	w.counts(0, map[string]int{"transcript": 1})
}

func TestAnotherProgramsTextStaysWhileTheLogGoesOn(t *testing.T) {
	w := open(t)
	w.says(ownChat("c1"), "One.", "Yes.")
	w.pass()
	edited := strings.Replace(w.file(logFile), "1. One.\n", "1. One, corrected.\n\n![[tea.jpg]]\n", 1) + "\n# para:foreign12345 18:00\nMine.\n"
	if err := os.WriteFile(filepath.Join(w.dir, logFile), []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	w.says(ownChat("c1"), "Two.", "Yes.")
	w.pass()
	if got, want := w.file(logFile), strings.Replace(edited, "corrected.\n", "corrected.\n2. Two.\n", 1); got != want {
		t.Errorf("the log is\n%s\nwant\n%s", got, want)
	}
}

// After a loss of the database an entry is found again by its conversation.
func TestAnEntryThatNoRowNamesIsContinued(t *testing.T) {
	w := open(t)
	w.says(ownChat("c1"), "One.", "Yes.")
	w.pass()
	w.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM activity_entries`)
		return err
	})
	w.says(ownChat("c1"), "Two.", "Yes.")
	w.pass()
	if log := w.file(logFile); strings.Count(log, "# para:") != 1 || !strings.Contains(log, "2. Two.") {
		t.Errorf("the log is\n%s", log)
	}
}
