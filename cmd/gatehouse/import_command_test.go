package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The command reports what it brought in, writes nothing with --dry-run, and ends with exit
// code 1 where something is left out.
func TestImport_OnTheCommandLineReportsAndEndsWithOneWhereSomethingIsLeftOut(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	h.serve(nil)
	good, bad := filepath.Join(h.dir, "good.json"), filepath.Join(h.dir, "bad.json")
	const tea = `{"uuid":"c1","name":"Green tea","chat_messages":[{"uuid":"m","sender":"human","text":"How long does green tea brew?"}]}`
	for name, text := range map[string]string{good: "[" + tea + "]", bad: `[{"uuid":"c2","name":"Mint","chat_messages":[{"uuid":"n","sender":"human","text":"And mint?"}]},{"uuid":"c3","chat_messages":7}]`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found := func() bool {
		kept, _ := filepath.Glob(filepath.Join(h.vault(), ".claude", "projects", "*", "*.jsonl"))
		for _, name := range kept {
			if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), "green tea brew") {
				return true
			}
		}
		return false
	}
	if code, out, errs := h.run("import", "--dry-run", good); code != exitClean || !strings.Contains(out, "1") || found() {
		t.Errorf("a dry run: %d %s%s", code, out, errs)
	}
	code, out, errs := h.run("import", "--json", good)
	var said struct {
		Imports []struct {
			State  string
			Report struct{ Failed int }
		}
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil || code != exitClean || len(said.Imports) != 1 || said.Imports[0].State != "done" || said.Imports[0].Report.Failed != 0 || !found() {
		t.Errorf("%d %s%s: %v", code, out, errs, err)
	}
	if code, out, errs := h.run("import", bad); code != exitFailure || !strings.Contains(errs, "conversation 2") {
		t.Errorf("one is left out: %d %s%s", code, out, errs)
	}
	if code, out, errs := h.run("import", filepath.Join(h.dir, "none.zip")); code != exitFailure || !strings.Contains(errs, "none.zip") {
		t.Errorf("no such file: %d %s%s", code, out, errs)
	}
}
