package files

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/tool/files/place"
)

const secret = "the owner's secret"

// guest is a bench as a guest has it: Guests/7 and nothing else.
func guest(t testing.TB) *bench {
	b := newBench(t, core.Sandboxed)
	b.put("Guests/7/mine.md", "mine\n")
	b.put("Owner/secret.md", secret)
	b.put("Guests/8/secret.md", secret)
	b.guestBounds()
	return b
}

func (b *bench) guestBounds() {
	own := func(name string) bool {
		return (name == "Guests/7" || strings.HasPrefix(name, "Guests/7/")) && path.Base(name) != "denied.md"
	}
	b.turn.MayRead, b.turn.MayWrite = own, own
	d, err := b.turn.Vault.Dir("Guests/7")
	if err != nil {
		b.t.Fatal(err)
	}
	b.turn.Dir = d
}

// decide is what a call touches, asked now and run later.
func (b *bench) decide(name string, input in) func() (tool.Result, error) {
	b.t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		b.t.Fatal(err)
	}
	a, err := b.tools[name].Touches(b.turn, raw)
	if err != nil {
		b.t.Fatal(err)
	}
	return func() (tool.Result, error) {
		return b.tools[name].Run(b.t.Context(), &tool.Call{Input: raw, Turn: b.turn, Access: a})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What was decided on is another file when it is opened.
func TestASwapBetweenDecisionAndOpenGainsNothing(t *testing.T) {
	for what, swap := range map[string]func(own string) error{
		"the file becomes a link": func(own string) error {
			return second(os.Remove(own+"/d/f.md"), os.Symlink("../../../Owner/secret.md", own+"/d/f.md"))
		},
		"the file becomes an absolute link": func(own string) error {
			return second(os.Remove(own+"/d/f.md"), os.Symlink(own+"/../../Owner/secret.md", own+"/d/f.md"))
		},
		"its folder becomes a link": func(own string) error {
			return second(os.Rename(own+"/d", own+"/e"), os.Symlink("../../Owner", own+"/d"))
		},
		"the file becomes a hard link": func(own string) error {
			return second(os.Remove(own+"/d/f.md"), os.Link(own+"/../../Owner/secret.md", own+"/d/f.md"))
		},
		"the file becomes a pipe": func(own string) error {
			return second(os.Remove(own+"/d/f.md"), syscall.Mkfifo(own+"/d/f.md", 0o600))
		},
		"its folder becomes a pipe": func(own string) error {
			return second(os.Rename(own+"/d", own+"/e"), syscall.Mkfifo(own+"/d", 0o600))
		},
	} {
		for name, input := range map[string]in{
			"Read":  {"file_path": "d/f.md"},
			"Grep":  {"pattern": "secret", "path": "d/f.md", "output_mode": "content"},
			"Write": {"file_path": "d/f.md", "content": "overwritten"},
			"Edit":  {"file_path": "d/f.md", "old_string": "secret", "new_string": "overwritten"},
		} {
			b := guest(t)
			b.put("Guests/7/d/f.md", "harmless")
			b.put("Owner/f.md", secret)
			b.ok("Read", in{"file_path": "d/f.md"}) // so that Write is not refused for another reason
			run := b.decide(name, input)
			must(t, swap(filepath.Join(b.dir, "Guests/7")))
			r, err := run()
			if strings.Contains(r.Text, "owner") || err == nil && name != "Grep" {
				t.Errorf("%s, %s: %q, %v", what, name, r.Text, err)
			}
			for _, f := range []string{"Owner/secret.md", "Owner/f.md"} {
				if b.has(f) != secret {
					t.Errorf("%s, %s: %s is now %q", what, name, f, b.has(f))
				}
			}
		}
	}
}

func second(first, then error) error {
	if first != nil {
		return first
	}
	return then
}

// The same where the kernel does not tell the names of open files.
func TestASwapGainsNothingWithoutProcEither(t *testing.T) {
	b := guest(t)
	b.files.open = place.Opener{Proc: "/nonexistent"}
	for _, x := range b.files.tools() {
		b.tools[x.Name] = x
	}
	b.put("Guests/7/d/f.md", "harmless")
	b.put("Owner/f.md", secret)
	b.ok("Read", in{"file_path": "d/f.md"})
	b.ok("Write", in{"file_path": "n/e/w.md", "content": "x"})
	read, write := b.decide("Read", in{"file_path": "d/f.md"}), b.decide("Write", in{"file_path": "d/g.md", "content": "x"})
	own := filepath.Join(b.dir, "Guests/7")
	must(t, os.Rename(own+"/d", own+"/e"))
	must(t, os.Symlink("../../Owner", own+"/d"))
	if r, err := read(); err == nil {
		t.Errorf("read %q", r.Text)
	}
	if _, err := write(); err == nil {
		t.Error("written")
	}
	if _, err := os.Stat(filepath.Join(b.dir, "Owner/g.md")); err == nil {
		t.Error("a file was made in the owner's folder")
	}
}

func TestAHardLinkIsRefusedBelowFullTrust(t *testing.T) {
	b := guest(t)
	own := filepath.Join(b.dir, "Guests/7")
	must(t, os.Link(filepath.Join(b.dir, "Owner/secret.md"), own+"/link.md"))
	b.fails(core.Denied, "Read", in{"file_path": "link.md"}, "hard link")
	b.fails(core.Denied, "Write", in{"file_path": "link.md", "content": "x"}, "hard link")
	b.fails(core.Denied, "Edit", in{"file_path": "link.md", "old_string": "secret", "new_string": "x"}, "hard link")
	if got := b.ok("Grep", in{"pattern": "secret"}); got != "Nothing matches.\n" {
		t.Errorf("%q", got)
	}
	b.turn.Trust = core.Full
	if got := b.ok("Read", in{"file_path": "link.md"}); !strings.Contains(got, secret) {
		t.Errorf("%q", got) // which shows that there was something to gain
	}
}

// race swaps a folder of the guest's for a link to the owner's and back, until
// the test says stop.
func race(t *testing.T, own string) (stop func()) {
	t.Helper()
	must(t, os.Mkdir(own+"/real", 0o700))
	must(t, os.WriteFile(own+"/real/secret.md", []byte("harmless"), 0o600))
	must(t, os.Symlink("../../Owner", own+"/link"))
	must(t, os.Rename(own+"/real", own+"/d"))
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			default:
			}
			if reset(own) != nil {
				continue // a tool is just making something there; a race that never begins is told by who counts
			}
			for _, step := range [][2]string{{"d", "real"}, {"link", "d"}, {"d", "link"}, {"real", "d"}} {
				if err := os.Rename(own+"/"+step[0], own+"/"+step[1]); err != nil { // a tool has made a folder there
					if err := second(os.RemoveAll(own+"/"+step[1]), os.Rename(own+"/"+step[0], own+"/"+step[1])); err != nil {
						continue
					}
				}
			}
		}
	}()
	return func() { close(quit); <-done }
}

