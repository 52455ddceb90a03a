package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/attach"
	"gatehouse/core/bus"
	"gatehouse/core/coretest"
	"gatehouse/core/council/ledger"
	"gatehouse/core/index/search"
	"gatehouse/core/memory"
	"gatehouse/core/memory/backup"
	"gatehouse/core/permission"
	"gatehouse/core/permission/guard"
	"gatehouse/core/response"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/usage"
	"gatehouse/core/vault"
	"gatehouse/core/voice/hearing"
	"gatehouse/web"
	"gatehouse/web/api/bots"
	"gatehouse/web/api/health"
	"gatehouse/web/api/imports"
	"gatehouse/web/api/projects"
	"gatehouse/web/api/sessions"
	"gatehouse/web/api/turns"
	"gatehouse/web/api/v0"
	"gatehouse/web/auth"
	"gatehouse/web/importing"
	"gatehouse/web/openai"
	"gatehouse/web/openai/answer"
	"gatehouse/web/openai/embeddings"
	"gatehouse/web/openai/responses"
	"gatehouse/web/openai/transcriptions"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A harness is the API on loopback over a real store, a real bus and doubles for
// the rest; every exchange is held against the contract.
type harness struct {
	t         *testing.T
	failed    map[string]bool // sessions whose newest turn failed
	clock     *coretest.Clock
	db        *store.DB
	keys      *auth.Keys
	admins    *auth.Admins
	bus       *bus.Bus
	desk      *ask.Store
	guard     *guard.Guard
	vault     *vault.Vault
	notes     *backup.Store
	ledger    roomDouble
	councils  *ledger.Store
	imports   *importsDouble
	store     *session.Store // sessions and their changes; the field sessions has the owners
	api       *API
	first     *v0.API
	v1        *openai.API
	responses *responses.API
	vectors   *embeddings.API
	heard     *transcriptions.API
	agents    http.Handler // MCP
	site      *web.Site
	url       string
	onExport  func()            // called before an export is made
	onMay     func(name string) // called for each file of a sync, concurrently
	fails     string            // a file that a sync can neither write nor delete
	client    *http.Client
	seen      *contract
	log       *coretest.Log
	memory    *memory.Store
	stop      func()

	mu       sync.Mutex
	put      []core.Inbound
	putErr   error
	waiting  map[string]int     // by sender: what Queued returns
	onPut    func(core.Inbound) // called for each new turn, not holding mu
	runs     map[string]turns.Run
	door     *auth.Authenticator
	looked   int // how often a run was looked up
	aborted  []string
	onAbort  func(session string)
	sessions map[string]sessions.Row
	query    sessions.Query
	asked    search.Query // of the search
	asker    search.Reader
	found    search.Page
	findErr  error
	refilled int
	bots     []core.BotState
	testErr  error
	requests map[string]core.PairingRequest
	rows     []core.AccessRow
	approval core.Approval
	checkErr error
	stored   map[string][]bus.Entry // run events "in storage"
	posted   map[string]bots.Posted
	mailErr  error
	unasked  bots.Unasked
}

type options struct {
	admin     bool
	localhost bool
	streams   int
	origins   []string
}

