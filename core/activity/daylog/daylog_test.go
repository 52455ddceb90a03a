package daylog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gatehouse/core/activity/daylog"
)

const day = "2026-01-28"

func entry(id string, said ...daylog.Said) daylog.Entry {
	return daylog.Entry{ID: id, Time: "10:30", Session: "s-" + id, Link: "/chats/s-" + id, Title: "Finding the kettle", Said: said}
}

const first = `---
date: 2026-01-28
entries:
  abc123def456: {type: chat, created: "10:30", session: s-abc123def456}
---

# para:abc123def456 10:30

**Finding the kettle**

Session: [s-abc123def456](/chats/s-abc123def456)

1. Where is the kettle?
`

func TestPut_BeginsALogAndAddsToIt(t *testing.T) {
	text := daylog.Put("", day, []daylog.Entry{entry("abc123def456", daylog.Said{Number: 1, Summary: "Where is the kettle?"})})
	if d := cmp.Diff(first, text); d != "" {
		t.Fatal(d)
	}
	next := entry("abc123def456", daylog.Said{Number: 2, Summary: "And the tea?"})
	next.Was, next.Title = "Finding the kettle", "Kettle and tea"
	text = daylog.Put(text, day, []daylog.Entry{next, entry("zzz999zzz999", daylog.Said{Number: 7, Summary: "Thanks."})})
	want := `---
date: 2026-01-28
entries:
  abc123def456: {type: chat, created: "10:30", session: s-abc123def456}
  zzz999zzz999: {type: chat, created: "10:30", session: s-zzz999zzz999}
---

# para:abc123def456 10:30

**Kettle and tea**

Session: [s-abc123def456](/chats/s-abc123def456)

1. Where is the kettle?
2. And the tea?

# para:zzz999zzz999 10:30

**Finding the kettle**

Session: [s-zzz999zzz999](/chats/s-zzz999zzz999)

7. Thanks.
`
	if d := cmp.Diff(want, text); d != "" {
		t.Error(d)
	}
	if daylog.Find(text, "s-zzz999zzz999") != "zzz999zzz999" || daylog.Find(text, "s-other") != "" {
		t.Error("an entry is not found by its session")
	}
	text, left := daylog.Remove(text, map[string]bool{"zzz999zzz999": true})
	if !left || strings.Contains(text, "zzz999") || strings.Contains(text, "Thanks") || !strings.Contains(text, "2. And the tea?") {
		t.Errorf("left %v:\n%s", left, text)
	}
	if text, left = daylog.Remove(text, map[string]bool{"abc123def456": true}); left {
		t.Errorf("something is left:\n%s", text)
	}
}

func TestPut_KeepsWhatAnotherProgramWrote(t *testing.T) {
	edited := `---
# mine
date: 2026-01-28
mood: fine
entries:
    old123: 
        type: chat
        session: s-old
    abc123def456:
        type: chat
tags: [tea]
---
A preface.

# para:old123 09:00

**Old** entry, of another program

---

# para:abc123def456 10:30

**My own title**

Session: [s-abc123def456](/chats/s-abc123def456)

1. I corrected this.
   And went on.

My afterthought.

# para:new456new456 11:00
Not a conversation.`
	e := entry("abc123def456", daylog.Said{Number: 1, Summary: "Where is the kettle?"}, daylog.Said{Number: 2, Summary: "And the tea?"})
	e.Was, e.Title = "Finding the kettle", "Other"
	text := daylog.Put(edited, day, []daylog.Entry{e, entry("aaa111aaa111", daylog.Said{Number: 1, Summary: "Hi."})})
	want := strings.Replace(edited, "   And went on.\n", "   And went on.\n2. And the tea?\n", 1)
	want = strings.Replace(want, "        type: chat\ntags", "        type: chat\n    aaa111aaa111: {type: chat, created: \"10:30\", session: s-aaa111aaa111}\ntags", 1)
	want += "\n\n# para:aaa111aaa111 10:30\n\n**Finding the kettle**\n\nSession: [s-aaa111aaa111](/chats/s-aaa111aaa111)\n\n1. Hi.\n"
	if d := cmp.Diff(want, text); d != "" {
		t.Error(d)
	}
	text, _ = daylog.Remove(text, map[string]bool{"old123": true})
	if strings.Contains(text, "s-old") || strings.Contains(text, "Old") || !strings.Contains(text, "abc123def456:\n        type: chat") {
		t.Errorf("after the removal:\n%s", text)
	}
}

