package web

import (
	"net/http"
	"testing"
)

func TestCookiesOfTwoPortsHaveTwoNames(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1:3333": "s_3333", "127.0.0.1:3334": "s_3334", "[::1]:3333": "s_3333", "gateway.example": "s", "gateway.example:x;y": "s", "": "s", "a:70000": "s",
	} {
		if got := CookieName(&http.Request{Host: host}, "s"); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}
