package doctor

import (
	"context"
	"fmt"
	"strings"

	"gatehouse/core/backup"
)

// Bounds of checkNames: entries of the vault that it reads, and names in its finding.
const (
	maxChecked  = 500_000
	maxBadNames = 5
)

// checkNames warns of files that a backup would leave out because of their names.
func checkNames(ctx context.Context, p Subject) []Finding {
	named, n, _, err := backup.Unstorable(ctx, p.Config.VaultPath, maxBadNames, maxChecked)
	if err != nil || n == 0 {
		return nil // the check of the vault explains why
	}
	text := fmt.Sprintf("%d files or folders cannot be in a backup: %s", n, strings.Join(named, ", "))
	if n > len(named) {
		text += fmt.Sprintf(" and %d more", n-len(named))
	}
	return []Finding{{"backup", Warn, text, "rename them"}}
}
