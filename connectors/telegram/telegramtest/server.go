package telegramtest

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"gatehouse/connectors/simulator"
	"gatehouse/core"
)

// DefaultToken is the first bot's token when Options names none.
const DefaultToken = "7000000001:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"

// A BotAccount is one bot that the platform knows.
type BotAccount struct {
	Token    string // "<numeric id>:<35 characters>"; DefaultToken when empty
	Name     string // "Gatehouse" when empty
	Username string // "gatehouse_bot" when empty
	// Privacy keeps unaddressed lines of groups from the bot ([features]
	// "Privacy mode"). On the platform it is on for new bots; here a test
	// that wants it asks for it.
	Privacy bool
}

// Options change how the simulator behaves; the zero value is a strict
// platform with one bot, flood control on, on a free port of 127.0.0.1.
type Options struct {
	Addr         string        // "127.0.0.1:0" when empty; anything but loopback is refused
	Clock        core.Clock    // core.System when nil
	Bots         []BotAccount  // one default bot when empty
	FloodOff     bool          // no flood control: for load
	NoDrafts     bool          // an older platform, without sendMessageDraft
	QueryTimeout time.Duration // how long a callback query can be answered; 15 s when 0 (ours: the platform names no figure)
	Seed         uint64        // of update ids and fault probabilities; 1 when 0
	StateFile    string        // "" keeps nothing between runs
	LogSize      int           // requests kept in the log; 20,000 when 0
}

// A Server is one simulated platform. Its methods may be called from any
// goroutine. Bounds: 200,000 accounts and chats each, 500 messages per chat,
// 100,000 waiting updates per bot, Options.LogSize logged requests.
type Server struct {
	*simulator.Site
	*simulator.Faults[int]
	*simulator.Watchers[Change]
	*simulator.Journal[Request]

	opt   Options
	clock core.Clock

	mu       sync.Mutex
	bots     []*bot
	byToken  map[string]*bot
	byBot    map[int64]*bot
	users    map[int64]*User
	names    map[string]int64 // lower-case username → account
	chats    map[Conversation]*chat
	files    map[string]*storedFile
	stored   int64 // bytes of files held in memory
	nextID   int64 // of users and groups
	queryID  int64
	rand     *rand.Rand
	floodOff bool
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

// Open starts a simulator. It fails with core.Invalid for a malformed token or
// an address that is not loopback, and when Addr or StateFile can't be used.
func Open(opt Options) (*Server, error) {
	s := &Server{
		opt: opt, clock: opt.Clock,
		byToken: map[string]*bot{}, byBot: map[int64]*bot{}, users: map[int64]*User{}, names: map[string]int64{},
		chats: map[Conversation]*chat{}, files: map[string]*storedFile{},
		nextID: 1_000_000_001, floodOff: opt.FloodOff, Journal: simulator.NewJournal(opt.LogSize, (*Request).parts),
	}
	if s.clock == nil {
		s.clock = core.System{}
	}
	seed := max(opt.Seed, 1)
	s.rand = rand.New(rand.NewPCG(seed, seed))
	s.queryID = s.rand.Int64N(1 << 60)
	s.Site = simulator.NewSite(simulator.Plan{Platform: s, Clock: s.clock, StateFile: opt.StateFile, Snapshot: s.snapshot})
	s.Faults = simulator.NewFaults(s.Site, seed, faultAnswers)
	s.Watchers = simulator.NewWatchers(s.Site, (*Change).parts)
	if s.opt.QueryTimeout == 0 {
		s.opt.QueryTimeout = 15 * time.Second
	}
	if err := s.addBots(opt.Bots); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	if err := s.Site.Open(opt.Addr); err != nil {
		return nil, err
	}
	return s, nil
}

// wellFormed is the shape of a token ([api] "Authorizing your bot"). One of
// another shape never reaches a bot: the platform answers 404.
var wellFormed = core.Pattern(`^[1-9][0-9]{0,15}:[A-Za-z0-9_-]{35}$`)

func (s *Server) addBots(accounts []BotAccount) error {
	if len(accounts) == 0 {
		accounts = []BotAccount{{}}
	}
	for i, a := range accounts {
		if a.Token == "" && i == 0 {
			a.Token = DefaultToken
		}
		if !wellFormed().MatchString(a.Token) {
			return core.Errorf(core.Invalid, "bot %d: a token is <number>:<35 characters>", i+1)
		}
		if a.Name == "" {
			a.Name = "Gatehouse"
		}
		if a.Username == "" {
			a.Username = "gatehouse_bot"
		}
		if err := s.addBot(a); err != nil {
			return err
		}
	}
	return nil
}

// Token returns the first bot's token.
func (s *Server) Token() string { return s.Bot().Token() }

// ServeHTTP serves the Bot API, file downloads and the control interface.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.Enter()()
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/bot"):
		s.serveMethod(w, r, path[len("/bot"):])
	case strings.HasPrefix(path, "/file/bot"):
		s.serveFile(w, r, path[len("/file/bot"):])
	case strings.HasPrefix(path, simulator.ControlPath):
		s.serveControl(w, r)
	default:
		failed(errNotFound).Write(w) // [server] HttpConnection.cpp
	}
}

