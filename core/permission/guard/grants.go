package guard

import (
	"context"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/permission"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Bounds of what is kept and listed.
const (
	maxGrants = 200 // tool grants of one user in one session at one level
	maxListed = 1000
)

// keep stores a grant; one that is already is left as it is.
func keep(ctx context.Context, tx *store.Tx, a ask.Ask, body ask.Payload, pattern string, by core.Actor) error {
	if body.Session == "" {
		return texts.Error(core.Invalid, "grant_nowhere")
	}
	var n int
	err := tx.Get(ctx, &n, `SELECT count(*) FROM tool_grants WHERE session_id = $1 AND user_id = $2 AND trust = $3`, body.Session, body.User, body.Trust)
	if err != nil {
		return fmt.Errorf("count grants: %w", err)
	}
	if n >= maxGrants {
		return texts.Error(core.Conflict, "grant_many", texts.With{"N": n})
	}
	_, err = tx.Exec(ctx, `INSERT INTO tool_grants (id, session_id, user_id, trust, kind, pattern, ask, granted_by, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
		ask.NewID(), body.Session, body.User, body.Trust, body.Request.Kind, pattern, a.ID, by.String(), core.Stamp(tx.Time()))
	if err != nil {
		return fmt.Errorf("keep grant: %w", err)
	}
	return nil
}

// Grants returns the grants of a session ("" all) and user (0 all), newest first,
// at most 1000.
func (g *Guard) Grants(ctx context.Context, session string, user int64) ([]permission.GrantRow, error) {
	rows := []permission.GrantRow{}
	err := g.o.DB.Select(ctx, &rows, `SELECT id, session_id, user_id, trust, kind, pattern, granted_by, created_at FROM tool_grants
		WHERE ($1 = '' OR session_id = $1) AND ($2 = 0 OR user_id = $2) ORDER BY created_at DESC, id LIMIT $3`, session, user, maxListed)
	if err != nil {
		return nil, fmt.Errorf("grants: %w", err)
	}
	for i := range rows {
		rows[i].At, _ = core.ParseStamp(rows[i].Created)
	}
	return rows, nil
}

// Revoke takes a grant back: from the next call on it covers nothing. NotFound
// when it does not be. The caller has made sure that by is owner or admin.
func (g *Guard) Revoke(ctx context.Context, id string, by core.Actor) error {
	return g.o.DB.Tx(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, `DELETE FROM tool_grants WHERE id = $1`, id)
		if err != nil {
			return fmt.Errorf("revoke grant: %w", err)
		}
		if n == 0 {
			return core.Errorf(core.NotFound, "there is no such grant any more")
		}
		return store.Audit(ctx, tx, by, "grant.revoke", id, nil)
	})
}

// Lapse removes what a user was granted in a session at a level since a time:
// the level was given for a time, which has ended.
func (g *Guard) Lapse(ctx context.Context, tx *store.Tx, session string, user int64, trust core.Trust, since time.Time) error {
	_, err := tx.Exec(ctx, `DELETE FROM tool_grants WHERE session_id = $1 AND user_id = $2 AND trust = $3 AND created_at >= $4`,
		session, user, trust, core.Stamp(since))
	if err != nil {
		return fmt.Errorf("end grants: %w", err)
	}
	return nil
}

// Forget removes what a user was granted.
func (g *Guard) Forget(ctx context.Context, tx *store.Tx, user int64) error {
	_, err := tx.Exec(ctx, `DELETE FROM tool_grants WHERE user_id = $1`, user)
	return err
}

// ForgetSession removes what was granted in a session that is deleted.
func (g *Guard) ForgetSession(ctx context.Context, tx *store.Tx, session string) error {
	_, err := tx.Exec(ctx, `DELETE FROM tool_grants WHERE session_id = $1`, session)
	return err
}
