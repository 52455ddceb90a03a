package session

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/vault"

	"time"
)

// meanwhile lets something happen before the n-th question.
type meanwhile struct {
	store.Queryer
	n     int
	event func()
}

func (m *meanwhile) Get(ctx context.Context, dest any, query string, args ...any) error {
	if m.n--; m.n == 0 {
		m.event()
	}
	return m.Queryer.Get(ctx, dest, query, args...)
}

// Two requests of one person may begin a session under one id: whoever looks
// while the other's turn makes it finds that one, and not another.
func TestASessionThatIsMadeWhileItIsLookedForIsTheOneThatIsFound(t *testing.T) {
	const id = "0b7e1d70-9d0f-4d0c-9a51-3f0f3f0f3f0f"
	for n := 1; n <= 4; n++ {
		for _, user := range []int64{core.Operator, 7} {
			clock := coretest.NewClock(time.Time{})
			v, err := vault.Open(filepath.Join(t.TempDir(), "vault"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = v.Close() })
			db := storetest.Open(t, clock)
			s := New(Options{DB: db, Vault: v, Clock: clock})
			t.Cleanup(func() { _ = s.Close() })
			made := false
			q := &meanwhile{db, n, func() {
				made = true
				err := db.Tx(t.Context(), func(tx *store.Tx) error {
					_, _, _, err := s.Resolve(t.Context(), tx, Ref{Address: core.Address{Bot: core.APIBot}, User: user, Trust: core.Vault, Options: &core.Options{Session: id}})
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}}
			p, err := s.locate(t.Context(), q, Ref{User: user}, id)
			if err != nil || p.id != id || p.collision || strings.Contains(p.id, "again") {
				t.Errorf("made before question %d (%v): %+v, %v", n, made, p.id, err)
			}
		}
	}
}
