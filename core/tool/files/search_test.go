package files

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// dated gives files times, the first the oldest.
func (b *bench) dated(names ...string) {
	for i, n := range names {
		at := time.Unix(1_700_000_000+int64(i), 0)
		if err := os.Chtimes(filepath.Join(b.dir, n), at, at); err != nil {
			b.t.Fatal(err)
		}
	}
}

func TestGlobFindsByNameTheNewestFirst(t *testing.T) {
	b := newBench(t, core.Vault)
	for _, n := range []string{"a.md", "Blogs/b.md", "Blogs/x/c.md", "BlogsPrivate/d.md", "Blogs/e.txt", "Blogs/.hidden.md"} {
		b.put(n, n)
	}
	b.dated("a.md", "Blogs/x/c.md", "Blogs/b.md", "BlogsPrivate/d.md", "Blogs/e.txt", "Blogs/.hidden.md")
	for _, c := range []struct{ pattern, path, want string }{
		{"*.md", "", "a.md"},
		{"**/*.md", "", "Blogs/.hidden.md BlogsPrivate/d.md Blogs/b.md Blogs/x/c.md a.md"},
		{"Blogs/**", "", "Blogs/.hidden.md Blogs/e.txt Blogs/b.md Blogs/x/c.md"},
		{"Blogs/*.{md,txt}", "", "Blogs/.hidden.md Blogs/e.txt Blogs/b.md"},
		{"**/*.md", "Blogs", "Blogs/.hidden.md Blogs/b.md Blogs/x/c.md"},
		{"x/*.md", "Blogs", "Blogs/x/c.md"},
		{"../*.md", "Blogs", "a.md"},
		{b.dir + "/Blogs/x/*", "elsewhere", "Blogs/x/c.md"},
	} {
		got := strings.Join(strings.Fields(b.ok("Glob", in{"pattern": c.pattern, "path": c.path})), " ")
		if got != c.want {
			t.Errorf("%s in %q: %q, want %q", c.pattern, c.path, got, c.want)
		}
	}
	if got := b.ok("Glob", in{"pattern": "*.none"}); got != "No file below . matches *.none.\n" {
		t.Errorf("%q", got)
	}
	b.fails(core.Invalid, "Glob", in{"pattern": "[a"}, "not a glob")
	b.fails(core.Invalid, "Glob", in{"pattern": "*/../../x"}, "go up")
	b.fails(core.Invalid, "Glob", in{"pattern": strings.Repeat("*", 1001)}, "longer than 1000")
	b.fails(core.NotFound, "Glob", in{"pattern": "*", "path": "none"}, "none does not exist")
}

func TestOnlyTheFixedPartOfAGlobIsAskedFor(t *testing.T) {
	b := newBench(t, core.Vault)
	b.put("Guests/7/a.md", "x")
	for pattern, want := range map[string]string{"Guests/7/**/*.md": "Guests/7", "Guests/7/a.md": "Guests/7", "*": ".", "Guests/*/a.md": "Guests"} {
		raw, _ := json.Marshal(in{"pattern": pattern})
		if a, err := b.tools["Glob"].Touches(b.turn, raw); err != nil || len(a.Read) != 1 || a.Read[0] != want {
			t.Errorf("%s touches %v, %v", pattern, a.Read, err)
		}
	}
}

func TestSearchesShowPathsAsTheWorkingDirectoryNeedsThem(t *testing.T) {
	b := newBench(t, core.Vault)
	b.put("Guests/7/a.md", "word")
	b.put("Blogs/b.md", "word")
	d, err := b.turn.Vault.Dir("Guests/7")
	if err != nil {
		t.Fatal(err)
	}
	b.turn.Dir = d
	for _, path := range []string{"", "../../Blogs", b.dir + "/Blogs"} {
		name := strings.TrimSpace(b.ok("Glob", in{"pattern": "*", "path": path}))
		if got := b.ok("Read", in{"file_path": name}); got != "     1\tword\n" {
			t.Errorf("%q reads as %q", name, got)
		}
		if got := strings.TrimSpace(b.ok("Grep", in{"pattern": "word", "path": path})); got != name {
			t.Errorf("Grep says %q, Glob %q", got, name)
		}
	}
}

