package client_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/vaultsync/client"
	"gatehouse/web/auth"
)

// walks is how many random walks a run of the tests has; -rapid.checks asks for more.
const walks = 25

// TestRandomWalk_AllTreesAreEqualAndNothingThatWasWrittenIsLost has two devices and the
// server change, rename and delete files and entries of days in random order, also while
// a device syncs; devices are killed at any step, and clocks and times of files are wrong.
// When everything has settled, all trees are equal, without a temporary file, and every
// word that anyone wrote is in them, unless someone who had it removed it.
func TestRandomWalk_AllTreesAreEqualAndNothingThatWasWrittenIsLost(t *testing.T) {
	s := serve(t, t.TempDir())
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		_ = checks.Value.Set(strconv.Itoa(walks))
		t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) })
	}
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		w := newWalk(t, rt, s, int64(100+runs))
		for range rapid.IntRange(4, 24).Draw(rt, "steps") {
			w.step()
		}
		w.settle()
	})
}

// A walker is a device, or the server's own directory (without a device).
type walker struct {
	dir string
	*device
}

type walk struct {
	t       *rapid.T
	s       *server
	all     []walker // the server last
	n       int
	written map[string]string // word → where
	gone    map[string]bool   // words that someone who had them removed
	log     []string
}

func newWalk(t *testing.T, rt *rapid.T, s *server, user int64) *walk {
	w := &walk{t: rt, s: s, written: map[string]string{}, gone: map[string]bool{}}
	key := s.key(t, user, core.Sandboxed, auth.ScopeSync)
	for _, name := range []string{"laptop", "phone"} {
		d := s.device(t, name, key)
		w.all = append(w.all, walker{d.dir, d})
	}
	dir := filepath.Join(s.dir, core.GuestDir(user))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		rt.Fatalf("%v", err)
	}
	w.all = append(w.all, walker{dir: dir})
	return w
}

func (w *walk) pick(n int) int { return rapid.IntRange(0, n-1).Draw(w.t, "pick") }

func (w *walk) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *walk) step() {
	who := w.all[w.pick(3)]
	switch w.pick(8) {
	case 0, 1, 2:
		w.change(who)
	case 3:
		w.clocks(who)
	default:
		if who.device != nil {
			w.sync(who)
		} else {
			w.change(who)
		}
	}
}

// clocks makes clocks and times of files wrong.
func (w *walk) clocks(who walker) {
	off := time.Duration(rapid.Int64Range(-1e6, 1e6).Draw(w.t, "seconds")) * time.Second
	w.s.clock.Advance(off)
	if who.device != nil {
		who.o.Clock = coretest.NewClock(time.Now().Add(off))
	}
	for _, name := range slices.Sorted(maps.Keys(tree(w.t, who.dir))) {
		at := time.Now().Add(off)
		_ = os.Chtimes(filepath.Join(who.dir, name), at, at)
		break
	}
}

// sync syncs a device: to the end, to a kill, or with a change by anyone in between.
func (w *walk) sync(who walker) {
	switch w.pick(3) {
	case 0:
		n := w.pick(40)
		w.note("%s is killed at step %d", who.name, n)
		who.killed(w.t, n)
	case 1:
		n, o := w.pick(25), who.o
		at := -1
		o.Step = func(string) {
			if at++; at == n {
				w.change(w.all[w.pick(3)])
			}
		}
		w.note("%s syncs, with a change at step %d", who.name, n)
		c, err := client.Open(o)
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		_, err = c.Once(w.t.Context())
		if closed := c.Close(); err != nil || closed != nil {
			w.t.Fatalf("%s: %v, %v\n%s", who.name, err, closed, strings.Join(w.log, "\n"))
		}
	default:
		w.note("%s syncs", who.name)
		who.sync(w.t)
	}
}

// word returns a word that no one wrote before.
func (w *walk) word(who walker, name string) string {
	w.n++
	word := fmt.Sprintf("word%d.", w.n)
	w.written[word] = who.dir + " " + name
	return word
}

var word = regexp.MustCompile(`word\d+\.`)

// removed notes that someone removed what text has, unless it is in now.
func (w *walk) removed(text, now string) {
	for _, word := range word.FindAllString(text, -1) {
		if !strings.Contains(now, word) {
			w.gone[word] = true
		}
	}
}

// names are the files that are changed: few, so that changes meet.
var names = []string{"Daily/2026-01-28.md", "Daily/2026-01-29.md", "n.md", "sub/n.md", "a.bin", "sub"}

