package archive

import (
	"archive/tar"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"time"

	"gatehouse/core"
)

// Limits of Read.
type Limits struct {
	Bytes  int64 // that all files together may have; 0 is none
	Schema int64 // the newest database that the caller understands; 0 is any
}

// Read reads a whole archive, calls each for every entry in order (each may read a
// file's body or not) and verifies the checksums. After an error the caller must
// discard what each did. each may be nil.
//
// A damaged archive is core.Invalid, one that exceeds the limits core.TooLarge,
// one of a newer program core.Conflict, each with a sentence to show.
func Read(ctx context.Context, r io.Reader, l Limits, each func(Entry, io.Reader) error) (About, Total, error) {
	gz, err := gzip.NewReader(r)
	if err != nil {
		return About{}, Total{}, broken(err, "this is not a backup: it is not compressed by gzip")
	}
	gz.Multistream(false)
	in := &reader{ctx: ctx, gz: gz, tar: tar.NewReader(gz), limits: l, id: sha256.New(), each: each}
	if err := in.about(); err != nil {
		return in.first, Total{}, err
	}
	for !in.ended {
		if err := in.next(); err != nil {
			return in.first, Total{}, err
		}
	}
	return in.first, in.total, in.rest()
}

type reader struct {
	ctx    context.Context
	gz     *gzip.Reader
	tar    *tar.Reader
	limits Limits
	each   func(Entry, io.Reader) error

	first About
	since []Entry // not yet compared; at most perSums
	lists int
	id    hash.Hash
	total Total
	ended bool
}

// broken returns the error to show for an error of reading.
func broken(err error, otherwise string) error {
	var bits flate.CorruptInputError
	text := otherwise
	switch {
	case err == nil:
		return nil
	case core.KindOf(err) != core.Other, errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		text = "the archive ends too early: it was cut off when it was written or copied"
	case errors.Is(err, gzip.ErrChecksum), errors.As(err, &bits):
		text = "the archive is damaged: its content does not match its checksum"
	case errors.As(err, new(*fs.PathError)):
		return err // the file below
	}
	return &core.Error{Kind: core.Invalid, Text: text, Err: err}
}

func damaged(format string, args ...any) error {
	return core.Errorf(core.Invalid, "the archive is damaged: "+format, args...)
}

// Read reads the entry's body until ctx ends.
func (in *reader) Read(p []byte) (int, error) {
	if err := in.ctx.Err(); err != nil {
		return 0, context.Cause(in.ctx)
	}
	n, err := in.tar.Read(p)
	if err != nil && err != io.EOF {
		err = broken(err, "the archive is damaged")
	}
	return n, err
}

// header returns the next entry's header.
func (in *reader) header() (*tar.Header, error) {
	if err := in.ctx.Err(); err != nil {
		return nil, context.Cause(in.ctx)
	}
	h, err := in.tar.Next()
	return h, broken(err, "this is not a backup: it is not a tar file, or it is damaged")
}

// json reads an entry of the archive's own.
func (in *reader) json(h *tar.Header, most int64, v any) ([]byte, error) {
	if h.Typeflag != tar.TypeReg || h.Size > most {
		return nil, damaged("%s is not what it should be", core.CleanName(h.Name))
	}
	body, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(body, v) != nil {
		return nil, damaged("%s cannot be read", core.CleanName(h.Name))
	}
	return body, nil
}

func (in *reader) about() error {
	h, err := in.header()
	if err != nil {
		return err
	}
	if h.Name != aboutName {
		return core.Errorf(core.Invalid, "this is not a backup of gatehouse: it does not begin with %s", aboutName)
	}
	if _, err := in.json(h, maxAbout, &in.first); err != nil {
		return err
	}
	a := &in.first
	a.Program = core.CutRunes(core.CleanName(a.Program), 60)
	switch {
	case a.Format < 1:
		return damaged("its format is missing")
	case a.Format > Format:
		return core.Errorf(core.Conflict, "the backup was made by a newer gatehouse (%s, format %d): restore it with that one", a.Program, a.Format)
	case in.limits.Schema > 0 && a.Schema > in.limits.Schema:
		return core.Errorf(core.Conflict, "the backup was made by a newer gatehouse (%s): its database has version %d, this program knows up to %d; restore it with that one", a.Program, a.Schema, in.limits.Schema)
	}
	return nil
}

