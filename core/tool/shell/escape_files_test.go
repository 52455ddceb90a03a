//go:build linux

package shell_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/tool/files"
)

// A fileAttempt is one way to get by the file tools at what is closed. It is
// tried at every level below full that it is about, and with a careless tool of
// the same name in place of ours, where it must succeed.
type fileAttempt struct {
	name    string
	prepare string // a command as somebody inside could run it before
	tool    string
	input   string // JSON; {V}, {B} and {OWN} as for commands
	won     func(p *prey, out string) bool
	guest   bool
}

var fileAttempts = []fileAttempt{
	{name: "read .env", tool: "Read", input: `{"file_path": "{V}/.env"}`},
	{name: "read .env in capitals", prepare: "cp {V}/.env {OWN}/.ENV", tool: "Read", input: `{"file_path": ".ENV"}`},
	{name: "read a private key", tool: "Read", input: `{"file_path": "{V}/id_rsa"}`},
	{name: "read the bots file", tool: "Read", input: `{"file_path": "{V}/.parachute/bots.yaml"}`},
	{name: "read other people's sessions", tool: "Read", input: `{"file_path": "{V}/.claude/projects/-x/s.jsonl"}`},
	{name: "read the database", tool: "Read", input: `{"file_path": "{V}/Chat/sessions.db"}`},
	{name: "read the owner's notes", tool: "Read", input: `{"file_path": "{V}/Notes/diary.md"}`, guest: true},
	{name: "read another guest's notes by ..", tool: "Read", input: `{"file_path": "../8/diary.md"}`, guest: true},
	{name: "read by .. past the read list", tool: "Read", input: `{"file_path": "{V}/Public/../Notes/diary.md"}`, guest: true},
	{name: "read the host by ..", tool: "Read", input: `{"file_path": "{UP}/outside.txt"}`},
	{name: "read the host by an absolute path", tool: "Read", input: `{"file_path": "{B}/outside.txt"}`},
	{name: "read the owner's ssh key", tool: "Read", input: `{"file_path": "{B}/home/.ssh/id_ed25519"}`},
	{name: "read a token's file", tool: "Read", input: `{"file_path": "{B}/secrets/telegram.token"}`},
	{name: "read the gateway's environment", tool: "Read", input: `{"file_path": "/proc/{VICTIM}/environ"}`},
	{name: "read by /proc/self/root", tool: "Read", input: `{"file_path": "/proc/self/root{B}/outside.txt"}`},
	{name: "read by the gateway's open files", tool: "Read", input: `{"file_path": "/proc/self/fd/{FD}"}`},
	{name: "read by a link to a file", prepare: "ln -s {B}/outside.txt l", tool: "Read", input: `{"file_path": "l"}`},
	{name: "read by a link to a folder", prepare: "ln -s {B} l", tool: "Read", input: `{"file_path": "l/outside.txt"}`},
	{name: "read by a chain of links", prepare: "ln -s b a; ln -s c b; ln -s {B}/outside.txt c", tool: "Read", input: `{"file_path": "a"}`},
	{name: "read by a link to /proc", prepare: "ln -s /proc/self/root l", tool: "Read", input: `{"file_path": "l{B}/outside.txt"}`},
	{name: "read .env by a link", prepare: "ln -s {V}/.env l", tool: "Read", input: `{"file_path": "l"}`},
	{name: "read .env by a hard link", prepare: "ln {V}/.env l", tool: "Read", input: `{"file_path": "l"}`},
	{name: "read the host by a hard link", prepare: "ln {B}/outside.txt l", tool: "Read", input: `{"file_path": "l"}`},
	{name: "search the vault for secrets", tool: "Grep", input: `{"pattern": "CANARY", "path": "{V}", "output_mode": "content"}`, won: says("CANARY .env")},
	{name: "search the host", tool: "Grep", input: `{"pattern": "CANARY", "path": "{B}", "output_mode": "content"}`, won: says("CANARY outside")},
	{name: "search through a link", prepare: "ln -s {B} l", tool: "Grep", input: `{"pattern": "CANARY", "path": "l", "output_mode": "content"}`, won: says("CANARY outside")},
	{name: "list the vault", tool: "Glob", input: `{"pattern": "**/*", "path": "{V}"}`, won: says("diary.md"), guest: true},
	{name: "list secrets", tool: "Glob", input: `{"pattern": "**/*", "path": "{V}"}`, won: says("id_rsa")},
	{name: "list the host", tool: "Glob", input: `{"pattern": "**/*", "path": "{B}"}`, won: says("outside.txt")},
	{name: "list by a pattern with ..", tool: "Glob", input: `{"pattern": "{UP}/**/*.token"}`, won: says("telegram.token")},
	{name: "write to the host", tool: "Write", input: `{"file_path": "{B}/new", "content": "EVIL"}`, won: made("../new")},
	{name: "write to the host by ..", tool: "Write", input: `{"file_path": "{UP}/new", "content": "EVIL"}`, won: made("../new")},
	{name: "write to the host by a link", prepare: "ln -s {B} l", tool: "Write", input: `{"file_path": "l/new", "content": "EVIL"}`, won: made("../new")},
	{name: "write to the host by a link to nothing", prepare: "ln -s {B}/new l", tool: "Write", input: `{"file_path": "l", "content": "EVIL"}`, won: made("../new")},
	{name: "write to another guest's folder", tool: "Write", input: `{"file_path": "{V}/Guests/8/new.md", "content": "EVIL"}`, won: made("Guests/8/new.md"), guest: true},
	{name: "write to the owner's notes by a link", prepare: "ln -s {V}/Notes l", tool: "Write", input: `{"file_path": "l/new.md", "content": "EVIL"}`, won: made("Notes/new.md"), guest: true},
	{name: "write to what may be read", tool: "Write", input: `{"file_path": "{V}/Public/new.md", "content": "EVIL"}`, won: made("Public/new.md"), guest: true},
	{name: "make CLAUDE.md", tool: "Write", input: `{"file_path": "{OWN}/CLAUDE.md", "content": "EVIL"}`, won: inOwn("CLAUDE.md")},
	{name: "make claude.md", tool: "Write", input: `{"file_path": "claude.md", "content": "EVIL"}`, won: inOwn("claude.md")},
	{name: "make .mcp.json", tool: "Write", input: `{"file_path": ".mcp.json", "content": "{}"}`, won: inOwn(".mcp.json")},
	{name: "make settings for agents", tool: "Write", input: `{"file_path": ".claude/settings.local.json", "content": "EVIL"}`, won: inOwn(".claude/settings.local.json")},
	{name: "make a git hook", tool: "Write", input: `{"file_path": "r/.git/hooks/pre-commit", "content": "EVIL"}`, won: inOwn("r/.git/hooks/pre-commit")},
	{name: "make an agent", tool: "Write", input: `{"file_path": "{V}/.parachute/agents/evil.md", "content": "EVIL"}`, won: made(".parachute/agents/evil.md")},
	{name: "change CLAUDE.md", tool: "Edit", input: `{"file_path": "{V}/CLAUDE.md", "old_string": "CANARY", "new_string": "EVIL"}`, won: holds("CLAUDE.md", "EVIL")},
	{name: "change .mcp.json", tool: "Edit", input: `{"file_path": "{V}/.mcp.json", "old_string": "CANARY", "new_string": "EVIL"}`, won: holds(".mcp.json", "EVIL")},
	{name: "change a file of the host", tool: "Edit", input: `{"file_path": "{B}/outside.txt", "old_string": "CANARY", "new_string": "EVIL"}`, won: holds("../outside.txt", "EVIL")},
}