func open(t *testing.T, o options) *harness {
	t.Helper()
	h := &harness{t: t, clock: coretest.NewClock(time.Time{}), log: &coretest.Log{}, runs: map[string]turns.Run{}, sessions: map[string]sessions.Row{},
		requests: map[string]core.PairingRequest{}, stored: map[string][]bus.Entry{}, posted: map[string]bots.Posted{}}
	h.db = storetest.Open(t, h.clock)
	logger := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	site, err := web.NewSite(web.SiteOptions{Log: logger, Clock: h.clock, Origins: o.origins})
	if err != nil {
		t.Fatal(err)
	}
	address := func(r *http.Request) string { return web.From(r.Context()).Key() }
	h.keys = auth.NewKeys(h.db, h.clock, logger)
	h.admins = auth.NewAdmins(h.db, auth.AdminOptions{Clock: h.clock, Log: logger, Address: address, Password: "panel password"})
	if o.admin { // one costly hash, so only where a test signs in
		if _, err := h.admins.Prepare(context.Background(), false); err != nil {
			t.Fatal(err)
		}
	}
	door := auth.NewAuthenticator(h.keys, h.admins, auth.AuthenticatorOptions{Clock: h.clock, Localhost: o.localhost, Address: address,
		Local: func(r *http.Request) bool { return web.From(r.Context()).Local }})
	h.door = door
	v, err := vault.Open(filepath.Join(t.TempDir(), "vault"))
	if err != nil {
		t.Fatal(err)
	}
	h.vault = v
	h.store = session.New(session.Options{DB: h.db, Vault: v, Clock: h.clock, Log: logger})
	t.Cleanup(func() { _ = errors.Join(h.store.Close(), v.Close()) })
	h.bus = bus.New(h.load, h.latest)
	h.bus.Clock = h.clock
	h.desk = ask.New(h.db, h.clock)
	h.guard = guard.New(guard.Options{DB: h.db, Asks: h.desk, Clock: h.clock, Show: ringDouble{h.bus}})
	registry := prometheus.NewRegistry()
	h.imports = h.newImports(logger)
	h.api = New(Options{Imports: imports.Options{Imports: h.imports, Reports: h.imports, Temp: v.Unnamed, Intake: importing.NewIntake(h.imports.List)}, Authenticator: door, Inbox: h, Repeats: h, Follower: h.bus, Runs: (*runsDouble)(h), Sessions: (*sessionsDouble)(h), Finder: (*finderDouble)(h), Passages: h.passages(), Journal: h.journals(), Memory: h.memories(), Sync: h.syncs(), Voice: hearing.New(hearing.Options{Engine: echoEngine{}}), Contexts: h.contexts(), Handoffs: h.handoffs(), Projects: projects.Options{Store: h.projectStore()}, Council: h.council(), Daily: h.daily(), Reader: shelfDouble{h.store, h}, Editor: shelfDouble{h.store, h}, Transcripts: h.store, Failures: (*failuresDouble)(h), Bots: (*botsDouble)(h),
		Pairings: (*pairingsDouble)(h), Decisions: (*pairingsDouble)(h), People: (*pairingsDouble)(h), Asks: asksDouble{h.guard, h}, Grants: h.guard, Answers: asksDouble{h.guard, h}, Agents: agentsDouble{}, Model: noModel, Files: attach.New(v, h.clock, &h.ledger), Bell: h.bus, Keys: h.keys, Audit: logDouble{h.db}, Figures: logDouble{h.db}, Mail: (*mailDouble)(h), Gatherer: registry, Clock: h.clock, Log: logger,
		Metrics: web.NewMetrics(registry), Streams: o.streams,
		Checks: []health.Check{{Name: "database", Func: h.db.Check}, {Name: "queue", Func: func(context.Context) error { h.mu.Lock(); defer h.mu.Unlock(); return h.checkErr }}}})
	desk := answer.New(answer.Options{Authenticator: door, Inbox: h, Follower: h.bus, Runs: (*runsDouble)(h), Models: modelsDouble{}, Clock: h.clock, Log: logger})
	h.v1 = openai.New(desk)
	h.vectors = embeddings.New(embeddings.Options{Desk: desk, Model: "small", Embed: func(context.Context, int64, []string) ([][]float32, int64, error) { return [][]float32{{1, 2}}, 3, nil }})
	h.heard = transcriptions.New(transcriptions.Options{Desk: desk, Model: "whisper-1", Hear: func(context.Context, int64, string, []byte) (string, error) { return "Green tea.", nil }})
	h.responses = responses.New(responses.Options{Desk: desk, Rows: response.New(h.db, h.clock), Runs: responsesDouble{h}, Sessions: responsesDouble{h}})
	h.agents = h.mcp(door, logger)
	h.site = site
	h.serve()
	return h
}

