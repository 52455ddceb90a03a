package discordtest

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"gatehouse/connectors/simulator"
	"gatehouse/core"
)

// DefaultToken is the first bot's token when Options names none. Its first
// part is the bot's id in base 64.
const DefaultToken = "NzAwMDAwMDAwMDAwMDAwMDAx.GhSiMu.simulated-platform-token-0000000000001"

// DefaultBot is the first bot's id, and its application's, when Options names none.
const DefaultBot ID = 700000000000000001

// A BotAccount is one bot that the platform knows. Its application has the same id.
type BotAccount struct {
	Token    string // without "Bot "; DefaultToken when empty
	ID       ID     // DefaultBot when 0
	Username string // "gatehouse" when empty
	// Intents are the privileged intents that are switched on in the developer
	// portal: IntentContent, IntentMembers, IntentPresences. None by default,
	// as on the platform ([gateway] "Enabling Privileged Intents").
	Intents int
}

// Options change how the simulator behaves; the zero value is a strict
// platform with one bot, its limits on, on a free port of 127.0.0.1.
type Options struct {
	// Addr is where it listens; anything but loopback is refused. Empty: where
	// it did when StateFile was written, as a platform keeps its name, or where
	// that is taken, "127.0.0.1:0".
	Addr  string
	Clock core.Clock   // core.System when nil
	Bots  []BotAccount // one default bot when empty
	// FloodOff switches off what would slow a load run: rate limits of REST, of
	// IDENTIFY, and of what a bot sends over the gateway.
	FloodOff    bool
	Heartbeat   time.Duration // heartbeat_interval; 41.25 s when 0 ([practice])
	SessionLife time.Duration // how long a session can be resumed; 3 min when 0 ([gateway] "timeout after a few minutes")
	NonceLife   time.Duration // how long nonces are known; 3 min when 0 ([message] enforce_nonce: "the past few minutes")
	Starts      int           // IDENTIFYs in 24 hours; 1,000 when 0 ([gateway] "Identifying")
	Replay      int           // events a session keeps for RESUME; 10,000 when 0 (ours)
	Seed        uint64        // of tokens and fault probabilities; 1 when 0
	StateFile   string        // "" keeps nothing between runs
	LogSize     int           // requests kept in the log; 20,000 when 0
}

// A Server is one simulated platform. Its methods may be called from any
// goroutine. Bounds: 200,000 users, channels and guilds each, 1,000 messages
// per channel, 64 MiB of files, 10,000 interactions, Options.LogSize logged
// requests, 100 gateway connections.
type Server struct {
	*simulator.Site
	*simulator.Faults[float64]
	*simulator.Watchers[Change]
	*simulator.Journal[Request]

	opt     Options
	clock   core.Clock
	last    string // where it listened when the state was saved
	gateway *simulator.Log[GatewayEvent]

	mu           sync.Mutex
	bots         []*bot
	byToken      map[string]*bot
	byBot        map[ID]*bot
	users        map[ID]*User
	names        map[string]ID // lower-case username → account
	guilds       map[ID]*guild
	channels     map[ID]*channel
	direct       map[pair]ID // the DM of a bot and a user
	files        []*storedFile
	stored       int
	lastID       ID
	interactions map[ID]*interaction
	tokens       map[string]*interaction // by token
	recent       []ID                    // interactions, oldest first
	conns        map[*conn]struct{}
	connID       int
	rand         *rand.Rand
	floodOff     bool
	wrong        window // 401, 403 and 429 answers
	bannedUntil  time.Time
}

// New starts a simulator and, like httptest.NewServer, panics when it can't:
// no loopback address, or options that make no sense. Tests use it; a program
// that lets its user choose the address or the state file uses Open.
func New(opt Options) *Server {
	s, err := Open(opt)
	if err != nil {
		panic(err)
	}
	return s
}

