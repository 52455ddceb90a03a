package totp

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// The vectors of RFC 6238, appendix B, for SHA-1: eight digits of the secret
// "12345678901234567890".
func TestTheVectorsOfRFC6238(t *testing.T) {
	for at, want := range map[int64]string{59: "94287082", 1111111109: "07081804", 1111111111: "14050471", 1234567890: "89005924", 2000000000: "69279037", 20000000000: "65353130"} {
		if got := compute([]byte("12345678901234567890"), Step(time.Unix(at, 0)), 8); got != want {
			t.Errorf("at %d: %s, want %s", at, got, want)
		}
	}
}

func TestACodeWorksOnceAndOneStepEitherWay(t *testing.T) {
	secret, now := NewSecret(), time.Unix(1_800_000_015, 0)
	at := Step(now)
	for off := int64(-3); off <= 3; off++ {
		step, ok := Check(secret, Code(secret, at+off), now, 0)
		if want := off >= -1 && off <= 1; ok != want || ok && step != at+off {
			t.Errorf("%+d steps: %d %v", off, step-at, ok)
		}
	}
	if _, ok := Check(secret, Code(secret, at), now, at); ok {
		t.Error("a code works twice")
	}
	if _, ok := Check(secret, Code(secret, at-1), now, at); ok {
		t.Error("an older code works after a newer one")
	}
	if _, ok := Check(secret, Code(secret, at+1), now, at); !ok {
		t.Error("the next code does not work")
	}
	code := Code(secret, at)
	if _, ok := Check(secret, code[:3]+" "+code[3:], now, 0); !ok {
		t.Error("with a space, as apps show it, it does not work")
	}
	for _, bad := range []string{"", "000", code + "0", "abcdef", strings.Repeat("1", 100)} {
		if _, ok := Check(secret, bad, now, 0); ok {
			t.Errorf("%q works", bad)
		}
	}
	if _, ok := Check("not base32!", code, now, 0); ok || Code("not base32!", 1) != "" {
		t.Error("a damaged secret works")
	}
}

func TestTheAddressHasWhatAppsRead(t *testing.T) {
	u, err := url.Parse(URI("Gatehouse", "nina@x", "ABC"))
	if err != nil || u.Scheme != "otpauth" || u.Host != "totp" || u.Path != "/Gatehouse:nina@x" || u.Query().Get("secret") != "ABC" || u.Query().Get("issuer") != "Gatehouse" || u.Query().Get("period") != "30" {
		t.Errorf("%s %v", u, err)
	}
}

func TestRecoveryCodesAreRandomAndFoundHoweverTheyAreTyped(t *testing.T) {
	seen := map[string]bool{}
	for _, code := range append(NewRecovery(), NewRecovery()...) {
		if len(code) != 19 || seen[code] || !IsRecovery(code) {
			t.Errorf("%q", code)
		}
		seen[code] = true
		for _, typed := range []string{strings.ToUpper(code), strings.ReplaceAll(code, "-", ""), strings.ReplaceAll(code, "-", " ")} {
			if Hash(typed) != Hash(code) || !IsRecovery(typed) {
				t.Errorf("%q is not %q", typed, code)
			}
		}
	}
	if !IsRecovery("abcd-efgh-jkmn") {
		t.Error("a code of an earlier version is none")
	}
	if IsRecovery("123456") {
		t.Error("a code of an app counts as a recovery code")
	}
}

// Otherwise anyone could compute the codes of an account whose secret was lost.
func TestNoCodeIsRightForAnEmptySecret(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	if _, ok := Check("", compute(nil, Step(now), digits), now, 0); ok {
		t.Error("the code of the empty key is right")
	}
}