// handler returns every route behind the checks of the site.
func (h *harness) handler() http.Handler {
	mux := http.NewServeMux()
	h.api.Register(mux)
	mux.HandleFunc("POST /sign-in", func(w http.ResponseWriter, r *http.Request) {
		if err := h.admins.SignIn(w, r, auth.AdminName, "panel password"); err != nil {
			web.WriteProblem(w, r, web.ProblemOf(err))
		}
	})
	h.first = v0.New(v0.Options{Today: h.api, Sessions: h.store, Editor: shelfDouble{h.store, h}, Clock: h.clock, Memory: func() (int64, int) { return 1 << 20, 3 },
		Agents: func() (list []v0.Agent) {
			for _, x := range (agentsDouble{}).Agents() {
				list = append(list, v0.Agent(x))
			}
			return list
		}})
	h.v1.Register(mux)
	h.responses.Register(mux)
	h.vectors.Register(mux)
	h.heard.Register(mux)
	mux.Handle("/mcp", h.agents)
	return h.site.Wrap(h.first.Wrap(mux))
}

// restart serves with a new API, which remembers nothing.
func (h *harness) restart() {
	h.stop()
	h.api = New(h.api.Options)
	h.serve()
}

func (h *harness) serve() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	handler := h.handler()
	go func() {
		done <- web.NewServer(handler, web.ServerOptions{Grace: 100 * time.Millisecond}).Run(ctx, l)
	}()
	h.url = "http://" + l.Addr().String()
	transport := &http.Transport{}
	h.seen = newContract(h.t, transport)
	h.client = &http.Client{Transport: h.seen}
	h.stop = sync.OnceFunc(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
	h.t.Cleanup(h.stop)
}

// key makes a key for user 7 with these scopes at vault.
func (h *harness) key(scopes ...string) string { return h.keyOf(7, core.Vault, scopes...) }

func (h *harness) keyOf(user int64, trust core.Trust, scopes ...string) string {
	h.t.Helper()
	secret, _, err := h.keys.Create(context.Background(), auth.NewKey{Label: "test", User: user, Trust: trust, Scopes: scopes}, core.Actor{})
	if err != nil {
		h.t.Fatal(err)
	}
	return secret
}

// do sends one request; header is name and value in turn.
func (h *harness) do(key, method, path, body string, header ...string) *http.Response {
	h.t.Helper()
	res, err := h.try(key, method, path, body, header...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { res.Body.Close() })
	return res
}

func (h *harness) try(key, method, path, body string, header ...string) (*http.Response, error) {
	r, err := http.NewRequest(method, h.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if method == "PATCH" {
		r.Header.Set("If-Match", "*")
	}
	if body == "" {
		r.Body, r.ContentLength = nil, 0
	} else if strings.HasPrefix(body, "--form") {
		r.Header.Set("Content-Type", "multipart/form-data; boundary=form")
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if path == "/mcp" { // the protocol asks for both
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		} else {
			r.Header.Set(header[i], header[i+1])
		}
	}
	return h.client.Do(r)
}

// answer reads the whole answer as JSON.
func (h *harness) answer(res *http.Response) (m map[string]any) {
	h.t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	res.Body.Close()
	if len(b) > 0 {
		if err := json.Unmarshal(b, &m); err != nil {
			h.t.Fatalf("%v: %s", err, b)
		}
	}
	return m
}

// want sends a request and expects status and, of a problem, the slug.
func (h *harness) want(status int, slug, key, method, path, body string, header ...string) map[string]any {
	h.t.Helper()
	res := h.do(key, method, path, body, header...)
	m := h.answer(res)
	if res.StatusCode != status {
		h.t.Errorf("%s %s: %d, want %d (%v)", method, path, res.StatusCode, status, m)
	} else if got, _ := m["type"].(string); slug != "" && got != "/docs/problems/"+slug {
		h.t.Errorf("%s %s: problem %q, want %s (%v)", method, path, got, slug, m)
	}
	return m
}

// Put implements Inbox.
func (h *harness) Put(_ context.Context, page []core.Inbound, _ *core.Cursor) error {
	h.mu.Lock()
	err, in, on := h.putErr, page[0], h.onPut
	known := slices.ContainsFunc(h.put, func(o core.Inbound) bool { return o.UpdateID == in.UpdateID })
	if err == nil && !known {
		h.put = append(h.put, in)
	}
	h.mu.Unlock()
	if err == nil && !known && on != nil {
		on(in)
	}
	return err
}

// Queued implements Repeats.
func (h *harness) Queued(_ context.Context, _, sender string, most int) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return min(h.waiting[sender], most), nil
}

