package field

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
)

// A staged conversation: what people see, and what the gateway's tables say.
type staged struct {
	t *testing.T
	*Field
	platform *crowd.Platform
	dir      string
	db       *sql.DB
	run      int
}

func stage1(t *testing.T, onDiscord float64) *staged {
	t.Helper()
	f, err := New(1, onDiscord)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	s := &staged{t: t, Field: f, platform: f.Platforms[0], dir: t.TempDir()}
	if err := os.MkdirAll(filepath.Dir(Database(s.dir)), 0o700); err != nil {
		t.Fatal(err)
	}
	if s.db, err = sql.Open("sqlite3", Database(s.dir)); err != nil {
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
	m, err := s.Chats[0].Say(0, "a question")
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
	p, chat := s.platform, s.Chats[0].ID
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
				got, err := s.Check(t.Context(), s.dir, "")
				if err != nil || got[platform] != c.want || got.All() != c.want {
					t.Errorf("%+v, %v; want %+v", got, err, c.want)
				}
			})
		}
	}
}
