package files

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
)

func TestAFileThatExistsMustHaveBeenReadAsItIs(t *testing.T) {
	b := newBench(t, core.Vault)
	p := b.put("a.md", "old\n")
	write := in{"file_path": "a.md", "content": "new\n"}
	b.fails(core.Conflict, "Write", write, "a.md", "Read it first")
	b.ok("Read", in{"file_path": "a.md"})
	if err := os.Chtimes(p, time.Now(), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	b.fails(core.Conflict, "Write", write, "changed since it was read")
	b.ok("Read", in{"file_path": "a.md"})
	if got := b.ok("Write", write); got != "Replaced: a.md (4 bytes)." || b.has("a.md") != "new\n" {
		t.Errorf("%q, %q", got, b.has("a.md"))
	}
	b.ok("Write", in{"file_path": "a.md", "content": "newer\n"}) // what was written is known
	b.ok("Edit", in{"file_path": "a.md", "old_string": "newer", "new_string": "newest"})
	b.ok("Write", write)

	other := *b.turn
	other.Session = "another"
	b.turn = &other
	b.fails(core.Conflict, "Write", write, "Read it first")
	b.ok("Edit", in{"file_path": "a.md", "old_string": "new", "new_string": "edited"})
	b.fails(core.Conflict, "Write", write, "Read it first") // one place was seen, not the file
	other.User++
	b.ok("Read", in{"file_path": "a.md"})
	other.User--
	b.fails(core.Conflict, "Write", write, "Read it first")
}

func TestWhatWasReadIsRememberedWithinABound(t *testing.T) {
	b := newBench(t, core.Vault)
	b.put("a.md", "old\n")
	st, err := os.Stat(filepath.Join(b.dir, "a.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxSeen + 10 {
		b.files.seen.add(b.turn, fmt.Sprint(i), st)
		b.files.seen.add(b.turn, "again", st)
	}
	if n, m := b.files.seen.order.Len(), len(b.files.seen.byKey); n != maxSeen || m != maxSeen {
		t.Errorf("%d and %d are kept", n, m)
	}
	if read, _ := b.files.seen.knows(b.turn, "0", st); read {
		t.Error("the oldest is kept")
	}
	if read, same := b.files.seen.knows(b.turn, "again", st); !read || !same {
		t.Error("the newest is forgotten")
	}
}

func TestWriteMakesFoldersKeepsModesAndLeavesNothingBehind(t *testing.T) {
	b := newBench(t, core.Vault)
	b.ok("Write", in{"file_path": "x/y/z/new.md", "content": "a"})
	for name, want := range map[string]fs.FileMode{"x": 0o700, "x/y/z": 0o700, "x/y/z/new.md": 0o600} {
		if st, err := os.Stat(filepath.Join(b.dir, name)); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, st.Mode(), err)
		}
	}
	p := b.put("run.sh", "echo\n")
	if err := os.Chmod(p, 0o755); err != nil {
		t.Fatal(err)
	}
	b.ok("Edit", in{"file_path": "run.sh", "old_string": "echo", "new_string": "echo hi"})
	if st, err := os.Stat(p); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("mode is %v, %v", st.Mode(), err)
	}
	if err := os.Symlink("run.sh", filepath.Join(b.dir, "link.sh")); err != nil {
		t.Fatal(err)
	}
	b.ok("Edit", in{"file_path": "link.sh", "old_string": "hi", "new_string": "ho"})
	if st, err := os.Lstat(filepath.Join(b.dir, "link.sh")); err != nil || st.Mode()&fs.ModeSymlink == 0 || b.has("run.sh") != "echo ho\n" {
		t.Errorf("the link was replaced, or its file not: %v %q", err, b.has("run.sh"))
	}
	if err := os.Symlink("later.md", filepath.Join(b.dir, "dangling.md")); err != nil {
		t.Fatal(err)
	}
	b.ok("Write", in{"file_path": "dangling.md", "content": "came"})
	if b.has("later.md") != "came" {
		t.Error("the link's file was not written")
	}
	b.fails(core.Invalid, "Write", in{"file_path": "x/", "content": ""}, "names a folder")
	b.fails(core.Invalid, "Write", in{"file_path": "x/y", "content": ""}, "it is a folder")
	b.fails(core.Invalid, "Write", in{"file_path": "x/y"}, "content is missing")
	b.fails(core.NotFound, "Write", in{"file_path": "run.sh/x", "content": ""}, "no folder")
	noLeftovers(t, b.dir)
}

func noLeftovers(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, tempSuffix) {
			t.Errorf("left behind: %s", p)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestReadersSeeTheOldFileOrTheNewOne(t *testing.T) {
	b := newBench(t, core.Vault)
	long := [2]string{strings.Repeat("a", 300_000), strings.Repeat("b", 300_000)}
	p := b.put("a.md", long[0])
	b.ok("Read", in{"file_path": "a.md"})
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if data, err := os.ReadFile(p); err != nil || string(data) != long[0] && string(data) != long[1] {
				t.Errorf("%d bytes, %v", len(data), err)
				return
			}
		}
	})
	for i := range 40 {
		b.ok("Write", in{"file_path": "a.md", "content": long[(i+1)%2]})
	}
	close(done)
	wg.Wait()
}

