package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gatehouse/configs"
)

func TestTheLiveCheckAsksTheGatewayThatServes(t *testing.T) {
	w := newWorld(t, nil)
	if err := alive(t.Context(), w.cfg); err != nil {
		t.Errorf("a gateway that serves: %v", err)
	}
	if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'socket.request'`); n != 0 {
		t.Errorf("the check left %d rows", n)
	}
	w.stop()
	if err := alive(t.Context(), w.cfg); err == nil || !strings.Contains(err.Error(), "no gateway answers at "+w.cfg.Addr) {
		t.Errorf("a gateway that stopped: %v", err)
	}
}

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
	if err := alive(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "302") {
		t.Error(err)
	}
}

// The exit codes are what Docker and Kubernetes look at.
func TestTheLiveCheckIsACommandWithExitCodes(t *testing.T) {
	h := newHome(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.env["GATEHOUSE_ADDR"] = l.Addr().String()
	l.Close()
	if code, out, errs := h.run("doctor", "--live"); code != exitFailure || out != "" || !strings.Contains(errs, "no gateway answers") {
		t.Errorf("nobody serves: exit %d, %q %q", code, out, errs)
	}
	p := h.serve(nil)
	if code, out, errs := h.run("doctor", "--live"); code != exitClean || out != "" || errs != "" {
		t.Errorf("it serves: exit %d, %q %q", code, out, errs)
	}
	_ = p.cmd.Process.Kill()
	if code, _, _ := h.run("doctor", "--live", "--json"); code != exitUsage {
		t.Errorf("both forms: exit %d", code)
	}
}
