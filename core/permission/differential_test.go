package permission

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/permission/shell"
	"gatehouse/core/permission/shell/vetted"
	"gatehouse/core/tool"
)

// The differential test makes commands from bash's grammar, has each one that
// would run unasked run by a real bash in a sandbox, with a stub for every
// program that logs its call, and compares the log with what the reader listed.

// Separators in the log; no command that is allowed holds them.
const (
	logWord = "\x01"
	logCall = "\x03"
)

// stub logs its name and arguments in one write, prints what is dangerous to
// expand again, and succeeds every other time.
const stub = "#!/bin/sh\nprintf '%s" + `\001` + "' \"$N\" \"${0##*/}\" \"$@\" '" + logCall + "' >>\"$CALLS\"\necho '-v a[$(canary output)0]'\nexit $(($$ & 1))\n"

// driver runs the commands of a file, which NUL separates, and logs files that
// each one makes or fills.
const driver = `
shopt -s nullglob dotglob
cd "$1/work" || exit 1
export CALLS=$1/log HOME=$1/home LANG=C.UTF-8
before="|"
for f in * sub/* "$1"/home/* "$1"/*; do before+="$f|"; done
i=0
while IFS= read -r -d '' command; do
	export N=$i
	PATH=$1/stubs /bin/bash -c "$command" bash </dev/null >/dev/null 2>&1
	for f in * sub/* "$1"/home/* "$1"/*; do
		[[ $before == *"|$f|"* ]] && { [[ ! -f $f || ! -s $f || $f == "$1"/* ]] || { printf '%d\001FILE\001%s\001\003\001' "$i" "$f" >>"$CALLS"; : >"$f"; }; continue; }
		printf '%d\001FILE\001%s\001\003\001' "$i" "$f" >>"$CALLS"
		/bin/rm -rf -- "./$f" "$f" 2>/dev/null
	done
	i=$((i+1))
done <"$1/commands"
printf '%d\001DONE\001\003\001' "$i" >>"$CALLS"
`

// differentialCount is how many allowed commands are run.
func differentialCount(t *testing.T) int {
	t.Helper()
	if v := os.Getenv("GATEHOUSE_TEST_DIFFERENTIAL"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("GATEHOUSE_TEST_DIFFERENTIAL is %q and no number of commands", v)
		}
		return n
	}
	if testing.Short() {
		return 200
	}
	return 2000
}

func TestNothingRunsThatTheReaderDidNotList(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("there is no bubblewrap to run the commands in")
	}
	want := differentialCount(t)
	seed := uint64(1)
	if want > 2000 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	m := &maker{rand.New(rand.NewPCG(seed, 12))}
	made, ran, called := 0, 0, 0
	for ran < want {
		var batch []string
		for len(batch) < min(1000, want-ran) {
			command := m.line()
			if made++; allowed(command) {
				batch = append(batch, command)
			}
			if made > 50*want {
				t.Fatalf("only %d of %d commands are allowed", ran+len(batch), made)
			}
		}
		called += runBatch(t, batch)
		ran += len(batch)
	}
	t.Logf("%d commands made, %d allowed and run, %d calls of programs logged", made, ran, called)
	if ran*5 < made {
		t.Errorf("only %d of %d commands are allowed: the test proves little", ran, made)
	}
	if called < ran/4 {
		t.Errorf("only %d calls of programs in %d commands", called, ran)
	}
}

func allowed(command string) bool {
	q := question{p: Profile{User: 1, Trust: core.Full, Owner: true, Auto: true}, t: bashTool, a: tool.Access{Command: command}, isolation: true}
	return q.decide().Verdict == Allow
}

