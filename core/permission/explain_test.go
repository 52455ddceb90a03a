package permission

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// corpus is the lines of a file in testdata; "⏎" is a line's end.
func corpus(t testing.TB, name string) []string {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if l := lines.Text(); l != "" && l[0] != '#' {
			out = append(out, strings.ReplaceAll(l, "⏎", "\n"))
		}
	}
	return out
}

// shellCase explains a command at full trust in trust mode.
func shellCase(t testing.TB, command string) Reason {
	t.Helper()
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Explain(Case{Tool: "Bash", Input: input}, Explained{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A guest without a number is no particular one.
func TestExplainSpeaksOfAGuestWhereNoneIsNamed(t *testing.T) {
	text := func(user int64) string {
		t.Helper()
		r, err := Explain(Case{Tool: "Write", Input: json.RawMessage(`"Notes/x.md"`), As: "guest", Trust: "sandboxed", User: user}, Explained{})
		if err != nil || r.Decision != "deny" {
			t.Fatal(r, err)
		}
		return r.Text
	}
	if got := text(0); !strings.HasPrefix(got, "Notes/x.md is not open to a guest. At trust sandboxed each guest has a folder of their own in Guests/.") {
		t.Errorf("any guest: %q", got)
	}
	if got := text(7); !strings.Contains(got, "not open to this person. At trust sandboxed they have their own folder Guests/7/.") {
		t.Errorf("guest 7: %q", got)
	}
}

func TestNoEvasionOfTheShellCheckerPasses(t *testing.T) {
	lines := corpus(t, "evasions.txt")
	if len(lines) < 150 {
		t.Fatalf("only %d evasions", len(lines))
	}
	for _, l := range lines {
		want, command, _ := strings.Cut(l, " ")
		r := shellCase(t, command)
		if r.Decision != want && !(want == "ask" && r.Decision == "deny") {
			t.Errorf("%q: %s (%s), want %s; runs %q %s", command, r.Decision, r.Rule, want, r.Commands, r.Text)
		}
	}
}

func TestHarmlessCommandsAreNotHeldUp(t *testing.T) {
	lines := corpus(t, "harmless.txt")
	if len(lines) < 60 {
		t.Fatalf("only %d commands", len(lines))
	}
	for _, command := range lines {
		if r := shellCase(t, command); r.Decision != "allow" {
			t.Errorf("%q: %s (%s); runs %q %s", command, r.Decision, r.Rule, r.Commands, r.Text)
		}
	}
}

func TestEverySimpleCommandIsListed(t *testing.T) {
	for command, want := range map[string][]string{
		"a; b && c || d | e & f":                 {"a", "b", "c", "d", "e", "f"},
		"(a); { b; }; if c; then d; fi":          {"a", "b", "c", "d"},
		"echo $(a `b`) <(c)":                     {"b", "a …", "c", "echo … /dev/fd/0"},
		"sh -c 'a; b'":                           {"a", "b"},
		"env X=1 timeout 5 nice a b":             {"a b"},
		"f() { a \"$1\"; }; f 'x y'":             {"a 'x y'"},
		"x=1; a $x '*' *.md":                     {"a 1 '*' *.md"},
		"a > out.txt 2>/dev/null":                {"> out.txt", "a"},
		"find . -name '*.md' -exec wc -l {} \\;": {"wc -l ./0/x", "find . -name '*.md' -exec wc -l '{}' ';'"},
		"for f in a b; do c $f; done":            {"c a", "c b"},
		"git status && sudo ls":                  {"git status"},
		"cat <<E\n$(a)\nE":                       {"a", "cat"},
		"true || eval 'a b'":                     {"true", "a b"},
	} {
		if r := shellCase(t, command); !slices.Equal(r.Commands, want) {
			t.Errorf("%q runs %q, want %q", command, r.Commands, want)
		}
	}
}
