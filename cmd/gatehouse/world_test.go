package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/cmd/gatehouse/isolation"
	"gatehouse/cmd/gatehouse/logs"
	"gatehouse/cmd/gatehouse/stage"
	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store/storetest"
	"gatehouse/web/auth/authtest"
)

// patience is how long a test waits for something that must happen.
const patience = 5 * time.Minute

// worldPassword is the operator's where a test gives no other; it is known from
// the start, as that of somebody who set it at an earlier one.
const worldPassword = "correct horse battery"

// cli is the command line as audit entries name it.
var cli = control.By

// A world is a whole gateway in this process, with a simulated platform.
type world struct {
	t   testing.TB
	sim *telegramtest.Server
	cfg *configs.Config
	app *app
	key string // of the local key file: the operator's, all scopes
	log *coretest.Log

	clock core.Clock
	stop  func()
}

// newWorld starts one; change may alter the settings first.
func newWorld(t testing.TB, change func(*configs.Config)) *world {
	t.Helper()
	sim := telegramtest.New(telegramtest.Options{FloodOff: true})
	t.Cleanup(func() { _ = sim.Close() })
	return newWorldOn(t, sim, t.TempDir(), change)
}

// newWorldOn starts a gateway over an existing platform and folder.
func newWorldOn(t testing.TB, sim *telegramtest.Server, dir string, change func(*configs.Config)) *world {
	t.Helper()
	return newWorldAt(t, sim, dir, core.System{}, change)
}

// newWorldAt is newWorldOn with a clock of the test's.
func newWorldAt(t testing.TB, sim *telegramtest.Server, dir string, clock core.Clock, change func(*configs.Config)) *world {
	t.Helper()
	cfg := configs.Default()
	cfg.VaultPath = filepath.Join(dir, "vault")
	cfg.Addr = "127.0.0.1:0"
	cfg.TelegramToken, cfg.TelegramApiURL = values.NewSecret(sim.Token()), sim.URL()
	cfg.GuestRead = values.List{"Public/**"}
	cfg.Pace = false
	cfg.AdminPassword = values.NewSecret(worldPassword)
	cfg.DrainTimeout = 5 * time.Second
	cfg.DatabaseURL = storetest.Beside(t, dir)
	if change != nil {
		change(cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	_, known := os.Stat(cfg.VaultPath)
	if err := stage.Fill(cfg.VaultPath); err != nil {
		t.Fatal(err)
	}
	if known != nil { // a new vault has no daily agent
		_ = os.RemoveAll(filepath.Join(cfg.VaultPath, "Daily"))
	}
	if _, err := os.Stat(cfg.DatabasePath()); errors.Is(err, fs.ErrNotExist) && !cfg.OnServer() {
		storetest.Seed(t, cfg.DatabasePath()) // the tests of whole processes see a first start
	}
	w := &world{t: t, sim: sim, cfg: cfg, log: &coretest.Log{}, clock: clock}
	w.start()
	t.Cleanup(func() { w.stop() }) // also that of a later start
	return w
}

// tried has the trials of the sandbox, which run five programs, made once for all worlds: the
// tests of whole processes make their own.
func tried(mode, self string) *isolation.Trials {
	once, _ := trials.LoadOrStore(mode, sync.OnceValue(func() *isolation.Trials { return isolation.Begin(mode, self) }))
	return once.(func() *isolation.Trials)()
}

var trials sync.Map // mode → func() *isolation.Trials

// shortDir is a folder with a short path, whatever the test's name: a socket's
// address has little room.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// start runs the gateway until stop.
func (w *world) start() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.NewTextHandler(logs.Redact(w.log), &slog.HandlerOptions{Level: slog.LevelDebug}))
	if l, err := net.Listen("tcp", w.cfg.Addr); err == nil {
		_ = l.Close()
	} else { // another test has it since the gateway stopped
		w.cfg.Addr = "127.0.0.1:0"
	}
	a, err := build(ctx, w.cfg, log, w.clock, tried)
	if err != nil {
		_ = a.Close()
		cancel()
		w.t.Fatal(err)
	}
	if w.cfg.AdminPassword.Reveal() == worldPassword {
		authtest.Operator(w.t, a.db, worldPassword)
	} else if _, err := a.admins.Prepare(ctx, false); err != nil {
		w.t.Fatal(err)
	}
	w.app = a
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- a.Run(ctx, nil, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-done:
		w.t.Fatal("the gateway ended at start: ", err)
	}
	b, err := os.ReadFile(filepath.Join(a.runtime, "key"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.key = strings.TrimSpace(string(b))
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				w.t.Error("the gateway ended with: ", err)
			}
			if err := a.Close(); err != nil {
				w.t.Error("close: ", err)
			}
			if w.t.Failed() {
				w.t.Log(w.log.String())
			}
		})
	}
}

