package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gatehouse/core/coretest"
)

// openTerminal gives both ends of a new pseudo terminal (pts(4)).
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("this machine has no pseudo terminals: ", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// A person at a terminal: what is typed as a secret never stands on the screen,
// a slip may be mended, and Ctrl-C leaves nothing and the terminal as it was.
func TestAtATerminalSecretsAreNotShownAndASlipCanBeFixed(t *testing.T) {
	b := newBeginner(t)
	person, program := openTerminal(t)
	screen := &coretest.Log{}
	go func() { _, _ = io.Copy(screen, person) }() // ends with the terminal
	begin := func() *proc {
		return b.start(func(c *exec.Cmd) {
			c.Stdin, c.Stdout, c.Stderr = program, program, program
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		}, "init")
	}
	shown := 0
	answers := func(p *proc, prompt, answer string) {
		t.Helper()
		p.sees(func() bool {
			return strings.Contains(screen.String()[shown:], prompt) && (answer == "" || hidden(program) || prompt[0] == '[')
		})
		shown = len(screen.String())
		if _, err := io.WriteString(person, answer+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	p := begin()
	answers(p, "1/5", "topsecret, a slip")
	answers(p, "Try again", b.telegram.Token())
	answers(p, "2/5", "")
	answers(p, "3/5", "")
	answers(p, "4/5", goodPassword)
	answers(p, "The same again", goodPassword)
	answers(p, "[Y/n]", "n")
	if code := p.end(); code != exitClean || !exists(b.file) {
		t.Fatalf("exit %d\n%s", code, screen.String())
	}
	if text := screen.String(); strings.Contains(text, "topsecret") || strings.Contains(text, b.telegram.Token()) || !strings.Contains(text, "It is @gatehouse_bot") {
		t.Errorf("the screen:\n%s", text)
	}
	p = begin()
	answers(p, "[y/N]", "y")
	p.sees(func() bool { return strings.Contains(screen.String()[shown:], "1/5") && hidden(program) })
	if _, err := person.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	if code := p.end(); code == exitClean || hidden(program) {
		t.Errorf("after Ctrl-C: exit %d, input hidden: %v", code, hidden(program))
	}
	if text, _ := os.ReadFile(b.file); !strings.Contains(string(text), b.telegram.Token()) {
		t.Error("Ctrl-C lost the file that was there")
	}
	// The end of the input skips nothing that nobody has been asked.
	p = begin()
	answers(p, "[y/N]", "y")
	p.sees(func() bool { return strings.Contains(screen.String()[shown:], "1/5") && hidden(program) })
	if _, err := person.Write([]byte{4}); err != nil { // Ctrl-D
		t.Fatal(err)
	}
	if code := p.end(); code == exitClean {
		t.Errorf("after the end of the input: exit %d", code)
	}
	p.sees(func() bool { return strings.Contains(screen.String(), "nothing was written") })
	if text, _ := os.ReadFile(b.file); !strings.Contains(string(text), b.telegram.Token()) {
		t.Error("the end of the input lost the file that was there")
	}
}

// hidden reports whether a terminal keeps what is typed from the screen.
func hidden(terminal *os.File) bool {
	s, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	return err == nil && s.Lflag&unix.ECHO == 0
}
