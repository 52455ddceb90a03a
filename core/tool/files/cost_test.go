package files

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// What a stranger's model writes must not cost the gateway its memory or time.
func TestWhatAModelWritesCostsBoundedTimeAndMemory(t *testing.T) {
	b := newBench(t, core.Vault)
	b.put("many.txt", strings.Repeat("a", 1<<20))
	b.fails(core.TooLarge, "Edit", in{"file_path": "many.txt", "old_string": "a", "new_string": strings.Repeat("b", 1<<20), "replace_all": true}, "would grow to")
	for name, input := range map[string]in{
		"Read":  {"file_path": strings.Repeat("a/", 1<<20)},
		"Write": {"file_path": strings.Repeat("a/", 1<<20) + "x", "content": ""},
		"Edit":  {"file_path": strings.Repeat("a/", 1<<20) + "x", "old_string": "a", "new_string": ""},
		"Glob":  {"pattern": "*", "path": strings.Repeat("a/", 1<<20)},
		"Grep":  {"pattern": "a", "path": strings.Repeat("a/", 1<<20)},
	} {
		b.fails(core.Invalid, name, input, "longer than 4096 bytes")
	}
	b.fails(core.Invalid, "Grep", in{"pattern": strings.Repeat("[a-z]{1000}", 90)}, "repeats too much")
	b.fails(core.Invalid, "Grep", in{"pattern": strings.Repeat("a", 1001)}, "1 to 1000 bytes")

	endless := b.put("endless.txt", strings.Repeat("text ", 2000))
	if err := os.Truncate(endless, 1<<40); err != nil { // a hole, which takes no space
		t.Skip("this disk holds no file of 1 TiB: ", err)
	}
	if got := b.ok("Read", in{"file_path": "endless.txt"}); !strings.Contains(got, "only the first 256 MiB") || len(got) > maxOutput {
		t.Errorf("%d bytes, %q", len(got), got[max(0, len(got)-200):])
	}
	if got := b.ok("Grep", in{"pattern": "text"}); !strings.Contains(got, "over 8 MiB that were left out: 1") {
		t.Errorf("%q", got)
	}
}

// Expressions that look at a long text again and again end with their context.
func TestAnExpressionEndsWithItsContext(t *testing.T) {
	b := newBench(t, core.Vault)
	b.put("x.txt", strings.Repeat("x\n", 4<<20))
	b.put("long.txt", strings.Repeat("x", 8<<20))
	for name, raw := range map[string]string{
		"quadratic": `{"path":"x.txt","pattern":"(?s)x.*y|x","multiline":true,"output_mode":"count"}`,
		"long line": `{"path":"long.txt","pattern":"(x?){600}y","output_mode":"count"}`,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		began := time.Now()
		_, err := b.tools["Grep"].Run(ctx, &tool.Call{Input: []byte(raw), Turn: b.turn, Access: tool.Access{Read: []string{strings.Fields(strings.Split(raw, `"`)[3])[0]}}})
		if took := time.Since(began); err == nil || took > 20*time.Second {
			t.Errorf("%s: %v after %v", name, err, took)
		}
		cancel()
	}
}

func TestFoldersThatAreTooDeepAreReported(t *testing.T) {
	b := newBench(t, core.Vault)
	b.put(filepath.Join(strings.Repeat("d/", 64+2), "deep.md"), "x")
	b.put(filepath.Join(strings.Repeat("d/", 64), "high.md"), "x")
	got := b.ok("Glob", in{"pattern": "**/*.md"})
	if strings.Contains(got, "deep.md") || !strings.Contains(got, "high.md") || !strings.Contains(got, "more than 64 deep were left out") {
		t.Errorf("%q", got)
	}
}

func TestCallsLeaveNoFileOpen(t *testing.T) {
	b := newBench(t, core.Full)
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("this system does not tell which files are open")
		}
		return len(list)
	}
	b.put("a.md", "text\n")
	outside := t.TempDir()
	round := func() {
		for name, input := range map[string]in{
			"Read": {"file_path": "a.md"}, "Write": {"file_path": "n/e/w.md", "content": "x"}, "Edit": {"file_path": "a.md", "old_string": "none", "new_string": "x"},
			"Glob": {"pattern": "**", "path": outside}, "Grep": {"pattern": "text"},
		} {
			_, _ = b.call(name, input)
		}
		for _, p := range []string{"none/none", "a.md/x", outside, outside + "/none", "/proc/self/environ", "n"} {
			_, _ = b.call("Read", in{"file_path": p})
			_, _ = b.call("Write", in{"file_path": p, "content": "x"})
			_, _ = b.call("Grep", in{"pattern": "x", "path": p})
		}
	}
	round()
	before := count()
	for range 50 {
		round()
	}
	if after := count(); after > before+10 { // other tests' own may come and go
		t.Errorf("%d files were open, and now %d", before, after)
	}
}
