package account

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth"
	"gatehouse/web/auth/totp"
)

// twoStep turns two-step sign-in on for the owner and returns the app's secret and the recovery codes.
func (h *house) twoStep() (secret string, recovery []string) {
	h.t.Helper()
	secret, err := h.BeginTwoStep(h.t.Context(), core.Operator)
	if err != nil {
		h.t.Fatal(err)
	}
	if recovery, err = h.ConfirmTwoStep(h.t.Context(), core.Operator, SetUp(secret), h.code(secret), owner); err != nil {
		h.t.Fatal(err)
	}
	h.clock.Advance(time.Minute) // that code is used
	return secret, recovery
}

// code is what the app shows now.
func (h *house) code(secret string) string { return totp.Code(secret, totp.Step(h.clock.Now())) }

// ticket enters the password alone.
func (h *house) ticket() string {
	h.t.Helper()
	_, err := h.signIn("admin", chosen)
	need, ok := errors.AsType[*auth.CodeNeeded](err)
	if !ok {
		h.t.Fatalf("no code is asked for: %v", err)
	}
	return need.Ticket
}

func (h *house) confirm(ticket, code string, device *http.Cookie) (*http.Response, error) {
	r, w := httptest.NewRequest("POST", "/admin/login", nil), httptest.NewRecorder()
	if device != nil {
		r.AddCookie(device)
	}
	err := h.admins.Confirm(w, r, ticket, code)
	return w.Result(), err
}

func refused(err error) string {
	if r, ok := errors.AsType[*auth.Refusal](err); ok {
		slug, _ := r.Problem()
		return slug
	}
	return ""
}

func TestTheCodeIsAskedForBehindThePasswordAndWorksOnce(t *testing.T) {
	h := withOwner(t)
	if on, err := h.CodeAsked(t.Context(), core.Operator); on || err != nil {
		t.Fatal(on, err)
	}
	secret, err := h.BeginTwoStep(t.Context(), core.Operator)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.signIn("admin", chosen); err != nil {
		t.Errorf("an app that was not confirmed is asked for: %v", err)
	}
	_, err = h.ConfirmTwoStep(t.Context(), core.Operator, SetUp(secret), "000000", owner)
	if wrong, ok := errors.AsType[*WrongCode](err); core.KindOf(err) != core.Invalid || !ok || wrong.Secret != secret {
		t.Errorf("a wrong code confirms, or the secret is not shown again: %v", err)
	}
	secret, _ = h.twoStep()
	ticket, code := h.ticket(), h.code(secret)
	res, err := h.confirm(ticket, code, nil)
	if err != nil || len(res.Cookies()) == 0 {
		t.Fatal(err)
	}
	if _, p, ok := h.as(res.Cookies()[0]); !ok || p.User != core.Operator {
		t.Errorf("%+v", p)
	}
	if _, err := h.confirm(h.ticket(), code, nil); refused(err) != "unauthorized" {
		t.Errorf("the code works twice: %v", err)
	}
	if a, err := h.Of(t.Context(), core.Operator); err != nil || !a.TwoStep || a.Recovery != totp.RecoveryCodes {
		t.Errorf("%+v %v", a, err)
	}
}

