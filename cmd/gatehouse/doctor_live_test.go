package main

import (
	"net"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/doctor"
)

func TestTheLiveCheckAsksTheGatewayThatServes(t *testing.T) {
	w := newWorld(t, nil)
	if err := doctor.Alive(t.Context(), w.cfg); err != nil {
		t.Errorf("a gateway that serves: %v", err)
	}
	if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'socket.request'`); n != 0 {
		t.Errorf("the check left %d rows", n)
	}
	w.stop()
	if err := doctor.Alive(t.Context(), w.cfg); err == nil || !strings.Contains(err.Error(), "no gateway answers at "+w.cfg.Addr) {
		t.Errorf("a gateway that stopped: %v", err)
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
