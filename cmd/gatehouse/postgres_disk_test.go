package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const smallSize = 400 << 20 // bytes of a disk that a test fills; a database of a test has less than a tenth

// smallDisk is a folder that can be filled without filling the machine's disk, if the test may mount.
func smallDisk(t *testing.T, dir, name string) string {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := errors.Join(os.Mkdir(at, 0o777), os.Chmod(at, 0o777)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=400m,mode=0777", "tmpfs", at).CombinedOutput(); err != nil {
		t.Logf("no disk can be mounted here: %v %s", err, out)
		return at
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	return at
}

// full fills the disk of the server until empty is called. It is nil where the server has no disk of its own.
func (s *pgServer) full() (empty func()) {
	s.t.Helper()
	disk := filepath.Dir(s.data)
	var st syscall.Statfs_t
	if err := syscall.Statfs(disk, &st); err != nil {
		s.t.Fatal(err)
	}
	if int64(st.Blocks)*st.Bsize > smallSize {
		return nil
	}
	file := filepath.Join(disk, "full")
	f, err := os.Create(file)
	if err != nil {
		s.t.Fatal(err)
	}
	for buf := make([]byte, 1<<20); len(buf) > 0; {
		if n, err := f.Write(buf); n == 0 && err != nil {
			buf = buf[:len(buf)/2]
		}
	}
	if err := f.Close(); err != nil {
		s.t.Fatal(err)
	}
	return func() {
		if err := os.Remove(file); err != nil {
			s.t.Fatal(err)
		}
	}
}

// revive starts the server if it has ended, as one does that finds no room for its log.
func (s *pgServer) revive() {
	s.t.Helper()
	for end := time.Now().Add(patience); s.as("pg_isready", "-q", "-h", "127.0.0.1", "-p", s.port).Run() != nil; time.Sleep(50 * time.Millisecond) {
		if s.as("pg_ctl", "-D", s.data, "status").Run() != nil {
			s.start()
		}
		if time.Now().After(end) {
			s.t.Fatal("the server does not come back")
		}
	}
}

// fills has the disk of the primary be full until the gateway knows.
func (c *cluster) fills(i int) {
	empty := c.primary.full()
	if empty == nil {
		c.t.Log("a full disk was NOT checked")
		return
	}
	for end := time.Now().Add(patience); c.status(i) == 200 && !strings.Contains(c.nodes[i].tail(), "No space left"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Errorf("the gateway does not notice that the disk is full\n%s", c.nodes[i].tail())
			break
		}
	}
	time.Sleep(away)
	empty()
	c.primary.revive()
}
