package main

import (
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// serveOnTerminal starts the gateway with its standard error on a terminal. end stops it and
// returns what the terminal has shown.
func (h *home) serveOnTerminal() (p *proc, end func() string) {
	h.t.Helper()
	person, program := openTerminal(h.t)
	p = h.start(func(c *exec.Cmd) { c.Stderr = program }, "serve")
	ended := make(chan struct{})
	go func() { defer close(ended); _, _ = io.Copy(&p.err, person) }()
	p.says("msg=serving")
	return p, func() string {
		p.interrupt()
		_ = program.Close() // the last who has it open
		<-ended
		return p.err.String()
	}
}

// While the bots have no owner, a start on a terminal prints a code to claim them; a code that was
// printed before stays valid.
func TestServeOnATerminalPrintsAClaimCode(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	h := newHome(t, sim)
	p := h.serve(nil)
	p.interrupt()
	if said := p.err.String(); strings.Contains(said, "/claim") {
		t.Errorf("without a terminal a code is in the log:\n%s", said)
	}
	p, end := h.serveOnTerminal()
	p.says("'gatehouse claim' prints another one")
	screen := end()
	code := regexp.MustCompile(`/claim ([A-Z0-9]{5}-[A-Z0-9]{5})`).FindStringSubmatch(screen)
	if code == nil {
		t.Fatalf("the terminal has no code:\n%s", screen)
	}
	p, end = h.serveOnTerminal()
	p.says("The code that was printed before is valid until")
	olga := sim.NewUser("Olga")
	olga.Send("/claim " + code[1])
	hear(t, sim, olga.DM(), 0, "You are the owner now")
	if screen := end(); strings.Contains(screen, "/claim ") {
		t.Errorf("a second start prints another code:\n%s", screen)
	}
	if _, end = h.serveOnTerminal(); strings.Contains(end(), "no owner yet") {
		t.Error("with an owner it offers the claim")
	}
	if _, end = newHome(t, nil).serveOnTerminal(); strings.Contains(end(), "no owner yet") {
		t.Error("without a bot it offers the claim")
	}
}
