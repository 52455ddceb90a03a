package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth/visit"
)

// A SessionRow is a session as it is shown.
type SessionRow struct {
	ID        string    `json:"id"` // not its token, and nothing that opens it
	User      int64     `json:"user_id"`
	StartedAt time.Time `json:"started_at"`
	UsedAt    time.Time `json:"used_at"` // exact to a minute
	EndsAt    time.Time `json:"ends_at"` // unless it is used again
	Agent     string    `json:"agent"`   // what its browser states it is; hostile text
	Address   string    `json:"address"` // where it began
	csrf      string
}

// Of reports whether s is the session of p.
func (s SessionRow) Of(p Principal) bool { return p.csrf != "" && s.csrf == p.csrf }

// idOf names a session by its stored token, which is a hash already.
func idOf(token string) string {
	sum := sha256.Sum256([]byte("gatehouse session\x00" + token))
	return hex.EncodeToString(sum[:8])
}

// Sessions returns the sessions that have not ended, the last used first: of user, or of all for 0.
func (a *Admins) Sessions(ctx context.Context, user int64) (list []SessionRow, err error) {
	var rows []sessionRow
	if err := a.db.Select(ctx, &rows, `SELECT token, data FROM admin_sessions WHERE expiry > $1`, core.Stamp(a.clock.Now())); err != nil { // at most visit.Max
		return nil, fmt.Errorf("sessions: %w", err)
	}
	for _, r := range rows {
		var v visit.Visit
		if json.Unmarshal(r.Data, &v) != nil || user != 0 && v.User != user {
			continue
		}
		list = append(list, SessionRow{ID: idOf(r.Token), User: v.User, StartedAt: core.TimeOf(v.Started), UsedAt: core.TimeOf(v.Seen), EndsAt: v.Expiry(),
			Agent: v.Agent, Address: v.Address, csrf: v.CSRF})
	}
	core.Sort(list, func(a, b SessionRow) int { return b.UsedAt.Compare(a.UsedAt) })
	return list, nil
}

// EndSession ends one session of user, or with "" all, and returns how many there were.
func (a *Admins) EndSession(ctx context.Context, tx *store.Tx, user int64, id string) (int, error) {
	return a.end(ctx, tx, func(token string, v visit.Visit) bool { return v.User == user && (id == "" || idOf(token) == id) })
}
