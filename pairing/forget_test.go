package pairing

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/store"
)

func (w *world) forget(tx *store.Tx, user int64) error {
	p, err := w.gate.Person(ctx, tx, strconv.FormatInt(user, 10))
	if err != nil {
		return err
	}
	return w.gate.Forget(ctx, tx, p, panel)
}

// A person is found by number or by a platform's id, let in, turned away or
// blocked, and is afterwards unknown.
func TestWhoeverIsForgottenIsAStrangerWithoutATrace(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	id, _, _ := w.gate.People.User(ctx, w.db, peer("7"))
	w.put(dm("tg2", "7", "also here"))
	w.put(dm("tg", "8", "a stranger"))
	w.ok(w.gate.People.BlockUser(ctx, "tg", "telegram", "9", panel))
	for i, ref := range []string{strconv.FormatInt(id, 10), "telegram:8", "telegram:9"} {
		want := strconv.Itoa(7 + i)
		p, err := w.gate.Person(ctx, w.db, ref)
		if err != nil || len(p.Identities) != 1 || p.Identities[0].ID != want {
			t.Fatalf("%s: %+v %v", ref, p, err)
		}
		w.ok(w.db.Tx(ctx, func(tx *store.Tx) error { return w.gate.Forget(ctx, tx, p, panel) }))
		for _, table := range []string{"pairing_requests", "identities", "blocks"} {
			var n int
			w.ok(w.db.Get(ctx, &n, `SELECT count(*) FROM `+table+` WHERE platform_user_id = $1`, want))
			if n != 0 {
				t.Errorf("%s: %d rows of %s", ref, n, table)
			}
		}
		if got := w.trust(dm("tg", want, "x")); got != core.Stranger {
			t.Errorf("%s runs at %v", ref, got)
		}
	}
	for ref, kind := range map[string]core.Kind{"telegram:999": core.NotFound, "999": core.NotFound, "Ada": core.Invalid, "": core.Invalid} {
		_, err := w.gate.Person(ctx, w.db, ref)
		wantKind(t, err, kind)
	}
	for ref, want := range map[string]string{"telegram:999": "no person has the account telegram:999", "999": "no person has the number 999"} {
		if _, err := w.gate.Person(ctx, w.db, ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", ref, err, want)
		}
	}
	if _, err := w.gate.Person(ctx, w.db, "-1"); err == nil || !strings.Contains(err.Error(), "telegram:12345678") {
		t.Errorf("the error does not say how: %v", err)
	}
}

// What a block keeps of the access that it took belongs to the user's data.
func TestAnExportNamesTheAccessThatABlockTook(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	id, _, _ := w.gate.People.User(ctx, w.db, peer("7"))
	w.ok(w.gate.People.BlockUser(ctx, "tg", "telegram", "7", panel))
	exported := false
	for _, x := range (Tables{}).Exports() {
		if x.Name != "blocks" {
			continue
		}
		exported = true
		var rows []struct {
			Platform, Bot, At, Took string
			ID                      string `db:"platform_user_id"`
		}
		w.ok(w.db.Select(ctx, &rows, x.Query, id, 10))
		if len(rows) != 1 || rows[0].ID != "7" || !strings.Contains(rows[0].Took, `"vault"`) {
			t.Errorf("exported: %+v", rows)
		}
	}
	if !exported {
		t.Error("no export has the blocks")
	}
}

func TestWhoeverIsShutOutHasNoAccessAndTheirRunsAreStopped(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	id, _, _ := w.gate.People.User(ctx, w.db, peer("7"))
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error { return w.gate.People.ShutOut(ctx, tx, id) }))
	if got := w.trust(dm("tg", "7", "x")); got != core.Stranger {
		t.Errorf("they run at %v", got)
	}
	for _, bot := range []string{"tg", core.APIBot} {
		if want := bot + "/" + strconv.FormatInt(id, 10); !slices.Contains(w.runs.runs, want) {
			t.Errorf("%s is not stopped: %v", want, w.runs.runs)
		}
	}
}
