package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"gatehouse/core/sandbox/mask"
)

// A Veil runs programs that see all of the machine that the gateway's user
// sees, except for what a Cover hides and for processes other than their own.
// Network, HOME, /tmp and /dev are the user's; block devices and raw memory
// cannot be opened. bubblewrap makes the mount and pid namespace (and, unless
// the gateway is root, a user namespace that maps only its own user), and our
// own program inside it (behind) hides what the Cover lists by descriptor, gives
// up every capability that could undo it, and becomes the program.
//
// A nil *Veil hides nothing. A Veil is safe for concurrent use.
type Veil struct {
	bwrap string
	cover func() Cover

	mu     sync.Mutex
	places map[string]mask.Place // directory of each hidden path as it was first seen; at most maxPlaces
}

// maxPlaces bounds the paths that one Veil hides.
const maxPlaces = 1000

// placesOf returns the places of c's paths, each as it was first seen.
func (v *Veil) placesOf(c Cover) (map[string]mask.Place, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.places == nil {
		v.places = map[string]mask.Place{}
	}
	now := map[string]mask.Place{}
	for _, p := range c.Hidden {
		if !filepath.IsAbs(p) || filepath.Clean(p) != p || p == "/" {
			return nil, fmt.Errorf("veil: path %q is not absolute and clean", p)
		}
		if known, ok := v.places[p]; ok {
			now[p] = known
			continue
		}
		var st unix.Stat_t
		if unix.Lstat(filepath.Dir(p), &st) != nil {
			continue // no such directory, so nothing in it
		}
		if len(v.places) >= maxPlaces {
			return nil, fmt.Errorf("veil: more than %d paths are to be hidden", maxPlaces)
		}
		v.places[p] = mask.Place{Dev: uint64(st.Dev), Ino: st.Ino}
		now[p] = v.places[p]
	}
	return now, nil
}

// TryVeil looks for the Veil that mode allows on this machine. Like Open it runs a
// program once, so that what it promises was seen to work.
func TryVeil(mode string) VeilTrial {
	if mode == None {
		return noVeil("isolation is switched off (SANDBOX is none)", "")
	}
	for _, p := range places {
		if _, err := exec.LookPath(p); err != nil {
			continue
		}
		v := &Veil{bwrap: p}
		if said := v.try(); said != "" {
			return noVeil(reason(said))
		}
		return VeilTrial{v, Backend{Name: VeilName, Works: true, Text: veilWorks}}
	}
	return noVeil("bubblewrap is not installed", "install the package bubblewrap (it brings the program bwrap)")
}

// Open returns the Veil, or nil, and what to say of it either way. cover is called for
// each program.
func (t VeilTrial) Open(cover func() Cover) (*Veil, string) {
	if t.veil == nil {
		return nil, t.b.said("; ")
	}
	v := &Veil{bwrap: t.veil.bwrap, cover: cover}
	if _, err := v.placesOf(cover()); err != nil { // before any program runs
		return nil, veilFails + err.Error()
	}
	return v, veilWorks
}

// try hides a file and a directory from a program that tries to read both. It
// returns "" when the program ran and read neither, else what went wrong.
func (v *Veil) try() string {
	dir, err := os.MkdirTemp("", "gatehouse-veil-")
	if err == nil {
		defer os.RemoveAll(dir)
		dir, err = filepath.EvalSymlinks(dir)
	}
	file, folder := filepath.Join(dir, "file"), filepath.Join(dir, "folder")
	if err = errors.Join(err, os.WriteFile(file, []byte("seen"), 0o600), os.Mkdir(folder, 0o700),
		os.WriteFile(filepath.Join(folder, "file"), []byte("seen"), 0o600)); err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	one := &Veil{bwrap: v.bwrap, cover: func() Cover { return Cover{Hidden: []string{file, folder}} }}
	cmd, err := one.Tree(ctx, "", "/", []string{"PATH=/usr/bin:/bin"}, "/bin/sh", "-c", "cat "+file+" "+folder+"/file 2>/dev/null; echo fine")
	if err != nil {
		return err.Error()
	}
	return tried(ctx, cmd)
}