func TestChangesOfOneFileAtOnceLoseNothing(t *testing.T) {
	b := newBench(t, core.Vault)
	const n = 20
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "line %02d old\n", i)
	}
	b.put("a.md", text.String())
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, err := b.call("Edit", in{"file_path": "a.md", "old_string": fmt.Sprintf("line %02d old", i), "new_string": fmt.Sprintf("line %02d new", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := strings.Count(b.has("a.md"), "new"); got != n {
		t.Errorf("%d of %d changes are there", got, n)
	}
}

func TestEditKeepsLineEndsAndExplainsWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct{ text, old, new, want, all string }{
		{"one\ntwo\n", "two", "zwei", "one\nzwei\n", ""},
		{"one\ntwo", "two", "zwei\ndrei", "one\nzwei\ndrei", ""},                 // no line end at the end
		{"one\r\ntwo\r\n", "one\ntwo", "eins\nzwei", "eins\r\nzwei\r\n", ""},     // CRLF
		{"one\r\ntwo\r\n", "two", "zwei\ndrei", "one\r\nzwei\r\ndrei\r\n", ""},   // also in what is new
		{"one\r\ntwo\r\n", "one\r\ntwo", "eins\r\nzwei", "eins\r\nzwei\r\n", ""}, // written out
		{"a\nb\nc\r\nd\n", "c\nd", "x\ny", "a\nb\nx\r\ny\n", ""},                 // mixed: the place decides
		{"a\r\nb\r\nc\nd\r\n", "c\nd", "x\ny", "a\r\nb\r\nx\ny\r\n", ""},         // mixed the other way
		{"\uFEFFone\n", "one", "eins", "\uFEFFeins\n", ""},                       // byte order mark
		{"x x x\n", "x", "y", "y y y\n", "true"},                                 // everywhere
		{"a $1 b\n", "$1", "${2}", "a ${2} b\n", ""},                             // no patterns
		{"one\ntwo\n", "two\n", "", "one\n", ""},                                 // taken out
		{"", "", "first\n", "first\n", ""},                                       // an empty file
	} {
		b := newBench(t, core.Vault)
		b.put("a.md", c.text)
		input := in{"file_path": "a.md", "old_string": c.old, "new_string": c.new}
		if c.all != "" {
			input["replace_all"] = c.all
		}
		b.ok("Edit", input)
		if got := b.has("a.md"); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
	b := newBench(t, core.Vault)
	b.put("a.md", "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n")
	edit := func(old, new string) in { return in{"file_path": "a.md", "old_string": old, "new_string": new} }
	b.fails(core.Invalid, "Edit", edit("return 1", "return 2"), "a.md", "in 2 places (lines 2, 6)", "replace_all")
	b.fails(core.Invalid, "Edit", edit("  return 1\n", "x"), "not in the file", "like line 2, 6")
	b.fails(core.Invalid, "Edit", edit("     2\t\treturn 1\n     3\t}\n", "x"), "line numbers that Read shows")
	b.fails(core.Invalid, "Edit", edit("nothing like it", "x"), "Read the file again")
	b.fails(core.Invalid, "Edit", edit("same", "same"), "nothing to change")
	b.fails(core.Invalid, "Edit", edit("", "x"), "not empty")
	b.fails(core.NotFound, "Edit", in{"file_path": "none.md", "old_string": "a", "new_string": "b"}, "none.md does not exist")
	b.ok("Edit", in{"file_path": "made/here.md", "old_string": "", "new_string": "made"})
	if b.has("made/here.md") != "made" {
		t.Error("an empty old_string makes no file")
	}
	b.put("bin", "a\x00b")
	b.fails(core.Invalid, "Edit", in{"file_path": "bin", "old_string": "a", "new_string": "b"}, "binary")
	b.put("big", strings.Repeat("x", maxEdit+1))
	b.fails(core.TooLarge, "Edit", in{"file_path": "big", "old_string": "x", "new_string": "y"})
	b.turn.MayRead = func(string) bool { return false }
	b.fails(core.Denied, "Edit", edit("return 1", "x"), "may not be read")
}

func TestAReadOnlyFolderIsReportedPlainly(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root writes everywhere")
	}
	b := newBench(t, core.Vault)
	if err := os.Chmod(b.dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(b.dir, 0o700)
	b.fails(core.Denied, "Write", in{"file_path": "a.md", "content": "x"}, "does not let the gateway in")
}

func TestAFileChangedByOthersDuringAnEditIsNotOverwritten(t *testing.T) {
	b := newBench(t, core.Vault)
	p := b.put("a.md", "old\n")
	st, err := os.Lstat(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte("by others\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at, err := writable(b.turn, "a.md")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.files.replace(b.turn, at, "a.md", []byte("ours\n"), st); core.KindOf(err) != core.Conflict {
		t.Errorf("%v", err)
	}
	if err := b.files.replace(b.turn, at, "a.md", []byte("ours\n"), nil); err == nil { // or made in this moment
		t.Error("a file that others made is overwritten")
	}
	if b.has("a.md") != "by others\n" {
		t.Errorf("%q", b.has("a.md"))
	}
	noLeftovers(t, b.dir)
}
