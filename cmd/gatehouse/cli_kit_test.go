package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/stage"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/coretest"
)

// A proc is the built program as a process, with what it printed.
type proc struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err coretest.Log
	done     chan struct{}
}

// A home is a folder for a program and its settings, which are the whole of
// its environment.
type home struct {
	t   *testing.T
	dir string
	env map[string]string
}

func newHome(t *testing.T, sim *telegramtest.Server) *home {
	t.Helper()
	dir := shortDir(t)
	h := &home{t, dir, map[string]string{
		"HOME": dir, "XDG_RUNTIME_DIR": filepath.Join(dir, "run"), "PATH": os.Getenv("PATH"), "TMPDIR": dir,
		"GATEHOUSE_VAULT_PATH": filepath.Join(dir, "vault"), "GATEHOUSE_ADDR": "127.0.0.1:0", "GATEHOUSE_LOG_LEVEL": "debug", "GATEHOUSE_LOG_FORMAT": "text",
		"GATEHOUSE_ADMIN_PASSWORD": cliPassword, "GATEHOUSE_PACE": "off", "GATEHOUSE_GUEST_READ": "Public/**",
	}}
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := stage.Fill(h.vault()); err != nil {
		t.Fatal(err)
	}
	if sim != nil {
		h.env["GATEHOUSE_TELEGRAM_TOKEN"], h.env["GATEHOUSE_TELEGRAM_API_URL"] = sim.Token(), sim.URL()
	}
	return h
}

const cliPassword = "a very long pass phrase"

func (h *home) vault() string { return h.env["GATEHOUSE_VAULT_PATH"] }

// start begins a command of the program; it is killed when the test ends.
func (h *home) start(change func(*exec.Cmd), args ...string) *proc {
	h.t.Helper()
	p := &proc{t: h.t, cmd: exec.Command(program(h.t), args...), done: make(chan struct{})}
	for k, v := range h.env {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = &p.out, &p.err, h.dir
	if change != nil {
		change(p.cmd)
	}
	if err := p.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	h.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if h.t.Failed() {
			h.t.Logf("%s printed:\n%s%s", args, p.out.String(), p.err.String())
		}
	})
	return p
}

// end waits for the process to end and gives its exit code.
func (p *proc) end() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("it does not end:\n%s", p.err.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// says waits until it has printed text.
func (p *proc) says(text string) {
	p.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !strings.Contains(p.out.String()+p.err.String(), text); {
		select {
		case <-tick.C:
		case <-p.done:
			if !strings.Contains(p.out.String()+p.err.String(), text) {
				p.t.Fatalf("it ended without saying %q:\n%s%s", text, p.out.String(), p.err.String())
			}
		case <-end:
			p.t.Fatalf("it does not say %q:\n%s%s", text, p.out.String(), p.err.String())
		}
	}
}

// run runs a command to its end.
func (h *home) run(args ...string) (code int, stdout, stderr string) {
	h.t.Helper()
	p := h.start(nil, args...)
	code = p.end()
	return code, p.out.String(), p.err.String()
}

// serve starts the gateway and waits until it serves.
func (h *home) serve(change func(*exec.Cmd)) *proc {
	h.t.Helper()
	p := h.start(change, "serve")
	p.says("msg=serving")
	return p
}

// hear waits for the bot's first message of a chat after a message.
func hear(t *testing.T, sim *telegramtest.Server, in telegramtest.Conversation, after int, text string) telegramtest.Message {
	t.Helper()
	ctx, cancel := contextWithPatience(t)
	defer cancel()
	m, err := sim.AwaitMessage(ctx, in, func(m telegramtest.Message) bool {
		return m.FromBot() && m.ID > after && strings.Contains(m.Text, text)
	})
	if err != nil {
		t.Fatalf("the bot did not say %q: %v; the chat: %s", text, err, fmt.Sprint(sim.History(in)))
	}
	return m
}

// knowsItsName waits until the gateway has said how its bot is called, as in
// the links of invitations: it has when a further poll is answered.
func knowsItsName(t *testing.T, sim *telegramtest.Server) {
	t.Helper()
	ctx, cancel := contextWithPatience(t)
	defer cancel()
	well := func(r telegramtest.Request) bool { return r.Status == 200 }
	first, err := sim.AwaitRequest(ctx, 0, "getUpdates", well)
	if err != nil {
		t.Fatal(err)
	}
	sim.NewUser("Passer-by").Send("hello")
	if _, err := sim.AwaitRequest(ctx, first.Seq, "getUpdates", well); err != nil {
		t.Fatal(err)
	}
}

// addr is where it serves.
func (p *proc) addr() string {
	_, rest, _ := strings.Cut(p.err.String(), "msg=serving addr=")
	addr, _, _ := strings.Cut(rest, " ")
	return addr
}

// ended reports whether the command has ended.
func (p *proc) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// sees waits for what f sees.
func (p *proc) sees(f func() bool) {
	p.t.Helper()
	for end := time.After(patience); !f(); {
		select {
		case <-end:
			p.t.Fatalf("never seen\n%s", p.err.String())
		case <-time.After(2 * time.Millisecond):
		}
	}
}
