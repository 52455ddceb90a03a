package vetted

import (
	"slices"
	"strings"
	"testing"
)

// read returns the words of each command, and whether the text is understood.
func read(text string) ([]string, bool) {
	r := Read(text)
	var out []string
	for _, c := range r.Commands {
		var words []string
		for _, w := range c {
			words = append(words, w.Text)
		}
		out = append(out, strings.Join(words, "|"))
	}
	return out, len(r.Why) == 0
}

func TestReadListsWhatBashRuns(t *testing.T) {
	for text, want := range map[string][]string{
		"ls -la":                                {"ls|-la"},
		"ls 'a b' \"c\\\"d\" e\\ f g''":         {"ls|a b|c\"d|e f|g"},
		"ls {a,b}c x{1..3}":                     {"ls|ac|bc|x1|x2|x3"},
		"ls ~ ~/x '~'":                          {"ls|~|~/x|~"},
		"x=1; echo $x \"${x}2\"":                {"echo|1|12"},
		"for f in a 'b c'; do cat \"$f\"; done": {"cat|a", "cat|b c"},
		"ls | wc -l > n":                        {"ls", ">|n", "wc|-l"},
		"echo \"$(date) x\"":                    {"date", "echo|… x"},
		"cat <<'E'\n$(x)\nE":                    {"cat"},
		"if true; then ls; else pwd; fi":        {"true", "ls", "pwd"},
		"ls; # make\npwd":                       {"ls", "pwd"},
		"sort -k2,2n -o x y":                    {"sort|-k2,2n|-o|x|y"},
	} {
		if got, ok := read(text); !ok || !slices.Equal(got, want) {
			t.Errorf("%q: %q, understood %v, want %q", text, got, ok, want)
		}
	}
}

// Options are matched as getopt reads them: bundled, with attached arguments,
// and long ones in full only.
func TestOptionsAreMatchedExactly(t *testing.T) {
	for text, want := range map[string]bool{
		"sort -ru a": true, "sort -rT /tmp a": false, "sort -k2 a": true, "sort -k 2 a": true, "sort a -r": true, "sort a -T x": false, "sort -- -T": true,
		"sort --reverse a": true, "sort --rev a": false, "sort --output=x a": true, "sort --outp=x a": false, "sort --reverse=x a": false, "sort -k": false,
		"head -20 a": true, "head -n5 a": true, "head -n 5 a": true, "head --lines=5 a": true, "head --lines 5 a": true, "head --line=5 a": false,
		"grep -rn x .": true, "grep -rnf p .": true, "grep -P x a": true, "ls --color=auto": true, "ls --color auto": true, "ls --colour": false,
		"git log --oneline -5": true, "git log --output=x": false, "git log --outpu=x": false, "git diff -- --output=x": true, "git diff -U3": true, "git diff -U --output=x": false, "git log --date --output=x": false, "git log --date=iso": true, "tree -L 2": true, "tree -Lo 1 x": false, "cut -d , -f 1 a": true,
		"date -s x": false, "date -us x": false, "date +%F": true, "date 0101": false, "uniq a b": true, "uniq a b c": false,
		"ls *.md": true, "cat *": true, "sort *": false, "sort ./*": true, "sort -- *": true, "rm *.o": false, "rm -- *.o": true, "grep x *": true, "grep * a": false,
	} {
		if _, ok := read(text); ok != want {
			t.Errorf("%q is understood: %v %q, want %v", text, ok, Read(text).Why, want)
		}
	}
}

func TestPathsAreSeenFromWhereTheCommandStarts(t *testing.T) {
	r := Read("cd sub && cat a /b ~/c > out; sort -o s < in")
	var got []string
	for _, p := range r.Paths {
		kind := "r "
		if p.Write {
			kind = "w "
		}
		got = append(got, kind+p.Name)
	}
	for _, want := range []string{"r sub", "r sub/a", "r a", "r /b", "r ~/c", "w sub/out", "w out", "w s", "r in", "r sub/in"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if deep := Read("grep -r x ../y"); len(deep.Paths) != 1 || !deep.Paths[0].Deep || deep.Paths[0].List {
		t.Errorf("%+v", deep.Paths)
	}
	if list := Read("find /usr -name x"); len(list.Paths) != 1 || !list.Paths[0].Deep || !list.Paths[0].List {
		t.Errorf("%+v", list.Paths)
	}
}

// The table is data: each entry has options that parse, and no program that
// runs others by its plain arguments is in it.
func TestTheListOfProgramsIsSound(t *testing.T) {
	if n := len(programs); n < 120 {
		t.Errorf("only %d programs", n)
	}
	for _, name := range []string{"env", "xargs", "sh", "nice", "timeout", "nohup", "sudo", "su", "eval", "exec", "source", ".", "time", "tar", "make", "go", "npm", "ssh", "kill", "read", "export", "declare", "printenv", "curl", "vim", "less", "man", "dd", "ln", "split"} {
		if p, ok := programs[name]; ok && p.kind != versions {
			t.Errorf("%s is on the list", name)
		}
	}
	for _, list := range []map[string]program{programs, gitCommands} {
		for name, p := range list {
			for _, f := range strings.Fields(p.flags) {
				if f != "--" && (len(f) < 2 || f[0] != '-') {
					t.Errorf("%s: %q is no option", name, f)
				}
			}
			if (p.kind == specially || p.kind == versions) && p.flags != "" {
				t.Errorf("%s: its options are not read", name)
			}
		}
	}
}

// FuzzRead: any text is read in bounded time, twice the same; what is understood
// is plain text, runs listed programs only, and stays understood on two lines.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"ls -la", "cat <<'E'\n$(x)\nE", "for f in a b; do echo \"$f\"; done", "x=1; echo $x", "ls # \\\nmake", "ls\r# x", "sort -k2 a | uniq -c > out", "diff <(sort a) <(sort b)", "echo \"$(date)\"", "cd sub && ls {a,b}", "[[ -f x ]] && echo yes", "git log --oneline -5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := read(text)
		again, okAgain := read(text)
		if ok != okAgain || !slices.Equal(got, again) {
			t.Fatalf("%q is read in two ways", text)
		}
		if !ok {
			return
		}
		for _, c := range text {
			if !Plain(c) {
				t.Fatalf("%q holds %U", text, c)
			}
		}
		for _, c := range got {
			name, _, _ := strings.Cut(c, "|")
			if _, known := programs[name]; !known && name != ">" {
				t.Fatalf("%q runs %q", text, name)
			}
		}
		if _, ok := read(text + "\nmake"); ok {
			t.Fatalf("make after %q is understood", text)
		}
	})
}