// byTool makes a call as the loop does: what it touches is held against the
// bounds, and only then it runs.
func (p *prey) byTool(ctx context.Context, turn *tool.Turn, name, input string) string {
	for _, t := range files.New() {
		if t.Name != name {
			continue
		}
		raw := json.RawMessage(input)
		access, err := t.Touches(turn, raw)
		if err != nil {
			return "refused: " + err.Error()
		}
		for _, f := range access.Read {
			if !turn.MayRead(f) {
				return "refused: may not read " + f
			}
		}
		for _, f := range access.Write {
			if !turn.MayWrite(f) {
				return "refused: may not write " + f
			}
		}
		r, err := t.Run(ctx, &tool.Call{ID: "1", Input: raw, Turn: turn, Access: access, Progress: func(string) {}})
		if err != nil {
			return "refused: " + err.Error()
		}
		return r.Text
	}
	return "no such tool"
}

// careless is what a tool without any guard would do.
func (p *prey) careless(name, input string) string {
	var in struct {
		Path    string `json:"file_path"`
		Folder  string `json:"path"`
		Content string `json:"content"`
		Old     string `json:"old_string"`
		New     string `json:"new_string"`
		Pattern string `json:"pattern"`
	}
	if err := json.Unmarshal([]byte(input), &in); err != nil {
		return err.Error()
	}
	at := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(p.own, path)
	}
	switch name {
	case "Read":
		b, err := os.ReadFile(at(in.Path))
		return fmt.Sprint(string(b), err)
	case "Write":
		_ = os.MkdirAll(filepath.Dir(at(in.Path)), 0o700)
		return fmt.Sprint(os.WriteFile(at(in.Path), []byte(in.Content), 0o600))
	case "Edit":
		b, _ := os.ReadFile(at(in.Path))
		return fmt.Sprint(os.WriteFile(at(in.Path), []byte(strings.ReplaceAll(string(b), in.Old, in.New)), 0o600))
	}
	top, _, _ := strings.Cut(in.Pattern, "**")
	if name == "Grep" || in.Folder != "" {
		top = in.Folder
	}
	top, err := filepath.EvalSymlinks(at(top))
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		fmt.Fprintln(&out, path)
		if err == nil && name == "Grep" && d.Type().IsRegular() && !strings.HasSuffix(path, "attack") {
			b, _ := os.ReadFile(path)
			out.Write(b)
		}
		return nil
	})
	return out.String()
}

