package permission

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/vault"
)

var codePoint = regexp.MustCompile(`<U\+([0-9A-F]+)>`)

// classes are the evasions of shell/testdata, by file.
func classes(t testing.TB) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("shell/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no evasions: %v", err)
	}
	out := map[string][]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range strings.Split(string(b), "\n") {
			if l == "" || l[0] == '#' {
				continue
			}
			l = codePoint.ReplaceAllStringFunc(strings.ReplaceAll(l, "⏎", "\n"), func(s string) string {
				n, _ := strconv.ParseUint(s[3:len(s)-1], 16, 32)
				return string(rune(n))
			})
			out[filepath.Base(f)] = append(out[filepath.Base(f)], l)
		}
	}
	return out
}

// besideGrants decides a command of a person without trust mode who was granted
// the commands that evasions hide behind.
func besideGrants(command string) Decision {
	p := Profile{User: 1, Trust: core.Full, Session: "s", Owner: true}
	q := question{p: p, t: bashTool, a: tool.Access{Command: command}, isolation: true}
	for _, pattern := range []string{"ls *", "cat *", "git *", "echo *", "true *", "find *", "sort *", "> x"} {
		q.grants = append(q.grants, GrantRow{Session: "s", User: 1, Trust: core.Full, Kind: kindBash, Pattern: pattern})
	}
	return q.decide()
}

func TestNoEvasionRunsWithoutAQuestionInTrustModeOrWithAGrant(t *testing.T) {
	all := 0
	for class, lines := range classes(t) {
		for _, l := range lines {
			all++
			if r := shellCase(t, l); r.Decision == "allow" || class == "refused.txt" && r.Decision != "deny" {
				t.Errorf("%s: %q in trust mode: %s by %s, runs %q", class, l, r.Decision, r.Rule, r.Commands)
			}
			if d := besideGrants(l); d.Verdict == Allow || class == "refused.txt" && d.Verdict != Deny {
				t.Errorf("%s: %q beside grants: %s by %s", class, l, d.Verdict, d.Rule)
			}
		}
	}
	for _, l := range corpus(t, "evasions.txt") {
		all++
		_, l, _ = strings.Cut(l, " ")
		if d := besideGrants(l); d.Verdict == Allow {
			t.Errorf("%q beside grants: %s by %s", l, d.Verdict, d.Rule)
		}
	}
	if all < 800 {
		t.Fatalf("only %d evasions", all)
	}
}

// A reason is given for each, and what is asked is shown as it is.
func TestAnAskNamesWhatIsNotUnderstood(t *testing.T) {
	for command, want := range map[string]string{
		"make test":                   "make is not on the list",
		"PATH=. ls":                   "it sets PATH",
		"ls\r# x":                     "control or invisible characters",
		"sort *.txt":                  "write ./ before it",
		"git diff --output=x":         "the option --output=x of git diff",
		"echo x > /tmp/y":             "outside of the working area",
		"echo x > .git/config":        "hidden file",
		"echo $((1+1))":               "arithmetic",
		"cat /proc/self/maps":         "processes",
		"grep -r x ~":                 "everything below ~",
		"awk 'BEGIN{f=ENVIRON[1]}' a": "the program of awk",
		"while true; do ls; done":     "loop",
		"cd sub && git status":        "another repository",
		"mv a b; echo x > b":          "may be a link",
		"for f in *; do rm $f; done":  "outside of quotes",
	} {
		r := shellCase(t, command)
		if r.Decision != "ask" || !strings.Contains(r.Text, want) {
			t.Errorf("%q: %s by %s: %q lacks %q", command, r.Decision, r.Rule, r.Text, want)
		}
	}
}

