package files

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/vault"
)

// A bench is a vault with files, a turn and the tools.
type bench struct {
	t     testing.TB
	dir   string
	turn  *tool.Turn
	tools map[string]tool.Tool
	files *files
}

func newBench(t testing.TB, trust core.Trust) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "vault")
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	at, err := v.Dir("")
	if err != nil {
		t.Fatal(err)
	}
	all := func(string) bool { return true }
	b := &bench{t: t, dir: dir, files: newFiles(), tools: map[string]tool.Tool{},
		turn: &tool.Turn{User: 7, Trust: trust, Session: "s", Run: "r", Vault: v, Dir: at, MayRead: all, MayWrite: all}}
	for _, x := range b.files.tools() {
		b.tools[x.Name] = x
	}
	return b
}

// put makes a file; its folders too.
func (b *bench) put(name, text string) string {
	b.t.Helper()
	p := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *bench) has(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

type in map[string]any

// call does what the loop does: ask what is touched, then run.
func (b *bench) call(name string, input in) (tool.Result, error) {
	b.t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		b.t.Fatal(err)
	}
	x := b.tools[name]
	access, err := x.Touches(b.turn, raw)
	if err != nil {
		return tool.Result{}, err
	}
	return x.Run(context.Background(), &tool.Call{ID: "1", Input: raw, Turn: b.turn, Access: access, Progress: func(string) {}})
}

func (b *bench) ok(name string, input in) string {
	b.t.Helper()
	r, err := b.call(name, input)
	if err != nil || r.IsError {
		b.t.Fatalf("%s %v: %v %s", name, input, err, r.Text)
	}
	return r.Text
}

// fails wants an error of a kind that says all of words.
func (b *bench) fails(kind core.Kind, name string, input in, words ...string) {
	b.t.Helper()
	r, err := b.call(name, input)
	if core.KindOf(err) != kind {
		b.t.Fatalf("%s %v: kind %v, want %v: %v %q", name, input, core.KindOf(err), kind, err, r.Text)
	}
	for _, w := range words {
		if !strings.Contains(core.TextOf(err), w) {
			b.t.Errorf("%s %v: %q does not say %q", name, input, core.TextOf(err), w)
		}
	}
}

func TestTheToolsAreWellFormed(t *testing.T) {
	for _, x := range New() {
		if err := tool.Check(x); err != nil {
			t.Error(err)
		}
	}
}

func TestFilesAreWrittenReadChangedAndFound(t *testing.T) {
	b := newBench(t, core.Vault)
	b.ok("Write", in{"file_path": "Notes/new/a.md", "content": "one\ntwo\nthree\n"})
	if got := b.ok("Read", in{"file_path": "Notes/new/a.md", "offset": "2", "limit": 1}); got != "     2\ttwo\n\n(there is more: go on with offset 3)" {
		t.Errorf("read %q", got)
	}
	b.ok("Edit", in{"file_path": "Notes/new/a.md", "old_string": "two", "new_string": "zwei"})
	if got := b.has("Notes/new/a.md"); got != "one\nzwei\nthree\n" {
		t.Errorf("file is %q", got)
	}
	if got := b.ok("Glob", in{"pattern": "**/*.md"}); got != "Notes/new/a.md\n" {
		t.Errorf("glob %q", got)
	}
	if got := b.ok("Grep", in{"pattern": "ZW.I", "-i": true, "output_mode": "content"}); got != "Notes/new/a.md:2:zwei\n" {
		t.Errorf("grep %q", got)
	}
}