func (a fileAttempt) got(p *prey, out string) bool {
	if a.won != nil {
		return a.won(p, out)
	}
	return strings.Contains(out, canary)
}

func (p *prey) level(t *testing.T, trust core.Trust) *tool.Turn {
	t.Helper()
	rel, err := filepath.Rel(p.vault.Path(), p.own)
	if err != nil {
		t.Fatal(err)
	}
	return p.turn(t, trust, rel)
}

func TestNoWayByTheFileTools(t *testing.T) {
	var c counts
	t.Cleanup(c.print) // once the parallel ones are over
	for _, a := range fileAttempts {
		for _, trust := range below {
			if a.guest && trust != core.Sandboxed {
				continue
			}
			t.Run(trust.String()+"/"+a.name, func(t *testing.T) {
				t.Parallel()
				c.add("file tools, "+trust.String(), 0)
				for _, guarded := range []bool{false, true} {
					p := newPrey(t, nil, trust == core.Sandboxed)
					if a.prepare != "" {
						p.raw(t, a.prepare)
					}
					up, err := filepath.Rel(p.own, p.base)
					if err != nil {
						t.Fatal(err)
					}
					input := strings.ReplaceAll(p.names.Replace(a.input), "{UP}", up)
					if !guarded {
						if out := p.careless(a.tool, input); !a.got(p, out) {
							t.Errorf("does not succeed without a guard, so it shows nothing: %s %s\n%s", a.tool, input, out)
						}
						continue
					}
					if out := p.byTool(t.Context(), p.level(t, trust), a.tool, input); a.got(p, out) {
						c.add("file tools, "+trust.String(), 1)
						t.Errorf("ESCAPED at %s: %s %s\n%s", trust, a.tool, input, out)
					}
				}
			})
		}
	}
}

// TestSwapsBetweenCheckAndUseGainNothing: while a command exchanges a folder
// with a link to one outside, over and over, the file tools read and write in it.
func TestSwapsBetweenCheckAndUseGainNothing(t *testing.T) {
	b := box(t)
	for _, trust := range below {
		for _, what := range []string{"Read", "Write"} {
			t.Run(trust.String()+"/"+what, func(t *testing.T) {
				setting := "mkdir -p x && echo fine > x/outside.txt && ln -s {B} y && "
				in := `{"file_path": "x/outside.txt"}`
				escaped := func(p *prey, out string) bool { return strings.Contains(out, canary) }
				if what == "Write" {
					in = `{"file_path": "x/planted", "content": "EVIL"}`
					escaped = func(p *prey, _ string) bool { return p.has("../planted") }
				}
				careless := newPrey(t, nil, trust == core.Sandboxed)
				if !race(t, careless.own, func() { careless.raw(t, setting+"./attack swap x y 15000") }, func() bool {
					// As careful as without os.Root: the name is resolved and looked at, then used.
					if real, err := filepath.EvalSymlinks(filepath.Join(careless.own, "x")); err != nil || real != filepath.Join(careless.own, "x") {
						return false
					}
					return escaped(careless, careless.careless(what, in))
				}) {
					t.Error("does not succeed without a guard, so it shows nothing")
				}
				p := newPrey(t, b, trust == core.Sandboxed)
				turn := p.level(t, trust)
				if race(t, p.own, func() { p.guarded(t, trust, setting+"./attack swap x y 1500") }, func() bool {
					return escaped(p, p.byTool(t.Context(), turn, what, in))
				}) {
					t.Error("ESCAPED by a swap")
				}
			})
		}
	}
}

// race tries again and again while swap runs, and says whether it got through.
func race(t *testing.T, own string, swap func(), try func() bool) (won bool) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		swap()
	}()
	n, start := 0, time.Now()
	for ; !won; n++ {
		select {
		case <-done:
			t.Logf("%d tries in %s", n, time.Since(start))
			return false
		default:
			won = try()
		}
	}
	t.Logf("through after %d tries", n)
	for { // nothing left to swap ends it
		_ = os.Remove(filepath.Join(own, "y"))
		_ = os.Remove(filepath.Join(own, "x"))
		select {
		case <-done:
			return won
		case <-time.After(time.Millisecond):
		}
	}
}