// runBatch runs allowed commands and returns how many calls of programs they made.
func runBatch(t *testing.T, batch []string) int {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	prepare(t, root, batch)
	c := exec.Command("bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", root, root,
		"/bin/bash", "--norc", "--noprofile", filepath.Join(root, "driver"), root)
	c.Env = []string{"PATH=/usr/bin:/bin"}
	if out, err := c.CombinedOutput(); err != nil {
		if bytes.Contains(out, []byte("bwrap: ")) {
			t.Skipf("bubblewrap does not run here: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	log, err := os.ReadFile(filepath.Join(root, "log"))
	if err != nil {
		t.Fatal(err)
	}
	calls, done := 0, -1
	for _, entry := range strings.Split(string(log), logCall) {
		words := strings.Split(strings.TrimSuffix(strings.TrimPrefix(entry, logWord), logWord), logWord)
		if len(words) < 2 {
			continue
		}
		n, err := strconv.Atoi(words[0])
		if err != nil || n > len(batch) {
			t.Fatalf("the log holds %q", entry)
		}
		if words[1] == "DONE" {
			done = n
			continue
		}
		if words[1] == "FILE" {
			checkFile(t, root, batch, n, words[2])
			continue
		}
		calls++
		compareCall(t, root, batch[n], words[1:])
	}
	if done != len(batch) {
		t.Fatalf("%d of %d commands were run", done, len(batch))
	}
	return calls
}

func prepare(t *testing.T, root string, batch []string) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"work/sub", "home", "stubs"} {
		must(os.MkdirAll(filepath.Join(root, d), 0o755))
	}
	for _, f := range []string{"a.txt", "b.md", "c d.md", "-rf", "--output=pwned", "-e canary", "x=1", "sub/e.md"} {
		must(os.WriteFile(filepath.Join(root, "work", f), nil, 0o644))
	}
	for _, f := range []string{"log", "driver", "commands"} {
		must(os.WriteFile(filepath.Join(root, f), nil, 0o644))
	}
	must(os.WriteFile(filepath.Join(root, "driver"), []byte(driver), 0o644))
	must(os.WriteFile(filepath.Join(root, "commands"), []byte(strings.Join(batch, "\x00")+"\x00"), 0o644))
	for _, name := range append(slices.Clone(canaries), vetted.Programs()...) {
		must(os.WriteFile(filepath.Join(root, "stubs", name), []byte(stub), 0o755))
	}
}

// checkFile holds a file that was written against what the reader listed. A
// process substitution may write while the next commands run already.
func checkFile(t *testing.T, root string, batch []string, n int, name string) {
	t.Helper()
	for i := n; i >= 0 && i > n-20; i-- {
		if r := shell.Examine(batch[i]); (i == n || strings.Contains(batch[i], "<(")) && listedFile(root, name, r) {
			return
		}
	}
	t.Errorf("%q writes %q; listed are %+v", batch[n], name, shell.Examine(batch[n]).Paths)
}

// compareCall holds one call of a program against what the reader listed.
func compareCall(t *testing.T, root, command string, words []string) {
	t.Helper()
	r := shell.Examine(command)
	if !slices.ContainsFunc(r.Commands, func(c shell.Command) bool { return listedCall(root, c.Words, words) }) {
		t.Errorf("%q runs %q; listed are %q", command, words, r.Commands)
	}
}

func listedFile(root, name string, r shell.Report) bool {
	return slices.ContainsFunc(r.Paths, func(p shell.Path) bool {
		full := p.Name
		if full == "~" || strings.HasPrefix(full, "~/") {
			full = root + "/home" + full[1:]
		}
		return p.Write && (filepath.Clean(full) == filepath.Clean(name) || filepath.Join(root, "work", full) == name)
	})
}

// listedCall reports whether a call is one that was listed: with the same words,
// where a glob stands for any number of them and "…" for any text.
func listedCall(root string, listed, got []string) bool {
	if len(listed) == 0 {
		return len(got) == 0
	}
	word := listed[0]
	if word == "~" || strings.HasPrefix(word, "~/") {
		word = root + "/home" + word[1:]
	}
	switch {
	case len(got) > 0 && (got[0] == word || listed[0] == got[0]) || len(got) > 0 && strings.Contains(word, "…"):
		if listedCall(root, listed[1:], got[1:]) {
			return true
		}
	}
	if strings.ContainsAny(word, "*?[") {
		for n := 1; n <= len(got); n++ {
			if ok, _ := filepath.Match(strings.ReplaceAll(word, "[!", "[^"), got[n-1]); !ok {
				return false
			}
			if listedCall(root, listed[1:], got[n:]) {
				return true
			}
		}
	}
	return false
}
