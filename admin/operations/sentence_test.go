package operations

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/admin/page"
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

func TestEveryAuditedActionIsFoundByATopicOfTheFilter(t *testing.T) {
	for action := range sentences {
		topic, _, _ := strings.Cut(action, ".")
		if !slices.ContainsFunc(auditTopics, func(c page.Choice) bool { return c.Value == topic && c.Label != "" }) {
			t.Errorf("%s is recorded, and the filter does not offer %q", action, topic)
		}
	}
	for _, c := range auditTopics {
		found := c.Value == ""
		for action := range sentences {
			found = found || strings.HasPrefix(action, c.Value+".")
		}
		if !found {
			t.Errorf("the filter offers %q, of which nothing is recorded", c.Value)
		}
	}
}
