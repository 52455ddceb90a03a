package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/memory"
	"gatehouse/cmd/gatehouse/stage"
	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/llm/llmtest"
)

// A few minutes after a load the gateway takes little more than before it: what
// conversations and finished runs keep does not hold the pages that were used.
func TestMemoryReturnsNearItsRestAfterALoad(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory by itself")
	}
	sim := newSim(t)
	model := llmtest.New(t, llmtest.Options{Default: llmtest.Say("a", "n", "s", "w", "e", "r", " ", "i", "n", " ", "m", "a", "n", "y", " ", "p", "i", "e", "c", "e", "s")})
	platform, provider := httptest.NewServer(sim), httptest.NewServer(model)
	t.Cleanup(func() { platform.CloseClientConnections(); platform.Close(); provider.Close() })
	g := startResting(t, sim.Token(), platform, provider)
	w := &world{t: t, sim: sim, log: &coretest.Log{}}
	w.burst(w.crowd(20), 1) // what is set up once
	rest := g.atRest()
	users := w.crowd(400)
	w.burst(users, 5)
	loaded, _ := residentKiB(t, g.pid)
	after := g.atRest()
	t.Logf("the gateway's own memory: %d KiB at rest, %d after a load, %d at rest again", rest, loaded, after)
	if loaded < 2*rest {
		t.Errorf("the load took %d KiB only, of %d at rest", loaded, rest)
	}
	if after > rest+mostAfterLoad {
		t.Errorf("at rest again it takes %d KiB, %d before the load; want at most %d more", after, rest, mostAfterLoad)
	}
	for _, u := range users[:20] { // from the files, and as before
		w.exchange(u)
	}
}

const mostAfterLoad = 17 << 10 // KiB; measured are 15 to 16, without rests of the caches it is some 18

// A resting is a gateway in a process of its own, whose memory is that of no test.
type resting struct {
	t       *testing.T
	pid     int
	in      io.Writer
	out     *bufio.Scanner
	servers []*httptest.Server // that it talks to
}

// restingArg in front of a vault, a token, the platform's address and a model's makes
// this program the gateway of startResting.
const restingArg = "resting-gateway"

func startResting(t *testing.T, token string, platform, model *httptest.Server) *resting {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := crashDir(t)
	vault := filepath.Join(dir, "vault")
	if err := stage.Fill(vault); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, restingArg, vault, token, platform.URL, model.URL+"/v1")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run")}
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error("the gateway ended with ", err)
		}
	})
	g := &resting{t, cmd.Process.Pid, in, bufio.NewScanner(out), []*httptest.Server{platform, model}}
	g.hear()
	return g
}

// hear waits for the gateway to have done what it was asked for.
func (g *resting) hear() {
	g.t.Helper()
	if !g.out.Scan() {
		g.t.Fatal("the gateway ended: ", g.out.Err())
	}
}

// atRest returns the gateway's own memory, in KiB, after both rests that follow a load.
// Connections, which close by themselves when they are not used, are closed before.
func (g *resting) atRest() int {
	g.t.Helper()
	for range 2 {
		for _, s := range g.servers {
			s.CloseClientConnections()
		}
		fmt.Fprintln(g.in)
		g.hear()
	}
	own, _ := residentKiB(g.t, g.pid)
	return own
}

// A fastClock is some time ahead of the machine's.
type fastClock struct {
	core.System
	ahead atomic.Int64
}

func (c *fastClock) Now() time.Time { return c.System.Now().Add(time.Duration(c.ahead.Load())) }

// restingMain is the gateway of startResting: for each line that it reads it gives memory
// back, and three minutes pass.
func restingMain() {
	if len(os.Args) != 6 || os.Args[1] != restingArg {
		return
	}
	if err := serveResting(os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		syscall.Exit(1)
	}
	syscall.Exit(0)
}

func serveResting(vault, token, platform, model string) error {
	cfg := configs.Default()
	cfg.VaultPath, cfg.Addr = vault, "127.0.0.1:0"
	cfg.TelegramToken, cfg.TelegramApiURL = values.NewSecret(token), platform
	cfg.Model, cfg.OpenaiBaseURL = fakeModel, model
	cfg.Pace = false
	unguarded(cfg)
	if err := cfg.Validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	clock := &fastClock{}
	a, err := build(ctx, cfg, slog.New(slog.DiscardHandler), clock, tried)
	if err != nil {
		return err
	}
	defer a.Close()
	go memory.Limit(ctx, core.System{})
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- a.Run(ctx, nil, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-done:
		return err
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); fmt.Println("rested") {
		a.memory.Release(ctx)
		clock.ahead.Add(int64(3 * time.Minute))
	}
	cancel()
	return <-done
}
