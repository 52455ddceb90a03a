package pairing

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/bots"
	"gatehouse/pairing/people"
)

func (w *world) everyone() (byName map[string]people.Listed, list []people.Listed) {
	w.t.Helper()
	list, err := w.gate.People.Everyone(ctx, 10)
	w.ok(err)
	byName = map[string]people.Listed{}
	for _, l := range list {
		byName[l.Name] = l
	}
	return byName, list
}

func TestEveryoneIsListedWithRoleTrustAndState(t *testing.T) {
	w := newWorld(t)
	w.ok(w.gate.People.EnsureOperator(ctx))
	if _, list := w.everyone(); len(list) != 1 || list[0].User != core.Operator || list[0].Role != core.RoleOwner || list[0].State != people.NoAccess {
		t.Fatalf("before anyone is there: %+v", list)
	}
	user := w.linked() // vault on tg, sandboxed on dc
	w.admit("tg", "8", core.Sandboxed)
	w.admit("tg", "9", core.Vault)
	w.claim("tg", "1")
	w.ok(w.gate.People.BlockUser(ctx, "*", "telegram", "9", panel))
	by, list := w.everyone()
	if len(list) != 4 || list[0].User != core.Operator || list[0].Name != "P1" {
		t.Fatalf("%+v", list)
	}
	if l := by["P7"]; l.User != user || l.State != people.HasAccess || l.Trust != "vault" || len(l.Accounts) != 2 || l.Accounts[0] != (people.ListedAccount{Platform: "discord", ID: "70", Name: "P on Discord"}) || len(l.Access) != 2 {
		t.Errorf("on two platforms: %+v", l)
	}
	if l := by["P8"]; l.State != people.HasAccess || l.Trust != "sandboxed" || l.Role != core.RoleGuest {
		t.Errorf("sandboxed: %+v", l)
	}
	if l := by["P9"]; l.State != people.IsBlocked || l.Trust != "" {
		t.Errorf("blocked: %+v", l)
	}
	rows, err := w.gate.People.AccessOf(ctx, by["P8"].User)
	w.ok(err)
	w.ok(w.gate.People.ChangeAccess(ctx, rows[0].ID, core.Approval{Trust: core.Vault, ExpiresAt: w.clock.Now().Add(time.Hour)}, panel))
	w.clock.Advance(2 * time.Hour)
	if by, _ = w.everyone(); by["P8"].State != people.NoAccess || by["P8"].Trust != "" {
		t.Errorf("an access that has expired: %+v", by["P8"])
	}
}

func TestTheOwnerIsCalledAsTheirOldestAccountIsEverywhere(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	w.clock.Advance(time.Hour)
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error { // comes before telegram in the alphabet
		_, err := tx.Exec(ctx, `INSERT INTO identities (platform, platform_user_id, user_id, display, created_at) VALUES ('discord', '70', 1, 'P on Discord', $1)`, core.Stamp(tx.Time()))
		return err
	}))
	_, list := w.everyone()
	owner, err := w.gate.People.PersonOf(ctx, core.Operator)
	w.ok(err)
	ref, err := w.gate.People.Refer(ctx, w.db, "owner")
	if err != nil || len(list) != 1 || list[0].Name != "P1" || owner.Name() != "P1" || ref.Name != "P1" {
		t.Errorf("in a list %+v, alone %q, as a reference %+v, %v; want P1", list, owner.Name(), ref, err)
	}
}

