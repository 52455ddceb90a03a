package auth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/web/auth/proof"
)

// from tries to sign in as the operator with cookies, and returns the cookies
// that the answer sets, by name.
func (h *house) from(addr, password string, with ...*http.Cookie) (map[string]*http.Cookie, error) {
	r := request("POST")
	r.RemoteAddr = addr
	for _, c := range with {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	err := h.admins.SignIn(w, r, AdminName, password)
	set := map[string]*http.Cookie{}
	for _, c := range w.Result().Cookies() {
		set[c.Name] = c
	}
	return set, err
}

// known is a settled house and the cookie of a known device.
func known(t *testing.T) (*house, *http.Cookie) {
	t.Helper()
	h, _ := settled(t)
	set, err := h.from("192.0.2.1", longPassword)
	if err != nil || set[DeviceCookie] == nil {
		t.Fatal(set, err)
	}
	return h, set[DeviceCookie]
}

// guess makes n wrong guesses, each from another address.
func (h *house) guess(n int) {
	h.t.Helper()
	for i := range n {
		if set, err := h.from(fmt.Sprintf("198.51.%d.%d", i/250, i%250), "a wrong password"); err == nil || len(set) != 0 {
			h.t.Fatalf("guess %d: %v %v", i, set, err)
		}
	}
}

func TestSignIn_KnownDeviceIsNotSlowedByOthersGuesses(t *testing.T) {
	h, device := known(t)
	h.guess(1000)
	if _, err := h.from("203.0.113.7", longPassword, device); err != nil {
		t.Errorf("from a new address: %v", err)
	}
	h.guess(20)
	for range freeAddress + 1 { // its own address is one of those that guess
		_, _ = h.from("192.0.2.1", "a wrong password")
	}
	if _, err := h.from("192.0.2.1", longPassword, device); err != nil {
		t.Errorf("from an address that others guess from: %v", err)
	}
}

func TestSignIn_KnownDeviceWhileManyGuessAtOnce(t *testing.T) {
	h, device := known(t)
	stop := make(chan struct{})
	var guessing sync.WaitGroup
	for i := range 32 {
		guessing.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					_, _ = h.from(fmt.Sprintf("198.51.%d.%d", i, n%250), "a wrong password")
				}
			}
		})
	}
	defer guessing.Wait()
	defer close(stop)
	for range 20 {
		set, err := h.from("203.0.113.7", longPassword, device)
		if err != nil {
			t.Fatal(err)
		}
		device = set[DeviceCookie]
	}
}

func TestSignIn_UnknownDeviceGetsInAfterABoundedDelayUnderAttack(t *testing.T) {
	h, _ := known(t)
	h.guess(1000)
	_, err := h.from("203.0.113.7", longPassword)
	if slug(err) != "too-many-requests" || err.(*Refusal).after > mostAccount || err.(*Refusal).after <= 0 {
		t.Fatalf("the first try: %v", err)
	}
	waited := time.Duration(0)
	for ; waited <= mostAccount; waited += time.Second { // the attack goes on
		if _, err = h.from("203.0.113.7", longPassword); err == nil {
			break
		}
		h.guess(30)
		h.clock.Advance(time.Second)
	}
	if err != nil {
		t.Errorf("after %v: %v", waited, err)
	}
}

func TestSignIn_GuessesAreFewHoweverManyAddressesMakeThem(t *testing.T) {
	h, _ := known(t)
	checked := 0
	for i := range 100 {
		for j := range 10 {
			if _, err := h.from(fmt.Sprintf("198.51.%d.%d", i, j), "a wrong password"); slug(err) == "unauthorized" {
				checked++
			}
		}
	}
	if checked > freeAccount+1 {
		t.Errorf("%d of 1,000 guesses at one time were checked", checked)
	}
}

func TestSignIn_StolenDeviceCookieIsNoWayRoundTheLimit(t *testing.T) {
	h, device := known(t)
	checked := 0
	for i := range 200 {
		if _, err := h.from(fmt.Sprint("198.51.100.", i), "a wrong password", device); slug(err) == "unauthorized" {
			checked++
		}
	}
	if checked > freeDevice+freeAccount+1 {
		t.Errorf("%d of 200 guesses with one device cookie were checked", checked)
	}
	if _, err := h.from("203.0.113.9", longPassword); slug(err) != "too-many-requests" {
		t.Fatal(err)
	}
	h.clock.Advance(mostAccount)
	if _, err := h.from("203.0.113.9", longPassword, device); err != nil {
		t.Errorf("the cookie's owner is kept out: %v", err)
	}
}

