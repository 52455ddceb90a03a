package library

import (
	"context"

	"gatehouse/core/index/search"
	"gatehouse/core/llm"
)

// Files returns at most limit paths of files, and days of journals, with words that begin
// with one of stems, the best first, among those that sender may read; none where the vault
// is not indexed, or not to its end (quote.Index).
func (l *Library) Files(ctx context.Context, sender llm.Sender, stems []string, limit int) ([]string, error) {
	if !l.o.On || !l.compared() { // half of an index would name the wrong files
		return nil, nil
	}
	may := func(name string) bool { return l.o.MayRead(sender.Trust, sender.User, name) }
	return l.Documents.Any(ctx, stems, search.Reader{User: sender.User, Trust: sender.Trust, MayRead: may}, limit)
}
