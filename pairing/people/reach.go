package people

import (
	"context"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Reach reports whether the bot may write to a chat unasked: to a user who
// has been let in and is not blocked, in the direct chat they last wrote from,
// and to a group that is enabled. The topics of one direct chat count as one. A user
// let in by a policy alone has not been asked. If whose is set, only that person's own
// direct chats are reached.
func (s *Store) Reach(ctx context.Context, q store.Queryer, to core.Address, whose *int64) (ok bool, err error) {
	if to.Group() {
		if whose != nil {
			return false, nil
		}
		err = q.Get(ctx, &ok, `SELECT EXISTS (SELECT 1 FROM places WHERE bot = $1 AND place = $2 AND enabled = 1)`, to.Bot, to.Place)
		if err != nil {
			return false, fmt.Errorf("reach a group: %w", err)
		}
		return ok, nil
	}
	whole := to.Chat
	if to.Thread != "" {
		whole = strings.TrimSuffix(to.Chat, "/"+to.Thread)
	}
	query := `SELECT EXISTS (SELECT 1 FROM access a WHERE a.bot = $1 AND (a.chat = $2 OR substr(a.chat, 1, length($3)) = $3) AND a.scope = 'dm' AND (a.expires_at = '' OR a.expires_at > $4)
		AND NOT EXISTS (SELECT 1 FROM identities i JOIN blocks x ON x.platform = i.platform AND x.platform_user_id = i.platform_user_id
			WHERE i.user_id = a.user_id AND x.bot IN (a.bot, '*'))`
	args := []any{to.Bot, whole, whole + "/", core.Stamp(s.clock.Now())}
	if whose != nil {
		query, args = query+` AND a.user_id = $5`, append(args, *whose)
	}
	if err = q.Get(ctx, &ok, query+`)`, args...); err != nil {
		return false, fmt.Errorf("reach a person: %w", err)
	}
	return ok, nil
}