// Waits implements Repeats: a turn is put and begins in one.
func (h *harness) Waits(context.Context, string, string, string, string) (bool, error) {
	return false, nil
}

// Stored implements Repeats.
func (h *harness) Stored(_ context.Context, _, update string) (string, string, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, in := range h.put {
		if in.UpdateID == update {
			return in.MessageID, in.Chat, true, nil
		}
	}
	return "", "", false, nil
}

func (h *harness) last() core.Inbound {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.put) == 0 {
		h.t.Fatal("nothing was put")
	}
	return h.put[len(h.put)-1]
}

// load and latest are the bus's storage.
func (h *harness) load(_ context.Context, run string, attempt, n int) (es []bus.Entry, _ error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.stored[run] {
		if e.Attempt == attempt && e.N > n {
			e.Event = nil
			es = append(es, e)
		}
	}
	return es, nil
}

func (h *harness) latest(_ context.Context, run string) (n, gone int, _ error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.stored[run] {
		n = max(n, e.Attempt)
	}
	if n == 0 && h.runs[run].Ended {
		gone = 1
	}
	return n, gone, nil
}

// begin starts in's run on the bus, with its row and session.
func (h *harness) begin(in core.Inbound, attempt int) *bus.Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs[in.Turn.Run] = turns.Run{ID: in.Turn.Run, Session: in.Chat, User: in.Turn.User}
	h.sessions[in.Chat] = sessions.Row{ID: in.Chat, Source: "api", Module: "chat", User: in.Turn.User, Trust: core.Vault, CreatedAt: h.clock.Now(), LastAccessed: h.clock.Now()}
	return h.bus.Begin(bus.Info{Run: in.Turn.Run, Session: in.Chat, Bot: core.APIBot, Chat: in.Chat, User: in.Turn.User, Attempt: attempt, Started: h.clock.Now()})
}

// say publishes and stores an event.
func (h *harness) say(s *bus.Stream, events ...core.Event) {
	for _, e := range events {
		entry := s.Publish(e)
		h.mu.Lock()
		h.stored[entry.Run] = append(h.stored[entry.Run], entry)
		h.mu.Unlock()
	}
}

// finish ends the run with this event.
func (h *harness) finish(s *bus.Stream, last core.Event) {
	info := s.Info()
	h.mu.Lock()
	r := h.runs[info.Run]
	r.Ended = true
	h.runs[info.Run] = r
	h.mu.Unlock()
	h.say(s, last, core.MessageStop{})
	s.End()
}

// reply is a whole run that answers text in pieces.
func (h *harness) reply(in core.Inbound, pieces ...string) {
	s := h.begin(in, 1)
	h.opening(s, in)
	for _, p := range pieces {
		h.say(s, core.TextDelta{Content: p})
	}
	h.finish(s, done(in, strings.Join(pieces, "")))
}

func (h *harness) opening(s *bus.Stream, in core.Inbound) {
	h.say(s, core.Session{ID: in.Chat, RunID: in.Turn.Run, CreatedAt: h.clock.Now(), TrustLevel: core.Vault, ResumeInfo: core.ResumeInfo{Method: "new", IsNewSession: true}},
		core.UserMessage{Content: in.Text},
		core.PromptMetadata{PromptSource: "default", ContextFilePaths: []string{}, AvailableAgents: []string{"vault-agent"}, AgentName: "vault-agent", Model: "local/quote"},
		core.Init{Tools: []string{}, PermissionMode: "default", MCPServers: []string{}},
		core.ModelChosen{Model: "local/quote"})
}

func done(in core.Inbound, text string) core.Done {
	return core.Done{Response: text, SessionID: in.Chat, Model: "local/quote", MessageCount: 2, DurationMS: 12, Usage: core.Usage{InputTokens: 5, OutputTokens: 3}}
}