func TestPut_LeavesFrontMatterThatIsNotUnderstood(t *testing.T) {
	for name, head := range map[string]string{
		"a number":   "---\ndate: 2026-01-28\nentries: 3\n---\n",
		"not closed": "---\ndate: 2026-01-28\n",
		"a list":     "---\nentries: [a, b]\n---\n",
	} {
		text := daylog.Put(head+"text\n", day, []daylog.Entry{entry("abc123def456", daylog.Said{Number: 1, Summary: "Hi."})})
		if !strings.Contains(text, head+"text\n") || !strings.Contains(text, "\n1. Hi.\n") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// Whatever two programs do to a log in turn, every line of either is in it once.
func TestPut_NoInterleavingLosesALine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := []string{"abc123def456", "zzz999zzz999", "old123"}
		text, theirs, n := "", []string{}, map[string]int{}
		for i := range rapid.IntRange(1, 20).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "ours") {
				id := rapid.SampledFrom(ids).Draw(t, "id")
				n[id]++
				e := entry(id, daylog.Said{Number: n[id], Summary: fmt.Sprintf("ours %d.", i)})
				text = daylog.Put(text, day, []daylog.Entry{e})
				if again := daylog.Put(text, day, []daylog.Entry{e}); again != text {
					t.Fatalf("written twice it is\n%s\nnot\n%s", again, text)
				}
				continue
			}
			lines := slices.Collect(strings.Lines(text))
			at := len(lines)
			if end := 1 + slices.Index(lines[min(1, len(lines)):], "---\n"); at > 0 {
				at = rapid.IntRange(end+1, len(lines)).Draw(t, "at") // behind the frontmatter
			}
			form := rapid.SampledFrom([]string{"theirs %d\n", "  - theirs %d\n", "9999%d. theirs\n", "# para:foreign%d 10:00 AM\n", "\n"}).Draw(t, "form")
			line := form
			if strings.Contains(form, "%d") {
				line = fmt.Sprintf(form, i)
				theirs = append(theirs, line)
			}
			if at > 0 && !strings.HasSuffix(lines[at-1], "\n") {
				lines[at-1] += "\n"
			}
			text = strings.Join(slices.Insert(lines, at, line), "")
		}
		for _, line := range theirs {
			if strings.Count(text, line) != 1 {
				t.Fatalf("%q is %d times in\n%s", line, strings.Count(text, line), text)
			}
		}
		for id, last := range n {
			if strings.Count(text, "# para:"+id) != 1 {
				t.Fatalf("the entry %s is not there once:\n%s", id, text)
			}
			_ = last
		}
		total := 0
		for _, last := range n {
			total += last
		}
		if got := strings.Count(text, ". ours "); got != total {
			t.Fatalf("%d exchanges of %d are in\n%s", got, total, text)
		}
		head := strings.SplitN(text, "---\n", 3)
		if len(n) > 0 && len(head) == 3 && head[0] == "" {
			var front struct {
				Date    string
				Entries map[string]struct{ Type, Created, Session string }
			}
			if err := yaml.Unmarshal([]byte(head[1]), &front); err != nil || front.Date != day || len(front.Entries) != len(n) {
				t.Fatalf("frontmatter %+v, %v:\n%s", front, err, text)
			}
		}
	})
}

