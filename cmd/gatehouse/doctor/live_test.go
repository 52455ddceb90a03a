package doctor

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gatehouse/configs"
)

func TestTheLiveCheckFindsAGatewayThatListensEverywhere(t *testing.T) {
	for addr, want := range map[string]string{":3333": "127.0.0.1:3333", "0.0.0.0:3333": "127.0.0.1:3333", "[::]:3333": "[::1]:3333",
		"127.0.0.2:1": "127.0.0.2:1", "localhost:1": "localhost:1"} {
		if got, err := liveAddr(addr); err != nil || got != want {
			t.Errorf("%s: %s, %v", addr, got, err)
		}
	}
}

func TestTheLiveCheckFailsWhereSomethingElseAnswers(t *testing.T) {
	s := httptest.NewServer(http.RedirectHandler("/somewhere", http.StatusFound))
	defer s.Close()
	cfg := configs.Default()
	cfg.Addr = s.Listener.Addr().(*net.TCPAddr).String()
	if err := Alive(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "302") {
		t.Error(err)
	}
}