// ringDouble rings as the gateway does.
type ringDouble struct{ bus *bus.Bus }

func (d ringDouble) Open(_ context.Context, tx *store.Tx, _ ask.Ask, _ core.PermissionRequest, _ permission.Profile) error {
	tx.OnCommit(func() { d.bus.Ring(core.TopicApprovals) })
	return nil
}

func (d ringDouble) Close(_ context.Context, tx *store.Tx, _ ask.Ask, _ string) error {
	tx.OnCommit(func() { d.bus.Ring(core.TopicApprovals) })
	return nil
}

// asksDouble is the real guard with lookups by id.
type asksDouble struct {
	*guard.Guard
	h *harness
}

func (d asksDouble) Ask(ctx context.Context, id string) (ask.Ask, error) {
	return d.h.desk.ByID(ctx, d.h.db, id)
}

func (d asksDouble) Answer(ctx context.Context, _, ask string, answers json.RawMessage, by core.Actor) error {
	return d.Guard.Answer(ctx, ask, answers, by)
}

// agentsDouble has one agent besides that of every vault, and one workspace.
type agentsDouble struct{}

func (agentsDouble) Agents() []turns.Agent {
	return []turns.Agent{{Name: "vault-agent", Description: "Answers."}, {Name: "cook", Path: ".parachute/agents/cook.md", Description: "Cooks.", Model: "local/quote"}}
}

func (agentsDouble) Agent(name string) (string, bool) {
	return name, name == "cook" || name == "vault-agent"
}

func (agentsDouble) Workspace(slug string) bool { return slug == "kitchen" }

// noModel refuses the models openai/gone, which is not there, and openai/dear, which guests cannot have.
func noModel(p auth.Principal, trust core.Trust, name string) error {
	switch {
	case name == "openai/gone":
		return core.Errorf(core.Invalid, "model %q is not configured here; there is local/quote", name)
	case name == "openai/dear" && trust <= core.Sandboxed:
		return core.Errorf(core.Denied, "guests are answered by local/quote here")
	}
	return nil
}

type modelsDouble struct{}

func (modelsDouble) Models(auth.Principal) []answer.Model {
	return []answer.Model{{ID: "cook", Owner: "agent", Agent: "cook"}}
}

type runsDouble harness

func (h *runsDouble) AbortRun(_ context.Context, _, run string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.aborted = append(h.aborted, run)
	return nil
}

func (h *runsDouble) Abort(session string) bool {
	h.mu.Lock()
	h.aborted = append(h.aborted, session)
	on := h.onAbort
	h.mu.Unlock()
	for _, i := range h.bus.Active() {
		if i.Session == session {
			if on != nil {
				on(session)
			}
			return true
		}
	}
	return false
}

func (h *runsDouble) Run(_ context.Context, id string) (turns.Run, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looked++
	if r, ok := h.runs[id]; ok {
		return r, nil
	}
	return turns.Run{}, core.Errorf(core.NotFound, "no such run")
}

// responsesDouble are runs that have ended, and no sessions.
type responsesDouble struct{ h *harness }

func (responsesDouble) Run(context.Context, string) (begun, ended bool, err error) {
	return true, true, nil
}
func (responsesDouble) Queued(context.Context, string) (bool, error)        { return true, nil }
func (responsesDouble) Latest(context.Context, string) (string, int, error) { return "", 0, nil }
func (responsesDouble) Trust(context.Context, string) (core.Trust, error)   { return core.Sandboxed, nil }
func (responsesDouble) Delete(context.Context, string) error {
	return core.Errorf(core.NotFound, "no such session")
}