// A call is one request to a method, read and authorised.
type call struct {
	ctx context.Context
	bot *bot
	p   params
	now time.Time

	uploads map[string]File // by field; at most maxUploads
}

func (s *Server) serveMethod(w http.ResponseWriter, r *http.Request, rest string) {
	token, method, authorized := strings.Cut(rest, "/")
	method = strings.ToLower(strings.Trim(method, "/")) // [api]: "All methods in the Bot API are case-insensitive"
	began := s.clock.Now()
	entry := Request{At: began, Token: token, Method: method}
	x, ok := s.Begin(w, r, method, func(outcome string) {
		entry.Outcome = outcome
		s.record(entry)
	})
	if !ok {
		return
	}
	p, uploads, err := readParams(w, r)
	if method == "" {
		method = strings.ToLower(p["method"]) // [server] Query.cpp
	}
	entry.Method, entry.Params = method, p
	var a answer
	switch {
	case err != nil:
		a = failed(bad("can't parse the request: " + err.Error()))
	case !authorized || !wellFormed().MatchString(token):
		a = failed(errNotFound)
	default:
		result, id, fault := s.dispatch(r.Context(), token, method, p, uploads)
		if fault != nil && fault.late > 0 {
			s.Pause(r.Context(), fault.late)
		}
		if fault == nil {
			a, entry.MessageID = succeeded(result), id
		} else {
			a, entry.Description = failed(fault), fault.text
		}
	}
	entry.Status, entry.Took = a.Status, s.clock.Now().Sub(began)
	x.End(a)
}

// dispatch finds the bot and the method and returns the result's JSON and the
// id of the message it is, if it is one. getUpdates waits, so it locks for
// itself; every other method runs, and its result is written, under the lock.
func (s *Server) dispatch(ctx context.Context, token, method string, p params, uploads map[string]File) (json.RawMessage, int, *apiError) {
	s.mu.Lock()
	b := s.byToken[token]
	if b == nil {
		s.mu.Unlock()
		return nil, 0, errUnauthorized
	}
	c := &call{ctx: ctx, bot: b, p: p, now: s.clock.Now(), uploads: uploads}
	if method == "getupdates" {
		s.mu.Unlock()
		page, err := s.getUpdates(c)
		return page, 0, err
	}
	defer s.mu.Unlock()
	do, ok := methods[method]
	if !ok || method == "sendmessagedraft" && s.opt.NoDrafts {
		return nil, 0, errNoMethod
	}
	s.Touch()
	result, fault := do(s, c)
	if fault != nil {
		return nil, 0, fault
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return nil, 0, &apiError{code: 500, text: "Internal Server Error: " + err.Error()}
	}
	if m, ok := result.(*wireMessage); ok {
		return raw, m.MessageID, nil
	}
	return raw, 0, nil
}

// methods are what this platform can do in addition to getUpdates, in lower case.
var methods = map[string]func(*Server, *call) (any, *apiError){
	"getme":                  (*Server).getMe,
	"setwebhook":             (*Server).setWebhook,
	"deletewebhook":          (*Server).deleteWebhook,
	"getwebhookinfo":         (*Server).webhookInfo,
	"sendmessage":            (*Server).sendMessage,
	"sendphoto":              (*Server).sendPhoto,
	"senddocument":           (*Server).sendDocument,
	"editmessagetext":        (*Server).editText,
	"editmessagereplymarkup": (*Server).editMarkup,
	"deletemessage":          (*Server).deleteMessage,
	"sendchataction":         (*Server).chatAction,
	"sendmessagedraft":       (*Server).sendDraft,
	"answercallbackquery":    (*Server).answerCallback,
	"getfile":                (*Server).getFile,
	"setmycommands":          (*Server).setCommands,
	"getmycommands":          (*Server).getCommands,
	"deletemycommands":       (*Server).deleteCommands,
	"getchat":                (*Server).getChat,
	"setmessagereaction":     (*Server).setReaction,
}
