package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/vault"
)

// areaBatch is how many entries of a directory are read at a time.
const areaBatch = 256

// room refuses a change that would take the area of a guest beyond its bounds:
// name would be made, or grow by more bytes. Who is no guest has no area. It
// walks the area, at most tool.MaxAreaEntries of it, so it is called only for
// what grows.
func room(ctx context.Context, t *tool.Turn, name string, isNew bool, more int64) error {
	area := tool.Area(t.User)
	depth, inside := tool.AreaDepth(area, name)
	if !t.Bounded() || !inside || !isNew && more <= 0 {
		return nil
	}
	if isNew && depth > tool.MaxAreaDepth {
		return core.Errorf(core.Invalid, "it would be %d folders deep in your own folder, and at most %d are possible: choose a shorter path", depth, tool.MaxAreaDepth)
	}
	c := counter{ctx: ctx, t: t}
	err := c.folder(area, 0)
	if err != nil && !errors.Is(err, errFull) {
		return err
	}
	if isNew {
		c.entries += 1 + missing(t, path.Dir(name))
	}
	switch {
	case c.entries > tool.MaxAreaEntries:
		return core.Errorf(core.Denied, "your own folder would hold more than %d files and folders: delete some, or ask the owner to", tool.MaxAreaEntries)
	case c.bytes+more > tool.MaxAreaBytes:
		return core.Errorf(core.Denied, "your own folder would hold more than %s: delete files, or ask the owner to", core.ByteSize(tool.MaxAreaBytes))
	}
	return nil
}

// Room is what room refuses for a guest, for other writers to the directory of user. Of the
// operator nothing is refused.
func Room(ctx context.Context, v *vault.Vault, user int64, name string, isNew bool, more int64) error {
	if user == core.Operator {
		return nil
	}
	return room(ctx, &tool.Turn{User: user, Trust: core.Sandboxed, Vault: v}, name, isNew, more)
}

// errFull ends a count that has reached its bound.
var errFull = errors.New("the area is full")

// A counter counts what an area holds.
type counter struct {
	ctx     context.Context
	t       *tool.Turn
	entries int
	bytes   int64
}

// folder counts what is in a directory and below. A directory that is gone or cannot
// be opened counts as one entry. It goes a little deeper than what may be
// made, and no further: a shell may have left more.
func (c *counter) folder(name string, depth int) error {
	dir, err := c.t.Vault.OpenNoLinks(name)
	if err != nil || depth > 2*tool.MaxAreaDepth {
		if err == nil {
			_ = dir.Close()
		}
		return nil
	}
	var below []string
	for err == nil {
		if c.ctx.Err() != nil {
			err = c.ctx.Err()
			break
		}
		var list []fs.DirEntry
		list, err = dir.ReadDir(areaBatch)
		for _, e := range list {
			if c.entries++; c.entries > tool.MaxAreaEntries {
				err = errFull
				break
			}
			if at := path.Join(name, e.Name()); e.IsDir() {
				below = append(below, at)
			} else {
				c.bytes += sizeIn(dir, e.Name())
			}
		}
	}
	_ = dir.Close() // before the next ones: else one stays open for each level of nesting
	if !errors.Is(err, io.EOF) {
		return err
	}
	for _, at := range below {
		if err := c.folder(at, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// sizeIn returns the size of the file name in the open directory dir, 0 where it
// is gone.
func sizeIn(dir *os.File, name string) int64 {
	conn, err := dir.SyscallConn()
	if err != nil {
		return 0
	}
	var st unix.Stat_t
	if e := conn.Control(func(fd uintptr) { err = unix.Fstatat(int(fd), name, &st, unix.AT_SYMLINK_NOFOLLOW) }); e != nil || err != nil {
		return 0
	}
	return st.Size
}

// missing returns how many directories have to be made for dir.
func missing(t *tool.Turn, dir string) (n int) {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := t.Vault.Root().Lstat(dir); err == nil {
			return n
		}
		n++
	}
	return n
}
