package permission

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gatehouse/core"
	"gatehouse/core/permission/pattern"
	"gatehouse/core/permission/shell"
	"gatehouse/core/tool"
)

var (
	elements = rapid.SampledFrom([]string{".env", ".ENV", "id_rsa", "x.pem", ".ssh", "config", "a.md", "Notes", "Public", "Guests", "7", "8", "Chat", "x.db", "sessions.db-wal", ".git", "hooks", "objects",
		".parachute", "agents", "bots.yaml", ".claude", "projects", "credentials.json", "secret", "CLAUDE.md", ".mcp.json", "artifacts", "Daily", ".agents"})
	names = rapid.Custom(func(t *rapid.T) string {
		name := strings.Join(rapid.SliceOfN(elements, 1, 4).Draw(t, "elements"), "/")
		if rapid.Bool().Draw(t, "outside") {
			name = "/" + name
		}
		return name
	})
	globPart = rapid.SampledFrom([]string{"**", "*", "**/*", ".*", "?env", "{.env,a}", "[.]env", "*.db", ".git", ".env", "Notes", "Guests", "7", "", "a.md", "\\.env"})
	globs    = rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(globPart, 1, 4).Draw(t, "parts"), "/") })
	trusts   = rapid.SampledFrom([]core.Trust{core.Stranger, core.Sandboxed, core.Vault, core.Full})
	fileTool = rapid.SampledFrom([]tool.Tool{readTool, grepTool, writeTool, editTool})
	secret   = []string{"secret", "Notes/hidden/**"} // lines of .parachuteignore
)

// forbiddenNow says, from the texts of the rules and not from the code under
// test, that a name is on the deny list.
func forbiddenNow(name string) bool {
	parts := strings.Split(strings.ToLower(strings.TrimPrefix(name, "/")), "/")
	for i, p := range parts {
		rest := parts[i+1:]
		switch {
		case strings.HasPrefix(p, ".env"), p == "credentials.json", strings.HasSuffix(p, ".pem"), strings.HasPrefix(p, "id_"), p == ".ssh",
			p == ".git" && len(rest) > 0 && (rest[0] == "hooks" || rest[0] == "objects"),
			p == ".parachute" && (len(rest) == 0 || rest[0] != "agents"),
			p == ".claude" && len(rest) > 0 && rest[0] == "projects",
			p == "secret" && !strings.HasPrefix(name, "/"),
			p == "chat" && len(rest) == 1 && strings.Contains(rest[0], ".db"):
			return true
		}
	}
	return false
}

// No sequence of grants and no globs let a path of the deny list through, at
// any level, in trust mode or not; and explain says the same.
func TestNothingLetsADeniedPathThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Profile{User: 7, Trust: trusts.Draw(t, "trust"), Session: "s", Owner: rapid.Bool().Draw(t, "owner"), Auto: rapid.Bool().Draw(t, "auto"),
			GuestRead:  rapid.SliceOfN(globs, 0, 3).Draw(t, "guest read"),
			Configured: Configured{Read: rapid.SliceOfN(globs, 0, 3).Draw(t, "read"), Write: rapid.SliceOfN(globs, 0, 3).Draw(t, "write")}}
		name, tl := names.Draw(t, "name"), fileTool.Draw(t, "tool")
		q := question{p: p, t: tl, a: access(tl, name), ignore: secret, isolation: true, input: json.RawMessage(`{}`)}
		for range rapid.IntRange(0, 4).Draw(t, "grants") {
			kind := rapid.SampledFrom([]string{"read", "write", "bash"}).Draw(t, "kind")
			pattern := globs.Draw(t, "pattern")
			if rapid.Bool().Draw(t, "suggested") { // as a person would: what another ask suggests
				pattern = rapid.SampledFrom(suggestFiles(names.Draw(t, "asked"), false)).Draw(t, "suggestion").Pattern
			}
			q.grants = append(q.grants, GrantRow{Session: "s", User: 7, Trust: p.Trust, Kind: kind, Pattern: pattern})
		}
		d := q.decide()
		if forbiddenNow(name) && d.Verdict != Deny {
			t.Fatalf("%s %q: %+v", tl.Name, name, d)
		}
		read, write := p.Bounds(secret)
		if forbiddenNow(name) && (read(name) || write(name)) {
			t.Fatalf("the bounds let %q through", name)
		}
		if d.Verdict != Deny && !(tl.Kind == tool.Read && read(name) || tl.Kind == tool.Write && write(name)) {
			t.Fatalf("%s %q is decided beyond the bounds: %+v", tl.Name, name, d)
		}
		if p.Trust < core.Full && strings.HasPrefix(name, "/") && d.Verdict != Deny {
			t.Fatalf("%q is outside: %+v", name, d)
		}
		if p.Trust == core.Sandboxed && tl.Kind == tool.Write && d.Verdict != Deny && !strings.HasPrefix(name+"/", "Guests/7/") {
			t.Fatalf("a guest writes %q: %+v", name, d)
		}
		explained(t, p, tl, name, q.grants, d)
	})
}