func TestGlobIsBounded(t *testing.T) {
	b := newBench(t, core.Vault)
	for i := range 350 {
		b.put(fmt.Sprintf("d/%03d.md", i), "x")
		b.dated() // none
		at := time.Unix(1_700_000_000+int64(i), 0)
		if err := os.Chtimes(filepath.Join(b.dir, fmt.Sprintf("d/%03d.md", i)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	got := strings.Split(strings.TrimSpace(b.ok("Glob", in{"pattern": "**"})), "\n")
	if len(got) != 100+1 || got[0] != "d/349.md" || got[99] != "d/250.md" || got[100] != "(250 more, older: narrow the pattern to see them)" {
		t.Errorf("%d lines: %q … %q", len(got), got[0], got[len(got)-1])
	}
}

func TestGrepFindsInEveryWayOfShowing(t *testing.T) {
	b := newBench(t, core.Vault)
	b.put("a.md", "one\nTwo\nthree\nfour\nfive\nsix\ntwo\n")
	b.put("s/b.txt", "two\r\nmore\r\n")
	b.put("s/c.go", "package two\n")
	b.put("bin.md", "two\x00")
	b.dated("a.md", "s/b.txt", "s/c.go")
	for _, c := range []struct {
		input in
		want  string
	}{
		{in{"pattern": "two"}, "s/c.go s/b.txt a.md"},
		{in{"pattern": "two", "head_limit": 1}, "s/c.go (only the first 1 are shown; go on with offset 1)"},
		{in{"pattern": "two", "head_limit": 1, "offset": 1}, "s/b.txt (only the first 1 are shown; go on with offset 2)"},
		{in{"pattern": "two", "head_limit": 0, "offset": 2}, "a.md"},
		{in{"pattern": "two", "output_mode": "count", "-i": true}, "a.md:2 s/b.txt:1 s/c.go:1"},
		{in{"pattern": "two", "glob": "*.{txt,go}"}, "s/c.go s/b.txt"},
		{in{"pattern": "two", "glob": "s/*.txt"}, "s/b.txt"},
		{in{"pattern": "two", "glob": "!*.md"}, "s/c.go s/b.txt"},
		{in{"pattern": "two", "type": "go"}, "s/c.go"},
		{in{"pattern": "two", "path": "s/b.txt", "output_mode": "content"}, "s/b.txt:1:two"},
		{in{"pattern": "two$", "path": "s", "output_mode": "content", "-n": false}, "s/b.txt:two s/c.go:package two"},
		{in{"pattern": "^two$", "output_mode": "content", "-n": "false"}, "a.md:two s/b.txt:two"},
		{in{"pattern": "(?i)two", "path": "a.md", "output_mode": "content", "-C": 1}, "a.md-1-one a.md:2:Two a.md-3-three -- a.md-6-six a.md:7:two"},
		{in{"pattern": "(?i)two", "path": "a.md", "output_mode": "content", "-A": 2, "-B": 2}, "a.md-1-one a.md:2:Two a.md-3-three a.md-4-four a.md-5-five a.md-6-six a.md:7:two"},
		{in{"pattern": "four.five", "path": "a.md", "output_mode": "content"}, "Nothing matches."},
		{in{"pattern": "four.five", "path": "a.md", "output_mode": "content", "multiline": true}, "a.md:4:four a.md:5:five"},
		{in{"pattern": "none"}, "Nothing matches."},
	} {
		got := strings.Join(strings.Split(strings.TrimSpace(b.ok("Grep", c.input)), "\n"), " ")
		if got != c.want {
			t.Errorf("%v:\n got %q\nwant %q", c.input, got, c.want)
		}
	}
	b.fails(core.Invalid, "Grep", in{"pattern": "a(?=b)"}, "RE2")
	b.fails(core.Invalid, "Grep", in{"pattern": "("}, "missing closing )")
	b.fails(core.Invalid, "Grep", in{"pattern": "a", "output_mode": "all"}, "one of content")
	b.fails(core.Invalid, "Grep", in{"pattern": "a", "type": "cobol"}, "type is one of c, cpp")
	b.fails(core.Invalid, "Grep", in{"pattern": "a", "-A": 101}, "at most 100")
	b.fails(core.Invalid, "Grep", in{"pattern": ""}, "pattern must have")
	b.fails(core.NotFound, "Grep", in{"pattern": "a", "path": "none"}, "none does not exist")
}

func TestGrepIsBoundedAndReportsWhatIsLeftOut(t *testing.T) {
	b := newBench(t, core.Vault)
	b.put("lines.txt", strings.Repeat("word "+strings.Repeat("x", 1000)+"\n", 1000))
	got := b.ok("Grep", in{"pattern": "word", "output_mode": "content", "head_limit": 0})
	if len(got) > 30_200 || !strings.Contains(got, "go on with offset") || strings.Count(got, "…") < 50 {
		t.Errorf("%d bytes, %q", len(got), got[len(got)-80:])
	}
	b.put("large.txt", strings.Repeat("word\n", (8<<20)/5+1))
	if got := b.ok("Grep", in{"pattern": "word"}); got != "lines.txt\n(files over 8 MiB that were left out: 1)\n" {
		t.Errorf("%q", got)
	}
}

func TestSearchesEndWithTheirContext(t *testing.T) {
	b := newBench(t, core.Vault)
	for i := range 50 {
		b.put(fmt.Sprint("f", i), strings.Repeat("line\n", 2000))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, raw := range map[string]string{"Glob": `{"pattern":"**"}`, "Grep": `{"pattern":"line"}`} {
		_, err := b.tools[name].Run(ctx, &tool.Call{Input: []byte(raw), Turn: b.turn, Access: tool.Access{Read: []string{"."}}})
		if err != context.Canceled {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := tool.Call{Input: []byte(`{"file_path":"new","content":"x"}`), Turn: b.turn, Access: tool.Access{Write: []string{"new"}}}
	if _, err := b.tools["Write"].Run(ctx, &w); err != context.Canceled {
		t.Errorf("Write: %v", err)
	}
}

// Asked for every hit, and nothing that is refused is named, counted or entered.
func TestSearchesNameNothingThatMayNotBeRead(t *testing.T) {
	b := newBench(t, core.Vault)
	for _, n := range []string{"open.md", ".env", "keys/id_rsa", "Private/deep/er/x.md", "Blogs/ok.md", "Blogs/no.md"} {
		b.put(n, "marker\n")
	}
	asked := map[string]bool{}
	b.turn.MayRead = func(name string) bool {
		asked[name] = true
		return name != ".env" && name != "keys/id_rsa" && name != "Private" && name != "Blogs/no.md"
	}
	for name, input := range map[string]in{
		"Glob": {"pattern": "**"}, "Grep": {"pattern": "marker"},
	} {
		got := b.ok(name, input)
		for _, secret := range []string{".env", "id_rsa", "Private", "no.md", "more", "left out"} {
			if strings.Contains(got, secret) {
				t.Errorf("%s names %s: %q", name, secret, got)
			}
		}
		if !strings.Contains(got, "open.md") || !strings.Contains(got, "Blogs/ok.md") {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name := range asked {
		if strings.HasPrefix(name, "Private/") {
			t.Errorf("a closed folder was entered: %s", name)
		}
	}
	for _, mode := range []string{"content", "count"} {
		if got := b.ok("Grep", in{"pattern": "marker", "output_mode": mode}); strings.Count(got, "\n") != 2 {
			t.Errorf("%s: %q", mode, got)
		}
	}
	b.fails(core.Denied, "Grep", in{"pattern": "marker", "path": "Private"}, "may not be searched")
	b.fails(core.Denied, "Glob", in{"pattern": "Private/*"}, "may not be searched")
	b.fails(core.Denied, "Grep", in{"pattern": "marker", "path": ".env"}, "may not be searched")
	// What is not there and may not be read sounds like what is there.
	b.turn.MayRead = func(string) bool { return false }
	b.fails(core.Denied, "Read", in{"file_path": "x"}, "x: this file may not be read here")
	b.fails(core.Denied, "Read", in{"file_path": ".env"}, ".env: this file may not be read here")
}

func TestHostileFileNamesStayOnOneLine(t *testing.T) {
	b := newBench(t, core.Vault)
	b.put("a\nFAKE.md", "word")
	for name, input := range map[string]in{"Glob": {"pattern": "*"}, "Grep": {"pattern": "word"}} {
		if got := b.ok(name, input); got != "\"a\\nFAKE.md\"\n" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
