package pairing

import (
	"reflect"
	"testing"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/adopt"
)

func TestAdoptAllowedGrantsAccessToThoseWhoWereNotDeniedLater(t *testing.T) {
	w := newWorld(t)
	request := func(id, user, status, resolved string) {
		w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO pairing_requests (id, platform, platform_user_id, platform_chat_id, status, created_at, resolved_at, bot, scope, place, expires_at)
				VALUES ($1, 'telegram', $2, $2, $3, '2026-01-01T00:00:00.000000Z', nullif($4, ''), 'tg', 'dm', '', '9999-01-01T00:00:00.000000Z')`, id, user, status, resolved)
			return err
		}))
	}
	request("a1", "1", "approved", "2026-01-02T00:00:00.000000Z")
	request("a2", "1", "denied", "2026-01-03T00:00:00.000000Z")
	request("b1", "2", "denied", "2026-01-02T00:00:00.000000Z")
	request("b2", "2", "approved", "2026-01-03T00:00:00.000000Z")
	request("c1", "3", "pending", "")
	w.ok(w.gate.People.BlockUser(ctx, "tg", "telegram", "5", panel))
	var got adopt.Result
	take := func(ids ...string) {
		w.ok(w.db.Tx(ctx, func(tx *store.Tx) (err error) {
			got, err = adopt.Users{People: w.gate.People}.AdoptAllowed(ctx, tx, "tg", "telegram", ids, core.Vault)
			return err
		}))
	}
	take("1", "2", "3", "4", "4", "5")
	if want := (adopt.Result{Admitted: 3, Refused: []string{"1", "5"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	var have []string
	w.ok(w.db.Select(ctx, &have, `SELECT i.platform_user_id || ' ' || a.trust_level || ' ' || a."by" FROM access a JOIN identities i ON i.user_id = a.user_id WHERE a.bot = 'tg' ORDER BY 1`))
	if want := []string{"2 vault the original system", "3 vault the original system", "4 vault the original system"}; !reflect.DeepEqual(have, want) {
		t.Errorf("access: %q", have)
	}
	var status string
	w.ok(w.db.Get(ctx, &status, `SELECT status FROM pairing_requests WHERE id = 'c1'`))
	if status != "approved" {
		t.Errorf("the request of somebody who was let in is %s", status)
	}
	take("4")
	if want := (adopt.Result{Had: 1, Unlisted: []string{"2", "3"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("again: %+v, want %+v", got, want)
	}
	if _, err := w.gate.People.Revoke(ctx, "tg", "4", panel); err != nil {
		t.Fatal(err)
	}
	take("4")
	if want := (adopt.Result{Refused: []string{"4"}, Unlisted: []string{"2", "3"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("after a revocation: %+v, want %+v", got, want)
	}
}
