package session

import (
	"context"
	"fmt"
)

// Bounds of CommonTags.
const (
	commonTags = 200  // tags that are checked, in their order
	CountTo    = 1000 // counts stop there
)

// commonQuery leaps through the index from tag to tag and counts of each what
// is bounded, so that it reads as little with a million tagged sessions.
const commonQuery = `WITH RECURSIVE t(tag, n) AS (
		SELECT min(tag), 1 FROM session_tags
		UNION ALL
		SELECT (SELECT min(s.tag) FROM session_tags s WHERE s.tag > t.tag), t.n + 1 FROM t WHERE t.tag IS NOT NULL AND t.n < $1
	)
	SELECT tag, (SELECT count(*) FROM (SELECT 1 FROM session_tags s WHERE s.tag = t.tag LIMIT $2) few) AS count
	FROM t WHERE tag IS NOT NULL ORDER BY count DESC, tag`

// CommonTags returns everyone's tags for a choice among them, the first 200 of
// the alphabet, those of most sessions first; counts end at CountTo. Tags
// counts exactly and reads them all.
func (s *Store) CommonTags(ctx context.Context) ([]TagCount, error) {
	var list []TagCount
	if err := s.db.Select(ctx, &list, commonQuery, commonTags, CountTo); err != nil {
		return nil, fmt.Errorf("common tags: %w", err)
	}
	return list, nil
}
