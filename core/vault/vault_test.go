package vault

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/core"
)

func open(t testing.TB) *Vault {
	t.Helper()
	v, err := Open(filepath.Join(t.TempDir(), "vault"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v
}

func TestOpenMakesAPrivateFolder(t *testing.T) {
	v := open(t)
	st, err := os.Stat(v.Path())
	if err != nil || st.Mode().Perm() != 0o700 {
		t.Fatalf("vault folder is %v, %v; want 0700", st.Mode(), err)
	}
}

func TestOpenRefusesAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(name)
	if core.KindOf(err) != core.Invalid || !strings.Contains(core.TextOf(err), "is not a folder") {
		t.Fatalf("got %v", err)
	}
}

func TestPathIsReal(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	v, err := Open(filepath.Join(dir, "link"))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if want, _ := filepath.EvalSymlinks(filepath.Join(dir, "real")); v.Path() != want {
		t.Errorf("path is %s, want %s", v.Path(), want)
	}
}

// TestMain lets the test binary be the process that holds the lock.
func TestMain(m *testing.M) {
	if path := os.Getenv("GATEHOUSE_TEST_HOLD"); path != "" {
		v, err := Open(path)
		if err == nil {
			err = v.Lock(true)
		}
		if err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Stdout.WriteString("held\n")
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLockNamesTheProcessThatHoldsIt(t *testing.T) {
	v := open(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GATEHOUSE_TEST_HOLD="+v.Path())
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 5)
	if _, err := stdout.Read(line); err != nil || string(line[:4]) != "held" {
		t.Fatalf("child says %q, %v", line, err)
	}
	err := v.Lock(true)
	if core.KindOf(err) != core.Conflict || !strings.Contains(core.TextOf(err), "process "+strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("lock while held: %v", err)
	}
	if err := v.Lock(false); core.KindOf(err) != core.Conflict {
		t.Errorf("shared lock while held alone: %v", err)
	}
	_ = stdin.Close()
	_ = cmd.Wait()
	if err := v.Lock(true); err != nil {
		t.Errorf("lock after its holder ended: %v", err)
	}
}

// Between its fork and its exec a program that is being started has all files open.
func TestAClosedVaultIsFreeAlsoWhileAProgramIsBeingStarted(t *testing.T) {
	v, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Lock(true); err != nil {
		t.Fatal(err)
	}
	forked, err := syscall.Dup(int(v.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(forked)
	w, err := Open(v.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Lock(true); err != nil {
		t.Error(err)
	}
}

func TestSharedLocksStandTogether(t *testing.T) {
	v := open(t)
	w, err := Open(v.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := errors.Join(v.Lock(false), w.Lock(false)); err != nil {
		t.Fatal(err)
	}
}

func TestWriteFileReplacesInOneStepAndLeavesNothingBehind(t *testing.T) {
	v := open(t)
	for _, write := range []func(string, []byte) error{v.WriteFile, v.WriteFileNoSync} {
		for _, body := range []string{"one", "two"} {
			if err := write("a/b/c.json", []byte(body)); err != nil {
				t.Fatal(err)
			}
			if got, _ := v.Root().ReadFile("a/b/c.json"); string(got) != body {
				t.Fatalf("got %q, want %q", got, body)
			}
		}
	}
	entries, _ := os.ReadDir(filepath.Join(v.Path(), "a/b"))
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	if err := v.Root().Mkdir("dir", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := v.Root().WriteFile("dir/x", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := v.WriteFile("dir", nil); err == nil {
		t.Error("a folder was replaced")
	}
	if entries, _ := os.ReadDir(v.Path()); len(entries) != 2 {
		t.Errorf("a failed write left something behind: %v", entries)
	}
}

func TestNamesLeadNowhereOutside(t *testing.T) {
	v := open(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(v.Path(), "out")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "/etc/x", "out/x", "a/../../x"} {
		if err := v.WriteFile(name, []byte("x")); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 0 {
		t.Errorf("outside holds %v", entries)
	}
}

// unprivileged runs f on a thread whose file accesses are those of nobody.
func unprivileged(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0); errno != 0 {
			t.Errorf("setfsuid: %v", errno)
			return
		}
		f()
	}()
	<-done
}

func TestReadOnlyVaultIsSaidInPlainWords(t *testing.T) {
	v := open(t)
	name, err := v.Transcript("", "s1")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := v.OpenTranscript(name)
	if err != nil {
		t.Fatal(err)
	}
	tr.Close()
	for _, dir := range []string{".", filepath.Dir(name)} {
		if err := v.Root().Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Root().Chmod(name, 0o444); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(v.Path(), 0o700); _ = v.Root().Chmod(filepath.Dir(name), 0o700) })
	unprivileged(t, func() {
		for what, err := range map[string]error{
			"write": v.WriteFile("x", nil),
			"lock":  v.Lock(true),
			"open":  func() error { _, err := v.OpenTranscript(name); return err }(),
		} {
			if core.KindOf(err) != core.Denied || !strings.Contains(core.TextOf(err), "read-only") || strings.Contains(core.TextOf(err), v.Path()) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestFullDiskIsSaidInPlainWords(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here: ", err)
	}
	tr := &Transcript{v: open(t), f: f}
	defer tr.Close()
	err = tr.Append(line("a", ""))
	if core.KindOf(err) != core.Busy || !strings.Contains(core.TextOf(err), "full") || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
}

func TestTrashKeepsThenPrunes(t *testing.T) {
	v := open(t)
	day := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	var places []string
	for range 2 { // the same name in the same instant
		if err := v.WriteFile("x/s.jsonl", []byte("words")); err != nil {
			t.Fatal(err)
		}
		to, err := v.Trash("x/s.jsonl", day)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := v.Root().ReadFile(to); err != nil || string(got) != "words" {
			t.Fatalf("trash holds %q, %v", got, err)
		}
		places = append(places, to)
	}
	if places[0] == places[1] {
		t.Fatal("the second overwrote the first")
	}
	if _, err := v.Trash("x/s.jsonl", day); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("trashing nothing: %v", err)
	}
	if err := v.WriteFile(".parachute/trash/mine.txt", nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ age, want int }{{29, 0}, {31, 2}, {31, 0}} {
		if n, err := v.Prune(day.AddDate(0, 0, c.age), 30); err != nil || n != c.want {
			t.Errorf("after %d days: pruned %d, %v; want %d", c.age, n, err, c.want)
		}
	}
	if _, err := v.Stat(".parachute/trash/mine.txt"); err != nil {
		t.Errorf("a file without stamp is gone: %v", err)
	}
}

func TestDirTellsInsideFromOutside(t *testing.T) {
	v := open(t)
	out := t.TempDir()
	if err := v.Root().MkdirAll("Projects/a", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := v.Root().WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"in": "Projects", "out": out, "gone": filepath.Join(out, "gone"), "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(v.Path(), link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		rel    string
		inside bool
		exists bool
	}{
		{"", ".", true, true},
		{".", ".", true, true},
		{"Projects/a/", "Projects/a", true, true},
		{"Projects/../Projects", "Projects", true, true},
		{"in/a", "Projects/a", true, true},
		{v.Path() + "/Projects", "Projects", true, true},
		{"none/at/all", "none/at/all", true, false},
		{"in/none", "Projects/none", true, false},
		{"file", "file", true, false},
		{"file/below", "file/below", true, false},
		{"loop", "loop", true, false},
		{"..", "", false, true},
		{"../none", "", false, false},
		{"out", "", false, true},
		{"out/none", "", false, false},
		{"gone", "", false, false},
		{"gone/deeper", "", false, false},
		{v.Path() + "-other", "", false, false},
		{"/etc", "", false, true},
	} {
		d, err := v.Dir(c.name)
		if err != nil || d.Rel != c.rel || d.Inside != c.inside || d.Exists != c.exists {
			t.Errorf("%q: %+v, %v; want %+v", c.name, d, err, c)
		}
	}
	if _, err := v.Dir("a\x00b"); core.KindOf(err) != core.Invalid {
		t.Errorf("NUL: %v", err)
	}
}

func TestProjectFolderIsTheCLIs(t *testing.T) {
	for cwd, want := range map[string]string{
		"/foo/bar":        "-foo-bar",
		"/home/a.b/V_1 é": "-home-a-b-V-1--",
		"/x/😀":            "-x---", // two UTF-16 units
	} {
		if got := ProjectFolder(cwd); got != want {
			t.Errorf("%s: %s, want %s", cwd, got, want)
		}
	}
	long := "/" + strings.Repeat("a", 300)
	one, two := ProjectFolder(long+"1"), ProjectFolder(long+"2")
	if one == two || len(one) > 210 || !strings.HasPrefix(one, "-"+strings.Repeat("a", 199)+"-") {
		t.Errorf("long paths: %s, %s", one, two)
	}
}

func TestHostileSessionIDsAreRefused(t *testing.T) {
	v := open(t)
	for _, id := range []string{"", "../../x", "a/b", "..", ".", "a\x00", "a\n", "é", strings.Repeat("a", 129)} {
		if name, err := v.Transcript("", id); core.KindOf(err) != core.Invalid {
			t.Errorf("%q became %q, %v", id, name, err)
		}
		if _, err := v.FindTranscripts(id); core.KindOf(err) != core.Invalid {
			t.Errorf("%q was searched", id)
		}
	}
}

func line(id, parent string) Line {
	l := Line{UUID: id, Type: "user", SessionID: "s", Message: []byte(`{"role":"user","content":"a < b & c"}`)}
	if parent != "" {
		l.ParentUUID = &parent
	}
	return l
}

// transcript opens the one transcript of these tests.
func transcript(t testing.TB, v *Vault) (*Transcript, string) {
	t.Helper()
	name, err := v.Transcript("", "0b5a3bd0-3ee5-4f36-93b5-2ea1b0b7a5a1")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := v.OpenTranscript(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close() })
	return tr, name
}

func TestAppendedLinesAreReadBack(t *testing.T) {
	v := open(t)
	tr, name := transcript(t, v)
	if want := ".claude/projects/" + ProjectFolder(v.Path()) + "/"; !strings.HasPrefix(name, want) {
		t.Errorf("transcript is %s, want it in %s", name, want)
	}
	if err := errors.Join(tr.Append(line("a", ""), line("b", "a")), tr.Append(line("c", "b")), tr.Sync(), tr.Sync()); err != nil {
		t.Fatal(err)
	}
	tail, err := v.ReadTail(name, 1<<20)
	if err != nil || len(tail.Lines) != 3 || !tail.Whole || tail.Skipped != 0 {
		t.Fatalf("%+v, %v", tail, err)
	}
	if l := tail.Lines[1]; l.UUID != "b" || *l.ParentUUID != "a" || string(l.Message) != `{"role":"user","content":"a < b & c"}` {
		t.Errorf("second line is %+v", l)
	}
	raw, _ := v.Root().ReadFile(name)
	if bytes.Count(raw, []byte("\n")) != 3 || !bytes.HasSuffix(raw, []byte("}\n")) {
		t.Errorf("file holds %q", raw)
	}
}

func TestTornLastLineIsCutOffAndAWholeOneKept(t *testing.T) {
	whole := `{"uuid":"b","type":"user"}`
	for _, c := range []struct {
		name, torn string
		lines      int
	}{
		{"half a line", `{"uuid":"b","type":"us`, 1},
		{"zeros after a power cut", strings.Repeat("\x00", 5000), 1},
		{"valid, but no object", `12`, 1},
		{"only the newline missing", whole, 2},
		{"longer than a read buffer", `{"uuid":"` + strings.Repeat("b", 100_000), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := open(t)
			tr, name := transcript(t, v)
			if err := errors.Join(tr.Append(line("a", "")), tr.Close()); err != nil {
				t.Fatal(err)
			}
			f, err := v.Root().OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.WriteString(c.torn)
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			if tail, err := v.ReadTail(name, 1<<20); err != nil || len(tail.Lines) != c.lines {
				t.Errorf("read before mending: %d lines, %v", len(tail.Lines), err)
			}
			tr, _ = transcript(t, v)
			if err := tr.Append(line("z", "")); err != nil {
				t.Fatal(err)
			}
			tail, err := v.ReadTail(name, 1<<20)
			if err != nil || len(tail.Lines) != c.lines+1 || tail.Skipped != 0 || tail.Lines[c.lines].UUID != "z" {
				t.Errorf("after mending: %+v, %v", tail, err)
			}
			if wantCut := int64(len(c.torn)) * int64(2-c.lines); tr.Cut() != wantCut {
				t.Errorf("cut %d bytes, want %d", tr.Cut(), wantCut)
			}
		})
	}
}

func TestPartlyWrittenLineIsTakenBack(t *testing.T) {
	v := open(t)
	tr, name := transcript(t, v)
	if err := tr.Append(line("a", "")); err != nil {
		t.Fatal(err)
	}
	before, _ := v.Root().ReadFile(name)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(len(before) + 10), Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	err := tr.Append(line("b", "a"))
	if rerr := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); rerr != nil {
		t.Fatal(rerr)
	}
	if core.KindOf(err) != core.Busy || !errors.Is(err, syscall.EFBIG) {
		t.Errorf("got %v", err)
	}
	if after, _ := v.Root().ReadFile(name); !bytes.Equal(before, after) {
		t.Errorf("a part of the line stayed: %q", after)
	}
}

func TestForeignAndBrokenLinesAreSkippedWithACount(t *testing.T) {
	v := open(t)
	_, name := transcript(t, v)
	body := strings.Join([]string{
		`{"type":"summary","summary":"x","leafUuid":"y"}`,
		`{"uuid":"a","type":"user","newField":{"deep":[1]},"message":{"role":"user","content":"hi"}}`,
		`not json`, `[]`, `null`, `"x"`, `{"uuid":7,"type":"user"}`, "", "   ",
		`{"uuid":"b","type":"system","parentUuid":"a"}`,
	}, "\n") + "\n"
	if err := v.Root().WriteFile(name, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	tail, err := v.ReadTail(name, 1<<20)
	if err != nil || len(tail.Lines) != 2 || tail.Skipped != 6 {
		t.Errorf("%d lines, %d skipped, %v; want 2 and 6", len(tail.Lines), tail.Skipped, err)
	}
}

func TestReadTailReadsOnlyTheTail(t *testing.T) {
	v := open(t)
	tr, name := transcript(t, v)
	for i := range 1000 {
		if err := tr.Append(line(strconv.Itoa(i), "")); err != nil {
			t.Fatal(err)
		}
	}
	tail, err := v.ReadTail(name, 2000)
	if err != nil || tail.Whole || tail.Skipped != 0 || len(tail.Lines) == 0 || len(tail.Lines) > 15 {
		t.Fatalf("%d lines, whole %v, %d skipped, %v", len(tail.Lines), tail.Whole, tail.Skipped, err)
	}
	if last := tail.Lines[len(tail.Lines)-1].UUID; last != "999" {
		t.Errorf("last line is %s", last)
	}
	if tail, err = v.ReadTail(name, 20); err != nil || len(tail.Lines) != 0 || tail.Whole {
		t.Errorf("less than a line: %+v, %v", tail, err)
	}
}

func TestProjectFolderThatLinksOutsideIsRefused(t *testing.T) {
	v := open(t)
	out := t.TempDir()
	if err := v.Root().MkdirAll(".claude/projects", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(out, filepath.Join(v.Path(), ".claude/projects", ProjectFolder(v.Path()))); err != nil {
		t.Fatal(err)
	}
	name, err := v.Transcript("", "s1")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "s1.jsonl"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := v.OpenTranscript(name); core.KindOf(err) != core.Denied {
		t.Errorf("open: %v", err)
	}
	if _, err := v.ReadTail(name, 100); core.KindOf(err) != core.Denied {
		t.Errorf("read: %v", err)
	}
	if got, _ := os.ReadFile(filepath.Join(out, "s1.jsonl")); string(got) != "secret\n" {
		t.Errorf("the file outside is now %q", got)
	}
}

func TestPipeInPlaceOfATranscriptDoesNotBlock(t *testing.T) {
	v := open(t)
	name, _ := v.Transcript("", "s1")
	full := filepath.Join(v.Path(), name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o700), syscall.Mkfifo(full, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := v.ReadTail(name, 100); core.KindOf(err) != core.Invalid {
		t.Errorf("read: %v", err)
	}
	if _, err := v.OpenTranscript(name); core.KindOf(err) != core.Invalid {
		t.Errorf("open: %v", err)
	}
}

func FuzzReadTail(f *testing.F) {
	f.Add([]byte(`{"uuid":"a","type":"user","message":{"role":"user","content":"x"}}`+"\n"+`{"uuid`), int64(40))
	f.Add([]byte("\n\n\x00{}\n[]"), int64(3))
	f.Add([]byte(`{"uuid":"a","type":"user"}`), int64(1000))
	v, err := Open(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, limit int64) {
		if limit < 0 {
			limit = 0
		}
		if err := v.Root().WriteFile("t.jsonl", data, 0o600); err != nil {
			t.Fatal(err)
		}
		tail, err := v.ReadTail("t.jsonl", limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range tail.Lines {
			if l.UUID == "" || l.Type == "" {
				t.Fatalf("a line without uuid or type: %+v", l)
			}
		}
		tr, err := v.OpenTranscript("t.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(tr.Append(line("last", "")), tr.Close()); err != nil {
			t.Fatal(err)
		}
		after, err := v.ReadTail("t.jsonl", MaxTail)
		if err != nil || len(after.Lines) == 0 || after.Lines[len(after.Lines)-1].UUID != "last" {
			t.Fatalf("the appended line is not the last: %+v, %v", after, err)
		}
	})
}

func BenchmarkAppendSync(b *testing.B) {
	tr, _ := transcript(b, open(b))
	pair := []Line{line("a", "x"), line("b", "a")}
	for b.Loop() {
		if err := errors.Join(tr.Append(pair...), tr.Sync()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	tr, _ := transcript(b, open(b))
	pair := []Line{line("a", "x"), line("b", "a")}
	for b.Loop() {
		if err := tr.Append(pair...); err != nil {
			b.Fatal(err)
		}
	}
}

func TestSyncWorksForLinesOfAnEarlierProcess(t *testing.T) {
	tr, _ := transcript(t, open(t))
	if err := errors.Join(tr.Append(line("a", "")), tr.Sync()); err != nil || tr.dirty {
		t.Fatal(tr.dirty, err)
	}
	if err := tr.Append(); err != nil || !tr.dirty {
		t.Errorf("an append without lines leaves Sync nothing to do: %v", err)
	}
	if err := tr.Sync(); err != nil || tr.dirty {
		t.Error(tr.dirty, err)
	}
}

// The process that had the lock may be frozen: it does not notice, and its end changes nothing.
func TestUnlockTakesTheLockFromWhoHasIt(t *testing.T) {
	first := open(t)
	if err := first.Lock(true); err != nil {
		t.Fatal(err)
	}
	if err := first.Sign("first"); err != nil {
		t.Fatal(err)
	}
	if name, err := Signature(first.Path()); name != "first" || err != nil || !holds(first) {
		t.Errorf("it is signed by %q, %v", name, err)
	}
	if err := Unlock(first.Path(), "another"); core.KindOf(err) != core.Conflict || !holds(first) {
		t.Errorf("it was taken from another: %v", err)
	}
	if err := Unlock(first.Path(), "first"); err != nil {
		t.Fatal(err)
	}
	if name, err := Signature(first.Path()); name != "" || err != nil || holds(first) {
		t.Errorf("without the lock it is signed by %q, %v", name, err)
	}
	if err := first.Sign("late"); !errors.Is(err, ErrTaken) {
		t.Errorf("without the lock: %v", err)
	}
	if held, err := Held(first.Path()); held || err != nil {
		t.Fatalf("it is held: %v, %v", held, err)
	}
	second, err := Open(first.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := second.Lock(true); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if held, err := Held(second.Path()); !held || err != nil || !holds(second) {
		t.Errorf("the second has lost it: %v, %v", held, err)
	}
	left, err := filepath.Glob(filepath.Join(second.Path(), stateDir, "lock*"))
	if err != nil || len(left) != 1 {
		t.Errorf("files of locks: %v, %v", left, err)
	}
}

func second[T any](_ T, err error) error { return err }

func holds(v *Vault) bool {
	ok, err := v.Holds()
	return ok && err == nil
}

// A file server may give the lock to another process, in the same file, when it did not hear from a machine for long.
func TestALockThatWasGivenToAnotherProcessIsNotOursAlsoInTheSameFile(t *testing.T) {
	first := open(t)
	if err := errors.Join(first.Lock(true), first.Sign("first")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(first.lock.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	other, err := Open(first.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Lock(true); err != nil {
		t.Fatal(err)
	}
	if holds(first) {
		t.Error("before the other has signed it")
	}
	if err := other.Sign("other"); err != nil {
		t.Fatal(err)
	}
	if holds(first) || !errors.Is(first.Fenced(), ErrTaken) || !holds(other) {
		t.Errorf("the first has it: %v; the other: %v", holds(first), holds(other))
	}
	third, err := Open(first.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	if err := third.Lock(true); !strings.Contains(core.TextOf(err), "process "+strconv.Itoa(os.Getpid())) {
		t.Errorf("a lock that is signed: %v", err)
	}
}

// A gateway that stands by looks twice a second whether a vault is locked.
func TestALookAtTheLockKeepsNobodyFromTakingIt(t *testing.T) {
	v := open(t)
	if err := errors.Join(v.Lock(true), v.Close()); err != nil {
		t.Fatal(err)
	}
	look, err := os.Open(filepath.Join(v.Path(), lockName))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(look.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(5*time.Millisecond, func() { _ = look.Close() })
	again, err := Open(v.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Lock(true); err != nil {
		t.Error(err)
	}
}

// A process that was frozen for long enough, and wakes, does not write behind what the one in its place
// has written.
func TestNothingIsWrittenOnceTheLockThatWasSignedIsAnothers(t *testing.T) {
	v := open(t)
	if err := v.Lock(true); err != nil {
		t.Fatal(err)
	}
	if err := v.Sign("me"); err != nil {
		t.Fatal(err)
	}
	conversation, err := v.OpenTranscript("a.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer conversation.Close()
	line := Line{Type: "user", UUID: "u", Timestamp: "2026-01-01T00:00:00Z"}
	if err := errors.Join(conversation.Append(line), v.WriteFile("note", []byte("mine"))); err != nil {
		t.Fatal(err)
	}
	size := conversation.Size()
	draft, err := v.Draft("notes")
	if err != nil {
		t.Fatal(err)
	}
	defer draft.Drop()
	if err := Unlock(v.Path(), "me"); err != nil {
		t.Fatal(err)
	}
	if err := conversation.Append(line); !errors.Is(err, ErrTaken) || core.KindOf(err) != core.Other {
		t.Errorf("a line: %v", err)
	}
	if err := v.WriteFile("note", []byte("late")); !errors.Is(err, ErrTaken) {
		t.Errorf("a file: %v", err)
	}
	for what, err := range map[string]error{
		"a draft": draft.Keep("note"), "a copy": v.CopyIn("copy", strings.NewReader("late"), 100),
		"the trash": second(v.Trash("note", time.Now())), "removal": v.Remove("note"), "removal of all": v.RemoveAll("note"),
		"an exchange": second(v.Swap("note", ".x"+tempSuffix, []byte("mine"), []byte("late"))),
	} {
		if !errors.Is(err, ErrTaken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(v.Path(), "*", "*"+tempSuffix))
	if more, _ := filepath.Glob(filepath.Join(v.Path(), "."+"*"+tempSuffix)); len(files)+len(more) > 0 {
		t.Errorf("files are left: %v %v", files, more)
	}
	note, err := os.ReadFile(filepath.Join(v.Path(), "note"))
	if st, failed := conversation.Stat(); failed != nil || err != nil || st.Size() != size || string(note) != "mine" {
		t.Errorf("%v, %v, %q, %v", st.Size(), failed, note, err)
	}
}
