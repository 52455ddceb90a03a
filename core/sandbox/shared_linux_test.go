package sandbox

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

	"golang.org/x/sys/unix"
)

// hog names how the program that TestAMemoryHog is takes memory.
const hog = "SANDBOX_TEST_HOG"

const (
	hogPiece  = 10 << 20 // small: the address space is limited too
	hogPieces = 260      // 2.6 GiB in all
)

// TestAMemoryHog is no test: it is the program of the next one. It takes 2.6 GiB
// so that no process counts them, and says so when it has them.
func TestAMemoryHog(t *testing.T) {
	how := os.Getenv(hog)
	if how == "" {
		t.Skip("a part of TestMemoryThatNoProcessCountsIsHeldToTheLimit")
	}
	for range hogPieces {
		if err := takeMemory(how); err != nil {
			fmt.Println("refused:", err)
			return
		}
	}
	fmt.Println("it has all")
	time.Sleep(3 * watchEvery) // so that the watcher looks once more
}

func takeMemory(how string) error {
	switch how {
	case "memfd":
		fd, err := unix.MemfdCreate("hog", 0)
		if err != nil {
			return err
		}
		return fill(fd)
	case "shmget":
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, hogPiece, unix.IPC_CREAT|0o600)
		if err != nil {
			return err
		}
		b, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			return err
		}
		touch(b)
		return unix.SysvShmDetach(b)
	case "files":
		f, err := os.CreateTemp("/dev/shm", "hog")
		if err != nil {
			return err
		}
		return fill(int(f.Fd()))
	}
	// A shared mapping of which one page is kept keeps all of them.
	b, err := syscall.Mmap(-1, 0, hogPiece, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANON)
	if err != nil {
		return err
	}
	touch(b)
	_, _, errno := syscall.Syscall(syscall.SYS_MUNMAP, addressOf(b)+4096, hogPiece-4096, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func touch(b []byte) {
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
}

// fill writes a piece into a file that stays open.
func fill(fd int) error {
	block := make([]byte, 1<<20)
	for range hogPiece >> 20 {
		if _, err := unix.Write(fd, block); err != nil {
			return err
		}
	}
	return nil
}

func TestMemoryThatNoProcessCountsIsHeldToTheLimit(t *testing.T) {
	box, b := probe(self(t))
	if box == nil {
		t.Skip(b.Text)
	}
	limits := Limits{Memory: 256 << 20, FileSize: 4 << 30}
	for how, refused := range map[string]bool{"memfd": true, "shmget": true, "files": true, "shared": false} {
		t.Run(how, func(t *testing.T) {
			var mu sync.Mutex
			why := ""
			gone := make(chan struct{})
			s := Spec{ReadOnly: []string{filepath.Dir(self(t))}, Dir: "/tmp", Env: []string{"PATH=/usr/bin", hog + "=" + how}, Limits: limits,
				OnGone: func() { close(gone) }, OnLimit: func(text string) {
					mu.Lock()
					defer mu.Unlock()
					why = text
				}}
			cmd, err := box.Command(t.Context(), s, self(t), "-test.run=^TestAMemoryHog$")
			if err != nil {
				t.Fatal(err)
			}
			out := said(t, cmd)
			<-gone
			if strings.Contains(out, "ThreadSanitizer failed to allocate") {
				t.Skip("a program built with -race does not start within a limit of addresses")
			}
			mu.Lock()
			defer mu.Unlock()
			held := strings.Contains(why, "256 MiB of memory") || refused && (strings.Contains(out, "refused:") || strings.Contains(out, "cannot allocate memory"))
			if !held || strings.Contains(out, "it has all") {
				t.Errorf("ended because %q\n%s", why, out)
			}
		})
	}
}

// A program that shares memory within its limit is left alone.
func TestSharedMemoryWithinTheLimitIsLeftAlone(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no Python here")
	}
	box, b := probe(self(t))
	if box == nil {
		t.Skip(b.Text)
	}
	cmd, err := box.Command(t.Context(), Spec{Dir: "/tmp", Env: []string{"PATH=/usr/bin:/bin"}, Limits: Limits{Memory: 512 << 20}}, "python3", "-c", `
import mmap, multiprocessing, os, time
m = mmap.mmap(-1, 100 << 20)
for i in range(0, len(m), 4096): m[i] = 1
with multiprocessing.Pool(2) as p: print(sum(p.map(abs, range(-9, 0))))
time.sleep(0.3)
print(m[4096])`)
	if err != nil {
		t.Fatal(err)
	}
	if out := said(t, cmd); out != "45\n1\n" {
		t.Errorf("%q", out)
	}
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
