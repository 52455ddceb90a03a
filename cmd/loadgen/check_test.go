package main

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/loadgen/crowd"
	"gatehouse/cmd/loadgen/report"
	"gatehouse/core/coretest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "bare" { // the tool starts itself
		main()
	}
	os.Exit(m.Run())
}

// A staged conversation: what people see, and what the gateway's tables say.
type staged struct {
	t *testing.T
	*field
	platform *crowd.Platform
	dir      string
	db       *sql.DB
	run      int
}

func stage1(t *testing.T, onDiscord float64) *staged {
	t.Helper()
	f, err := newField(1, onDiscord)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	s := &staged{t: t, field: f, platform: f.platforms[0], dir: t.TempDir()}
	if err := os.MkdirAll(filepath.Dir(databaseOf(s.dir)), 0o700); err != nil {
		t.Fatal(err)
	}
	if s.db, err = sql.Open("sqlite3", databaseOf(s.dir)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close() })
	s.exec(`CREATE TABLE inbox (bot, kind, sender, chat, message_id, run); CREATE TABLE outbox (key, state, platform_message_id)`)
	return s
}

func (s *staged) exec(query string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(query, args...); err != nil {
		s.t.Fatal(err)
	}
}

// asks has the person write; the message's row names a run.
func (s *staged) asks() (run string) {
	s.t.Helper()
	m, err := s.chats[0].Say(0, "a question")
	if err != nil {
		s.t.Fatal(err)
	}
	s.run++
	run = fmt.Sprint("r", s.run)
	s.exec(`INSERT INTO inbox VALUES (?, 'message', 'x', ?, ?, ?)`, s.platform.Name, m.Chat, m.ID, run)
	return run
}

// says has the bot write into the chat; the reply's row belongs to a run.
func (s *staged) says(run string) {
	s.t.Helper()
	p, chat := s.platform, s.chats[0].ID
	url, body := p.URL+"/bot"+p.Token+"/sendMessage", `{"chat_id": "`+chat+`", "text": "an answer"}`
	if p.Name == "discord" {
		url, body = p.URL+"/api/v10/channels/"+chat+"/messages", `{"content": "an answer"}`
	}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bot " + p.Token}, "User-Agent": {"DiscordBot (https://example.org, 1)"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
	history := s.platform.History(chat)
	if run != "" {
		s.exec(`INSERT INTO outbox VALUES (?, 'sent', ?)`, "run:"+run, history[len(history)-1].ID)
	}
}

func TestTheCheckSeesWhatWentWrong(t *testing.T) {
	for name, c := range map[string]struct {
		play func(s *staged)
		want report.Verdict
	}{
		"all is well": {func(s *staged) { s.says(s.asks()); s.says(s.asks()) }, report.Verdict{Messages: 2, Answers: 2}},
		"two at once, in order": {func(s *staged) {
			a, b := s.asks(), s.asks()
			s.says(a)
			s.says(b)
		}, report.Verdict{Messages: 2, Answers: 2}},
		"out of order": {func(s *staged) {
			a, b := s.asks(), s.asks()
			s.says(b)
			s.says(a)
		}, report.Verdict{Messages: 2, Answers: 2, Disorder: 1}},
		"lost": {func(s *staged) { s.asks(); s.says(s.asks()) }, report.Verdict{Messages: 2, Answers: 1, Lost: 1}},
		"said to be sent, but not to be seen": {func(s *staged) {
			s.exec(`INSERT INTO outbox VALUES (?, 'sent', '4711')`, "run:"+s.asks())
		}, report.Verdict{Messages: 1, Lost: 1}},
		"sent twice without a word of it": {func(s *staged) { s.says(s.asks()); s.says("") }, report.Verdict{Messages: 1, Answers: 2, Doubled: 1}},
		"run twice": {func(s *staged) {
			a := s.asks()
			s.says(a)
			s.says(a)
		}, report.Verdict{Messages: 1, Answers: 2, Doubled: 1}},
	} {
		for i, platform := range []string{"telegram", "discord"} {
			t.Run(platform+", "+name, func(t *testing.T) {
				s := stage1(t, float64(i))
				c.play(s)
				got, err := s.check(t.Context(), s.dir)
				if err != nil || got[platform] != c.want || got.All() != c.want {
					t.Errorf("%+v, %v; want %+v", got, err, c.want)
				}
			})
		}
	}
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{}, {"--program", os.Args[0], "--only", "everything"}, {"--program", os.Args[0], "--rate", "0"}, {"--program", os.Args[0], "--each", "90"}, {"--program", os.Args[0], "--discord", "2"}, {"--program", os.Args[0], "--streaming", "1"}} {
		if code := run(t.Context(), args); code != 2 {
			t.Errorf("%v ended with %d, want 2", args, code)
		}
	}
}

// The tool against the real program: everything is answered, and the report
// has figures for both sides.
func TestTheToolMeasuresARealGateway(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	program := filepath.Join(t.TempDir(), "gatehouse")
	if out, err := coretest.GoBuild("-o", program, "../gatehouse").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	path := filepath.Join(t.TempDir(), "performance.md")
	code := run(t.Context(), []string{"--program", program, "--only", "latency,burst,memory", "--messages", "100", "--discord", "0.5", "--chats", "20", "--each", "2",
		"--rounds", "1", "--settle", "1s", "--dir", t.TempDir(), "--report", path})
	if code != 0 {
		t.Fatalf("ended with %d", code)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"latency p99, one in flight", "burst of 20 chats × 2", "memory (RSS), idle", "of 240 messages", "commits per message", "| deliver |", "one in flight, bare loop, discord", "one in flight, gateway, telegram", "| discord | 120 | 120 | 0 | 0 | 0 |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if _, err := os.Stat(strings.TrimSuffix(path, ".md") + ".json"); err != nil {
		t.Error(err)
	}
}
