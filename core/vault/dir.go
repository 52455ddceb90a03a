package vault

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"gatehouse/core"
)

// A Dir is a resolved path.
type Dir struct {
	Path   string // absolute, symbolic links resolved as far as it exists
	Rel    string // relative to the vault, "." for the vault itself; "" outside
	Inside bool   // in the vault
	Exists bool   // and is a directory
}

// Dir resolves a path that is absolute or relative to the vault; "" is the
// vault. The path may be missing: behind a link that leads out it is outside.
func (v *Vault) Dir(name string) (Dir, error) {
	if name == "" || name == "." || name == v.path {
		return Dir{Path: v.path, Rel: ".", Inside: true, Exists: true}, nil
	}
	return v.Resolve(v.path, name)
}

// Resolve is Dir for a path that is relative to the absolute directory base.
func (v *Vault) Resolve(base, name string) (Dir, error) {
	if strings.ContainsRune(name, 0) {
		return Dir{}, core.Errorf(core.Invalid, "the path holds a NUL character")
	}
	p := filepath.FromSlash(name)
	if !filepath.IsAbs(p) {
		p = filepath.Join(base, p)
	}
	d := Dir{Path: resolve(filepath.Clean(p))}
	if rel, err := filepath.Rel(v.path, d.Path); err == nil && filepath.IsLocal(rel) {
		d.Rel, d.Inside = filepath.ToSlash(rel), true
	}
	st, err := os.Stat(d.Path)
	d.Exists = err == nil && st.IsDir()
	return d, nil
}

// resolve follows links in the part of p that exists.
func resolve(p string) string {
	rest := ""
	for {
		r, err := filepath.EvalSymlinks(p)
		up := filepath.Dir(p)
		switch {
		case err == nil:
			return filepath.Join(r, rest)
		case up == p:
			return filepath.Join(p, rest)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR): // a loop, or no right to look
			return filepath.Join(resolve(up), filepath.Base(p), rest)
		}
		if to, err := os.Readlink(p); err == nil { // a link to something missing
			if !filepath.IsAbs(to) {
				to = up + string(filepath.Separator) + to // not cleaned: ".." behind a link is not textual
			}
			dir, base := filepath.Split(to)
			if r, err := filepath.EvalSymlinks(dir); err == nil && base != ".." && base != "." && base != "" {
				return filepath.Join(resolve(filepath.Join(r, base)), rest)
			}
			return filepath.Join(resolve(filepath.Clean(to)), rest)
		}
		p, rest = up, filepath.Join(filepath.Base(p), rest)
	}
}
