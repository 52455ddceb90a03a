package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"gatehouse/connectors/telegram/telegramtest"
)

// The power goes at the moment when updates are being confirmed to the
// platform. Whatever was confirmed before is in the database afterwards, and
// every message is answered once. A program that does not wait for the disk
// loses some: so the test can tell.
func TestPowerCutLosesNothingThatWasConfirmed(t *testing.T) {
	t.Parallel()
	disk := newDisk(t)
	t.Run("durable", func(t *testing.T) {
		p := &powerRig{rig: newRig(t, program(t), "queue", population{telegram: 20}, telegramtest.Options{}), disk: disk, ids: map[string]int64{}}
		p.vault = filepath.Join(disk.mount, "durable")
		lost, confirmed := 0, 0
		for cut := range 6 {
			n, gone := p.cut(2 + cut)
			confirmed += n
			lost += len(gone)
			if len(gone) > 0 {
				t.Errorf("cut %d: of %d confirmed updates %d are gone: %v", cut+1, n, len(gone), gone)
			}
			p.start()
			p.answered()
			p.stop()
		}
		t.Logf("%d updates confirmed before a cut, %d lost", confirmed, lost)
		if confirmed < 50 {
			t.Errorf("only %d updates were confirmed", confirmed)
		}
		p.prove()
	})
	t.Run("not durable", func(t *testing.T) {
		p := &powerRig{rig: newRig(t, program(t, nonDurable), "queue", population{telegram: 20}, telegramtest.Options{}), disk: disk, ids: map[string]int64{}}
		p.vault = filepath.Join(disk.mount, "lax")
		p.start()
		p.post(0)
		p.answered()
		p.stop() // the tables are on the disk
		lost := 0
		for cut := 0; cut < 6 && lost == 0; cut++ {
			n, gone := p.cut(4)
			lost = len(gone)
			t.Logf("cut %d: of %d confirmed updates %d are gone", cut+1, n, lost)
		}
		if lost == 0 {
			t.Error("a program that does not wait for the disk lost nothing: this test shows nothing")
		}
	})
}

// A powerRig is a rig whose vault lies on a disk that can lose its power.
type powerRig struct {
	*rig
	disk *disk
	ids  map[string]int64 // message → update
}

// cut runs the gateway under load until the n-th poll that confirms updates,
// takes the power away before that poll reaches the platform, and brings the
// disk back. It returns how many updates were confirmed, by that poll or
// before, and which of them the database does not have.
func (p *powerRig) cut(n int) (confirmed int, gone []string) {
	p.t.Helper()
	trap := &trap{sprung: make(chan struct{})}
	trap.kill = func() {
		// Without power nothing runs on: a program that still did would believe
		// what a disk that is gone says of its last commit.
		p.mu.Lock()
		c := p.child
		p.mu.Unlock()
		freeze(p.t, c.cmd.Process.Pid)
		p.disk.off()
		c.kill()
	}
	var mu sync.Mutex
	last := int64(0)
	polls := confirms(func() bool {
		mu.Lock()
		defer mu.Unlock()
		if n--; n == 0 {
			trap.spring()
		}
		return false
	})
	p.hooks(func(q req) bool {
		if trap.dead() {
			return true
		}
		cut := polls(q)
		if q.method == "getupdates" {
			mu.Lock()
			last = max(last, q.offset())
			mu.Unlock()
		}
		return cut
	}, nil, nil)
	c := p.start()
	end := time.After(patience)
	for !trap.dead() {
		id := p.telegram.Bot().NextUpdateID()
		p.ids[p.post(p.next)] = id
		select {
		case <-trap.sprung:
		case <-time.After(3 * time.Millisecond):
		case <-end:
			p.t.Fatalf("the poll was not met\n%s", c.tail())
		}
	}
	c.kill()
	<-c.done
	p.hooks(nil, nil, nil)
	p.disk.on(p.t)
	p.note(p.look())
	db := p.openCopy()
	defer db.Close()
	var stored []string
	p.sql(db.Select(&stored, `SELECT update_id FROM inbox`))
	have := map[string]bool{}
	for _, s := range stored {
		have[s[strings.IndexByte(s, ':')+1:]] = true
	}
	for token, id := range p.ids {
		if id == 0 || id >= last {
			continue
		}
		confirmed++
		if !have[fmt.Sprint(id)] {
			gone = append(gone, token)
		}
	}
	return confirmed, gone
}

// freeze stops a process and returns when none of its threads can do anything
// but end the system call it is in.
func freeze(t *testing.T, pid int) {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Error(err)
		return
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil {
			t.Error(err)
			return
		}
		still := true
		for _, name := range stats {
			b, err := os.ReadFile(name)
			state := string(b[strings.LastIndexByte(string(b), ')')+1:]) // " T 1 …"
			still = still && (err != nil || strings.HasPrefix(state, " T") || strings.HasPrefix(state, " D"))
		}
		if still {
			return
		}
	}
	t.Errorf("process %d does not stop", pid)
}

// A disk is an ext4 on a loop device, in a file.
type disk struct {
	image, mount string
}

// newDisk makes and mounts one; where that is not allowed the test is skipped,
// and says so.
func newDisk(t *testing.T) *disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root may mount a disk to cut the power of; the order of system calls is proved by TestStrace…")
	}
	dir := crashDir(t)
	d := &disk{image: filepath.Join(dir, "disk"), mount: filepath.Join(dir, "mnt")}
	f, err := os.Create(d.image)
	if err == nil {
		err = f.Truncate(256 << 20)
		f.Close()
	}
	if err == nil {
		err = os.Mkdir(d.mount, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", d.image).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: no ext4 can be made here: %v: %s", err, out)
	}
	// A sandbox of another test begins with a copy of all mounts. Below a shared one
	// its copy goes when ours does; else it would keep a disk without power alive.
	for _, c := range [][]string{{"mount", "--bind", dir, dir}, {"mount", "--make-shared", dir}, {"mount", "-o", "loop", d.image, d.mount}} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: no loop device can be mounted here: %v: %v: %s", c, err, out)
		}
		if c[1] != "--make-shared" {
			t.Cleanup(func() {
				if out, err := exec.Command("umount", c[len(c)-1]).CombinedOutput(); err != nil {
					t.Errorf("umount: %v: %s", err, out)
				}
			})
		}
	}
	return d
}

// off takes the power away: nothing that the file system still holds in memory
// reaches the disk, its journal neither (FS_IOC_SHUTDOWN with
// EXT4_GOING_FLAGS_NOLOGFLUSH, linux/fs/ext4/ext4.h).
func (d *disk) off() {
	const shutdown, noLogFlush = 0x8004587d, 2
	f, err := os.Open(d.mount)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	flag := uint32(noLogFlush)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), shutdown, uintptr(unsafe.Pointer(&flag))); errno != 0 {
		panic(errno)
	}
}

// on is the start after a power cut: the file system is mounted anew from what
// the disk holds, once nobody has the old one any more.
func (d *disk) on(t *testing.T) {
	t.Helper()
	run := func(name string, args ...string) string {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v: %s", name, args, err, out)
		}
		return string(out)
	}
	run("umount", d.mount)
	for end := time.Now().Add(patience); run("losetup", "-j", d.image) != ""; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("somebody keeps the disk that was unmounted")
		}
	}
	run("mount", "-o", "loop", d.image, d.mount)
}
