package vault

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"

	"gatehouse/core"
	"gatehouse/core/beneath"
)

// ErrChanged is the cause when a file has another content than the caller read.
var ErrChanged = errors.New("the file was changed by another program")

// ReadNoLinks returns the content of the regular file name, which has at most most
// bytes: a longer one is core.TooLarge, a directory and a name that goes through a link
// are core.Invalid. A missing file is fs.ErrNotExist.
func (v *Vault) ReadNoLinks(name string, most int64) ([]byte, error) {
	top, err := v.Beneath()
	if err != nil {
		return nil, explain("read", err)
	}
	defer top.Close()
	data, _, err := readIn(top, name, most)
	return data, explain("read", err)
}

// readIn returns the content and the mode of the file name below d.
func readIn(d *beneath.Dir, name string, most int64) ([]byte, fs.FileMode, error) {
	f, err := d.Open(name)
	if errors.Is(err, beneath.ErrLink) || errors.Is(err, beneath.ErrSpecial) {
		return nil, 0, &core.Error{Kind: core.Invalid, Text: name + " is a link or no file: move it away", Err: err}
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if st.IsDir() {
		return nil, 0, core.Errorf(core.Invalid, "%s is a folder, where a file was expected: move it away", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = core.Errorf(core.TooLarge, "%s is larger than %s", name, core.ByteSize(int(most)))
	}
	return data, st.Mode().Perm(), err
}

// Swap replaces the content was of the file name by data, in one step: readers see the
// one or the other, also after a power cut. A nil was is a file that does not exist yet.
// If the file has another content, that stays, and the cause of the error is ErrChanged.
// No part of name may be a link.
//
// Content that another program gives the file in the moment of the exchange is returned
// as displaced: it is in the file temp, in the same directory, which the caller removes
// once it has brought both together. nil: there was none, and temp is gone. (Where the
// file system cannot exchange two files, such content is lost.) After a crash temp has
// all of data, was, or displaced; while data is written, the file is PartOf(temp).
func (v *Vault) Swap(name, temp string, was, data []byte) (displaced []byte, err error) {
	top, err := v.Beneath()
	if err != nil {
		return nil, explain("write", err)
	}
	defer top.Close()
	dir, err := top.MkdirAll(path.Dir(name))
	if err != nil {
		return nil, explain("write", linked(path.Dir(name), err))
	}
	defer dir.Close()
	s := swap{dir: dir, name: path.Base(name), temp: temp, was: was, fence: v.Fenced}
	if err = s.fill(data); err == nil {
		displaced, err = s.run()
	}
	if err == nil {
		err = dir.Sync()
	}
	return displaced, explain("write", err)
}

// linked returns core.Invalid where a directory is a link or a file.
func linked(name string, err error) error {
	if beneath.Replaced(err) {
		return &core.Error{Kind: core.Invalid, Text: name + " is a link or no folder: move it away", Err: err}
	}
	return err
}

type swap struct {
	dir        *beneath.Dir
	name, temp string
	was        []byte
	fence      func() error
}

// fill writes the new content, with the mode of the old file.
func (s *swap) fill(data []byte) error {
	part := PartOf(s.temp)
	f, err := s.dir.Create(part)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && s.was != nil {
		if info, err := s.dir.Stat(s.name); err == nil && info.Mode.IsRegular() {
			_ = f.Chmod(info.Mode.Perm())
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.dir.Rename(part, s.temp, true)
	}
	if err != nil {
		_ = s.dir.Unlink(part)
	}
	return err
}

// PartOf returns the name of the file in which Swap writes the content of temp. A process
// that is killed may leave any part of the content there.
func PartOf(temp string) string { return strings.TrimSuffix(temp, tempSuffix) + partSuffix }

const partSuffix = ".part" + tempSuffix

// run gives the new content its name and removes the old one, unless that is displaced.
// When it returns an error, what was written is removed.
func (s *swap) run() (displaced []byte, err error) {
	defer func() {
		if displaced == nil {
			err = errors.Join(err, s.dir.Unlink(s.temp))
		}
	}()
	if err := s.fence(); err != nil {
		return nil, err
	}
	if s.was == nil {
		err := s.dir.Rename(s.temp, s.name, true)
		if errors.Is(err, fs.ErrExist) {
			err = ErrChanged
		}
		return nil, err
	}
	if same, err := s.holds(s.name); err != nil || !same {
		return nil, changed(err)
	}
	err = s.dir.Exchange(s.temp, s.name)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, s.dir.Rename(s.temp, s.name, false)
	case errors.Is(err, fs.ErrNotExist): // it was deleted in this moment
		return nil, ErrChanged
	case err != nil:
		return nil, err
	}
	return s.displaced()
}

// changed returns err, or ErrChanged for nil.
func changed(err error) error {
	if err == nil {
		err = ErrChanged
	}
	return err
}

// maxDisplaced is the largest content that is returned as displaced, in bytes.
const maxDisplaced = 64 << 20

// displaced returns what the new content has replaced, nil if that is what was read. What
// is no file, or is too large, is put back.
func (s *swap) displaced() ([]byte, error) {
	data, _, err := readIn(s.dir, s.temp, maxDisplaced)
	if err != nil {
		return nil, errors.Join(ErrChanged, err, s.dir.Exchange(s.temp, s.name))
	}
	if bytes.Equal(data, s.was) {
		return nil, nil
	}
	return data, nil
}

// holds reports whether the file name has the content that the caller read.
func (s *swap) holds(name string) (bool, error) {
	data, _, err := readIn(s.dir, name, int64(len(s.was)))
	if kind := core.KindOf(err); kind == core.Invalid || kind == core.TooLarge || errors.Is(err, fs.ErrNotExist) {
		return false, nil // longer, or something else
	}
	return bytes.Equal(data, s.was), err
}