// A command that is not understood is granted as exactly its text, and nothing
// else is covered by that.
func TestAGrantOfExactlyTheTextCoversNothingElse(t *testing.T) {
	p := Profile{User: 1, Trust: core.Full, Session: "s", Owner: true, Auto: true}
	decide := func(command string, grants ...string) Decision {
		q := question{p: p, t: bashTool, a: tool.Access{Command: command}, isolation: true}
		for _, g := range grants {
			q.grants = append(q.grants, GrantRow{Session: "s", User: 1, Trust: core.Full, Kind: kindBash, Pattern: g})
		}
		return q.decide()
	}
	d := decide("make test")
	if d.Verdict != MustAsk || d.Rule != RuleUnknown || len(d.Suggested) != 1 || d.Suggested[0].Pattern != "= make test" {
		t.Fatalf("%+v", d)
	}
	grant := d.Suggested[0].Pattern
	for command, want := range map[string]Verdict{
		"make test": Allow, "make": MustAsk, "make test ": MustAsk, "make test x": MustAsk, "make test; id": MustAsk, "make  test": MustAsk, "sudo make test": Deny, "= make test": MustAsk,
	} {
		if d := decide(command, grant); d.Verdict != want {
			t.Errorf("%q under %q: %s by %s", command, grant, d.Verdict, d.Rule)
		}
	}
	for _, wide := range []string{"= *", "= make *", "make *", "* *", "= make test *"} {
		if Narrower(kindBash, wide, d.Suggested) {
			t.Errorf("%q passes as narrower than %q", wide, grant)
		}
	}
	if d := decide("make *"); Narrower(kindBash, "= make clean", d.Suggested) {
		t.Errorf("a grant of the text %q covers more than it", d.Suggested[0].Pattern)
	}
	for _, command := range []string{"$x", "ls\r", "cat .env", "curl x | sh", "source x"} {
		if d := decide(command); d.Verdict != MustAsk || len(d.Suggested) != 0 {
			t.Errorf("%q may be granted: %+v", command, d)
		}
		if d := decide(command, "= "+command); d.Verdict != MustAsk {
			t.Errorf("%q is covered by a grant of its text", command)
		}
	}
	all := question{p: Profile{User: 1, Trust: core.Full, Configured: Configured{Bash: Commands{All: true}}}, t: bashTool, a: tool.Access{Command: "make test"}, isolation: true}
	if d := all.decide(); d.Verdict != MustAsk {
		t.Errorf("a session that may run commands runs %+v", d)
	}
	all.p.Configured.Bash = Commands{Patterns: []string{"= make test"}}
	if d := all.decide(); d.Verdict != Allow || d.Rule != RuleConfigured {
		t.Errorf("a session that may run exactly this: %+v", d)
	}
}

func TestACommandThatReachesTheGatewaysOwnFilesAsks(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, own := filepath.Join(root, "vault"), filepath.Join(root, "state", "gatehouse")
	for _, d := range []string{filepath.Join(dir, "Notes"), own} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	key := filepath.Join(own, "key")
	if err := os.WriteFile(key, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"lnk": key, "Notes/up": filepath.Join(root, "state"), "loose.md": filepath.Join(root, "elsewhere")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	decide := func(command string) Decision {
		w := newWhere(openVault(t, dir), "", []string{own})
		w.home = filepath.Join(root, "home")
		return question{p: Profile{User: 1, Trust: core.Full, Owner: true, Auto: true}, t: bashTool, a: tool.Access{Command: command}, isolation: true, where: w}.decide()
	}
	for _, command := range []string{
		"cat " + key, "cat " + own + "/../gatehouse/key", "cat ../state/gatehouse/key", "cat lnk", "cat l*k", "cat lnk*", "cat ./l?k", "head -c 5 < lnk",
		"cat Notes/up/gatehouse/key", "cd Notes && cat up/gatehouse/key", "ls " + own, "cat " + root + "/st*/gate*/key", "cat ~/../state/gatehouse/key",
		"grep -r x " + root, "grep -r x ..", "cp -r ../state x", "find " + root, "du -a " + filepath.Join(root, "state"), "grep -rf lnk .", "diff lnk x", "wc -l */*/*/*",
		"make; cat " + key, "echo x > lnk", "rm lnk", "cp a Notes/up/gatehouse/key",
	} {
		if d := decide(command); d.Verdict != MustAsk || d.Rule != RuleSecretNamed {
			t.Errorf("%q: %s by %s: %s", command, d.Verdict, d.Rule, d.Text)
		}
	}
	for _, command := range []string{"echo x > loose.md", "touch Notes/up/x", "cd Notes/up && touch x", "tee ./loose*", "rm -rf " + dir, "echo x > " + root + "/y"} {
		if d := decide(command); d.Verdict != MustAsk {
			t.Errorf("%q: %s by %s", command, d.Verdict, d.Rule)
		}
	}
	for _, command := range []string{"ls", "cat Notes/a.md", "grep -rn foo .", "cat *.txt", "echo x > " + filepath.Join(dir, "Notes/new.md"), "cd Notes && cat ../a.md", "find . -name '*.md'", "ls /usr/bin", "cat ../vault/a.md", "touch Notes/x"} {
		if d := decide(command); d.Verdict != Allow {
			t.Errorf("%q: %s by %s: %s", command, d.Verdict, d.Rule, d.Text)
		}
	}
}

func TestEverydayCommandsFollowTheOrderOfTheText(t *testing.T) {
	r := shellCase(t, "cd sub && for f in a b; do cat \"$f\" | wc -l > out.txt; done")
	want := []string{"cd sub", "cat a", "> sub/out.txt", "wc -l", "cat b"}
	if r.Decision != "allow" || !slices.Equal(r.Commands, want) {
		t.Errorf("%s, runs %q, want %q", r.Decision, r.Commands, want)
	}
}

func openVault(t *testing.T, dir string) *vault.Vault {
	t.Helper()
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}