// next takes the next entry.
func (in *reader) next() error {
	h, err := in.header()
	if err != nil {
		return err
	}
	switch {
	case h.Name == totalName:
		return in.end(h)
	case len(h.Name) > len(sumsDir) && h.Name[:len(sumsDir)] == sumsDir:
		return in.compare(h)
	}
	e, err := entry(h)
	if err != nil {
		return err
	}
	if len(in.since) == perSums {
		return damaged("a list of sums is missing")
	}
	if in.total.add(&e); in.total.Files+in.total.Folders+in.total.Links > maxEntries {
		return core.Errorf(core.TooLarge, "the archive holds more than %d entries", maxEntries)
	}
	if most := in.limits.Bytes; most > 0 && in.total.Bytes > most {
		return core.Errorf(core.TooLarge, "there is no room for what the archive holds: it is more than the %s that are free", core.ByteSize(int(most)))
	}
	if err := in.give(&e); err != nil {
		return err
	}
	in.since = append(in.since, e)
	return nil
}

// entry returns the Entry of a header.
func entry(h *tar.Header) (Entry, error) {
	e := Entry{Name: h.Name, Kind: File, Size: h.Size, Mode: fs.FileMode(h.Mode).Perm(), Time: h.ModTime.UTC().Truncate(time.Second)}
	switch h.Typeflag {
	case tar.TypeReg:
	case tar.TypeDir:
		e.Kind, e.Size = Folder, 0
		if n := len(e.Name); n > 0 && e.Name[n-1] == '/' {
			e.Name = e.Name[:n-1]
		}
	case tar.TypeSymlink:
		e.Kind, e.Size, e.Target = Link, 0, h.Linkname
	default:
		return e, core.Errorf(core.Invalid, "the archive holds something that is neither file, folder nor symbolic link: %s", core.CutRunes(core.CleanName(h.Name), 100))
	}
	if e.Size < 0 || len(e.Target) > maxName {
		return e, damaged("an entry's size is not possible")
	}
	return e, checkName(e.Name)
}

// give hands e over and takes its sum.
func (in *reader) give(e *Entry) error {
	sum := sha256.New()
	body := io.TeeReader(in, sum)
	if in.each != nil {
		if err := in.each(*e, body); err != nil {
			return err
		}
	}
	if e.Kind != File {
		return nil
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return err
	}
	e.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// compare holds what came since the last list against this one.
func (in *reader) compare(h *tar.Header) error {
	in.lists++
	if h.Name != fmt.Sprintf("%s%06d.json", sumsDir, in.lists) {
		return damaged("a list of sums is missing")
	}
	var want []Entry
	body, err := in.json(h, maxSums, &want)
	if err != nil {
		return err
	}
	if len(want) != len(in.since) {
		return damaged("%d entries are listed where %d are", len(want), len(in.since))
	}
	for i := range want {
		w, have := want[i], in.since[i]
		if !w.Time.Equal(have.Time) {
			return damaged("%s is not what was backed up", core.CutRunes(core.CleanName(have.Name), 100))
		}
		w.Time = have.Time
		if w != have {
			return damaged("%s is not what was backed up", core.CutRunes(core.CleanName(have.Name), 100))
		}
	}
	in.id.Write(body)
	in.since = in.since[:0]
	return nil
}

// end compares the totals.
func (in *reader) end(h *tar.Header) error {
	var want Total
	if _, err := in.json(h, maxAbout, &want); err != nil {
		return err
	}
	if len(in.since) > 0 {
		return damaged("a list of sums is missing")
	}
	in.total.ID = hex.EncodeToString(in.id.Sum(nil))
	if in.total != want {
		return damaged("its content does not match its last entry")
	}
	in.ended = true
	return nil
}

// rest reads to the end, so that the compression's own checksum is compared.
func (in *reader) rest() error {
	if _, err := in.tar.Next(); err != io.EOF {
		if err == nil {
			return damaged("there is more behind its end")
		}
		return broken(err, "the archive is damaged")
	}
	var tail bytes.Buffer
	n, err := io.Copy(&tail, io.LimitReader(in.gz, maxRest+1))
	if err != nil {
		return broken(err, "the archive is damaged")
	}
	if n > maxRest || len(bytes.Trim(tail.Bytes(), "\x00")) > 0 {
		return damaged("there is more behind its end")
	}
	return nil
}
