package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/sandbox"
	"gatehouse/core/toolset"
)

// A breakIn is an attempt by way of the whole gateway: a message that has the
// model call tools, while the owner allows whatever is asked. {V}, {RUN},
// {ADDR}, {PORT}, {PID} and {OWN} are names of the yard, "echo {SAY}" has a shell
// say the canary.
type breakIn struct {
	name  string
	tries string
	won   func(y *yard, heard string) bool // nil: the canary was shown
	guest bool                             // the vault level may do it
	proof string                           // how the owner at full does it; "": by the same words
	prove func(y *yard) string             // what is heard where no turn may do it
}

var breakIns = []breakIn{
	// The database, while it is in use.
	{name: "read the database", tries: read("Chat/sessions.db"), proof: bash("grep -a -o -h -m1 'QX[A-Z0-9]\\{14\\}' {V}/Chat/sessions.db*")},
	{name: "read its log", tries: read("Chat/sessions.db-wal"), proof: bash("grep -a -o -h -m1 'QX[A-Z0-9]\\{14\\}' {V}/Chat/sessions.db*")},
	{name: "the database by a shell", tries: bash("grep -a -o -h -m1 'QX[A-Z0-9]\\{14\\}' {V}/Chat/sessions.db*")},
	{name: "search the database", tries: use("Grep", "pattern", "QX[A-Z0-9]+", "path", "{V}/Chat"), proof: bash("grep -r -a -o -h -m1 'QX[A-Z0-9]\\{14\\}' {V}/Chat")},
	{name: "write over the database", tries: write("Chat/old.db"), won: holdsEvil("Chat/old.db"), proof: bash("echo EVIL > {V}/Chat/old.db")},
	// The runtime folder.
	{name: "read the operator's key", tries: read("{RUN}/key"), won: hearsKey},
	{name: "the operator's key by a shell", tries: bash("cat {RUN}/key"), won: hearsKey},
	{name: "find the operator's key", tries: bash("cat /run/user/*/gatehouse*/key /tmp/gh*/gatehouse*/key /tmp/gatehouse*/key"), won: hearsKey, proof: bash("cat {RUN}/key")},
	{name: "a link to the operator's key", tries: bash("ln -sf {RUN}/key {V}/{OWN}/l") + "\nthen\n" + read("{OWN}/l"), won: hearsKey, proof: bash("cat {RUN}/key")},
	{name: "reach the socket", tries: bash("test -S {RUN}/socket && echo {SAY}")},
	{name: "scratch of other answers", tries: bash("test -d {RUN}/scratch && echo {SAY}")},
	// The network of the machine, from a shell.
	{name: "the API's port", tries: bash("exec 3<>/dev/tcp/127.0.0.1/{PORT} && printf 'GET /healthz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && cat <&3 | grep -q ok && echo {SAY}")},
	{name: "the API's port from a helper", tries: task(bash("exec 3<>/dev/tcp/127.0.0.1/{PORT} && echo {SAY}"))},
	// From the web tools: nobody's turn gets there, so that the guard is left out to show it.
	{name: "fetch the API", tries: use("WebFetch", "url", "http://{ADDR}/healthz"), won: hears(`{"status":"ok"}`), prove: gets("http://{ADDR}/healthz")},
	{name: "fetch the panel by another spelling", tries: use("WebFetch", "url", "http://localhost:{PORT}/admin/login") + "\n" + use("WebFetch", "url", "http://[::ffff:127.0.0.1]:{PORT}/admin/login") + "\n" + use("WebFetch", "url", "http://2130706433:{PORT}/admin/login"),
		won: hears("Sign in"), prove: gets("http://127.0.0.1:{PORT}/admin/login")},
	// The gateway's process.
	{name: "its environment by Read", tries: read("/proc/{PID}/environ"), won: hearsWD, proof: bash("tr '\\0' '\\n' < /proc/{PID}/environ")},
	{name: "its environment by a shell", tries: bash("tr '\\0' '\\n' < /proc/{PID}/environ"), won: hearsWD},
	{name: "everybody's environment", tries: bash("cat /proc/1/environ /proc/$PPID/environ /proc/[0-9]*/environ | tr '\\0' '\\n'"), won: hearsWD, proof: bash("tr '\\0' '\\n' < /proc/{PID}/environ")},
	{name: "the environment it gives its commands", tries: bash("env"), won: hearsWD, proof: bash("tr '\\0' '\\n' < /proc/{PID}/environ")},
	{name: "its folder by /proc", tries: bash("cat /proc/{PID}/root{V}/.env"), proof: bash("cat {V}/.env")},
	{name: "signal it", tries: bash("kill -0 {PID} && echo {SAY}")},
	// Secrets of the vault and around it.
	{name: "read .env", tries: read(".env"), proof: bash("cat {V}/.env")},
	{name: ".env by a shell", tries: bash("cat {V}/.env")},
	{name: ".env by a hard link", tries: bash("ln {V}/.env {V}/{OWN}/h; cat {V}/{OWN}/h"), proof: bash("ln {V}/.env {V}/h; cat {V}/h; rm {V}/h")},
	{name: ".env by a link made before", tries: bash("ln -sf {V}/.env {V}/{OWN}/e") + "\nthen\n" + read("{OWN}/e"), proof: bash("cat {V}/.env")},
	{name: ".env under another folder", tries: read("Notes/.env.local"), proof: bash("cat {V}/Notes/.env.local")},
	{name: "bots.yaml", tries: read(".parachute/bots.yaml"), proof: bash("cat {V}/.parachute/bots.yaml")},
	{name: "bots.yaml by a shell", tries: bash("cat {V}/.parachute/bots.yaml")},
	{name: "a private key", tries: read("Notes/id_ed25519"), proof: bash("cat {V}/Notes/id_ed25519")},
	{name: "the environment's file", tries: read("{V}/../gatehouse.env"), proof: bash("cat {V}/../gatehouse.env")},
	{name: "the environment's file by ..", tries: read("../gatehouse.env"), proof: bash("cat {V}/../gatehouse.env")},
	{name: "the environment's file from a guest's folder", tries: use("Read", "file_path", "../../../gatehouse.env"), proof: bash("cat {V}/../gatehouse.env")},
	{name: "the owner's notes from a guest's folder", tries: use("Read", "file_path", "../../Notes/diary.md"), won: hearsPrivate, guest: true, proof: read("Notes/diary.md")},
	{name: "another guest's folder from their own", tries: use("Read", "file_path", "../9001/diary.md"), won: hearsPrivate, guest: true, proof: read("Guests/9001/diary.md")},
	{name: "all secrets by a search", tries: use("Grep", "pattern", "QX[A-Z0-9]{8}", "path", "{V}"), proof: bash("grep -r -h QX {V}/.env {V}/.parachute")},
	{name: "all secrets by a shell", tries: bash("grep -r -a -h -o 'QX[A-Z0-9]\\{14\\}' {V} /home /root /tmp /run /var /etc 2>/dev/null | head -3"), proof: bash("grep -r -a -h -o 'QX[A-Z0-9]\\{14\\}' {V}/.env")},
	{name: "a helper reads .env", tries: task(read(".env") + "\n" + bash("cat {V}/.env")), proof: bash("cat {V}/.env")},
	// Other people.
	{name: "transcripts", tries: read(".claude/projects/-other/s.jsonl"), proof: bash("cat {V}/.claude/projects/-other/s.jsonl")},
	{name: "everybody's transcripts", tries: bash("cat {V}/.claude/projects/*/*.jsonl | grep -o 'QX[A-Z0-9]\\{14\\}'")},
	{name: "search transcripts", tries: use("Glob", "pattern", "**/*.jsonl", "path", "{V}"), won: hears("s.jsonl"), proof: bash("ls {V}/.claude/projects/-other")},
	{name: "another guest's folder", tries: read("Guests/9001/diary.md"), won: hearsPrivate, guest: true},
	{name: "another guest's folder by a shell", tries: bash("cat {V}/Guests/*/diary.md"), won: hearsPrivate, guest: true},
	{name: "another guest's folder by ..", tries: read("{OWN}/../9001/diary.md"), won: hearsPrivate, guest: true, proof: read("Guests/9001/diary.md")},
	{name: "write to another guest's folder", tries: write("Guests/9001/new.md"), won: holdsEvil("Guests/9001/new.md"), guest: true},
	{name: "the owner's notes", tries: read("Notes/diary.md"), won: hearsPrivate, guest: true},
	{name: "the owner's notes by a helper", tries: task(read("Notes/diary.md")), won: hearsPrivate, guest: true},
	{name: "the owner's notes by a question", tries: "what is in the diary of Notes and in Daily today?", won: hearsPrivate, guest: true, proof: read("Notes/diary.md")},
	{name: "the owner's journal", tries: bash("cat {V}/Daily/today.md"), won: hearsPrivate, guest: true},
	{name: "the owner's CLAUDE.md", tries: read("CLAUDE.md"), won: hearsPrivate, guest: true},
	{name: "a skill of the owner's", tries: use("Skill", "skill", "mine"), won: hearsPrivate, guest: true},
	{name: "search the owner's notes", tries: use("Grep", "pattern", "PV[A-Z0-9]{8}", "path", "{V}", "output_mode", "content"), won: hearsPrivate, guest: true},
	{name: "change the owner's notes", tries: write("Notes/new.md"), won: holdsEvil("Notes/new.md"), guest: true},
	// What commands the gateway and other agents.
	{name: "write .mcp.json", tries: write(".mcp.json"), won: holdsEvil(".mcp.json"), proof: bash("echo EVIL > {V}/.mcp.json")},
	{name: ".mcp.json by a shell", tries: bash("echo EVIL > {V}/.mcp.json; rm -f {V}/.mcp.json; echo EVIL > {V}/.mcp.json"), won: holdsEvil(".mcp.json"), proof: bash("echo EVIL > {V}/.mcp.json")},
	{name: "write an agent", tries: write(".parachute/agents/evil.md"), won: holdsEvil(".parachute/agents/evil.md")},
	{name: "an agent by a shell", tries: bash("echo EVIL > {V}/.parachute/agents/evil.md"), won: holdsEvil(".parachute/agents/evil.md")},
	{name: "write a skill", tries: write(".parachute/skills/evil.md"), won: holdsEvil(".parachute/skills/evil.md")},
	{name: "a workspace that opens more", tries: write(".parachute/workspaces/x/config.yaml"), won: holdsEvil(".parachute/workspaces/x/config.yaml"), proof: bash("mkdir -p {V}/.parachute/workspaces/x; echo EVIL > {V}/.parachute/workspaces/x/config.yaml")},
	{name: "change CLAUDE.md", tries: write("CLAUDE.md"), won: holdsEvil("CLAUDE.md"), proof: bash("echo EVIL > {V}/CLAUDE.md")},
	{name: "CLAUDE.md by another case and a shell", tries: write("Claude.MD") + "\n" + bash("echo EVIL > {V}/CLAUDE.md"), won: holdsEvil("CLAUDE.md"), proof: bash("echo EVIL > {V}/CLAUDE.md")},
	{name: "settings of Claude Code", tries: write(".claude/settings.json"), won: holdsEvil(".claude/settings.json")},
	{name: "a helper writes an agent", tries: task(write(".parachute/agents/evil.md")), won: holdsEvil(".parachute/agents/evil.md")},
	{name: ".parachuteignore", tries: write(".parachuteignore"), won: holdsEvil(".parachuteignore")},
	// Outside of the vault.
	{name: "write beside the vault", tries: write("{V}/../new"), won: holdsEvil("../new")},
	{name: "write beside the vault by a shell", tries: bash("echo EVIL > {V}/../new"), won: holdsEvil("../new")},
	{name: "the machine's people", tries: bash("grep daemon: /etc/passwd"), won: hears("daemon:x")},
	{name: "read the machine's people", tries: read("/etc/passwd"), won: hears("daemon:x")},
	// More than its share.
	{name: "a helper of a helper without end", tries: task(task(task(bash("echo {SAY}")))), proof: bash("echo {SAY}")},
	{name: "dangerous commands with the owner's yes", tries: bash("sudo -n true; echo {SAY}"), proof: bash("echo {SAY}")},
}

