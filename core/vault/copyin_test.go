package vault_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/vault"
)

func TestACopyIsMadeOnceWholeOrNotAtAll(t *testing.T) {
	v, err := vault.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if err := v.CopyIn("a/b.jsonl", strings.NewReader("longer"), 5); core.KindOf(err) != core.Invalid {
		t.Error("too long:", err)
	}
	for _, text := range []string{"first", "other"} {
		if err := v.CopyIn("a/b.jsonl", strings.NewReader(text), 5); err != nil {
			t.Fatal(err)
		}
	}
	raw, _ := os.ReadFile(filepath.Join(v.Path(), "a", "b.jsonl"))
	if all, _ := os.ReadDir(filepath.Join(v.Path(), "a")); string(raw) != "first" || len(all) != 1 {
		t.Errorf("%q, %d files", raw, len(all))
	}
}
