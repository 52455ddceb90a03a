package discord

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/connectors"
	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/discord/markup/markuptest"
	"gatehouse/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testToken is of the platform's form: the id 1000000000000000001, a time, a
// signature. It opens nothing.
const testToken = "MTAwMDAwMDAwMDAwMDAwMDAwMQ.GtEsTx.not-a-real-signature-0123456789abcdef"

// platform is a simulator that ends with the test; its bot may read all.
func platform(t testing.TB, o discordtest.Options) *discordtest.Server {
	t.Helper()
	s := discordtest.New(o)
	s.Bot().SetIntents(discordtest.IntentContent)
	t.Cleanup(func() { s.Close() })
	return s
}

// connect makes a bot for the simulator; change adjusts its options.
func connect(t testing.TB, s *discordtest.Server, store *connectorstest.Store, change func(*Options)) *Bot {
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
func inject(t testing.TB, s *discordtest.Server, f discordtest.Fault) {
	t.Helper()
	if _, err := s.Inject(f); err != nil {
		t.Fatal(err)
	}
}

func direct(id discordtest.ID) core.Address { return core.Address{Bot: "bot", Chat: id.String()} }

func inChannel(id discordtest.ID) core.Address {
	return core.Address{Bot: "bot", Chat: id.String(), Place: id.String()}
}

func inThread(channel, thread discordtest.ID) core.Address {
	return core.Address{Bot: "bot", Chat: thread.String(), Thread: thread.String(), Place: channel.String()}
}

// lastSeq is the number of the last gateway event in the simulator's log; ""
// is any kind.
func lastSeq(s *discordtest.Server, kind string) uint64 {
	log := s.GatewayLog(0, kind)
	if len(log) == 0 {
		return 0
	}
	return log[len(log)-1].Seq
}

// confirmed asks the bot for a heartbeat and gives the event it names; -1 when
// it is not there.
func confirmed(t testing.TB, s *discordtest.Server) int64 {
	t.Helper()
	after := lastSeq(s, "")
	if !s.Bot().Online() {
		return -1
	}
	s.Bot().AskHeartbeat()
	for {
		switch e := gatewayEvent(t, s, after, ""); e.Kind {
		case "heartbeat":
			return e.SeqNo
		case "left", "drop":
			return -1
		default:
			after = e.Seq
		}
	}
}

// gatewayEvent waits for the next event of a kind behind after.
func gatewayEvent(t testing.TB, s *discordtest.Server, after uint64, kind string) discordtest.GatewayEvent {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	e, err := s.AwaitGateway(ctx, after, kind)
	if err != nil {
		t.Fatalf("no %q came: %v; the log is %+v", kind, err, s.GatewayLog(0, ""))
	}
	return e
}

func TestSuite(t *testing.T) {
	connectorstest.Suite(t, func(t *testing.T) *connectorstest.Platform {
		s := platform(t, discordtest.Options{FloodOff: true})
		ada := s.NewUser("Ada")
		club := s.NewGuild("Club", ada)
		club.AddBot(s.Bot())
		talk := club.NewChannel("talk")
		thread, err := ada.StartThread(talk, 0, "Thread")
		if err != nil {
			t.Fatal(err)
		}
		return &connectorstest.Platform{
			Live: true,
			Connect: func(t *testing.T, store *connectorstest.Store, log *slog.Logger) connectors.Connector {
				return connect(t, s, store, func(o *Options) { o.Log = log })
			},
			Secret: s.Token(),
			Say: func(text string) {
				ada.Send(text)
			},
			SayThere: func(text string) {
				if _, err := ada.Say(thread, text+" "+s.Bot().Mention()); err != nil {
					t.Error(err)
				}
			},
			Garbage: func() {
				if err := s.Bot().Dispatch("MESSAGE_CREATE", json.RawMessage(`{"id":{},"channel_id":7}`)); err != nil {
					t.Error(err)
				}
			},
			DM: direct(ada.DM()), Thread: inThread(talk, thread),
			Seen: func(a core.Address) []string {
				id, err := discordtest.ParseID(a.Chat)
				if err != nil {
					t.Error(err)
				}
				var out []string
				for _, m := range s.History(id) {
					if m.FromBot() {
						out = append(out, strings.TrimSpace(markuptest.Show(m.Text).Text.String()))
					}
				}
				return out
			},
			Typing: func(a core.Address) bool {
				id, err := discordtest.ParseID(a.Chat)
				return err == nil && len(s.Screen(id).Typing) > 0
			},
			Pending: func() int {
				if confirmed(t, s) < s.Bot().Dispatched() {
					return 1
				}
				return 0
			},
			Flood: func(wait time.Duration) {
				inject(t, s, discordtest.Fault{Kind: discordtest.Flooded, Method: "createMessage", RetryAfter: wait.Seconds(), Count: 1})
			},
			LoseAnswer: func() {
				inject(t, s, discordtest.Fault{Kind: discordtest.Reset, Method: "createMessage", After: true, Count: 1})
			},
			Down: s.Down,
			Up: func() {
				if err := s.Up(); err != nil {
					t.Error(err)
				}
			},
			Revoke: func() { s.Bot().Revoke() },
			Shut:   ada.CloseDMs,
			Open:   ada.OpenDMs,
		}
	})
}

func TestNewRefusesWhatCantWorkAndShowsNoToken(t *testing.T) {
	store := &connectorstest.Store{}
	for i, o := range []Options{
		{Name: "bot", Token: "nonsense", Cursors: store},
		{Name: "bot", Token: "Bot " + testToken, Cursors: store},
		{Name: "", Token: testToken, Cursors: store},
		{Name: "bot", Token: testToken},
		{Name: "bot", Token: testToken, Cursors: store, APIURL: "ftp://x"},
		{Name: "bot", Token: testToken, Cursors: store, APIURL: "https://u:p@x"},
	} {
		_, err := New(o)
		if core.KindOf(err) != core.Invalid || strings.Contains(err.Error(), "signature") {
			t.Errorf("case %s: %v", strconv.Itoa(i), err)
		}
	}
}