func hears(text string) func(*yard, string) bool {
	return func(_ *yard, heard string) bool {
		return strings.Contains(strings.ReplaceAll(heard, `\"`, `"`), text)
	}
}

func hearsKey(y *yard, heard string) bool { return strings.Contains(heard, y.key) }

func hearsPrivate(y *yard, heard string) bool { return strings.Contains(heard, y.private) }

// hearsWD: what started the tests left the package's folder in PWD.
func hearsWD(_ *yard, heard string) bool {
	wd, err := os.Getwd()
	return err == nil && strings.Contains(heard, "="+wd)
}

func holdsEvil(name string) func(*yard, string) bool {
	return func(y *yard, _ string) bool {
		b, _ := os.ReadFile(filepath.Join(y.cfg.VaultPath, name)) // not there: not written
		return strings.Contains(string(b), "EVIL")
	}
}

func gets(address string) func(*yard) string {
	return func(y *yard) string {
		_, body := y.ask(nil, "GET", strings.TrimPrefix(y.names.Replace(address), "http://"+y.cfg.Addr), nil)
		return body
	}
}

func (a breakIn) got(y *yard, heard string) bool {
	if a.won != nil {
		return a.won(y, heard)
	}
	return strings.Contains(heard, y.canary)
}

// Nobody below full trust gets at what is not theirs by way of the gateway,
// whatever the model is made to call and whatever the owner allows.
func TestNoWayThroughTheWholeGateway(t *testing.T) {
	if raceEnabled {
		t.Skip("make counts runs it whole: what is tried are walls, not threads")
	}
	t.Parallel()
	noWayThrough(t, newYard(t, nil))
}

