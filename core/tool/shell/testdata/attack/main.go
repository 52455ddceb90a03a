// Command attack tries what a shell has no command for. It prints the mark
// when it got through.
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var attacks = map[string]func(args []string) error{
	"dial":    dial,
	"udp":     udp,
	"memory":  memory,
	"threads": threads,
	"spin":    spin,
	"ptrace":  ptrace,
	"mem":     mem,
	"readv":   readv,
	"key":     key,
	"tiocsti": tiocsti,
	"handle":  handle,
	"vsock":   vsock,
	"shm":     shm,
	"daemon":  daemon,
	"setid":   setID,
	"swap":    swap,
}

func main() {
	err := fmt.Errorf("unknown attack")
	if f := attacks[os.Args[1]]; f != nil {
		err = f(os.Args[2:])
	}
	if err != nil {
		fmt.Println("held:", err)
		os.Exit(1)
	}
}

func won() { fmt.Println("CANA" + "RY") }

// dial reads what a listener states: network, address.
func dial(a []string) error {
	c, err := net.DialTimeout(a[0], a[1], 3*time.Second)
	if err != nil {
		return err
	}
	_ = c.SetDeadline(time.Now().Add(3 * time.Second))
	b, err := io.ReadAll(c)
	fmt.Println(string(b))
	return err
}

// udp sends a datagram; its receiver knows whether it came.
func udp(a []string) error {
	c, err := net.Dial("udp", a[0])
	if err != nil {
		return err
	}
	_, err = c.Write([]byte(a[1]))
	return err
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// memory writes so many MiB and holds them a while.
// grace is how long somebody who looks now and then has to see it, on a machine
// that has much else to do.
const grace = 3 * time.Second

func memory(a []string) error {
	var held [][]byte
	for range number(a[0]) / 16 {
		b := make([]byte, 16<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		held = append(held, b)
	}
	time.Sleep(grace)
	runtime.KeepAlive(held)
	won()
	return nil
}

func threads(a []string) error {
	n := number(a[0])
	ready, stop := make(chan bool, n), make(chan bool)
	for range n {
		go func() {
			runtime.LockOSThread()
			ready <- true
			<-stop
		}()
	}
	for range n {
		<-ready
	}
	time.Sleep(grace)
	won()
	return nil
}

func spin(a []string) error {
	start, seconds := time.Now(), number(a[0])
	for {
		var r unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
			return err
		}
		if r.Utime.Sec+r.Stime.Sec >= int64(seconds) || time.Since(start) > 30*time.Second {
			won()
			return nil
		}
	}
}

func ptrace(a []string) error {
	runtime.LockOSThread()
	pid := number(a[0])
	if err := unix.PtraceSeize(pid); err != nil {
		return err
	}
	won()
	return nil
}

// mem opens a process's memory and finds its stack's environment.
func mem(a []string) error {
	f, err := os.Open("/proc/" + a[0] + "/mem")
	if err != nil {
		return err
	}
	maps, err := os.ReadFile("/proc/" + a[0] + "/maps")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.Contains(line, "[stack]") {
			continue
		}
		var from, to int64
		_, _ = fmt.Sscanf(line, "%x-%x", &from, &to)
		b := make([]byte, to-from)
		n, _ := f.ReadAt(b, from)
		if strings.Contains(string(b[:n]), "CANARY") {
			won()
			return nil
		}
	}
	return fmt.Errorf("nothing found")
}

func readv(a []string) error {
	maps, err := os.ReadFile("/proc/" + a[0] + "/maps")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		_, _ = fmt.Sscanf(line, "%x-%x", &from, &to)
		if !strings.Contains(line, "[stack]") {
			continue
		}
		b := make([]byte, 16)
		local := []unix.Iovec{{Base: &b[0], Len: 16}}
		if _, err := unix.ProcessVMReadv(number(a[0]), local, []unix.RemoteIovec{{Base: to - 16, Len: 16}}, 0); err != nil {
			return err
		}
		won()
		return nil
	}
	return fmt.Errorf("nothing found")
}

func key(a []string) error {
	b := make([]byte, 64)
	n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, number(a[0]), b, 0)
	if err != nil {
		return err
	}
	fmt.Println(string(b[:n]))
	return nil
}

// tiocsti types into a terminal as if a user had.
func tiocsti([]string) error {
	m, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(int(m.Fd()), unix.TIOCGPTN)
	if err != nil {
		return err
	}
	if err := unix.IoctlSetPointerInt(int(m.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	s, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	if os.Getenv("ATTACK_SESSION") == "" { // a session of our own, with this terminal
		cmd := exec.Command("/proc/self/exe", "tiocsti")
		if self, err := os.Executable(); err == nil {
			cmd.Path = self
		}
		cmd.Env = append(os.Environ(), "ATTACK_SESSION=1")
		cmd.Stdin, cmd.Stdout, cmd.SysProcAttr = s, os.Stdout, &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
		return cmd.Run()
	}
	c := byte('x')
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&c))); errno != 0 {
		return errno
	}
	won()
	return nil
}

// handle opens the root directory by its inode number, past every mount.
func handle([]string) error {
	mount, err := unix.Open(".", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	b := make([]byte, 8)
	binary.LittleEndian.PutUint32(b, 2)
	fd, err := unix.OpenByHandleAt(mount, unix.NewFileHandle(1, b), unix.O_RDONLY)
	if err != nil {
		return err
	}
	won()
	return unix.Close(fd)
}

func vsock([]string) error {
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	won()
	return unix.Close(fd)
}

// shm reads a segment of shared memory.
func shm(a []string) error {
	b, err := unix.SysvShmAttach(number(a[0]), 0, unix.SHM_RDONLY)
	if err != nil {
		return err
	}
	fmt.Println(string(b[:16]))
	return nil
}

// daemon leaves a process in a session of its own.
func daemon(a []string) error {
	cmd := exec.Command("/bin/sleep", a[0])
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// setID makes a file that runs with its owner's rights, by every call there is.
func setID(a []string) error {
	for i, try := range []func(string) error{
		func(p string) error { return unix.Chmod(p, 0o4755) },
		func(p string) error { return unix.Fchmodat(unix.AT_FDCWD, p, 0o4755, 0) },
		func(p string) error {
			fd, err := unix.Open(p, unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			return unix.Fchmod(fd, 0o4755)
		},
		func(p string) error {
			fd, err := unix.Open(p+"new", unix.O_CREAT|unix.O_WRONLY, 0o4755)
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		},
	} {
		p := a[0] + strconv.Itoa(i)
		_ = os.WriteFile(p, nil, 0o755)
		_ = try(p)
		for _, p := range []string{p, p + "new"} {
			if st, err := os.Stat(p); err == nil && st.Mode()&os.ModeSetuid != 0 {
				won()
				return nil
			}
		}
	}
	return fmt.Errorf("no mode was set")
}

// swap exchanges two names as fast as it can, for a number of milliseconds.
func swap(a []string) error {
	for end := time.Now().Add(time.Duration(number(a[2])) * time.Millisecond); time.Now().Before(end); {
		if err := unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE); err != nil {
			return err
		}
	}
	return nil
}