func TestAnOldBlockIsListedUnderAThousandNewerOnes(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "8", core.Vault)
	w.admit("tg", "9", core.Vault)
	w.ok(w.gate.People.BlockUser(ctx, "*", "telegram", "9", panel))
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001)
			INSERT INTO blocks (platform, platform_user_id, bot, "by", at, took) SELECT 'telegram', 'stranger ' || i, '*', 'panel', $1, '' FROM n`, core.Stamp(w.clock.Now().Add(time.Hour)))
		return err
	}))
	if by, _ := w.everyone(); by["P9"].State != people.IsBlocked || by["P8"].State != people.HasAccess {
		t.Errorf("listed as %+v and %+v", by["P9"], by["P8"])
	}
	blocks, err := w.gate.People.Blocks(ctx)
	w.ok(err)
	if last := blocks[len(blocks)-1]; len(blocks) != 1001 || last.PlatformUserID != "9" {
		t.Errorf("%d blocks, at last %+v", len(blocks), last)
	}
}

func TestAUserIsFoundByNumberNameOrAccountWhereThatIsClear(t *testing.T) {
	w := newWorld(t)
	user := w.linked()
	w.admit("tg", "8", core.Sandboxed)
	w.admit("tg", "9", core.Sandboxed)
	eight := w.idOf("telegram", "8")
	w.claim("tg", "1")
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE identities SET display = 'Twin' WHERE platform_user_id IN ('8', '9')`)
		return err
	}))
	refer := func(ref string) (people.Reference, error) { return w.gate.People.Refer(ctx, w.db, ref) }
	for ref, want := range map[string]int64{
		"1": core.Operator, "owner": core.Operator, "P1": core.Operator, "2": 2,
		"p7": user, "P on Discord": user, "p ON discord": user, "telegram:7": user, "discord:70": user, "70": user, " P8 ": eight,
	} {
		if got, err := refer(ref); err != nil || got.User != want {
			t.Errorf("%q: %+v, %v, want %d", ref, got, err, want)
		}
	}
	if got, err := refer("telegram:7"); err != nil || got.Name != "P7" {
		t.Errorf("%+v, %v", got, err)
	}
	_, err := refer("twin")
	wantKind(t, err, core.Invalid)
	if text := core.TextOf(err); !strings.Contains(text, "P8 telegram 8") || !strings.Contains(text, "P9 telegram 9") {
		t.Errorf("two of one name: %s", text)
	}
	for _, ref := range []string{"", "nobody", "4711", "0", "-1", "telegram:70", "%"} {
		_, err := refer(ref)
		wantKind(t, err, core.NotFound)
		if !strings.Contains(core.TextOf(err), "'gatehouse people list'") {
			t.Errorf("%q: %s", ref, core.TextOf(err))
		}
	}
}

// lower() of SQLite knows ASCII alone, that of PostgreSQL what its locale has.
func TestAUserIsFoundByANameInAnyCaseOfEveryAlphabet(t *testing.T) {
	w := newWorld(t)
	names := map[string]string{"7": "Ünal", "8": "ИВАН", "9": "Иван", "10": "Élodie Ørsted", "11": "Ωmega"}
	for id := range names {
		w.admit("tg", id, core.Sandboxed)
	}
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
		for id, name := range names {
			if _, err := tx.Exec(ctx, `UPDATE identities SET display = $1 WHERE platform_user_id = $2`, name, id); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `UPDATE users SET display = 'Zoë' WHERE id = $1`, w.idOf("telegram", "11"))
		return err
	}))
	for ref, id := range map[string]string{"ünal": "7", "ÜNAL": "7", "élodie ØRSTED": "10", "ωMEGA": "11", "ZOË": "11"} {
		if got, err := w.gate.People.Refer(ctx, w.db, ref); err != nil || got.User != w.idOf("telegram", id) {
			t.Errorf("%q: %+v, %v, want the user of %s", ref, got, err, id)
		}
	}
	for _, ref := range []string{"ИВАН", "Иван", "иван"} { // one name of two users
		_, err := w.gate.People.Refer(ctx, w.db, ref)
		if wantKind(t, err, core.Invalid); !strings.Contains(core.TextOf(err), "telegram 8") || !strings.Contains(core.TextOf(err), "telegram 9") {
			t.Errorf("%q: %s", ref, core.TextOf(err))
		}
	}
	_, err := w.gate.People.Refer(ctx, w.db, "unal")
	wantKind(t, err, core.NotFound)
}