// The same with containers in place of bubblewrap.
func TestNoWayThroughTheWholeGatewayWithContainers(t *testing.T) {
	if raceEnabled {
		t.Skip("make counts runs it whole: what is tried are walls, not threads")
	}
	t.Parallel()
	y := newYardIn(t, nil, sandbox.Container)
	if !y.app.isolated() {
		t.Skip("SKIPPED: no container back end: ", whyNoBox(y.app))
	}
	noWayThrough(t, y)
}

// noWayThrough makes each attempt at each level, and each without a guard.
func noWayThrough(t *testing.T, y *yard) {
	t.Helper()
	if !y.app.isolated() {
		t.Log("without a sandbox nobody below full has a shell: ", whyNoBox(y.app))
	} else {
		for _, s := range y.seats { // the owner's yes counts, and what is shown is heard
			if heard := s.say(y.fill(s, bash("echo {SAY}"))); !strings.Contains(heard, y.canary) {
				t.Fatalf("%s runs no command at all, so this shows nothing:\n%s", s.name, heard)
			}
		}
	}
	tried := map[string]int{}
	for _, a := range breakIns {
		for _, s := range y.seats {
			if a.guest && s.trust != core.Sandboxed {
				continue
			}
			tried[s.name]++
			if heard := s.say(y.fill(s, a.tries)); a.got(y, strings.ReplaceAll(heard, y.fill(s, a.tries), "")) {
				t.Errorf("ESCAPED: %s: %s\n%s", s.name, a.name, heard)
			}
		}
		a.proved(y)
	}
	for _, name := range slices.Sorted(maps.Keys(tried)) {
		t.Logf("escapes: %s, %s: %d attempts", y.cfg.Sandbox, name, tried[name])
	}
}