func explained(t *rapid.T, p Profile, tl tool.Tool, name string, grants []GrantRow, want Decision) {
	if p.Trust == core.Stranger || p.Trust == core.Vault && strings.Contains(name, "secret") || strings.Contains(name, "secret") {
		return // explain knows no strangers, and here no vault with its .parachuteignore
	}
	input, err := json.Marshal(map[string]string{"file_path": name})
	if err != nil {
		t.Fatal(err)
	}
	as := map[bool]string{true: "owner", false: "guest"}[p.Owner]
	if p.Owner {
		for i := range grants {
			grants[i].User = core.Operator
		}
	}
	r, err := Explain(Case{Tool: tl.Name, Input: input, As: as, Trust: p.Trust.String(), Auto: &p.Auto, User: 7},
		Explained{GuestRead: p.GuestRead, Configured: &p.Configured, Session: "s", Grants: grants})
	if err != nil {
		t.Fatal(err)
	}
	if p.Owner && p.Trust == core.Sandboxed {
		return // the owner's own number is another folder
	}
	if r.Decision != want.Verdict.String() || r.Rule != want.Rule {
		t.Fatalf("%s %q: explain says %s by %s, the guard %v by %s", tl.Name, name, r.Decision, r.Rule, want.Verdict, want.Rule)
	}
}

// A pattern that passes as narrower never covers more than what was suggested.
func TestANarrowerPatternCoversNothingMore(t *testing.T) {
	plain := rapid.SampledFrom([]string{"Notes", "NotesPrivate", "a.md", "b", "x", "Public"})
	path := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(plain, 1, 4).Draw(t, "path"), "/") })
	part := rapid.SampledFrom([]string{"**", "*", "Notes", "NotesPrivate", "a.md", "?", "b", "[a-x]", "{Notes,Public}", "N*", ".."})
	rapid.Check(t, func(t *rapid.T) {
		suggested := suggestFiles(path.Draw(t, "asked"), false)
		suggested = suggested[:rapid.IntRange(1, len(suggested)).Draw(t, "how many")]
		pattern := strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "pattern"), "/")
		if !Narrower("read", pattern, suggested) {
			return
		}
		name := path.Draw(t, "name")
		if !matches(pattern, name) {
			return
		}
		wide := slices.ContainsFunc(suggested, func(s core.SuggestedGrant) bool {
			top, ok := below(s.Pattern) // the folder itself holds no text
			return matches(s.Pattern, name) || ok && top == name
		})
		if !wide {
			t.Fatalf("%q covers %q, which none of %+v does", pattern, name, suggested)
		}
	})
}

