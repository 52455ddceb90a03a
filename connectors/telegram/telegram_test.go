package telegram

import (
	"log/slog"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/connectors"
	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// platform is a simulator that ends with the test.
func platform(t testing.TB, o telegramtest.Options) *telegramtest.Server {
	t.Helper()
	s := telegramtest.New(o)
	t.Cleanup(func() { s.Close() })
	return s
}

// connect makes a bot for the simulator; change adjusts its options.
func connect(t testing.TB, s *telegramtest.Server, store *connectorstest.Store, change func(*Options)) *Bot {
	t.Helper()
	o := Options{Name: "bot", Token: s.Token(), APIURL: s.URL(), Cursors: store, Memory: store, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if change != nil {
		change(&o)
	}
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// inject makes f happen to requests to come.
func inject(t testing.TB, s *telegramtest.Server, f telegramtest.Fault) {
	t.Helper()
	if _, err := s.Inject(f); err != nil {
		t.Fatal(err)
	}
}

func chatOf(id int64) core.Address {
	a := core.Address{Bot: "bot", Chat: strconv.FormatInt(id, 10)}
	if id < 0 {
		a.Place = a.Chat
	}
	return a
}

func inThread(id int64, thread int) core.Address {
	a := chatOf(id)
	a.Thread = strconv.Itoa(thread)
	a.Chat += "/" + a.Thread
	return a
}

func TestSuite(t *testing.T) {
	connectorstest.Suite(t, func(t *testing.T) *connectorstest.Platform {
		s := platform(t, telegramtest.Options{FloodOff: true})
		ada := s.NewUser("Ada")
		forum := s.NewGroup(telegramtest.Forum, "Club", ada)
		topic := forum.NewTopic(ada, "Talk")
		s.Bot().IdleWeek() // the group's own updates are not the suite's business
		where := func(a core.Address) (telegramtest.Conversation, int) {
			if a.Place == "" {
				return ada.DM(), 0
			}
			return forum.Conversation(), topic
		}
		return &connectorstest.Platform{
			Connect: func(t *testing.T, store *connectorstest.Store, log *slog.Logger) connectors.Connector {
				return connect(t, s, store, func(o *Options) { o.Log = log })
			},
			Secret: s.Token(),
			Say:    func(text string) { ada.Send(text) },
			SayThere: func(text string) {
				if _, err := ada.Post(forum.Conversation(), telegramtest.Outgoing{Text: text + " @gatehouse_bot", Thread: topic}); err != nil {
					t.Error(err)
				}
			},
			Garbage: func() { s.Bot().InjectRaw(`{"update_id":{id},"message":{"message_id":"x","chat":7}}`) },
			DM:      chatOf(ada.ID()), Thread: inThread(forum.ID(), topic),
			Seen: func(a core.Address) []string {
				in, thread := where(a)
				var out []string
				for _, m := range s.History(in) {
					if m.FromBot() && m.Thread == thread {
						out = append(out, m.Text)
					}
				}
				return out
			},
			Typing:  func(a core.Address) bool { in, _ := where(a); return len(s.Screen(in).Typing) > 0 },
			Pending: func() int { return s.Bot().Pending() },
			Flood: func(wait time.Duration) {
				inject(t, s, telegramtest.Fault{Kind: telegramtest.Flooded, Method: "sendMessage", RetryAfter: int(wait / time.Second), Count: 1})
			},
			LoseAnswer: func() {
				inject(t, s, telegramtest.Fault{Kind: telegramtest.Reset, Method: "sendMessage", After: true, Count: 1})
			},
			Down:   s.Down,
			Up:     func() { s.Up() },
			Revoke: func() { s.Bot().Revoke() },
			Shut:   ada.Block,
			Open:   ada.Unblock,
		}
	})
}