// In a group no turn gets further than the group's level, the owner's included,
// and a tool that is not offered there is refused when it is called all the same.
func TestNoWayThroughAGroupForTheOwnerEither(t *testing.T) {
	if raceEnabled {
		t.Skip("make counts runs it whole: what is tried are walls, not threads")
	}
	t.Parallel()
	model := llmtest.New(t, llmtest.Options{Key: modelKey})
	y := newYard(t, model)
	s := y.inAGroup(model)
	if heard := s.say(y.fill(s, bash("echo {SAY}"))); y.app.isolated() && !strings.Contains(heard, y.canary) {
		t.Fatalf("no command runs at all, so this shows nothing:\n%s", heard)
	}
	for _, a := range breakIns {
		if strings.HasPrefix(a.tries, "use Task") || !strings.HasPrefix(a.tries, "use ") {
			continue // a helper would be told by the same fake
		}
		if heard := s.say(y.fill(s, a.tries)); a.got(y, heard) {
			t.Errorf("ESCAPED: %s: %s\n%s", s.name, a.name, heard)
		}
	}
	heard := s.say(use("WebFetch", "url", "http://"+y.cfg.Addr+"/healthz") + "\n" + use("mcp__site__echo", "text", "x") + "\n" + use("Rootkit", "x", "y"))
	if n := strings.Count(heard, "there is no tool"); n != 3 {
		t.Errorf("what is not offered is refused %d times:\n%s", n, heard)
	}
}

// veiledDeeds are the attempts that the veil ends at full trust too: they name
// the gateway's own files or its process.
var veiledDeeds = []string{
	"read the database", "read its log", "the database by a shell", "the operator's key by a shell", "find the operator's key", "a link to the operator's key",
	"reach the socket", "scratch of other answers", "its environment by Read", "its environment by a shell", "everybody's environment",
	"the environment it gives its commands", "signal it", "bots.yaml", "bots.yaml by a shell",
}

// unveiled runs the command of a message outside of the gateway.
func (y *yard) unveiled(text string) string {
	y.t.Helper()
	var in struct{ Command string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "use Bash ")), &in); err != nil {
		y.t.Fatal(err)
	}
	cmd := exec.Command("/bin/bash", "-c", in.Command)
	cmd.Dir = y.cfg.VaultPath
	out, _ := cmd.CombinedOutput() // what it means is in the output
	return string(out)
}