// The first choice is the narrowest, and each that follows covers it.
func TestSuggestedGrantsAreOrderedFromNarrowToWide(t *testing.T) {
	labels := func(list []core.SuggestedGrant) (out []string) {
		for _, s := range list {
			out = append(out, s.Label)
		}
		return out
	}
	for _, c := range []struct {
		name string
		kind string
		list []core.SuggestedGrant
		want []string
	}{
		{"a file", "write", suggestFiles("Blogs/2026/a.md", false), []string{"This file in this conversation", "Files in Blogs/2026 in this conversation",
			"Everything below Blogs/2026 in this conversation", "Everything below Blogs in this conversation", "The whole vault in this conversation"}},
		{"at the top", "write", suggestFiles("a.md", false), []string{"This file in this conversation", "Files beside it in this conversation", "The whole vault in this conversation"}},
		{"outside", "read", suggestFiles("/etc/hosts", false), []string{"This file in this conversation", "Files in /etc in this conversation", "Everything below /etc in this conversation", "The whole machine in this conversation"}},
		{"commands", "bash", suggestCommands(shell.Examine("git add -A").Commands), []string{"This command in this conversation", "Commands like git add * in this conversation", "Commands like git * in this conversation"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := labels(c.list); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			for i := 1; i < len(c.list); i++ {
				if !Narrower(c.kind, c.list[i-1].Pattern, c.list[i:i+1]) {
					t.Errorf("%s is not narrower than %s", c.list[i-1].Pattern, c.list[i].Pattern)
				}
			}
		})
	}
}

func TestGrantPatternsAreSuggestedOrNarrower(t *testing.T) {
	files := suggestFiles("Blogs/2026/a[1].md", false)
	var patterns []string
	for _, s := range files {
		patterns = append(patterns, s.Pattern)
	}
	if want := []string{`Blogs/2026/a\[1\].md`, "Blogs/2026/*", "Blogs/2026/**/*", "Blogs/**/*", "**/*"}; !slices.Equal(patterns, want) {
		t.Errorf("suggested %q, want %q", patterns, want)
	}
	line := shell.Examine("git status --short && go test ./...")
	commands := suggestCommands(line.Commands)
	for _, c := range []struct {
		kind, pattern string
		suggested     []core.SuggestedGrant
		want          bool
	}{
		{"read", "Blogs/**/*", files[:4], true},
		{"read", "Blogs/x/*", files[:4], true},
		{"read", "Blogs/2026/b.md", files[:2], true},
		{"read", "Blogs/2026/x/b.md", files[:2], false},
		{"read", "Blogs/**", files[:4], true},
		{"read", "BlogsPrivate/**", files[:4], false},
		{"read", "**", files[:4], false},
		{"read", "**/*", files[:4], false},
		{"read", "Blogs/../Daily/*", files[:4], false},
		{"read", "/etc/*", files, false},
		{"read", "{Blogs,Daily}/*", files[:4], false},
		{"read", "Blogs/{a,../../x}/*", files[:4], false},
		{"read", "*", files, true},
		{"read", "", files, false},
		{"bash", "git status --short ; go test ./...", commands, true},
		{"bash", "git status *", commands, true},
		{"bash", "git status", commands, true},
		{"bash", "git *", commands, true},
		{"bash", "git push *", commands[:2], false},
		{"bash", "git push *", commands, true},
		{"bash", "go test *", commands[:2], true},
		{"bash", "* *", commands, false},
		{"bash", "*", commands, false},
		{"bash", "rm *", commands, false},
		{"bash", "git status; rm x", commands, false},
		{"bash", "git status $(rm x)", commands, false},
		{"bash", "git status > x", commands, false},
		{"bash", "x=1 git status", commands, false},
		{"bash", "git status &", commands, false},
		{"bash", "git \"$x\"", commands, false},
	} {
		if got := Narrower(c.kind, c.pattern, c.suggested); got != c.want {
			t.Errorf("%q is narrower: %v, want %v", c.pattern, got, c.want)
		}
	}
}