// hears waits for the first message of the bot in the chat that match accepts.
func (w *world) hears(in telegramtest.Conversation, match func(telegramtest.Message) bool) telegramtest.Message {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	m, err := w.sim.AwaitMessage(ctx, in, func(m telegramtest.Message) bool { return m.FromBot() && match(m) })
	if err != nil {
		var b strings.Builder
		for _, m := range w.sim.History(in) {
			fmt.Fprintf(&b, "\n  %s: %q", m.From.FirstName, m.Text)
		}
		w.t.Fatalf("the bot did not say it: %v; the chat:%s\n%s", err, b.String(), w.log.String())
	}
	return m
}

// hearsText waits for a message of the bot that contains text.
func (w *world) hearsText(u *telegramtest.User, text string) telegramtest.Message {
	w.t.Helper()
	return w.hears(u.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, text) })
}

// request waits for the stranger's pending request.
func (w *world) request(u *telegramtest.User) core.PairingRequest {
	w.t.Helper()
	w.hears(u.DM(), func(telegramtest.Message) bool { return true })
	rs, err := w.app.pairing.Requests(w.t.Context(), "pending", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rs {
		if r.Platform == "telegram" && r.PlatformUserID == fmt.Sprint(u.ID()) {
			return r
		}
	}
	w.t.Fatalf("no request of %d among %d", u.ID(), len(rs))
	return core.PairingRequest{}
}

// owner makes a person the owner by /claim.
func (w *world) owner(name string) *telegramtest.User {
	w.t.Helper()
	u := w.sim.NewUser(name)
	code, _, err := w.app.pairing.Codes.NewClaim(w.t.Context(), true)
	if err != nil {
		w.t.Fatal(err)
	}
	u.Send("/claim " + code)
	w.hearsText(u, "own")
	return u
}

// friend is a person with access.
func (w *world) friend(name string) *telegramtest.User {
	w.t.Helper()
	u := w.sim.NewUser(name)
	u.Send("hello")
	r := w.request(u)
	if _, err := w.app.pairing.Approve(w.t.Context(), r.ID, core.Approval{}, cli); err != nil {
		w.t.Fatal(err)
	}
	w.hears(u.DM(), func(m telegramtest.Message) bool { return !strings.Contains(m.Text, r.Code) })
	return u
}

// call makes a request of the API with the operator's key; body may be nil.
func (w *world) call(method, path string, body any) (int, string) {
	w.t.Helper()
	resp := w.open(method, path, body, nil)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func (w *world) open(method, path string, body any, header http.Header) *http.Response {
	w.t.Helper()
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, "http://"+w.cfg.Addr+path, r)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

// count is one number from the database.
func (w *world) count(query string, args ...any) int {
	w.t.Helper()
	var n int
	if err := w.app.db.Get(w.t.Context(), &n, query, args...); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// overSocket makes a request as the command line does.
func (w *world) overSocket(method, at string, in, out any) error {
	w.t.Helper()
	return control.Dial(w.app.runtime).Do(w.t.Context(), method, at, in, out)
}

// exported returns a session as the command line exports it.
func (w *world) exported(session string) (text string, err error) {
	w.t.Helper()
	err = w.overSocket(http.MethodGet, control.Path("api", "chat", session, "export.md"), nil, &text)
	return text, err
}