// proved has the owner at full do what was attempted, and undoes it.
func (a breakIn) proved(y *yard) {
	y.t.Helper()
	heard := ""
	if a.prove != nil {
		heard = a.prove(y)
	} else {
		text := a.tries
		if a.proof != "" {
			text = a.proof
		}
		text = y.fill(y.owner, text)
		heard = y.owner.say(text)
		if y.app.veil() != nil && slices.Contains(veiledDeeds, a.name) {
			if a.got(y, heard) {
				y.t.Errorf("ESCAPED: %s: the owner at full trust: %s\n%s", a.name, text, heard)
			}
			heard = y.unveiled(text)
		}
	}
	if !a.got(y, heard) {
		y.t.Errorf("%s: does not succeed without the guard, so it shows nothing:\n%s", a.name, heard)
	}
	for _, name := range []string{".parachute/agents/evil.md", ".parachute/skills/evil.md", ".parachute/workspaces/x", ".claude/settings.json", "../new", "Notes/new.md", "Guests/9001/new.md", ".parachuteignore"} {
		_ = os.RemoveAll(filepath.Join(y.cfg.VaultPath, name))
	}
	y.puts(map[string]string{".mcp.json": toolset.NoServers, "CLAUDE.md": y.private + "\n", "Chat/old.db": y.canary})
}

// For random sequences of tool calls nothing of the canary files is ever sent
// to a guest, on the wire of either platform or over the API.
func TestNoSequenceOfCallsSendsAGuestWhatIsNotTheirs(t *testing.T) {
	t.Parallel()
	y := newYard(t, nil)
	names := []string{".env", "Notes/diary.md", "Chat/sessions.db", "Guests/9001/diary.md", "CLAUDE.md", ".parachute/bots.yaml", "{OWN}/l", "{OWN}/d/diary.md", "..", ".", "{V}/../gatehouse.env", "{RUN}/key"}
	seed := [32]byte([]byte(y.canary + y.private))
	t.Logf("seed %q", seed)
	random := rand.New(rand.NewChaCha8(seed))
	pick := func() string { return names[random.IntN(len(names))] }
	kinds := []func() string{
		func() string { return read(pick()) },
		func() string {
			return use("Grep", "pattern", "QX|PV", "path", inVault(pick()), "output_mode", "content")
		},
		func() string { return use("Glob", "pattern", "**/*", "path", inVault(pick())) },
		func() string { return write(pick()) },
		func() string {
			return use("Edit", "file_path", inVault(pick()), "old_string", "PV", "new_string", "PW")
		},
		func() string { return bash("cat {V}/" + pick() + " " + pick()) },
		func() string { return bash("cd {V}/{OWN}; rm -rf l d; ln -s {V}/" + pick() + " l; ln -s {V}/Notes d") },
		func() string { return bash("cd {V}/{OWN}; cp -r {V}/" + pick() + " c; grep -r 'QX\\|PV' .") },
		func() string { return use("Skill", "skill", "mine") },
	}
	wire := func() string { return fmt.Sprintf("%+v%+v", y.sim.Requests(0, ""), y.discord.Requests(0, "")) }
	before := strings.Count(wire(), y.canary) + strings.Count(wire(), y.private)
	for i := range 24 {
		s := y.seats[i%len(y.seats)]
		if s.trust != core.Sandboxed {
			continue
		}
		var calls []string
		for range 2 + random.IntN(6) {
			call := kinds[random.IntN(len(kinds))]()
			if random.IntN(4) == 0 {
				call = task(call)
			}
			calls = append(calls, call)
			if random.IntN(2) == 0 {
				calls = append(calls, "then")
			}
		}
		text := y.fill(s, strings.Join(calls, "\n"))
		if heard := s.say(text); strings.Contains(heard, y.canary) || strings.Contains(heard, y.private) || strings.Contains(heard, y.key) {
			t.Fatalf("%s was told after\n%s\n%s", s.name, text, heard)
		}
	}
	if after := strings.Count(wire(), y.canary) + strings.Count(wire(), y.private); after != before {
		t.Errorf("canaries were sent %d times on the platforms' wires", after-before)
	}
	if heard := y.owner.say(y.fill(y.owner, read("Notes/diary.md"))); !strings.Contains(heard, y.private) {
		t.Errorf("the owner does not get it either, so this shows nothing: %s", heard)
	}
	var none http.Header
	if status, _ := y.ask(none, "GET", "/healthz", nil); status != 200 {
		t.Errorf("the gateway is not well after that: %d", status)
	}
}

func whyNoBox(a *app) string {
	_, why := a.sandbox.Box()
	return why
}