// change changes a file as a program would that has read it.
func (w *walk) change(who walker) {
	name := names[w.pick(len(names))]
	if have := slices.Sorted(maps.Keys(tree(w.t, who.dir))); len(have) > 0 && w.pick(3) == 0 {
		name = have[w.pick(len(have))]
	}
	at := filepath.Join(who.dir, name)
	data, err := os.ReadFile(at)
	text := string(data)
	if strings.HasSuffix(name, ".gatehouse-tmp") || err != nil && !os.IsNotExist(err) {
		return // a folder has the name, or a file that of its folder
	}
	there := err == nil
	switch k := w.pick(10); {
	case there && k == 0:
		w.note("%s deletes %s", who.dir, name)
		w.removed(text, "")
		remove(w.t, who.dir, name)
		return
	case there && k == 1:
		w.rename(who, name)
		return
	case strings.HasSuffix(name, ".bin"):
		w.store(who, name, text, "\x00"+w.word(who, name), there)
	case strings.HasPrefix(name, "Daily/"):
		w.store(who, name, text, w.day(who, name, text), there)
	default:
		w.store(who, name, text, w.lines(who, name, text), there)
	}
}

// rename gives a file another name, free or taken.
func (w *walk) rename(who walker, name string) {
	to := []string{"r1.md", "Daily/2026-01-30.md", "sub/r2.md"}[w.pick(3)]
	if data, err := os.ReadFile(filepath.Join(who.dir, to)); err == nil {
		mine, _ := os.ReadFile(filepath.Join(who.dir, name))
		w.removed(string(data), string(mine))
	}
	if os.MkdirAll(filepath.Dir(filepath.Join(who.dir, to)), 0o700) == nil {
		err := os.Rename(filepath.Join(who.dir, name), filepath.Join(who.dir, to))
		w.note("%s renames %s to %s: %v", who.dir, name, to, err)
	}
}

// store writes a file, in place or in one step.
func (w *walk) store(who walker, name, was, now string, there bool) {
	at := filepath.Join(who.dir, name)
	if os.MkdirAll(filepath.Dir(at), 0o700) != nil {
		for _, word := range word.FindAllString(now, -1) {
			if !strings.Contains(was, word) {
				delete(w.written, word)
			}
		}
		return
	}
	w.note("%s writes %s: %q, was %q", who.dir, name, now, was)
	w.removed(was, now)
	err := os.WriteFile(at+".saving~", []byte(now), 0o600)
	if err == nil {
		err = os.Rename(at+".saving~", at)
	}
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	_ = there
}

// lines changes lines of a text.
func (w *walk) lines(who walker, name, text string) string {
	lines := strings.SplitAfter(text, "\n")
	at := w.pick(len(lines))
	switch w.pick(4) {
	case 0:
		lines[at] = w.word(who, name) + "\n"
	case 1:
		lines = slices.Delete(lines, at, at+1)
	default:
		lines = slices.Insert(lines, at, w.word(who, name)+"\n")
	}
	return strings.Join(lines, "")
}

// day changes entries of a day.
func (w *walk) day(who walker, name, text string) string {
	parts := regexp.MustCompile(`(?m)^# para:`).Split(text, -1)
	head, entries := parts[0], parts[1:]
	at := 0
	if len(entries) > 0 {
		at = w.pick(len(entries))
	}
	switch k := w.pick(6); {
	case k == 0 && len(entries) > 0:
		entries = slices.Delete(entries, at, at+1)
	case k <= 3 && len(entries) > 0:
		title, body, _ := strings.Cut(entries[at], "\n")
		entries[at] = title + "\n" + w.lines(who, name, body)
		if !strings.HasSuffix(entries[at], "\n") {
			entries[at] += "\n"
		}
	default:
		id := w.word(who, name)
		entries = append(entries, fmt.Sprintf("%012s 10:30 AM\n\n%s\n\n", fmt.Sprintf("e%d", w.n), id))
	}
	if len(entries) > 0 && head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return strings.Join(append([]string{head}, entries...), "# para:")
}

// settle syncs until nothing changes, and checks.
func (w *walk) settle() {
	for range 8 {
		for _, d := range w.all[:2] {
			d.sync(w.t)
		}
	}
	for _, d := range w.all[:2] {
		if r := d.sync(w.t); r.Sent+r.Fetched+r.DeletedHere+r.DeletedOut > 0 || len(r.Errors) > 0 {
			w.t.Fatalf("%s does not settle: %+v\n%s", d.name, r, strings.Join(w.log, "\n"))
		}
	}
	same(w.t, w.all[2].dir, w.all[0].dir, w.all[1].dir)
	var all strings.Builder
	for _, text := range tree(w.t, w.all[0].dir) {
		all.WriteString(text + "\n")
	}
	for word, where := range w.written {
		if !w.gone[word] && !strings.Contains(all.String(), word) {
			w.t.Fatalf("%s, written to %s, is lost:\n%s\nafter\n%s", word, where, listed(tree(w.t, w.all[0].dir)), strings.Join(w.log, "\n"))
		}
	}
}