func TestGlobsOfCommandsAndFiles(t *testing.T) {
	for _, c := range []struct {
		patterns, command string
		want              bool
	}{
		{"git status", "git status", true},
		{"git status", "git status -s", false},
		{"git *", "git status -s", true},
		{"git *", "git", true},
		{"git *", "gitk x", false},
		{"git *", "git status; rm x", false},
		{"git *", "git status > x", false},
		{"git *", "git status 2>/dev/null", true},
		{"ls", "ls | wc -l", false},
		{"ls ; wc *", "ls | wc -l", true},
		{"cat Notes/*", "cat Notes/a.md", true},
		{"cat Notes/*.md", "cat Notes/x/a.md", false},
		{"echo 'a b'", `echo "a b"`, true},
		{"echo a b", `echo "a b"`, false},
		{"echo '*'", "echo hello", false},
		{"*", "ls", false},
		{"git status;rm *", "rm x", true},
		{"$(x)", "ls", false},
	} {
		q := question{p: Profile{User: 1, Trust: core.Full, Configured: Configured{Bash: Commands{Patterns: []string{c.patterns}}}}, t: bashTool, a: access(bashTool, c.command)}
		if d := q.decide(); (d.Verdict == Allow) != c.want {
			t.Errorf("%q under %q: %v by %s", c.command, c.patterns, d.Verdict, d.Rule)
		}
	}
	for _, c := range []struct {
		glob, name string
		search     bool
		want       bool
	}{
		{"Blogs/**", "Blogs/a", false, true}, {"Blogs/**", "BlogsPrivate/a", false, false}, {"Blogs/*", "Blogs/a/b", false, false},
		{"Blogs/*", "Blogs", true, false}, {"Blogs/*", "Blogs/a", true, false}, {"Blogs/**", "Blogs", true, true}, {"Blogs/**/*", "Blogs/a", true, true},
		{"Blogs/**", "BlogsPrivate", true, false}, {"Blogs", "Blogs", true, true}, {"**/*", ".", true, true}, {"**", "/etc", true, false}, {"**", "/etc/x", false, false},
		{"/etc/**", "/etc/x", false, true}, {"/**/*", "/etc", true, true}, {"**/a", "x", true, false},
	} {
		if got := covers([]string{c.glob}, c.name, c.search); got != c.want {
			t.Errorf("%q covers %q (search %v): %v", c.glob, c.name, c.search, got)
		}
	}
}

// FuzzShell: any text is read in bounded time without a panic, twice the same,
// and what follows a command that passes is read as well.
func FuzzShell(f *testing.F) {
	for _, name := range []string{"evasions.txt", "harmless.txt"} {
		for _, l := range corpus(f, name) {
			if name == "evasions.txt" {
				_, l, _ = strings.Cut(l, " ")
			}
			f.Add(l)
		}
	}
	f.Fuzz(func(t *testing.T, command string) {
		r := shell.Examine(command)
		again := shell.Examine(command)
		if r.Danger != again.Danger || !slices.Equal(r.Hidden, again.Hidden) || len(r.Commands) != len(again.Commands) {
			t.Fatalf("%q is read in two ways: %+v %+v", command, r, again)
		}
		for _, c := range r.Commands {
			if len(c.Words) == 0 {
				t.Fatalf("%q has an empty command", command)
			}
		}
		for _, s := range suggestCommands(r.Commands) { // what is suggested first covers what was asked
			if s.Scope == "command" && len(r.Hidden) == 0 && r.Danger == "" && !strings.Contains(command, "\\") && !pattern.AllMatch([]string{s.Pattern}, words(r.Commands)) {
				t.Fatalf("%q is not covered by its own grant %q: %q", command, s.Pattern, r.Commands)
			}
		}
		if r.Danger != "" || len(r.Hidden) > 0 || strings.Contains(command, "sudo") || strings.Contains(command, "<<") || strings.HasSuffix(command, "\\") {
			return
		}
		if after := shell.Examine(command + "\nsudo ls"); after.Danger == "" && len(after.Hidden) == 0 {
			t.Fatalf("after %q sudo passes", command)
		}
		if before := shell.Examine("sudo ls\n" + command); before.Danger == "" {
			t.Fatalf("before %q sudo passes", command)
		}
	})
}