func TestANameIsRefusedWhereTooManyHaveItsLength(t *testing.T) {
	w := newWorld(t)
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10001)
			INSERT INTO users (id, display, role, created_at) SELECT 100 + i, 'P' || (10000 + i), 'guest', $1 FROM n`, core.Stamp(tx.Time()))
		if err == nil { // an account whose platform and id are as long as the names
			_, err = tx.Exec(ctx, `INSERT INTO identities (platform, platform_user_id, user_id, created_at) VALUES ('chat', '7', 101, $1)`, core.Stamp(tx.Time()))
		}
		return err
	}))
	_, err := w.gate.People.Refer(ctx, w.db, "p20001")
	if wantKind(t, err, core.Invalid); !strings.Contains(core.TextOf(err), "give a number") {
		t.Error(core.TextOf(err))
	}
	if got, err := w.gate.People.Refer(ctx, w.db, "10101"); err != nil || got.Name != "P20001" {
		t.Errorf("by number: %+v, %v", got, err)
	}
	if got, err := w.gate.People.Refer(ctx, w.db, "chat:7"); err != nil || got.User != 101 {
		t.Errorf("by account: %+v, %v", got, err)
	}
}

// Anyone can choose a name, so a number that is no user's is no one.
func TestANumberIsNeverAName(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "8", core.Sandboxed)
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE identities SET display = '17'`)
		return err
	}))
	_, err := w.gate.People.Refer(ctx, w.db, "17")
	wantKind(t, err, core.NotFound)
	if got, err := w.gate.People.Refer(ctx, w.db, "8"); err != nil || got.User != w.idOf("telegram", "8") {
		t.Errorf("by the id of the account: %+v, %v", got, err)
	}
}

func TestWhomAPolicyLetsInIsListedSo(t *testing.T) {
	w := newWorld(t)
	w.pol["tg"] = bots.Policy{Platform: "telegram", DM: bots.Allowlist, Allowed: []string{"7"}, DMTrust: core.Vault}
	wantAction(t, w.put(dm("tg", "7", "x")), core.Run)
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Sandboxed, panel))
	wantAction(t, w.put(inGroup(dm("tg", "8", "x"), "g")), core.Run)
	by, _ := w.everyone()
	if l := by["P7"]; l.State != people.ByPolicy || l.Trust != "vault" {
		t.Errorf("on the allowlist: %+v", l)
	}
	var via string
	w.ok(w.db.Get(ctx, &via, `SELECT via FROM audit_events WHERE action = 'user.create' AND subject = $1`, fmt.Sprint(by["P7"].User)))
	if via != "upkeep" { // no one added them
		t.Errorf("added via %s", via)
	}
	if l := by["P8"]; l.State != people.NoAccess || l.Trust != "" {
		t.Errorf("in a group: %+v", l)
	}
	if got, err := w.gate.People.Most(ctx, by["P7"].User); err != nil || got != core.Stranger {
		t.Errorf("a key of theirs may have %v, %v", got, err)
	}
	w.ok(w.gate.People.BlockUser(ctx, "tg", "telegram", "7", panel))
	if by, _ = w.everyone(); by["P7"].State != people.IsBlocked || by["P7"].Trust != "" {
		t.Errorf("blocked: %+v", by["P7"])
	}
}

func TestMostIsTheHighestTrustThatAUserHasNow(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	user := w.linked()
	w.admit("tg", "8", core.Sandboxed)
	eight, account := w.idOf("telegram", "8"), int64(0)
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) (err error) {
		if account, err = w.gate.People.Create(ctx, tx, "nina"); err == nil {
			_, err = tx.Exec(ctx, `INSERT INTO admin_accounts (user_id, name, argon2id) VALUES ($1, 'nina', '')`, account)
		}
		return err
	}))
	most := func(user int64, want core.Trust) {
		t.Helper()
		if got, err := w.gate.People.Most(ctx, user); err != nil || got != want {
			t.Errorf("user %d: %s, %v, want %s", user, got, err, want)
		}
	}
	most(core.Operator, core.Full)
	most(user, core.Vault)
	most(eight, core.Sandboxed)
	most(account, core.Vault)
	for _, change := range []string{`UPDATE admin_accounts SET role = 'viewer'`, `DELETE FROM admin_accounts`} {
		w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, change)
			return err
		}))
		most(account, core.Stranger)
	}
	_, err := w.gate.People.Revoke(ctx, "tg", "8", panel)
	w.ok(err)
	most(eight, core.Stranger)
	_, err = w.gate.People.Most(ctx, 4711)
	wantKind(t, err, core.NotFound)
}
