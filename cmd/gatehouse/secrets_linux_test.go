package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A running gateway shows no token to anybody who reads its environment, and
// nothing at all to another program of its own user. It works on.
func TestARunningGatewayShowsItsSecretsToNoOtherProcess(t *testing.T) {
	t.Parallel()
	for _, as := range []string{"own user", "nobody"} {
		t.Run(as, func(t *testing.T) {
			t.Parallel()
			sim := newSim(t)
			h := newHome(t, sim)
			const key, listed = "sk-one-that-is-secret", "listed-and-secret"
			h.env["GATEHOUSE_OPENAI_API_KEY"], h.env["GATEHOUSE_MODEL"] = key, "local/quote"
			h.env["GATEHOUSE_MCP_ENV"], h.env["LISTED"], h.env["OTHER"] = "LISTED", listed, "left as it is"
			file := filepath.Join(h.dir, "settings")
			if err := os.WriteFile(file, []byte("GATEHOUSE_ANTHROPIC_API_KEY=sk-of-the-file\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var change func(*exec.Cmd)
			if as == "nobody" {
				if change = h.asNobody(); change == nil {
					t.Skip("only root runs programs as another user")
				}
			}
			p := h.start(change, "--env-file", file, "serve")
			p.says("msg=serving")
			environ := fmt.Sprintf("/proc/%d/environ", p.cmd.Process.Pid)
			shown, err := os.ReadFile(environ)
			if os.Getuid() == 0 && err != nil { // for others it is closed
				t.Fatal(err)
			}
			for _, secret := range []string{sim.Token(), key, listed, cliPassword, "sk-of-the-file"} {
				if strings.Contains(string(shown), secret) {
					t.Errorf("%s is in %s", secret, environ)
				}
			}
			if err == nil && !strings.Contains(string(shown), "OTHER=left as it is\x00") {
				t.Errorf("what is no secret is changed: %q", shown)
			}
			if as == "nobody" {
				for _, name := range []string{"environ", "mem", "maps", "fd/0", "root/etc/passwd"} {
					cmd := exec.Command("/bin/cat", fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, name))
					cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
					if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "Permission denied") {
						t.Errorf("another program of the same user reads %s: %q, %v", name, out, err)
					}
				}
			}
			// It goes on as before: the bot has its token, and the socket answers.
			ada := sim.NewUser("Ada")
			m := ada.Send("hello")
			hear(t, sim, ada.DM(), m.ID, "")
			ask := h.start(change, "pairing", "list")
			if code := ask.end(); code != 0 || !strings.Contains(ask.out.String(), "Ada") {
				t.Errorf("pairing list: %d, %s%s", code, ask.out.String(), ask.err.String())
			}
		})
	}
}
