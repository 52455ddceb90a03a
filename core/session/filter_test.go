package session_test

import (
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/session"
)

// On PostgreSQL too: each condition is one that both databases understand.
func TestSearch_FiltersByTrustAndTimes(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	h.finish(sess.ID, session.Finish{Messages: 2, Title: "Green tea", At: h.clock.Now()})
	for name, c := range map[string]struct {
		f    session.Filter
		want int
	}{
		"its trust":  {session.Filter{Trusts: []core.Trust{core.Sandboxed, core.Vault, core.Full}}, 1},
		"since then": {session.Filter{Since: h.clock.Now()}, 1},
		"since":      {session.Filter{Since: h.clock.Now().Add(time.Hour)}, 0},
		"until":      {session.Filter{Until: h.clock.Now().Add(time.Hour)}, 1},
		"until then": {session.Filter{Until: h.clock.Now().Add(-time.Hour)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.f.All, c.f.Limit, c.f.Search = true, 10, "tea"
			found, _, err := h.Search(t.Context(), c.f)
			if err != nil || len(found) != c.want {
				t.Errorf("%d sessions, %v, want %d", len(found), err, c.want)
			}
		})
	}
}
