package mask

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxHidden bounds how many places one program's veil hides.
const maxHidden = 2048

// Kernel directories that root can write or trace others through.
var rootHidden = []string{"/sys/kernel/debug", "/sys/kernel/tracing", "/sys/kernel/security", "/sys/fs/bpf"}

// rootLocked are the settings of the kernel that root can write by its user id
// alone: some of them name a program that the kernel runs outside of every
// namespace. bubblewrap leaves them open where it cannot write their directory.
var rootLocked = []string{"/proc/sys", "/proc/sysrq-trigger"}

// lock makes the file or directory p read-only; what is mounted in it is not seen any more.
func lock(p string) error {
	fd, err := straight(unix.AT_FDCWD, p)
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := attach(tree, fd); err != nil {
		return err
	}
	return lockMount(tree)
}

// A Cover lists what to hide; see sandbox.Cover.
type Cover struct{ Hidden, Open []string }

// A Place is which directory a path was in when it was first seen. A program that
// renames or replaces that directory does not uncover what is in it: Hide fails.
type Place struct{ Dev, Ino uint64 }

// Hide mounts over everything that c lists, at every place it is mounted, and
// over the devices that give raw access to disks or memory. places are the
// directories of the hidden paths; a path without one did not exist. root is
// whether the user is root. Hide needs the namespace's CAP_SYS_ADMIN and counts on
// being its only process.
func Hide(c Cover, places map[string]Place, root bool) error {
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	all := rawDevices()
	if root {
		all = append(all, rootHidden...)
		for _, p := range rootLocked {
			if err := lock(p); err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
		}
	}
	for _, p := range c.Hidden {
		all = append(append(all, p), aliasesOf(p, c.Open, mounts)...)
	}
	if len(all) > maxHidden {
		return fmt.Errorf("%d places would have to be hidden; at most %d are", len(all), maxHidden)
	}
	slices.Sort(all) // directories before what is in them
	blank, err := newBlank()
	if err != nil {
		return err
	}
	for _, p := range slices.Compact(all) {
		if coveredBy(p, c) {
			continue
		}
		at, known := places[p]
		if !known && slices.Contains(c.Hidden, p) {
			continue // its directory did not exist when the program was ordered
		}
		if err := hideOne(p, at, c.Open, blank); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return blank.done()
}

// coveredBy reports whether p goes with a hidden directory that it is in.
func coveredBy(p string, c Cover) bool {
	in := func(folder string) bool { return isBelow(p, folder) }
	return slices.ContainsFunc(c.Hidden, in) && !slices.ContainsFunc(c.Open, in)
}

// straight opens path below the directory dir (or AT_FDCWD), with no link on the way.
func straight(dir int, path string) (int, error) {
	return unix.Openat2(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
}

func missing(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// errMoved is returned where a hidden file is not in the directory it was in.
var errMoved = errors.New("its directory was renamed or replaced while the gateway runs, so it cannot be hidden: restore the directory, or restart the gateway")

// openHidden opens what is at p, in the directory at. It returns -1 when there is
// nothing to hide. A zero at is any directory.
func openHidden(p string, at Place) (int, error) {
	dir, err := straight(unix.AT_FDCWD, path.Dir(p))
	if at == (Place{}) && err != nil {
		return -1, nil // not there, or closed to this user
	}
	if missing(err) || errors.Is(err, unix.ELOOP) {
		return -1, errMoved
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return -1, err
	}
	if at != (Place{}) && at != (Place{uint64(st.Dev), st.Ino}) {
		return -1, errMoved
	}
	fd, err := straight(dir, path.Base(p))
	if missing(err) || at == (Place{}) && err != nil {
		return -1, nil
	}
	return fd, err
}

// hideOne hides one path and checks that the path does not lead to the file any
// more.
func hideOne(p string, at Place, open []string, blank *blank) error {
	fd, err := openHidden(p, at)
	if fd < 0 || err != nil {
		return err
	}
	defer unix.Close(fd)
	var was, now unix.Stat_t
	if err := unix.Fstat(fd, &was); err != nil {
		return err
	}
	switch was.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return errors.New("it is a link now: start the gateway again if that is meant")
	case unix.S_IFDIR:
		err = hideFolder(fd, p, open)
	default:
		err = blank.over(fd)
	}
	if err != nil {
		return err
	}
	again, err := straight(unix.AT_FDCWD, p)
	if err != nil {
		return err
	}
	defer unix.Close(again)
	if err := unix.Fstat(again, &now); err != nil {
		return err
	}
	if now.Dev == was.Dev && now.Ino == was.Ino {
		return errMoved
	}
	return nil
}

// emptyMount returns a small file system in memory that is not mounted yet.
func emptyMount(mode string) (int, error) {
	ctx, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("new file system: %w", err)
	}
	defer unix.Close(ctx)
	for _, set := range [][2]string{{"size", "64k"}, {"nr_inodes", "64"}, {"mode", mode}} {
		if err := unix.FsconfigSetString(ctx, set[0], set[1]); err != nil {
			return -1, fmt.Errorf("new file system: %s: %w", set[0], err)
		}
	}
	if err := unix.FsconfigCreate(ctx); err != nil {
		return -1, fmt.Errorf("new file system: %w", err)
	}
	return unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
}

// attach mounts the detached mount from on what the descriptor on refers to.
func attach(from, on int) error {
	return unix.MoveMount(from, "", on, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// lockMount makes an attached mount read-only.
func lockMount(fd int) error {
	return unix.Mount("", "/proc/self/fd/"+strconv.Itoa(fd), "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// hideFolder mounts an empty directory on dir, which is at p, with those of open
// that are directly in it as they are.
func hideFolder(dir int, p string, open []string) error {
	mode := "0000"
	var inside []string
	for _, o := range open {
		if path.Dir(o) == p {
			inside, mode = append(inside, path.Base(o)), "0755"
		}
	}
	over, err := emptyMount(mode)
	if err != nil {
		return err
	}
	defer unix.Close(over)
	if err := attach(over, dir); err != nil {
		return err
	}
	for _, name := range inside {
		if err := keepOpen(dir, over, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return lockMount(over)
}

// keepOpen shows the directory name of the hidden directory dir in the mount over it.
// A link is shown as a link.
func keepOpen(dir, over int, name string) error {
	target := make([]byte, unix.PathMax)
	if n, err := unix.Readlinkat(dir, name, target); err == nil {
		return unix.Symlinkat(string(target[:n]), over, name)
	}
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := unix.Mkdirat(over, name, 0o700); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", over, name, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// A blank is a file that holds nothing and that no user may open, to be mounted
// over files. It is on a file system that is mounted at blankAt until done.
type blank struct{ mount int }

const (
	blankAt   = "/proc/sys" // always there, and nothing in it is to be hidden
	blankName = "hidden"
)

func newBlank() (*blank, error) {
	fd, err := emptyMount("0700")
	if err != nil {
		return nil, err
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, blankAt, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return nil, err
	}
	file, err := unix.Openat(fd, blankName, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &blank{fd}, unix.Close(file)
}

// over mounts the blank file on the file that fd refers to.
func (b *blank) over(fd int) error {
	tree, err := unix.OpenTree(b.mount, blankName, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := attach(tree, fd); err != nil {
		return err
	}
	return lockMount(tree)
}

// done unmounts the file system of the blank file; its copies stay.
func (b *blank) done() error {
	return errors.Join(unix.Unmount("/proc/self/fd/"+strconv.Itoa(b.mount), unix.MNT_DETACH), unix.Close(b.mount))
}

// Limits of what is read below /dev.
const (
	maxDevices     = 4096
	maxDeviceDepth = 3
)

// rawDevices returns the devices of disks, of memory and of commands to disks that
// this user may open.
func rawDevices() (list []string) {
	seen := 0
	_ = filepath.WalkDir("/dev", func(p string, d fs.DirEntry, err error) error {
		if seen++; seen > maxDevices {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() && (p == "/dev/pts" || p == "/dev/shm" || strings.Count(p, "/") > maxDeviceDepth) {
			return fs.SkipDir
		}
		var st unix.Stat_t
		if d.Type()&fs.ModeDevice == 0 || unix.Lstat(p, &st) != nil || !isRaw(p, &st) {
			return nil
		}
		if unix.Access(p, unix.R_OK) == nil || unix.Access(p, unix.W_OK) == nil {
			list = append(list, p)
		}
		return nil
	})
	return list
}

// isRaw reports whether a device gives access to a whole disk or to memory.
func isRaw(p string, st *unix.Stat_t) bool {
	if st.Mode&unix.S_IFMT == unix.S_IFBLK {
		return true
	}
	major, minor := unix.Major(st.Rdev), unix.Minor(st.Rdev)
	name := filepath.Base(p)
	switch {
	case major == 1: // mem, kmem, port
		return minor == 1 || minor == 2 || minor == 4
	case major == 21, major == 90, major == 162: // generic SCSI, flash memory, raw disks
		return true
	}
	return strings.HasPrefix(p, "/dev/bsg/") || strings.HasPrefix(name, "nvme") || strings.HasPrefix(name, "ng")
}