func TestSignIn_DeviceCookieIsStrictSealedAndEnds(t *testing.T) {
	h, device := known(t)
	if !device.HttpOnly || device.SameSite != http.SameSiteStrictMode || device.Path != "/admin" || device.Secure || device.MaxAge <= 0 {
		t.Errorf("%+v", device)
	}
	h.admins.o.Secure = yes
	if set, err := h.from("192.0.2.1", longPassword); err != nil || !set[DeviceCookie].Secure || !set[CookieName].Secure {
		t.Errorf("over TLS: %+v %v", set, err)
	}
	is := func(c *http.Cookie) bool {
		t.Helper()
		r := request("POST")
		r.AddCookie(c)
		acc, ok, err := h.admins.byName(context.Background(), AdminName)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return h.admins.device(r, acc, ok) != ""
	}
	if !is(device) {
		t.Fatal("the device is not known")
	}
	said, mac, _ := strings.Cut(device.Value, "~")
	parts := strings.Split(said, ".")
	acc, _, err := h.admins.byName(context.Background(), AdminName)
	if err != nil {
		t.Fatal(err)
	}
	// What earlier versions sealed devices with: whoever has a backup can compute it.
	key := sha256.Sum256([]byte("gatehouse device\x00" + acc.Hash))
	old := hmac.New(sha256.New, key[:])
	_, _ = old.Write([]byte(said))
	for _, forged := range []string{"", "~", said, said + "~", "x" + device.Value, said + "~" + mac[1:], parts[0] + "." + parts[1] + ".99999999999." + parts[3] + "~" + mac,
		parts[0] + ".2." + parts[2] + "." + parts[3] + "~" + mac, said + "~" + base64.RawURLEncoding.EncodeToString(old.Sum(nil)), strings.Repeat("x", 5000)} {
		if is(&http.Cookie{Name: DeviceCookie, Value: forged}) {
			t.Errorf("forged %q", forged)
		}
	}
	r, err := h.door.Identify(request("GET"))
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(device)
	if _, ok := From(r.Context()); ok {
		t.Error("the device cookie signs in")
	}
	h.clock.Advance(proof.Device.Life())
	if is(device) {
		t.Error("it never ends")
	}
}

func TestSignIn_DevicesAreForgottenWithAChangeOfPassword(t *testing.T) {
	h, device := known(t)
	set, err := h.from("192.0.2.1", longPassword, device)
	if err != nil {
		t.Fatal(err)
	}
	r, _, _ := h.as(set[CookieName], "POST")
	w := httptest.NewRecorder()
	if err := h.admins.ChangePassword(w, r, longPassword, "another long password"); err != nil {
		t.Fatal(err)
	}
	var renewed *http.Cookie
	for _, c := range w.Result().Cookies() {
		if c.Name == DeviceCookie {
			renewed = c
		}
	}
	h.guess(100)
	if _, err := h.from("203.0.113.7", "another long password", device); slug(err) != "too-many-requests" {
		t.Errorf("a cookie of the old password: %v", err)
	}
	if renewed == nil {
		t.Fatal("the browser that changed the password is no longer known")
	}
	if _, err := h.from("203.0.113.8", "another long password", renewed); err != nil {
		t.Error(err)
	}
}

func TestChangePassword_IsNotStoppedByGuessesFromOutside(t *testing.T) {
	h, session := settled(t)
	h.guess(1000)
	r, _, _ := h.as(session, "POST")
	for range freeAddress + 1 {
		_, _ = h.from("192.0.2.1", "a wrong password")
	}
	for range freeDevice - 1 {
		if err := h.admins.ChangePassword(httptest.NewRecorder(), r, "a wrong password", "another long password"); core.KindOf(err) != core.Denied {
			t.Fatal(err)
		}
	}
	if err := h.admins.ChangePassword(httptest.NewRecorder(), r, longPassword, "another long password"); err != nil {
		t.Error(err)
	}
}
