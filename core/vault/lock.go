package vault

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gatehouse/core"
)

// Lock locks the vault for this process, exclusively or shared, until Close or
// the end of the process. When another process has the lock, it
// returns core.Conflict, which names that process.
func (v *Vault) Lock(exclusive bool) error {
	f, err := v.open(lockName, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return explain("lock", err)
	}
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	if err := flock(f, how); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("lock vault: %w", err)
		}
		return core.Errorf(core.Conflict, "the vault %s is in use by %s: stop it first", v.path, holder(f))
	}
	if err := errors.Join(f.Truncate(0), writeAt(f, strconv.Itoa(os.Getpid())+"\n")); err != nil {
		return errors.Join(explain("lock", err), f.Close())
	}
	v.lock = f
	return nil
}

// flock locks f, or returns EWOULDBLOCK. It tries more than once: who only looks whether a vault is locked
// (Held) has the lock for a moment.
func flock(f *os.File, how int) (err error) {
	for try := 0; try < 5; try++ {
		if err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// holder names the process that has locked f.
func holder(f *os.File) string {
	buf := make([]byte, 20)
	n, _ := f.ReadAt(buf, 0)
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	if pid, err := strconv.Atoi(line); err == nil {
		return "process " + strconv.Itoa(pid)
	}
	return "another process"
}

// Held reports whether a process has the vault at path locked exclusively. It makes
// nothing: a vault that was never locked is fs.ErrNotExist.
func Held(path string) (bool, error) {
	f, err := os.Open(filepath.Join(path, lockName))
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) // given back by Close
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// ErrTaken means that this process does not have the lock of the vault any more. It has no kind: what
// fails with it is for the process that has the lock to do.
var ErrTaken = errors.New("the lock of the vault was taken by another process, or its file was deleted")

// Sign notes in the file of the lock, which this process has, who it is, for Signature.
func (v *Vault) Sign(name string) error {
	if ok, err := v.Holds(); err != nil || !ok {
		return cmp.Or(err, ErrTaken)
	}
	err := writeAt(v.lock, strconv.Itoa(os.Getpid())+"\n"+name+"\n")
	if err == nil {
		err = v.lock.Sync() // other machines read it from the file's server
	}
	if err == nil {
		v.signed.Store(&name)
	}
	return explain("lock", err)
}

// Signature returns what the process that has the lock of the vault at path has signed with;
// "" if nothing.
func Signature(path string) (string, error) {
	b, err := os.ReadFile(filepath.Join(path, lockName))
	return signature(b), err
}

// signature returns the name in the content of the file of a lock.
func signature(b []byte) string {
	_, name, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(name)
}

// Holds reports whether this process still has the lock that it took: Unlock may have taken it away, or a
// file server that did not hear from this machine for long, after which another process has
// written into the file. An error means that the vault cannot be read now.
func (v *Vault) Holds() (bool, error) {
	if v.lock == nil {
		return false, nil
	}
	f, err := os.Open(filepath.Join(v.path, lockName)) // a file server is asked for it; for a Stat it would not be
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return false, err
	}
	ours, err := v.lock.Stat()
	if errors.Is(err, syscall.ESTALE) { // the file server has no such file any more
		return false, nil
	}
	if err != nil || !os.SameFile(ours, now) {
		return false, err
	}
	return v.unchanged(f)
}

// unchanged reports whether f, the file of the lock, says what this process has signed it with.
func (v *Vault) unchanged(f *os.File) (bool, error) {
	name := v.signed.Load()
	if name == nil {
		return true, nil
	}
	buf := make([]byte, 100+len(*name))
	n, err := f.ReadAt(buf, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return signature(buf[:n]) == *name, err
}

// Fenced returns ErrTaken once another process has the lock that this one had signed: what it
// would write now follows what the other one has written. A vault that cannot be read for a moment was not
// taken.
func (v *Vault) Fenced() error {
	if v.signed.Load() == nil {
		return nil
	}
	if ok, err := v.Holds(); err == nil && !ok {
		return ErrTaken
	}
	return nil
}

// Unlock takes the lock of the vault at path from the process that has signed it with name and that does not
// notice: the next Lock succeeds. It is for a process that is known to be dead or fenced, such as one on
// a machine that is gone, whose lock a file server keeps. It is core.Conflict if the lock has another signature.
func Unlock(path, name string) error {
	lock := filepath.Join(path, lockName)
	f, err := os.CreateTemp(filepath.Dir(lock), "lock.*")
	if err != nil {
		return explain("unlock", err)
	}
	err = errors.Join(f.Chmod(0o600), f.Close())
	if err == nil {
		err = replaceLock(lock, f.Name(), path, name)
	}
	if err != nil {
		return errors.Join(explain("unlock", err), os.Remove(f.Name()))
	}
	return nil
}

// replaceLock looks at the signature right before the rename: this process may have been frozen since it was looked
// at before, and another one may have the lock.
func replaceLock(lock, temp, path, name string) error {
	now, err := Signature(path)
	if err != nil {
		return err
	}
	if now != name {
		return core.Errorf(core.Conflict, "another process has the lock of the vault by now")
	}
	return os.Rename(temp, lock)
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}