// A secret that was begun with may have been read by a stolen session: it is never shown to who begins
// again, and the owner's code confirms no other than the one that the owner was shown.
func TestASecretThatWasNotConfirmedIsNotUsedAgain(t *testing.T) {
	h := withOwner(t)
	begin := func() string {
		t.Helper()
		secret, err := h.BeginTwoStep(t.Context(), core.Operator)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	confirm := func(shown, secret string) error {
		_, err := h.ConfirmTwoStep(t.Context(), core.Operator, SetUp(shown), h.code(secret), owner)
		return err
	}
	pending := func() (n int) {
		t.Helper()
		if err := h.db.Get(t.Context(), &n, `SELECT count(*) FROM admin_totp`); err != nil {
			t.Fatal(err)
		}
		return n
	}
	read := begin()
	own := begin()
	if own == read {
		t.Error("who begins again is shown the same secret")
	}
	if err := confirm(read, read); core.KindOf(err) != core.Conflict {
		t.Errorf("the secret from before: %v", err)
	}
	read = begin() // another session, while the owner scans own
	if err := confirm(own, own); core.KindOf(err) != core.Conflict || strings.Contains(err.Error(), read) {
		t.Errorf("a code of the owner's secret, which was replaced: %v", err)
	}
	h.clock.Advance(setUpTime)
	if err := confirm(read, read); core.KindOf(err) != core.Conflict {
		t.Errorf("after its time: %v", err)
	}
	if n, err := h.Expire(t.Context()); n != 1 || err != nil || pending() != 0 {
		t.Errorf("%d expire, %v", n, err)
	}
	begin()
	if n, err := h.Expire(t.Context()); n != 0 || err != nil || pending() != 1 {
		t.Errorf("%d expire at once, %v", n, err)
	}
	c, err := h.signIn("admin", chosen)
	if err != nil {
		t.Fatal(err)
	}
	r, _, _ := h.as(c)
	if err := h.admins.ChangePassword(httptest.NewRecorder(), r, chosen, "another long password"); err != nil || pending() != 0 {
		t.Errorf("a change of password leaves %d, %v", pending(), err)
	}
	begin()
	if _, err := h.Reset(t.Context(), core.Operator, owner); err != nil || pending() != 0 {
		t.Errorf("a reset leaves %d, %v", pending(), err)
	}
	secret := begin()
	if err := confirm(secret, secret); err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(time.Hour)
	if n, err := h.Expire(t.Context()); n != 0 || err != nil || pending() != 1 {
		t.Errorf("of those that are confirmed %d expire, %v", n, err)
	}
	if _, err := h.BeginTwoStep(t.Context(), core.Operator); core.KindOf(err) != core.Conflict {
		t.Errorf("while it is on: %v", err)
	}
	if _, err := h.Reset(t.Context(), core.Operator, owner); err != nil || pending() != 1 {
		t.Errorf("a reset turns it off: %v", err)
	}
}

func TestATicketOpensNothingAloneAndEndsWithItsTimeAndPassword(t *testing.T) {
	h := withOwner(t)
	secret, _ := h.twoStep()
	ticket := h.ticket()
	if _, _, ok := h.as(&http.Cookie{Name: "gatehouse_session", Value: ticket}); ok {
		t.Error("it is a session")
	}
	device := &http.Cookie{Name: "gatehouse_device", Value: ticket}
	for _, forged := range []string{"", "code.1.99999999999.x~y", strings.Replace(ticket, "code.1.", "code.2.", 1), ticket + "x"} {
		if _, err := h.confirm(forged, h.code(secret), device); refused(err) != "unauthorized" {
			t.Errorf("%q: %v", forged, err)
		}
	}
	h.clock.Advance(6 * time.Minute)
	if _, err := h.confirm(ticket, h.code(secret), nil); refused(err) != "unauthorized" {
		t.Errorf("after six minutes: %v", err)
	}
	ticket = h.ticket()
	if _, err := h.Reset(t.Context(), core.Operator, owner); err != nil {
		t.Fatal(err)
	}
	if _, err := h.confirm(ticket, h.code(secret), nil); refused(err) != "unauthorized" {
		t.Errorf("after another password: %v", err)
	}
}

func TestWrongCodesAreSlowedWhereverTheyComeFromAndTheRightPasswordClearsNothing(t *testing.T) {
	h := withOwner(t)
	secret, _ := h.twoStep()
	var got []string
	for range 8 {
		ticket := ""
		if _, err := h.signIn("admin", chosen); err != nil { // as a guesser does who knows it
			if need, ok := errors.AsType[*auth.CodeNeeded](err); ok {
				ticket = need.Ticket
			} else {
				got = append(got, refused(err))
				continue
			}
		}
		_, err := h.confirm(ticket, "000000", nil)
		got = append(got, refused(err))
	}
	if list := strings.Join(got, " "); list != strings.TrimSpace(strings.Repeat("unauthorized ", 5)+strings.Repeat("too-many-requests ", 3)) {
		t.Errorf("answers: %s", list)
	}
	h.clock.Advance(16 * time.Minute)
	if _, err := h.confirm(h.ticket(), h.code(secret), nil); err != nil {
		t.Errorf("the owner is kept out for longer: %v", err)
	}
}

// A guesser who knows the password and has many addresses is slowed for the account.
func TestWrongCodesFromManyAddressesAreSlowedForTheAccount(t *testing.T) {
	h := open(t, auth.AdminOptions{Address: func(r *http.Request) string { return r.RemoteAddr }})
	if _, err := h.admins.Reset(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	a, once := h.add("nina", auth.RoleAdmin)
	h.settle("nina", once)
	secret, err := h.BeginTwoStep(t.Context(), a.User)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.ConfirmTwoStep(t.Context(), a.User, SetUp(secret), h.code(secret), owner); err != nil {
		t.Fatal(err)
	}
	_, err = h.signIn("nina", chosen)
	need, ok := errors.AsType[*auth.CodeNeeded](err)
	if !ok {
		t.Fatal(err)
	}
	var last error
	for i := range 7 {
		r := httptest.NewRequest("POST", "/admin/login", nil)
		r.RemoteAddr = "192.0.2." + string(rune('1'+i)) // never the same
		last = h.admins.Confirm(httptest.NewRecorder(), r, need.Ticket, "000000")
	}
	if refused(last) != "too-many-requests" {
		t.Errorf("the seventh wrong code: %v", last)
	}
}

func TestARecoveryCodeSignsInOnceAndIsStoredHashed(t *testing.T) {
	h := withOwner(t)
	_, recovery := h.twoStep()
	if len(recovery) != 10 {
		t.Fatal(recovery)
	}
	var stored []string
	if err := h.db.Select(t.Context(), &stored, `SELECT sha256 FROM admin_recovery`); err != nil || len(stored) != 10 || strings.Contains(strings.Join(stored, " "), recovery[0]) {
		t.Fatal(stored, err)
	}
	if _, err := h.confirm(h.ticket(), strings.ToUpper(recovery[3]), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.confirm(h.ticket(), recovery[3], nil); refused(err) != "unauthorized" {
		t.Errorf("it works twice: %v", err)
	}
	if a, _ := h.Of(t.Context(), core.Operator); a.Recovery != 9 {
		t.Errorf("%d are left", a.Recovery)
	}
	fresh, err := h.RenewRecovery(t.Context(), core.Operator, owner)
	if err != nil || len(fresh) != 10 {
		t.Fatal(err)
	}
	if _, err := h.confirm(h.ticket(), recovery[4], nil); refused(err) != "unauthorized" {
		t.Errorf("an old one works after new ones were made: %v", err)
	}
	if _, err := h.confirm(h.ticket(), fresh[0], nil); err != nil {
		t.Error(err)
	}
}

func TestALostPhoneIsTakenOffByAnotherAdminOrTheCommandLine(t *testing.T) {
	h := withOwner(t)
	h.twoStep()
	nina, _ := h.add("nina", auth.RoleAdmin)
	if err := h.EndTwoStep(t.Context(), core.Operator, core.Actor{User: nina.User, Via: "panel"}); core.KindOf(err) != core.Denied {
		t.Errorf("another admin, of the owner: %v", err)
	}
	if err := h.EndTwoStep(t.Context(), core.Operator, owner); err != nil {
		t.Fatal(err)
	}
	if _, err := h.signIn("admin", chosen); err != nil {
		t.Errorf("the password alone: %v", err)
	}
	for _, table := range []string{"admin_totp", "admin_recovery"} {
		var n int
		if err := h.db.Get(t.Context(), &n, `SELECT count(*) FROM `+table); err != nil || n != 0 {
			t.Errorf("%s: %d rows are left, %v", table, n, err)
		}
	}
	if got := h.audited(); !strings.Contains(got, "1 admin.two_step_on 1") || !strings.Contains(got, "1 admin.two_step_off 1") {
		t.Error(got)
	}
}

func TestForgettingAPersonTakesTheirAccountAndNeverTheOperators(t *testing.T) {
	h := withOwner(t)
	h.twoStep()
	nina, once := h.add("nina", auth.RoleAdmin)
	c := h.settle("nina", once)
	if _, err := h.BeginTwoStep(t.Context(), nina.User); err != nil {
		t.Fatal(err)
	}
	for _, user := range []int64{core.Operator, nina.User} {
		err := h.db.Tx(t.Context(), func(tx *store.Tx) error {
			return Tables{Keys: h.keys, Admins: h.admins, Accounts: h.Store}.Revoke(t.Context(), tx, user)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, ok := h.as(c); ok {
		t.Error("the session of the forgotten person lives on")
	}
	if fmt.Sprint(h.invitations) != fmt.Sprint([]int64{nina.User}) {
		t.Errorf("the invitations of %v ended, want those of %d", h.invitations, nina.User)
	}
	for table, want := range map[string]int{"admin_accounts": 1, "admin_totp": 1, "admin_recovery": 10, "admin_sessions": 0} {
		var n int
		if err := h.db.Get(t.Context(), &n, `SELECT count(*) FROM `+table); err != nil || n != want {
			t.Errorf("%s: %d rows, want %d, %v", table, n, want, err)
		}
	}
}

// stolen is what a copy of the database has of the owner's account, and what is made of it: a ticket
// and a device cookie as the gateway makes them, with keys that one may think of.
func (h *house) stolen(kind string, n int) (forged []string) {
	h.t.Helper()
	var hash string
	if err := h.db.Get(h.t.Context(), &hash, `SELECT argon2id FROM admin_accounts WHERE user_id = 1`); err != nil {
		h.t.Fatal(err)
	}
	end := h.clock.Now().Add(4 * time.Minute).Unix()
	older := map[string]string{"code": fmt.Sprintf("code.1.%d.x%d", end, n), "device": fmt.Sprintf("1.%d.x%d", end, n)}[kind]
	said := fmt.Sprintf("%s.1.%d.x%d", kind, end, n)
	key := sha256.Sum256([]byte("gatehouse device\x00" + hash))
	for text, signed := range map[string]string{older: older, said: "sign-in\x00" + said + "\x00" + hash} {
		for _, k := range [][]byte{key[:], []byte(hash), nil} {
			m := hmac.New(sha256.New, k)
			m.Write([]byte(signed))
			forged = append(forged, text+"~"+base64.RawURLEncoding.EncodeToString(m.Sum(nil)))
		}
	}
	return forged
}

func TestWhatABackupHasOfAnAccountSignsNoOneIn(t *testing.T) {
	h := withOwner(t)
	secret, _ := h.twoStep()
	var stored string
	if err := h.db.Get(t.Context(), &stored, `SELECT secret FROM admin_totp WHERE user_id = 1`); err != nil || stored == "" || strings.Contains(stored, secret) {
		t.Errorf("the secret of the app is in the database: %v", err)
	}
	for _, ticket := range h.stolen("code", 0) {
		if _, err := h.confirm(ticket, h.code(secret), nil); refused(err) != "unauthorized" {
			t.Errorf("a ticket made of the stored hash: %v", err)
		}
	}
	if _, err := h.confirm(h.ticket(), h.code(secret), nil); err != nil {
		t.Errorf("the owner's ticket: %v", err)
	}
}

func TestADeviceCookieMadeOfABackupGivesNoFurtherTries(t *testing.T) {
	h := withOwner(t)
	h.twoStep()
	ticket, slowed := h.ticket(), 0
	for n := range 30 {
		for _, cookie := range h.stolen("device", n) {
			_, err := h.confirm(ticket, "000000", &http.Cookie{Name: auth.DeviceCookie, Value: cookie})
			if refused(err) == "too-many-requests" {
				slowed++
			}
		}
	}
	if slowed < 150 {
		t.Errorf("of 180 wrong codes %d had to wait: each forged cookie counts for itself", slowed)
	}
}

// The content key was lost and given up (serve --lost-content-key): the second step stays.
func TestWithoutTheSecretOfTheAppOnlyARecoveryCodeIsRight(t *testing.T) {
	h := withOwner(t)
	secret, recovery := h.twoStep()
	err := h.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE admin_totp SET secret = ''`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	empty := hotpOfNothing(totp.Step(h.clock.Now()))
	for _, code := range []string{h.code(secret), empty} {
		if _, err := h.confirm(h.ticket(), code, nil); refused(err) != "unauthorized" {
			t.Errorf("the code %s: %v", code, err)
		}
	}
	if _, err := h.confirm(h.ticket(), recovery[0], nil); err != nil {
		t.Errorf("a recovery code: %v", err)
	}
}

// hotpOfNothing is the code of a step for the empty key (RFC 4226).
func hotpOfNothing(step int64) string {
	m := hmac.New(sha1.New, nil)
	_ = binary.Write(m, binary.BigEndian, step)
	sum := m.Sum(nil)
	at := sum[len(sum)-1] & 15
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[at:])&0x7fffffff%1_000_000)
}
