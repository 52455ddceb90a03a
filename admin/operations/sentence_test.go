package operations

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// audited finds actions where they are given with who did it.
var audited = regexp.MustCompile(`(?:Audit|Did|did|act|decide|answer)\(.*"([a-z_]+\.[a-z_]+)"|"([a-z_]+\.[a-z_]+)", by\b`)

func TestEveryAuditedActionReadsAsASentence(t *testing.T) {
	found := 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range audited.FindAllStringSubmatch(string(b), -1) {
			found++
			if action := m[1] + m[2]; sentences[action] == "" {
				t.Errorf("%s writes the action %s, which has no sentence", path, action)
			}
		}
		return err
	})
	if err != nil || found < 50 {
		t.Errorf("%d actions were found: %v", found, err)
	}
}