func FuzzPut(f *testing.F) {
	f.Add(first)
	f.Add("---\nentries:\n---")
	f.Add("# para:abc123def456 10:30\n1. x")
	f.Add("---\nentries: {}\n---\nentries: {}")
	f.Add("---\r\nentries: {}\r\n---\r\n# para:abc123def456 10:30 AM\r\n\r\ntext\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		e := entry("abc123def456", daylog.Said{Number: 1, Summary: "Hi."})
		e.Was = "Finding the kettle"
		out := daylog.Put(text, day, []daylog.Entry{e})
		if again := daylog.Put(out, day, []daylog.Entry{e}); again != out {
			t.Errorf("%q twice is %q, once %q", text, again, out)
		}
		rest := out
		for line := range strings.Lines(text) { // each is there, in order
			line = strings.TrimRight(line, " \t\r\n")
			if strings.HasPrefix(line, "entries:") { // it may have got a list
				continue
			}
			at := strings.Index(rest, line)
			if at < 0 {
				t.Fatalf("%q lost %q: %q", text, line, out)
			}
			rest = rest[at+len(line):]
		}
		daylog.Remove(text, map[string]bool{"abc123def456": true})
	})
}

func TestAdd_AddsEachLineOnceAndKeepsOthers(t *testing.T) {
	a := daylog.Line{At: "2026-01-28T10:30:00Z", Session: "s1", Title: "A <b>", Agent: "vault-agent", Exchange: 1, Summary: "Hi."}
	b := a
	b.Exchange = 2
	b.At = "2026-01-28T10:31:00Z"
	out, err := daylog.Add([]byte("not JSON\n{\"session_id\":\"other\"}"), []daylog.Line{a, b, a})
	want := "not JSON\n{\"session_id\":\"other\"}\n" +
		`{"ts":"2026-01-28T10:30:00Z","session_id":"s1","session_title":"A <b>","agent_type":"vault-agent","exchange_number":1,"summary":"Hi."}` + "\n" +
		`{"ts":"2026-01-28T10:31:00Z","session_id":"s1","session_title":"A <b>","agent_type":"vault-agent","exchange_number":2,"summary":"Hi."}` + "\n"
	if d := cmp.Diff(want, string(out)); d != "" || err != nil {
		t.Error(d, err)
	}
	b.Title, b.Summary = "renamed", "changed"
	if again, _ := daylog.Add(out, []daylog.Line{b}); string(again) != want {
		t.Errorf("a line is there twice:\n%s", again)
	}
	if got := string(daylog.Drop(out, map[string]bool{"s1": true})); got != "not JSON\n{\"session_id\":\"other\"}\n" {
		t.Errorf("left is %q", got)
	}
}

// A numbered list of the owner's costs no exchange, wherever it is.
func TestAnExchangeIsAddedBesideTheOwnersOwnLists(t *testing.T) {
	t.Parallel()
	e := daylog.Entry{ID: "abcdefghijkl", Time: "10:30", Session: "s", Link: "/s", Title: "T", Said: []daylog.Said{{1, "first"}}}
	begin := daylog.Put("", "2026-01-28", []daylog.Entry{e})
	for _, c := range []struct{ added, want string }{
		{"\nMy shopping:\n\n2. milk\n", "1. first\n2. second\n\nMy shopping:\n\n2. milk\n"},
		{"\n2. milk\n", "1. first\n2. second\n\n2. milk\n"},
		{"2. second, corrected\n", "1. first\n2. second, corrected\n"},
		{"\n2. second\n", "1. first\n\n2. second\n"},
		{"   a note\n", "1. first\n   a note\n2. second\n"},
	} {
		e.Said = []daylog.Said{{2, "second"}}
		got := daylog.Put(begin+c.added, "2026-01-28", []daylog.Entry{e})
		if want := strings.TrimSuffix(begin, "1. first\n") + c.want; got != want {
			t.Errorf("with %q it is\n%s\nwant\n%s", c.added, got, want)
		}
	}
	loose := begin + "\n2. second\n"
	e.Said = []daylog.Said{{3, "third"}}
	if got := daylog.Put(loose, "2026-01-28", []daylog.Entry{e}); got != loose+"3. third\n" {
		t.Errorf("a loose list: %s", got)
	}
}