// Open starts a simulator. It fails with core.Invalid for two bots with one
// id or token or an address that is not loopback, and when Addr or StateFile
// can't be used.
func Open(opt Options) (*Server, error) {
	s := &Server{
		opt: opt, clock: opt.Clock, floodOff: opt.FloodOff,
		byToken: map[string]*bot{}, byBot: map[ID]*bot{}, users: map[ID]*User{}, names: map[string]ID{},
		guilds: map[ID]*guild{}, channels: map[ID]*channel{}, direct: map[pair]ID{}, interactions: map[ID]*interaction{}, tokens: map[string]*interaction{},
		conns: map[*conn]struct{}{}, Journal: simulator.NewJournal(opt.LogSize, (*Request).parts), gateway: simulator.NewLog(maxEvents, (*GatewayEvent).parts),
	}
	if s.clock == nil {
		s.clock = core.System{}
	}
	seed := max(opt.Seed, 1)
	s.rand = rand.New(rand.NewPCG(seed, seed))
	s.Site = simulator.NewSite(simulator.Plan{Platform: s, Clock: s.clock, Hangup: s.hangup, StateFile: opt.StateFile, Snapshot: s.snapshot})
	s.Faults = simulator.NewFaults(s.Site, seed, faultAnswers)
	s.Watchers = simulator.NewWatchers(s.Site, (*Change).parts)
	s.wrong = window{limit: 10_000, per: 10 * time.Minute}
	s.defaults()
	if err := s.addBots(opt.Bots); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	addrs := []string{opt.Addr}
	if opt.Addr == "" && s.last != "" {
		addrs = []string{s.last, ""}
	}
	if err := s.Site.Open(addrs...); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) defaults() {
	o := &s.opt
	if o.Heartbeat == 0 {
		o.Heartbeat = 41250 * time.Millisecond
	}
	if o.SessionLife == 0 {
		o.SessionLife = 3 * time.Minute
	}
	if o.NonceLife == 0 {
		o.NonceLife = 3 * time.Minute
	}
	if o.Starts == 0 {
		o.Starts = 1000
	}
	if o.Replay == 0 {
		o.Replay = 10_000
	}
}

func (s *Server) addBots(accounts []BotAccount) error {
	if len(accounts) == 0 {
		accounts = []BotAccount{{}}
	}
	for i, a := range accounts {
		if a.Token == "" && i == 0 {
			a.Token = DefaultToken
		}
		if a.ID == 0 {
			a.ID = DefaultBot + ID(i)
		}
		if a.Username == "" {
			a.Username = "gatehouse"
		}
		name := strings.ToLower(a.Username)
		switch {
		case a.Token == "" || s.byToken[a.Token] != nil:
			return core.Errorf(core.Invalid, "bot %d needs a token of its own", i+1)
		case s.byBot[a.ID] != nil || s.names[name] != 0:
			return core.Errorf(core.Invalid, "bot %d needs an id and a name of its own", i+1)
		}
		b := &bot{account: Account{ID: a.ID, Name: a.Username, Username: a.Username, Bot: true}, token: a.Token, given: a.Token, allowed: a.Intents & privileged,
			sessions: map[string]*session{}, commands: map[ID][]command{}, nonces: map[string]*nonce{}, buckets: map[string]*window{}}
		s.bots = append(s.bots, b)
		s.byToken[a.Token], s.byBot[a.ID], s.names[name] = b, b, a.ID
	}
	return nil
}

// Token returns the first bot's token, without "Bot ".
func (s *Server) Token() string { return s.Bot().Token() }

// hangup drops the gateway's connections; sessions stay.
func (s *Server) hangup() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.drop("the platform went away")
	}
}

// ServeHTTP serves REST, the gateway, files and the control interface.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.Enter()()
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/api/"):
		s.serveAPI(w, r, path[len("/api/"):])
	case strings.HasPrefix(path, "/gateway"):
		s.serveGateway(w, r)
	case strings.HasPrefix(path, "/attachments/"):
		s.serveFile(w, r)
	case strings.HasPrefix(path, simulator.ControlPath):
		s.serveControl(w, r)
	default:
		failed(errNotFound).Write(w)
	}
}

// newID makes the next snowflake ([reference] "Snowflakes"): always greater
// than the last, whatever the clock does.
func (s *Server) newID() ID {
	id := ID(max(s.clock.Now().UnixMilli()-epoch, 1)) << 22
	s.lastID = max(id, s.lastID+1)
	return s.lastID
}

// secret returns n characters of a token.
func (s *Server) secret(n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[s.rand.IntN(len(letters))]
	}
	return string(b)
}
