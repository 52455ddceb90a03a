package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	_ "github.com/mattn/go-sqlite3"

	"gatehouse/connectors/telegram/telegramtest"
)

// nobody is a user without rights, since mode bits do not bind root.
const nobody = 65534

// asNobody runs the program as that user, when the tests run as root; the
// home becomes theirs.
func (h *home) asNobody() func(*exec.Cmd) {
	h.t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	b, err := os.ReadFile(program(h.t))
	if err != nil {
		h.t.Fatal(err)
	}
	exe := filepath.Join(h.dir, "gatehouse")
	if err := os.WriteFile(exe, b, 0o755); err != nil {
		h.t.Fatal(err)
	}
	err = filepath.WalkDir(h.dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return func(c *exec.Cmd) {
		c.Path, c.Args[0] = exe, exe
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}

// limitFiles sets how large a file of the process may grow: a disk that is full.
func limitFiles(t *testing.T, pid int, most uint64) {
	t.Helper()
	limit := syscall.Rlimit{Cur: most, Max: ^uint64(0)}
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); e != 0 {
		t.Fatal(e)
	}
}

// indexed waits until the documents can be found: one that is refused for a full disk is read again
// only with the next pass over the vault, after minutes.
func (p *proc) indexed(h *home) {
	p.sees(func() bool { return strings.Contains(h.api(p, "/api/search?q=tea"), "Public/tea.md") })
}

// While the disk is full, what people write stays with the platform, the
// operator sees why, and when there is room it is answered, once.
func TestAFullDiskLosesNothingAndReportsIt(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	h := newHome(t, sim)
	h.env["GATEHOUSE_TELEGRAM_DM_POLICY"], h.env["GATEHOUSE_BUSY_MODE"] = "open", "queue"
	p := h.serve(nil) // the limit binds root too
	p.indexed(h)
	ada := sim.NewUser("Ada")
	m := ada.Send("How long should green tea brew?")
	hear(t, sim, ada.DM(), m.ID, "tea")
	limitFiles(t, p.cmd.Process.Pid, 0)
	first := ada.Send("How long should green tea brew?")
	ada.Send("And how hot should green tea be?")
	p.says("store updates")
	addr := p.addr()
	resp, err := http.Get("http://" + addr + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 503 {
		t.Errorf("readyz on a full disk: %d", resp.StatusCode)
	}
	status := h.api(p, "/api/bots/status")
	if !strings.Contains(status, "cannot be stored") {
		t.Errorf("the bot's state: %s", status)
	}
	limitFiles(t, p.cmd.Process.Pid, ^uint64(0))
	hear(t, sim, ada.DM(), first.ID, "tea")
	for end := time.After(patience); answersOf(sim, ada, first.ID) < 2; {
		select {
		case <-end:
			t.Fatalf("%d answers", answersOf(sim, ada, first.ID))
		case <-time.After(10 * time.Millisecond):
		}
	}
	last := ada.Send("How long should green tea brew?")
	hear(t, sim, ada.DM(), last.ID, "tea")
	if n := answersOf(sim, ada, first.ID); n != 3 {
		t.Errorf("%d answers to three messages", n)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// When the disk fills while an answer is being made, the answer comes late,
// and once.
func TestADiskThatFillsInARunDelaysTheAnswer(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	h := newHome(t, sim)
	h.env["GATEHOUSE_TELEGRAM_DM_POLICY"], h.env["GATEHOUSE_MODEL"] = "open", "local/quote:100ms" // slow, so that it has not ended before the disk is full
	p := h.serve(nil)                                                                             // the limit binds root too
	p.indexed(h)
	ada := sim.NewUser("Ada")
	first := ada.Send("How long should green tea brew?")
	p.sees(func() bool { return len(sim.Screen(ada.DM()).Drafts)+len(sim.Screen(ada.DM()).Typing) > 0 })
	limitFiles(t, p.cmd.Process.Pid, 0)
	p.says("will be tried again")
	limitFiles(t, p.cmd.Process.Pid, ^uint64(0))
	hear(t, sim, ada.DM(), first.ID, "tea")
	last := ada.Send("How long should green tea brew?")
	hear(t, sim, ada.DM(), last.ID, "tea")
	if n := answersOf(sim, ada, first.ID); n != 2 {
		t.Errorf("%d answers to two messages", n)
	}
}

func answersOf(sim *telegramtest.Server, u *telegramtest.User, after int) (n int) {
	for _, m := range sim.History(u.DM()) {
		if m.FromBot() && m.ID > after {
			n++
		}
	}
	return n
}

func (h *home) api(p *proc, path string) string {
	h.t.Helper()
	resp := h.open(p, "GET", path, "", nil)
	defer resp.Body.Close()
	var v any
	_ = json.NewDecoder(resp.Body).Decode(&v)
	out, _ := json.Marshal(v)
	return string(out)
}

// What keeps serve from starting is said in one line that names the thing and
// what to do; nothing is changed by the try.
func TestServeReportsWhyItCannotStart(t *testing.T) {
	t.Parallel()
	ready := func(t *testing.T) *home { // a vault that was served before
		h := newHome(t, newSim(t))
		p := h.serve(nil)
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		p.end()
		return h
	}
	alter := func(t *testing.T, h *home, statement string) {
		t.Helper()
		db, err := sql.Open("sqlite3", filepath.Join(h.vault(), "Chat", "sessions.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T, h *home) (change func(*exec.Cmd))
		code int
		says []string
	}{
		{"read-only vault", func(t *testing.T, h *home) func(*exec.Cmd) {
			nobodys := h.asNobody()
			chmodAll(t, h.vault(), 0o500, 0o400)
			return nobodys
		}, 1, []string{"permission denied", "vault"}},
		{"a second serve", func(t *testing.T, h *home) func(*exec.Cmd) { h.serve(nil); return nil }, 1, []string{"in use by process", "With --standby it would wait"}},
		{"newer database", func(t *testing.T, h *home) func(*exec.Cmd) {
			alter(t, h, `INSERT INTO schema_version (version, applied_at) VALUES (999999, '2030-01-01')`)
			return nil
		}, 2, []string{"newer", "999999"}},
		{"locked database", func(t *testing.T, h *home) func(*exec.Cmd) {
			db, err := sql.Open("sqlite3", filepath.Join(h.vault(), "Chat", "sessions.db")+"?_txlock=exclusive")
			if err != nil {
				t.Fatal(err)
			}
			tx, err := db.BeginTx(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tx.Rollback(); _ = db.Close() })
			return nil
		}, 1, []string{"locked"}},
		{"a database that is none", func(t *testing.T, h *home) func(*exec.Cmd) {
			if err := os.WriteFile(filepath.Join(h.vault(), "Chat", "sessions.db"), []byte(strings.Repeat("not a database ", 500)), 0o600); err != nil {
				t.Fatal(err)
			}
			return nil
		}, 2, []string{"not a database", "gatehouse restore"}},
		{"read-only database", func(t *testing.T, h *home) func(*exec.Cmd) {
			nobodys := h.asNobody()
			chmodAll(t, filepath.Join(h.vault(), "Chat"), 0o700, 0o400)
			return nobodys
		}, 1, []string{"sessions.db", "cannot be written", "chown"}},
		{"somebody else's database", func(t *testing.T, h *home) func(*exec.Cmd) {
			h.env["GATEHOUSE_DATABASE_URL"] = filepath.Join(h.dir, "other.db")
			db, _ := sql.Open("sqlite3", h.env["GATEHOUSE_DATABASE_URL"])
			defer db.Close()
			if _, err := db.Exec(`CREATE TABLE cats (name TEXT)`); err != nil {
				t.Fatal(err)
			}
			return nil
		}, 2, []string{"something else", "cats"}},
		{"a vault that is a file", func(t *testing.T, h *home) func(*exec.Cmd) {
			h.env["GATEHOUSE_VAULT_PATH"] = filepath.Join(h.dir, "file")
			if err := os.WriteFile(h.env["GATEHOUSE_VAULT_PATH"], nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return nil
		}, -1, []string{"file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := ready(t)
			p := h.start(c.make(t, h), "serve")
			code := p.end()
			lines := strings.Split(strings.TrimSpace(p.err.String()), "\n")
			last := lines[len(lines)-1]
			if code != c.code && !(c.code < 0 && code > 0) {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, words := range c.says {
				if !strings.Contains(last, words) {
					t.Errorf("the last line is %q, want %q in it", last, words)
				}
			}
			if strings.Contains(p.err.String(), "panic") || strings.Contains(p.err.String(), "goroutine ") {
				t.Error("it panicked")
			}
		})
	}
}

func chmodAll(t *testing.T, dir string, folder, file os.FileMode) {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := len(paths) - 1; i >= 0; i-- {
		mode := file
		if st, err := os.Lstat(paths[i]); err != nil {
			t.Fatal(err)
		} else if st.IsDir() {
			mode = folder
		}
		if err := os.Chmod(paths[i], mode); err != nil {
			t.Fatal(err)
		}
	}
}
