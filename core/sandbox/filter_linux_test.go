package sandbox

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// A program of another set of calls is not let past the filters by it.
func TestTheFiltersHoldForProgramsOf32Bits(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("this is about i386 on amd64")
	}
	dir := t.TempDir()
	source := `package main

import "syscall"

func main() {
	_, _, mount := syscall.RawSyscall(syscall.SYS_MOUNT, 0, 0, 0)
	_, _, umount := syscall.RawSyscall(syscall.SYS_UMOUNT2, 0, 0, 0)
	_, _, unshare := syscall.RawSyscall(syscall.SYS_UNSHARE, syscall.CLONE_NEWNS|syscall.CLONE_NEWUSER, 0, 0)
	println(mount == syscall.EPERM, umount == syscall.EPERM, unshare == syscall.EPERM)
}
`
	if err := os.WriteFile(dir+"/main.go", []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", dir+"/small", dir+"/main.go")
	build.Env = append(os.Environ(), "GOARCH=386", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("no program of 32 bits can be built: %v\n%s", err, out)
	}
	if out, err := exec.Command(dir + "/small").CombinedOutput(); err != nil {
		t.Skipf("this machine runs no program of 32 bits: %v\n%s", err, out)
	}
	e := estate{dir: dir, veil: veilOver(t, func() Cover { return Cover{} })}
	if out, err := e.try(t, dir, dir+"/small"); out != "true true true\n" {
		t.Errorf("behind the veil: %q, %v", out, err)
	}
	box, b := probe(self(t))
	if box == nil {
		t.Skip(b.Text)
	}
	cmd, err := box.Command(t.Context(), Spec{ReadOnly: []string{dir}, Dir: dir, Env: []string{"PATH=/usr/bin"}}, dir+"/small")
	if err != nil {
		t.Fatal(err)
	}
	if out := said(t, cmd); strings.Contains(out, "true") {
		t.Errorf("in the sandbox: %q", out)
	}
}
