package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"gatehouse/core"
)

// Two programs edit one day file: the store, and another that knows nothing of it and
// replaces the file, by a rename or in place, before, between and in the middle of the
// store's writes. What each has added, changed and deleted is what the file has.
func TestAnyInterleavingOfTwoProgramsKeepsEveryEntry(t *testing.T) {
	t.Parallel()
	f := open(t)
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		d := fmt.Sprintf("%04d-01-28", 2000+runs%7000)
		p := &programs{f: f, t: rt, date: d, name: "Daily/" + d + ".md", want: map[string]string{}}
		defer func() { f.between = func(string) {} }()
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			if rapid.Bool().Draw(rt, "in the middle") {
				once := sync.OnceFunc(p.other)
				f.between = func(string) { once() }
			} else {
				f.between = func(string) {}
			}
			rapid.SampledFrom([]func(){p.append, p.edit, p.delete, p.other, p.passes}).Draw(rt, "step")()
			p.check()
		}
	})
}

type programs struct {
	f          *fixture
	t          *rapid.T
	date, name string
	n          int
	want       map[string]string // mark → text of the entries that must be there
}

// next returns a text that no other entry has; mark begins it.
func (p *programs) next() (mark, text string) {
	p.n++
	mark = fmt.Sprintf("m%03d.", p.n)
	return mark, mark + rapid.SampledFrom([]string{"", " tea", "\n\n# 10:30 AM\nis text", "\n```\n# para:abc123def456 1:00", "\n## Images"}).Draw(p.t, "text")
}

func (p *programs) entries() []Entry {
	d, err := p.f.Day(p.f.t.Context(), core.Operator, p.date)
	if err != nil {
		p.t.Fatal(err)
	}
	return d.Entries
}

func markOf(text string) string { return text[:strings.IndexByte(text, '.')+1] }

// one draws an entry of the file with an id; false without any.
func (p *programs) one() (Entry, bool) {
	all := slices.DeleteFunc(p.entries(), func(e Entry) bool { return e.ID == "" })
	if len(all) == 0 {
		return Entry{}, false
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(p.t, "entry")], true
}

func (p *programs) append() {
	mark, text := p.next()
	if _, err := p.f.Append(p.f.t.Context(), core.Operator, Draft{Date: p.date, At: morning, Text: text}, panel); err != nil {
		p.t.Fatal(err)
	}
	p.want[mark] = text
}

func (p *programs) edit() {
	e, ok := p.one()
	if !ok {
		return
	}
	mark := markOf(e.Text)
	changed := mark + fmt.Sprintf(" changed %d", p.n)
	_, err := p.f.Edit(p.f.t.Context(), core.Operator, e.ID, e.Version, text(changed), panel)
	p.done(err, func() { p.want[mark] = changed })
}

func (p *programs) delete() {
	if e, ok := p.one(); ok {
		p.done(p.f.Delete(p.f.t.Context(), core.Operator, e.ID, e.Version, panel), func() { delete(p.want, markOf(e.Text)) })
	}
}

// done notes a change, unless the other program had changed or deleted the entry.
func (p *programs) done(err error, note func()) {
	var c *Conflict
	switch {
	case err == nil:
		note()
	case !errors.As(err, &c) && core.KindOf(err) != core.NotFound:
		p.t.Fatal(err)
	}
}

func (p *programs) passes() {
	if _, err := p.f.Pass(p.f.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// other is one edit by the other program.
func (p *programs) other() {
	path := filepath.Join(p.f.dir, p.name)
	data, _ := os.ReadFile(path)
	f := parse(data)
	i := len(f.sections)
	if i > 0 {
		i = rapid.IntRange(0, len(f.sections)).Draw(p.t, "other's entry")
	}
	switch {
	case i == len(f.sections):
		mark, text := p.next()
		f.add(section{raw: []byte("# 11:00 AM\n" + escape(text) + "\n")})
		p.want[mark] = text
	case rapid.Bool().Draw(p.t, "other deletes"):
		delete(p.want, markOf(f.sections[i].entry(p.date).Text))
		f.remove(i)
	default:
		mark := markOf(f.sections[i].entry(p.date).Text)
		p.want[mark] = mark + " by the other"
		f.rewrite(i, p.want[mark], nil, nil)
	}
	if rapid.Bool().Draw(p.t, "in place") && len(data) > 0 {
		if err := os.WriteFile(path, f.bytes(), 0o600); err != nil {
			p.t.Fatal(err)
		}
		return
	}
	p.f.put(p.name, string(f.bytes()))
}

func (p *programs) check() {
	got := map[string]string{}
	for _, e := range p.entries() {
		if _, twice := got[markOf(e.Text)]; twice {
			p.t.Fatalf("%q is there twice", e.Text)
		}
		got[markOf(e.Text)] = e.Text
	}
	for mark, text := range p.want {
		if got[mark] != text {
			p.t.Fatalf("entry %q is %q", text, got[mark])
		}
	}
	if len(got) != len(p.want) {
		p.t.Fatalf("the file has %d entries, want %d", len(got), len(p.want))
	}
}

// Two gateways cannot have one vault; other programs that merge as this one does may.
func TestTwoProgramsThatMergeLoseNoEntryAtOnce(t *testing.T) {
	t.Parallel()
	f := open(t)
	others := []*Store{f.Store, New(f.o), New(f.o)}
	const each = 25
	var mu sync.Mutex
	var want []string
	var all sync.WaitGroup
	for n, s := range others {
		all.Go(func() {
			for i := range each {
				text := fmt.Sprintf("entry %d of %d", i, n)
				_, err := s.Append(t.Context(), core.Operator, Draft{Date: day, At: morning, Text: text}, panel)
				if core.KindOf(err) == core.Busy {
					continue // refused, and not lost
				}
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				want = append(want, text)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for _, e := range f.day(core.Operator).Entries {
		seen[e.Text] = true
	}
	for _, text := range want {
		if !seen[text] {
			t.Errorf("%q is lost", text)
		}
	}
	if len(want) < each {
		t.Errorf("%d of %d were added", len(want), each*len(others))
	}
}