// respond stores a response in the background that has ended.
func (h *harness) respond(user int64) {
	for _, q := range []string{`DELETE FROM responses`, `INSERT INTO responses (id, run, user_id, session_id, number, state, created, bytes, request, answer)
		VALUES ('resp_a', 'r1', $1, 's1', 1, 'ended', '2026-01-02T03:04:05.000000Z', 0, '{"model":"cook","background":true,"store":true,"truncation":"disabled","input":[{"id":"msg_ai0","type":"message","status":"completed","role":"user","content":[{"type":"input_text","text":"hi"}]}]}', '{"status":"completed","text":"Tea.","at":7}')`} {
		err := h.db.Tx(context.Background(), func(tx *store.Tx) error {
			var args []any
			if strings.Contains(q, "$1") {
				args = append(args, user)
			}
			_, err := tx.Exec(context.Background(), q, args...)
			return err
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// roomDouble is how much room there is for files; without a bound until one is set.
type roomDouble struct {
	bound map[int64]int64 // user → bytes
}

func (d *roomDouble) Room(_ context.Context, user int64) (int64, string, error) {
	if left, there := d.bound[user]; there {
		return left, "your files may take 2 GB", nil
	}
	return math.MaxInt64, "", nil
}

func (d *roomDouble) Note(context.Context, int64, core.File) (bool, error) { return true, nil }

func (d *roomDouble) Find(context.Context, int64, string) (core.File, bool, error) {
	return core.File{}, false, nil
}

func (d *roomDouble) Drop(context.Context, []core.File) error { return nil }

type sessionsDouble harness

func (h *sessionsDouble) Locate(_ context.Context, user int64, id string) (string, bool, error) {
	sid, _, err := session.ID(id, user)
	if err != nil {
		return "", false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	row, known := h.sessions[sid]
	if known && row.User != user {
		return "", false, core.Errorf(core.NotFound, "no such session")
	}
	return sid, known, nil
}

func (h *sessionsDouble) Session(_ context.Context, id string) (sessions.Row, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if row, ok := h.sessions[id]; ok {
		return row, nil
	}
	return sessions.Row{}, core.Errorf(core.NotFound, "no such session")
}

func (h *sessionsDouble) List(_ context.Context, q sessions.Query) (rows []sessions.Row, next string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.query = q
	for _, r := range h.sessions {
		if q.Everybody || r.User == q.User {
			rows = append(rows, r)
		}
	}
	return rows, "", nil
}

func (h *sessionsDouble) Count(ctx context.Context, q sessions.Query) (int, error) {
	rows, _, err := h.List(ctx, q)
	return len(rows), err
}

type finderDouble harness

func (h *finderDouble) Search(_ context.Context, q search.Query, r search.Reader) (search.Page, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked, h.asker = q, r
	return h.found, h.findErr
}

// logDouble is the real log and ledger.
type logDouble struct{ db *store.DB }

func (d logDouble) AuditLog(ctx context.Context, f store.AuditFilter) ([]store.AuditEvent, string, error) {
	return store.AuditLog(ctx, d.db, f)
}

func (d logDouble) Did(ctx context.Context, by core.Actor, action, subject string) error {
	return d.db.Tx(ctx, func(tx *store.Tx) error { return store.Audit(ctx, tx, by, action, subject, nil) })
}

func (d logDouble) Report(ctx context.Context, q usage.ReportQuery) ([]usage.Figure, error) {
	return usage.New(nil, usage.Budgets{}).Report(ctx, d.db, q)
}

// spare is a key and a call of a model, to be listed and revoked.
func (h *harness) spare(user int64) {
	h.t.Helper()
	err := h.db.Tx(context.Background(), func(tx *store.Tx) error {
		if _, err := tx.Exec(context.Background(), `INSERT INTO api_keys (id, label, sha256, user_id, trust_level, scopes, created_at) VALUES ('spare', 'spare', 'spare', $1, 'sandboxed', '', $2) ON CONFLICT DO NOTHING`,
			user, core.Stamp(tx.Time())); err != nil {
			return err
		}
		price := int64(1_500_000)
		return usage.New(nil, usage.Budgets{}).Record(context.Background(), tx, usage.Row{Run: "r1", User: user, Bot: "one", Model: "local/quote", Input: 3, MicroUSD: &price})
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

type mailDouble harness

func (h *mailDouble) Send(_ context.Context, m bots.Unasked, _ core.Actor) (bots.Posted, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unasked = m
	if h.mailErr != nil {
		return bots.Posted{}, h.mailErr
	}
	h.posted[m.ID] = bots.Posted{ID: m.ID, Bot: m.Bot, Chat: m.Chat, Status: "queued", Parts: 1, CreatedAt: h.clock.Now()}
	return h.posted[m.ID], nil
}

func (h *mailDouble) Sent(_ context.Context, id string) (bots.Posted, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p, ok := h.posted[id]; ok {
		return p, nil
	}
	return bots.Posted{}, core.Errorf(core.NotFound, "there is no such message")
}

type botsDouble harness

func (h *botsDouble) States() []core.BotState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.bots)
}

func (h *botsDouble) set(bot string, to core.Phase) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.bots {
		if h.bots[i].Bot == bot {
			h.bots[i].State = to
			return nil
		}
	}
	return core.Errorf(core.NotFound, "no such bot")
}

func (h *botsDouble) Start(_ context.Context, bot string, _ core.Actor) error {
	return h.set(bot, core.Starting)
}

func (h *botsDouble) Stop(_ context.Context, bot string, _ core.Actor) error {
	return h.set(bot, core.Stopped)
}

func (h *botsDouble) Test(context.Context, string) (string, error) { return "the_bot", h.testErr }

type pairingsDouble harness

func (h *pairingsDouble) Requests(_ context.Context, status string, limit int) (rs []core.PairingRequest, _ error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.requests {
		if (status == "" || r.Status == status) && len(rs) < limit {
			rs = append(rs, r)
		}
	}
	return rs, nil
}

func (h *pairingsDouble) Request(_ context.Context, id string) (core.PairingRequest, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r, ok := h.requests[id]; ok {
		return r, nil
	}
	return core.PairingRequest{}, core.Errorf(core.NotFound, "no such request")
}

func (h *pairingsDouble) decide(id, status string, by core.Actor) (core.PairingRequest, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, ok := h.requests[id]
	switch {
	case !ok:
		return r, core.Errorf(core.NotFound, "no such request")
	case r.Status != "pending":
		return r, core.Errorf(core.Conflict, "already %s by %s", r.Status, r.ResolvedBy)
	}
	r.Status, r.ResolvedBy, r.ResolvedAt = status, fmt.Sprintf("user %d via %s", by.User, by.Via), h.clock.Now()
	h.requests[id] = r
	return r, nil
}

func (h *pairingsDouble) Approve(_ context.Context, id string, a core.Approval, by core.Actor) (core.PairingRequest, error) {
	h.mu.Lock()
	h.approval = a
	h.mu.Unlock()
	return h.decide(id, "approved", by)
}

func (h *pairingsDouble) Deny(_ context.Context, id string, by core.Actor) (core.PairingRequest, error) {
	return h.decide(id, "denied", by)
}

func (h *pairingsDouble) Block(_ context.Context, id string, by core.Actor) (core.PairingRequest, error) {
	return h.decide(id, "denied", by)
}

func (h *pairingsDouble) Revoke(_ context.Context, bot, user string, _ core.Actor) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := len(h.rows)
	h.rows = slices.DeleteFunc(h.rows, func(r core.AccessRow) bool { return r.Bot == bot && r.PlatformUserID == user })
	return before - len(h.rows), nil
}

func (h *pairingsDouble) Access(context.Context, int) ([]core.AccessRow, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.rows), nil
}

func (h *pairingsDouble) RemoveAccess(_ context.Context, id int64, _ core.Actor) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := len(h.rows)
	if h.rows = slices.DeleteFunc(h.rows, func(r core.AccessRow) bool { return r.ID == id }); len(h.rows) == before {
		return core.Errorf(core.NotFound, "no such access")
	}
	return nil
}

// failuresDouble knows of the failed sessions that h.failed names.
type failuresDouble harness

func (d *failuresDouble) LastError(_ context.Context, session string) (*sessions.LastError, error) {
	if !d.failed[session] {
		return nil, nil
	}
	return &sessions.LastError{Kind: "auth", Message: "The provider rejects the key.", Run: "r1", At: d.clock.Now(), Provider: "status 401", Setting: "GATEHOUSE_OPENAI_API_KEY", Advice: "Replace the key."}, nil
}
