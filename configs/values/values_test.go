package values

import (
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRateTakesACountAndATimeOrOff(t *testing.T) {
	for text, want := range map[string]Rate{"10/60s": {10, time.Minute}, "1/1h": {1, time.Hour}, "off": {}} {
		var r Rate
		if err := r.Decode(text); err != nil || r != want {
			t.Errorf("%q = %v, %v", text, r, err)
		}
		var back Rate
		if err := back.Decode(r.String()); err != nil || back != r {
			t.Errorf("%q does not come back from %q", text, r)
		}
	}
	for _, text := range []string{"", "10", "10/", "/60s", "0/60s", "-1/60s", "x/60s", "10/60", "10/0s", "10/25h", "10001/1s", "OFF"} {
		if err := new(Rate).Decode(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "10/60s", "off", "a, b,,c", "10.0.0.0/8,::1", "info", "9999999999999999999/1s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var r Rate
		if r.Decode(s) == nil {
			var back Rate
			if err := back.Decode(r.String()); err != nil || back != r {
				t.Errorf("rate %q reads back as %v, %v", s, back, err)
			}
		}
		var p Proxies
		if p.Decode(s) == nil {
			var back Proxies
			if err := back.Decode(p.String()); err != nil || !reflect.DeepEqual(p, back) {
				t.Errorf("proxies %q read back as %v, %v", s, back, err)
			}
		}
		var l List
		_ = l.Decode(s)
		for _, v := range l {
			if v == "" || v != strings.TrimSpace(v) || strings.Contains(v, ",") {
				t.Errorf("list %q holds %q", s, v)
			}
		}
		_ = new(Level).Decode(s)
		_ = new(Switch).Decode(s)
	})
}

func TestABudgetIsTokensOrDollars(t *testing.T) {
	for text, want := range map[string]Budget{
		"200k": {Tokens: 200_000}, "1.5m": {Tokens: 1_500_000}, "1.5M": {Tokens: 1_500_000}, "40000": {Tokens: 40_000},
		"$2": {MicroUSD: 2_000_000}, "$0.50": {MicroUSD: 500_000}, "off": {},
	} {
		var b Budget
		if err := b.Decode(text); err != nil || b != want {
			t.Errorf("%s: %+v %v", text, b, err)
		}
	}
	for _, text := range []string{"0", "-5", "k", "$", "$-1", "1e5", "NaN", "inf", "0x10", "2 $", "0.0000001", "99999999999999999999"} {
		var b Budget
		if err := b.Decode(text); err == nil {
			t.Errorf("%s was taken: %+v", text, b)
		}
	}
}

func TestReadSecret_DoesNotWaitForTheWriterOfAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	done := make(chan error, 1)
	go func() { _, err := ReadSecret(path); done <- err }()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "empty") {
			t.Errorf("%v", err)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("it waits for a writer")
	}
}
