package files

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// changes returns what a call would change, and a function that runs it as approved.
func (b *bench) changes(name string, input in) (tool.Change, func() error, error) {
	b.t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		b.t.Fatal(err)
	}
	x := b.tools[name]
	access, err := x.Touches(b.turn, raw)
	if err != nil {
		b.t.Fatal(err)
	}
	c := &tool.Call{ID: "1", Input: raw, Turn: b.turn, Access: access, Progress: func(string) {}}
	change, err := x.Change(context.Background(), c)
	c.Shown = change.State
	return change, func() error {
		_, err := x.Run(context.Background(), c)
		return err
	}, err
}

func TestChangeReturnsTheTextBeforeAndAfterACall(t *testing.T) {
	b := newBench(t, core.Vault)
	b.put("a.md", "one\ntwo\n")
	b.ok("Read", in{"file_path": "a.md"})
	for _, c := range []struct {
		name          string
		input         in
		before, after string
	}{
		{"Write", in{"file_path": "new.md", "content": "x\n"}, "-", "x\n"},
		{"Edit", in{"file_path": "newer.md", "old_string": "", "new_string": "y\n"}, "-", "y\n"},
		{"Edit", in{"file_path": "a.md", "old_string": "two", "new_string": "2"}, "one\ntwo\n", "one\n2\n"},
		{"Write", in{"file_path": "a.md", "content": "all\n"}, "one\n2\n", "all\n"},
	} {
		change, run, err := b.changes(c.name, c.input)
		if err != nil || change.After != c.after || (change.Before == nil) != (c.before == "-") || change.Before != nil && *change.Before != c.before {
			t.Errorf("%s %v: %+v %v", c.name, c.input, change, err)
		}
		if err := run(); err != nil || b.has(c.input["file_path"].(string)) != c.after {
			t.Errorf("%s %v: %v, the file: %q", c.name, c.input, err, b.has(c.input["file_path"].(string)))
		}
	}
}

func TestAnApprovedCallWritesOnlyTheFileThatWasShown(t *testing.T) {
	for _, c := range []struct {
		name  string
		input in
		put   string // before the call is shown; "" is no file
		then  string
	}{
		{"Edit", in{"file_path": "a.md", "old_string": "two", "new_string": "2"}, "one\ntwo\n", "ONE\ntwo\n"},
		{"Edit", in{"file_path": "a.md", "old_string": "", "new_string": "x"}, "", "someone else's\n"},
		{"Edit", in{"file_path": "a.md", "old_string": "", "new_string": "x"}, "", ""},
		{"Write", in{"file_path": "a.md", "content": "x"}, "", "someone else's\n"},
	} {
		b := newBench(t, core.Vault)
		if c.put != "" {
			b.put("a.md", c.put)
		}
		_, run, err := b.changes(c.name, c.input)
		if err != nil {
			t.Fatal(err)
		}
		b.put("a.md", c.then)
		if err := run(); core.KindOf(err) != core.Conflict || b.has("a.md") != c.then {
			t.Errorf("%s %v: %v, the file: %q", c.name, c.input, err, b.has("a.md"))
		}
	}
	// A file that was read and has the same size and time, but another content.
	b := newBench(t, core.Vault)
	p := b.put("a.md", "one\n")
	b.ok("Read", in{"file_path": "a.md"})
	st, err := os.Stat(p)
	if err != nil {
		t.Fatal(err)
	}
	_, run, _ := b.changes("Write", in{"file_path": "a.md", "content": "x"})
	b.put("a.md", "two\n")
	if err := os.Chtimes(p, st.ModTime(), st.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := run(); core.KindOf(err) != core.Conflict || b.has("a.md") != "two\n" {
		t.Errorf("%v, the file: %q", err, b.has("a.md"))
	}
}

func TestChangeExplainsWhyACallWouldFailAndReadsNothingThatIsForbidden(t *testing.T) {
	b := newBench(t, core.Vault)
	b.put("a.md", "one\n")
	b.put("bin", "\x00\x01")
	b.put("big.md", strings.Repeat("x", maxEdit+1))
	for _, c := range []struct {
		name  string
		input in
		want  string
	}{
		{"Edit", in{"file_path": "a.md", "old_string": "two", "new_string": "2"}, "would fail: old_string is not in the file"},
		{"Edit", in{"file_path": "none.md", "old_string": "two", "new_string": "2"}, "does not exist"},
		{"Edit", in{"file_path": "bin", "old_string": "two", "new_string": "2"}, "binary"},
		{"Write", in{"file_path": "big.md", "content": "2"}, "at most"},
	} {
		change, _, err := b.changes(c.name, c.input)
		if err == nil || !strings.Contains(core.TextOf(err), c.want) || change.State == "" {
			t.Errorf("%s %v: %v, state %q", c.name, c.input, err, change.State)
		}
	}
	b.turn.MayRead = func(string) bool { return false }
	if change, _, err := b.changes("Write", in{"file_path": "a.md", "content": "2"}); core.KindOf(err) != core.Denied || change.Before != nil {
		t.Errorf("%+v %v", change, err)
	}
}