// reset puts back what a round of the race has lost to a tool that made a folder
// in its way: d is the guest's own folder, link the link.
func reset(own string) error {
	d, link := own+"/d", own+"/link"
	if fi, err := os.Lstat(d); err == nil && fi.Mode().Type() == fs.ModeSymlink {
		if err := os.Remove(d); err != nil {
			return err
		}
	}
	if fi, err := os.Lstat(link); err != nil || fi.Mode().Type() != fs.ModeSymlink {
		if err := second(os.RemoveAll(link), os.Symlink("../../Owner", link)); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(d + "/secret.md"); err == nil {
		return nil
	}
	return second(os.MkdirAll(d, 0o700), os.WriteFile(d+"/secret.md", []byte("harmless"), 0o600))
}

// patience bounds how long a race may need to be lost by who does not look.
const patience = 5 * time.Minute

func TestARacingRenameNeverShowsTheOwnersFile(t *testing.T) {
	b := guest(t)
	own := filepath.Join(b.dir, "Guests/7")
	read := b.decide("Read", in{"file_path": "d/secret.md"}) // d does not exist yet: the name is what it says
	grep := b.decide("Grep", in{"pattern": ".*", "path": "d", "output_mode": "content"})
	stop := race(t, own)
	defer stop()
	naive, mine := 0, 0
	for end := time.Now().Add(patience); time.Now().Before(end) && (naive < 20 || mine < 20); {
		if data, err := b.turn.Vault.Root().ReadFile("Guests/7/d/secret.md"); err == nil && string(data) == secret {
			naive++ // os.Root alone follows a link that stays in the vault
		}
		for what, run := range map[string]func() (tool.Result, error){"Read": read, "Grep": grep} {
			r, err := run()
			if strings.Contains(r.Text, "owner") {
				t.Fatalf("%s shows %q", what, r.Text)
			}
			if err == nil && strings.Contains(r.Text, "harmless") {
				mine++
			}
			if err != nil && core.KindOf(err) == core.Other {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	if naive == 0 || mine == 0 {
		t.Errorf("the race tested nothing: %d times lost by who does not look, %d times the guest's own file", naive, mine)
	}
}

func TestARacingRenameNeverWritesNextToTheOwnersFiles(t *testing.T) {
	b := guest(t)
	own := filepath.Join(b.dir, "Guests/7")
	var writes []func() (tool.Result, error)
	for i := range 400 {
		writes = append(writes, b.decide("Write", in{"file_path": fmt.Sprintf("d/new%d.md", i), "content": "by the guest"}),
			b.decide("Write", in{"file_path": fmt.Sprintf("d/sub%d/new.md", i), "content": "by the guest"}))
	}
	stop := race(t, own)
	written, naive := 0, 0
	for i, end := 0, time.Now().Add(patience); time.Now().Before(end) && (i < len(writes) || naive < 5); i++ {
		if i < len(writes) {
			if _, err := writes[i](); err == nil {
				written++
			} else if core.KindOf(err) == core.Other {
				t.Error(err)
			}
		}
		if b.turn.Vault.Root().WriteFile("Guests/7/d/naive.md", nil, 0o600) == nil {
			if os.Remove(filepath.Join(b.dir, "Owner/naive.md")) == nil {
				naive++
			}
		}
	}
	stop()
	if naive == 0 || written == 0 {
		t.Errorf("the race tested nothing: %d times lost by who does not look, %d files written", naive, written)
	}
	list, err := os.ReadDir(filepath.Join(b.dir, "Owner"))
	must(t, err)
	for _, e := range list {
		if e.Name() != "secret.md" && e.Name() != "naive.md" {
			t.Errorf("in the owner's folder: %s", e.Name())
		}
	}
	if b.has("Owner/secret.md") != secret {
		t.Error("the owner's file is another")
	}
	noLeftovers(t, filepath.Join(b.dir, "Owner"))
}

// Whatever a guest does with links, folders and names in their own folder, no
// path shows them what is not theirs, or changes it.
func TestNoSequenceOfLinksAndPathsLeadsOut(t *testing.T) {
	names := []string{"a", "b", "c", "a/b", "b/c", "denied.md", "mine.md"}
	targets := []string{"..", "../..", "../8", "../../Owner", "../../Owner/secret.md", "a", "b", "b/c", "/", "/etc", ".", "../7/denied.md", "/proc/self/cwd", "a/../../.."}
	tails := []string{"", "/secret.md", "/../secret.md", "/../Owner/secret.md", "/../../Owner/secret.md", "/../8/secret.md", "/.", "/a/secret.md", "/passwd", "/etc/passwd"}
	rapid.Check(t, func(r *rapid.T) {
		b := newBench(t, core.Sandboxed)
		b.put("Guests/7/mine.md", "mine\n")
		b.put("Guests/7/denied.md", secret)
		b.put("Owner/secret.md", secret)
		b.put("Guests/8/secret.md", secret)
		b.guestBounds()
		own := filepath.Join(b.dir, "Guests/7")
		for range rapid.IntRange(0, 6).Draw(r, "steps") {
			name := own + "/" + rapid.SampledFrom(names).Draw(r, "name")
			target := rapid.SampledFrom(targets).Draw(r, "target")
			if in, err := filepath.EvalSymlinks(filepath.Dir(name)); err != nil || in != own && !strings.HasPrefix(in, own+"/") {
				continue // where a guest's own hands do not reach
			}
			switch rapid.IntRange(0, 3).Draw(r, "what") {
			case 0:
				_ = os.Symlink(target, name)
			case 1:
				_ = os.MkdirAll(name, 0o700)
			case 2:
				_ = os.Link(filepath.Join(own, target), name)
			case 3:
				_ = os.Rename(own+"/"+rapid.SampledFrom(names[:5]).Draw(r, "from"), name)
			}
		}
		p := rapid.SampledFrom(append(names, targets...)).Draw(r, "path") + rapid.SampledFrom(tails).Draw(r, "tail")
		for _, c := range []struct {
			name  string
			input in
		}{
			{"Read", in{"file_path": p}},
			{"Grep", in{"pattern": "owner|root:", "path": p, "output_mode": "content"}},
			{"Glob", in{"pattern": "**", "path": p}},
			{"Glob", in{"pattern": p + "/**"}},
			{"Edit", in{"file_path": p, "old_string": "owner", "new_string": "guest"}},
			{"Write", in{"file_path": p, "content": "guest"}},
		} {
			res, err := b.call(c.name, c.input)
			if strings.Contains(res.Text, "owner") || strings.Contains(res.Text, "root:") || strings.Contains(res.Text, "secret.md") && c.name == "Glob" && !strings.Contains(p, "secret") {
				r.Fatalf("%s %v: %q", c.name, c.input, res.Text)
			}
			if err != nil && core.KindOf(err) == core.Other {
				r.Fatalf("%s %v: %v", c.name, c.input, err)
			}
		}
		for _, f := range []string{"Owner/secret.md", "Guests/8/secret.md"} {
			if b.has(f) != secret {
				r.Fatalf("%s is now %q", f, b.has(f))
			}
		}
		_ = filepath.WalkDir(b.dir, func(p string, d fs.DirEntry, _ error) error {
			rel, _ := filepath.Rel(b.dir, p)
			if !d.IsDir() && !strings.HasPrefix(rel, "Guests/7/") && path.Base(rel) != "secret.md" {
				r.Fatalf("made outside: %s", rel)
			}
			return nil
		})
	})
}

// FuzzPaths gives every tool paths that people and models may come up with.
func FuzzPaths(f *testing.F) {
	for _, p := range []string{"mine.md", "../8/secret.md", "link/secret.md", "./..//7/./mine.md", "/etc/passwd", "~/x", "\x00", "a\nb", "..\\..\\Owner", "link/../../Owner/secret.md", "％2e％2e/Owner", "mine.md/", "//", "{a,../8}/*", "[.][.]/8/*"} {
		f.Add(p)
	}
	b := guest(f)
	must(f, os.Symlink("../../Owner", filepath.Join(b.dir, "Guests/7/link")))
	f.Fuzz(func(t *testing.T, p string) {
		b := &bench{t: t, dir: b.dir, turn: b.turn, files: b.files, tools: b.tools}
		for _, c := range []struct {
			name  string
			input in
		}{
			{"Read", in{"file_path": p}}, {"Glob", in{"pattern": p}}, {"Glob", in{"pattern": "**", "path": p}},
			{"Grep", in{"pattern": "owner", "path": p, "output_mode": "content"}}, {"Edit", in{"file_path": p, "old_string": "owner", "new_string": "x"}},
		} {
			r, err := b.call(c.name, c.input)
			if strings.Contains(r.Text, "owner") && !strings.Contains(p, "owner") || err != nil && core.KindOf(err) == core.Other {
				t.Errorf("%s %q: %q, %v", c.name, p, r.Text, err)
			}
		}
		if b.has("Owner/secret.md") != secret {
			t.Errorf("%q changed the owner's file", p)
		}
	})
}