// A veilOrder is what behind is given to do.
type veilOrder struct {
	Argv, Env []string
	Dir       string
	Cover     Cover
	Places    map[string]mask.Place
}

// Numbers of the files that bwrap inherits from the watcher (passOn).
const (
	veilOrderFD = 3 + iota
	veilStageFD
)

// Tree returns a Tree with the veil around the program. Only a nil *Veil uses stage.
func (v *Veil) Tree(ctx context.Context, stage, dir string, env []string, argv ...string) (*exec.Cmd, error) {
	if v == nil {
		return Tree(ctx, stage, dir, env, argv...)
	}
	cover := v.cover()
	places, err := v.placesOf(cover)
	if err != nil {
		return nil, err
	}
	order, err := json.Marshal(veilOrder{Argv: argv, Env: env, Dir: dir, Cover: cover, Places: places})
	if err != nil {
		return nil, fmt.Errorf("order for the veil: %w", err)
	}
	f, err := memory("veil", string(order))
	if err != nil {
		return nil, err
	}
	// The running program itself, even when its file was replaced since.
	cmd, err := Tree(ctx, "/proc/self/exe", "/", []string{"PATH=/usr/bin:/bin"}, append([]string{v.bwrap}, veilArgs(os.Geteuid())...)...)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	cmd.Args[0], cmd.Args[1] = "gatehouse", passWord
	cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	return cmd, nil
}

// veilArgs returns bwrap's options. The capabilities are for behind, which keeps
// only those of rootKeeps.
func veilArgs(uid int) []string {
	a := []string{"--unshare-pid", "--die-with-parent", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc", "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP"}
	if uid == 0 {
		a = append(a, "--ro-bind", "/sys", "/sys")
		for _, c := range rootKeeps {
			a = append(a, "--cap-add", c.name)
		}
	} else {
		a = append(a, "--unshare-user", "--uid", strconv.Itoa(uid), "--gid", strconv.Itoa(os.Getegid()))
	}
	return append(a, "--chdir", "/", "--", "/proc/self/fd/"+strconv.Itoa(veilStageFD), behindWord, strconv.Itoa(veilOrderFD))
}

type capability struct {
	name   string
	number uint
}

// rootKeeps are the capabilities that a program keeps behind the veil of a
// gateway that is root: none that mounts, looks into other processes, makes
// devices, opens files by handle, or reaches the kernel's own memory.
var rootKeeps = []capability{
	{"CAP_CHOWN", unix.CAP_CHOWN}, {"CAP_DAC_OVERRIDE", unix.CAP_DAC_OVERRIDE}, {"CAP_FOWNER", unix.CAP_FOWNER}, {"CAP_FSETID", unix.CAP_FSETID},
	{"CAP_KILL", unix.CAP_KILL}, {"CAP_SETGID", unix.CAP_SETGID}, {"CAP_SETUID", unix.CAP_SETUID}, {"CAP_LINUX_IMMUTABLE", unix.CAP_LINUX_IMMUTABLE},
	{"CAP_NET_BIND_SERVICE", unix.CAP_NET_BIND_SERVICE}, {"CAP_NET_ADMIN", unix.CAP_NET_ADMIN}, {"CAP_NET_RAW", unix.CAP_NET_RAW},
	{"CAP_IPC_LOCK", unix.CAP_IPC_LOCK}, {"CAP_SYS_CHROOT", unix.CAP_SYS_CHROOT}, {"CAP_SYS_NICE", unix.CAP_SYS_NICE}, {"CAP_SYS_RESOURCE", unix.CAP_SYS_RESOURCE},
	{"CAP_AUDIT_WRITE", unix.CAP_AUDIT_WRITE},
}
