package discordtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

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
// goroutine. Bounds: 200,000 people, channels and guilds each, 1,000 messages
// per channel, 64 MiB of files, 10,000 interactions, Options.LogSize logged
// requests, 100 gateway connections.
type Server struct {
	opt   Options
	clock core.Clock
	addr  string
	last  string // where it listened when the state was saved

	mu           sync.Mutex
	bots         []*bot
	byToken      map[string]*bot
	byBot        map[ID]*bot
	users        map[ID]*User
	names        map[string]ID // lower-case username → account
	guilds       map[ID]*guild
	channels     map[ID]*channel
	direct       map[pair]ID // the DM of a bot and a person
	files        []*storedFile
	stored       int
	lastID       ID
	interactions map[ID]*interaction
	tokens       map[string]*interaction // by token
	recent       []ID                    // interactions, oldest first
	conns        map[*conn]struct{}
	connID       int
	rand         *rand.Rand
	faults       []*activeFault
	faultID      int
	floodOff     bool
	wrong        window // 401, 403 and 429 answers
	bannedUntil  time.Time
	watchers     map[int]func(Change)
	watchID      int
	changes      uint64
	journal      journal
	gateway      gatewayLog
	dirty        bool

	saving  sync.Mutex // one writer of the state file at a time
	ln      net.Listener
	http    *http.Server
	down    bool
	closing chan struct{}
	once    sync.Once
	loops   sync.WaitGroup
	active  sync.WaitGroup
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
		conns: map[*conn]struct{}{}, watchers: map[int]func(Change){}, closing: make(chan struct{}),
	}
	if s.clock == nil {
		s.clock = core.System{}
	}
	seed := max(opt.Seed, 1)
	s.rand = rand.New(rand.NewPCG(seed, seed))
	s.journal.limit = opt.LogSize
	s.wrong = window{limit: 10_000, per: 10 * time.Minute}
	s.defaults()
	if err := s.addBots(opt.Bots); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	if opt.Addr != "" || s.last == "" || s.listen(s.last) != nil {
		if err := s.listen(opt.Addr); err != nil {
			return nil, err
		}
	}
	if opt.StateFile == "" {
		return s, nil
	}
	s.loops.Go(s.saveLoop)
	if err := s.save(false); err != nil { // from here on a crash is not a clean end
		return nil, errors.Join(err, s.Close())
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

// listen opens the address. A server that was taken down comes back on the
// same one.
func (s *Server) listen(addr string) error {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return core.Errorf(core.Invalid, "address %q: %v", addr, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return core.Errorf(core.Invalid, "address %q is not loopback", addr)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	s.addr = ln.Addr().String()
	s.ln = ln
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	srv := s.http
	s.loops.Go(func() { srv.Serve(ln) })
	return nil
}

// URL is the base, "http://127.0.0.1:<port>": what a bot uses in place of
// https://discord.com. REST is under URL()+"/api/v10"; files are under it too.
func (s *Server) URL() string { return "http://" + s.addr }

// Token is the first bot's token, without "Bot ".
func (s *Server) Token() string { return s.Bot().Token() }

// Down takes the platform off the network: connections are cut, new ones
// refused. What it knows stays, sessions too.
func (s *Server) Down() {
	s.mu.Lock()
	srv, ln, was := s.http, s.ln, s.down
	s.down = true
	for c := range s.conns {
		c.drop("the platform went away")
	}
	s.mu.Unlock()
	if !was {
		ln.Close() // Serve may not have taken it yet
		srv.Close()
	}
}

// Up brings it back on the same address.
func (s *Server) Up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.down {
		return nil
	}
	if err := s.listen(s.addr); err != nil {
		return err
	}
	s.down = false
	return nil
}

// Close ends every exchange, stores the state and returns when no goroutine
// of the server is left. Calling it again does nothing.
func (s *Server) Close() error {
	var err error
	s.once.Do(func() {
		s.mu.Lock()
		close(s.closing)
		srv, ln := s.http, s.ln
		for c := range s.conns {
			c.drop("the platform went away")
		}
		s.mu.Unlock()
		ln.Close()
		srv.Close()
		s.active.Wait()
		s.loops.Wait()
		err = s.save(true)
	})
	return err
}

// enter counts a request that Close waits for; false once it is closing.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closing:
		return false
	default:
	}
	s.active.Add(1)
	return true
}

// ServeHTTP serves REST, the gateway, files and the control interface.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler) // accepted in the moment of closing
	}
	defer s.active.Done()
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/api/"):
		s.serveAPI(w, r, path[len("/api/"):])
	case strings.HasPrefix(path, "/gateway"):
		s.serveGateway(w, r)
	case strings.HasPrefix(path, "/attachments/"):
		s.serveFile(w, r)
	case strings.HasPrefix(path, "/control/"):
		s.serveControl(w, r)
	default:
		failed(errNotFound).write(w)
	}
}

// newID makes the next snowflake ([reference] "Snowflakes"): always greater
// than the last, whatever the clock does.
func (s *Server) newID() ID {
	id := ID(max(s.clock.Now().UnixMilli()-epoch, 1)) << 22
	s.lastID = max(id, s.lastID+1)
	return s.lastID
}

// secret is n characters of a token.
func (s *Server) secret(n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[s.rand.IntN(len(letters))]
	}
	return string(b)
}

func (s *Server) pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-s.clock.After(d):
	case <-ctx.Done():
	case <-s.closing:
	}
}
