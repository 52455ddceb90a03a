package inspect

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// A Writer is a sender as one bot knows them.
type Writer struct{ Bot, Sender string }

// HeardFrom returns when bots last received a message of each sender, by the time
// of the platform, as far back as messages are stored. Senders without one are
// missing. It runs one statement for any number of senders.
func (r *Reader) HeardFrom(ctx context.Context, people []Writer) (map[Writer]time.Time, error) {
	last := make(map[Writer]time.Time, len(people))
	if len(people) == 0 {
		return last, nil
	}
	args := make([]any, 0, 2*len(people))
	for _, w := range people {
		args = append(args, w.Bot, w.Sender)
	}
	var rows []struct{ Bot, Sender, At string }
	err := r.db.Select(ctx, &rows, `WITH who(bot, sender) AS (VALUES `+store.Tuples(len(people), 2)+`)
		SELECT bot, sender, coalesce((SELECT max(sent_at) FROM inbox WHERE inbox.bot = who.bot AND inbox.sender = who.sender AND kind = 'message' AND counts = 1), '') AS at FROM who`, args...)
	if err != nil {
		return nil, fmt.Errorf("last messages of people: %w", err)
	}
	for _, r := range rows {
		if r.At == "" {
			continue
		}
		if last[Writer{r.Bot, r.Sender}], err = core.ParseStamp(r.At); err != nil {
			return nil, fmt.Errorf("last messages of people: %w", err)
		}
	}
	return last, nil
}
