package vault

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strconv"
)

// A Draft is a file of the vault that is being written. It has a temporary name
// until Keep.
type Draft struct {
	v    *Vault
	f    *os.File
	temp string
	done bool
}

// Draft creates a file in the directory dir, which is created if missing. End it
// with Keep or Drop.
func (v *Vault) Draft(dir string) (*Draft, error) {
	temp := path.Join(dir, "."+strconv.FormatUint(rand.Uint64(), 36)+tempSuffix)
	f, err := v.open(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, explain("write", err)
	}
	return &Draft{v: v, f: f, temp: temp}, nil
}

// Write adds p to the file.
func (d *Draft) Write(p []byte) (int, error) {
	n, err := d.f.Write(p)
	return n, explain("write", err)
}

// Sync has what was written on the disk, so that Keep takes little time.
func (d *Draft) Sync() error { return explain("write", d.f.Sync()) }

// Keep gives the file its name, in the directory where it was begun: it is whole
// and on the disk when Keep returns. A name that is taken is replaced. After an
// error nothing is left of it.
func (d *Draft) Keep(name string) error {
	err := errors.Join(d.f.Sync(), d.f.Close())
	if err == nil {
		err = d.v.rename(d.temp, name)
	}
	d.done = true
	if err != nil {
		_ = d.v.root.Remove(d.temp)
		return explain("write", err)
	}
	return explain("write", d.v.syncDir(path.Dir(name)))
}

// Drop takes away what was written; after Keep it does nothing.
func (d *Draft) Drop() {
	if d.done {
		return
	}
	d.done = true
	_ = d.f.Close()
	_ = d.v.root.Remove(d.temp)
}

// Remove deletes the file name for good; a missing one is fs.ErrNotExist.
func (v *Vault) Remove(name string) error {
	if err := v.Fenced(); err != nil {
		return err
	}
	return explain("remove", v.root.Remove(name))
}

// Unnamed returns a new file on the vault's disk that has no name, so that nothing is left of it when
// it is closed or the process ends. It is for what is too large for a directory of temporary files.
func (v *Vault) Unnamed() (*os.File, error) {
	temp := path.Join(stateDir, "."+strconv.FormatUint(rand.Uint64(), 36)+tempSuffix)
	f, err := v.open(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, explain("write", err)
	}
	if err := v.root.Remove(temp); err != nil {
		return nil, explain("write", errors.Join(err, f.Close()))
	}
	return f, nil
}

// SweepTranscripts removes what a crash has left of transcripts that were being written under a temporary
// name (Draft, CopyIn). Call it while nothing writes any.
func (v *Vault) SweepTranscripts() error {
	err := fs.WalkDir(v.root.FS(), projectDir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir // missing, or not ours to read
		case d.Type().IsRegular() && IsTemporary(name):
			return v.root.Remove(name)
		}
		return nil
	})
	return explain("remove", err)
}
