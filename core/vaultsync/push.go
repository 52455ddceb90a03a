package vaultsync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/vaultsync/merge"
	"gatehouse/core/vaultsync/place"
	"gatehouse/core/vaultsync/wire"
)

// A Sent is a file that a device sends.
type Sent struct {
	Root   string
	Meta   wire.Meta
	Device string
}

// Push brings a file that a device sends into the vault. If the file has another content
// than the device edited, both are merged; what cannot be merged is kept as a file of its
// own.
func (s *Store) Push(ctx context.Context, a Area, in Sent, body io.Reader) (done wire.Done, err error) {
	defer func() { s.count(done.Outcome, err) }()
	name, err := a.writable(in.Root, in.Meta.Path)
	if err != nil {
		return done, err
	}
	if b := in.Meta.BaseHash; b != "" && !wire.ValidHash(b) {
		return done, core.Errorf(core.Invalid, "base_hash of %q is not sha256: and 64 digits", core.CutRunes(in.Meta.Path, 100))
	}
	if in.Meta.Size > wire.MaxFile {
		return done, tooLarge(in.Meta.Path)
	}
	p := pushed{Store: s, a: a, in: in, name: name}
	if p.body, err = s.o.Vault.Unnamed(); err != nil {
		return done, err
	}
	defer p.body.Close()
	if err := p.receive(body); err != nil {
		return done, err
	}
	if p.Tree, err = s.tree(); err != nil {
		return done, err
	}
	defer p.Top.Close()
	defer s.locks.Lock(name)()
	if err := p.noOnes(); err != nil {
		return done, err
	}
	done, err = p.run(ctx)
	done.Path = in.Meta.Path
	return done, unwritable(in.Meta.Path, err)
}

// unwritable returns core.Denied for an error of the file system that is about one file: the
// others of a request are brought in.
func unwritable(name string, err error) error {
	if why, ok := place.Alone(err); ok {
		return core.Errorf(core.Denied, "%q cannot be written on the server: %w", core.CutRunes(name, 100), why)
	}
	return err
}

func (s *Store) count(outcome string, err error) {
	if err != nil {
		outcome = "error"
	}
	s.metrics.files.WithLabelValues(outcome).Inc()
}

// pushed is one file while it is brought in.
type pushed struct {
	*Store
	place.Tree
	a    Area
	in   Sent
	name string // in the vault
	body *os.File
	hash string
	size int64
}

// receive reads the content.
func (p *pushed) receive(body io.Reader) error {
	h := wire.New()
	n, err := io.Copy(io.MultiWriter(p.body, h), io.LimitReader(body, wire.MaxFile+1))
	if err != nil {
		return fmt.Errorf("receive a file: %w", err)
	}
	p.hash, p.size = wire.Sum(h), n
	switch {
	case n > wire.MaxFile:
		return tooLarge(p.in.Meta.Path)
	case p.in.Meta.Hash != "" && p.in.Meta.Hash != p.hash:
		return core.Errorf(core.Invalid, "the content of %q is not what its hash names: send it again", core.CutRunes(p.in.Meta.Path, 100))
	}
	return nil
}

func tooLarge(name string) error {
	return core.Errorf(core.TooLarge, "%q is larger than %s", core.CutRunes(name, 100), core.ByteSize(wire.MaxFile))
}

// content returns what was sent, from its start.
func (p *pushed) content() io.Reader { return io.NewSectionReader(p.body, 0, p.size) }

// run decides by what the file has now, and again when it has changed by then.
func (p *pushed) run(ctx context.Context) (done wire.Done, err error) {
	for range maxTries {
		if err := context.Cause(ctx); err != nil {
			return done, err
		}
		done, err = p.once(ctx)
		if !errors.Is(err, place.ErrChanged) {
			break
		}
	}
	switch {
	case errors.Is(err, place.ErrChanged):
		return done, core.Errorf(core.Busy, "another program keeps changing %q: try again", core.CutRunes(p.in.Meta.Path, 100))
	case errors.Is(err, place.ErrInWay):
		if err = p.noLink(); err == nil {
			done, err = p.copyBeside(ctx, "")
		}
	}
	if err != nil {
		return done, err
	}
	p.keep(p.name, p.hash, p.size, p.content())
	if err := p.note(ctx, p.name, p.hash, p.in.Meta.BaseHash); err != nil {
		return done, err
	}
	if done.Copy != "" {
		if err := p.record(ctx, p.Tree, path.Join(p.a.Dir(), p.in.Root, done.Copy)); err != nil {
			return done, err
		}
	}
	return done, p.record(ctx, p.Tree, p.name)
}

func (p *pushed) once(ctx context.Context) (done wire.Done, err error) {
	now, size, err := p.Hash(p.name)
	if err != nil {
		return done, err
	}
	base := p.in.Meta.BaseHash
	switch {
	case now == p.hash:
		return wire.Done{Outcome: wire.Unchanged, Hash: now}, nil
	case now != "" && now != base, now == "" && base != "":
		repeated, err := p.repeated(ctx)
		if err != nil {
			return done, err
		}
		if repeated { // an answer was lost: it is in the file already
			return wire.Done{Outcome: wire.Unchanged, Hash: now}, nil
		}
	}
	if now == "" || now == base {
		return p.put(ctx, now, size, p.content(), p.size, wire.Done{Outcome: wire.Stored, Hash: p.hash})
	}
	if merged, conflicts, ok := p.merged(now, size); ok {
		return p.put(ctx, now, size, bytes.NewReader(merged), int64(len(merged)), wire.Done{Outcome: wire.Merged, Conflicts: conflicts, Hash: wire.Hash(merged)})
	}
	return p.copyBeside(ctx, now)
}

// put replaces the content now of the file by one with the hash that done has.
func (p *pushed) put(ctx context.Context, now string, was int64, content io.Reader, size int64, done wire.Done) (wire.Done, error) {
	if err := p.o.Room(ctx, p.a.User, p.name, now == "", size-was); err != nil {
		return done, err
	}
	if now != "" {
		if err := p.keepPresent(ctx, p.Tree, p.name, now); err != nil {
			return done, err
		}
	}
	_, err := p.write(p.name, content, now, done.Hash)
	return done, err
}

// merged merges what was sent with the file; ok is false where that is not possible.
func (p *pushed) merged(now string, size int64) (merged []byte, conflicts int, ok bool) {
	if max(size, p.size) > merge.MaxSize {
		return nil, 0, false
	}
	ours, err := p.Read(p.name, merge.MaxSize)
	if err != nil || wire.Hash(ours) != now {
		return nil, 0, false
	}
	theirs, err := io.ReadAll(p.content())
	if err != nil || !text(ours) || !text(theirs) {
		return nil, 0, false
	}
	var base merge.Base
	if p.in.Meta.BaseHash != "" {
		base.Text, base.Known = p.kept(p.name, p.in.Meta.BaseHash)
	}
	if base.Known && !text(base.Text) {
		return nil, 0, false
	}
	if isDay(p.name) {
		label := wire.Device(p.in.Device) + " " + p.o.Clock.Now().UTC().Format("2006-01-02 15:04")
		merged, conflicts, ok = merge.Day(base, ours, theirs, label)
	} else {
		merged, ok = merge.Lines(base, ours, theirs)
	}
	return merged, conflicts, ok && len(merged) <= 2*merge.MaxSize
}

// text reports whether a content is text.
func text(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

// maxCopies limits the names of copies that are tried.
const maxCopies = 50

// copyBeside keeps what was sent as a file of its own; now is the hash of the file that
// has the name.
func (p *pushed) copyBeside(ctx context.Context, now string) (wire.Done, error) {
	done := wire.Done{Outcome: wire.Copied, Hash: now}
	for n := 1; n <= maxCopies; n++ {
		name := wire.ConflictName(p.name, wire.Device(p.in.Device), p.o.Clock.Now(), n)
		if at := p.inWay(); at != "" { // a file has the name of a directory
			name = wire.ConflictName(at, wire.Device(p.in.Device), p.o.Clock.Now(), n) + strings.TrimPrefix(p.name, at)
		}
		if !wire.Synced(name) || !p.a.May(p.a.Trust, p.a.User, name, true) {
			return done, core.Errorf(core.Conflict, "%q was changed on both sides and a copy cannot be kept beside it: rename one of them", core.CutRunes(p.in.Meta.Path, 100))
		}
		hash, _, err := p.Hash(name)
		if err != nil && !errors.Is(err, place.ErrInWay) {
			return done, err
		}
		if err == nil && hash == "" {
			if err := p.o.Room(ctx, p.a.User, name, true, p.size); err != nil {
				return done, err
			}
			hash, err = p.write(name, p.content(), "", p.hash)
		}
		if err == nil && hash == p.hash {
			done.Copy = relativeTo(path.Join(p.a.Dir(), p.in.Root), name)
			return done, nil
		}
		if err != nil && !errors.Is(err, place.ErrChanged) && !errors.Is(err, place.ErrInWay) {
			return done, err
		}
	}
	return done, core.Errorf(core.Conflict, "there are %d copies of %q already: bring some of them together", maxCopies, core.CutRunes(p.in.Meta.Path, 100))
}

func relativeTo(root, name string) string {
	rel, _ := relative(root, name)
	return rel
}

// inWay returns the directory of the file whose name a file has, "" for none.
func (p *pushed) inWay() string {
	for at := range parents(p.name) {
		if info, err := p.Top.Stat(at); err == nil && !info.Mode.IsDir() {
			return at
		}
	}
	return ""
}

// noOnes returns core.Denied where the owner sends a file of a guest who has no directory:
// a copy on a device does not bring back what was forgotten.
func (p *pushed) noOnes() error {
	guest := areaOf(p.name)
	if p.a.User != core.Operator || guest == "vault" {
		return nil
	}
	dir := path.Join(core.GuestsDir, guest)
	if info, err := p.Top.Stat(dir); err == nil && info.Mode.IsDir() {
		return nil
	}
	return core.Errorf(core.Denied, "%q is not brought back: %s is not there any more, its user may be forgotten. Delete it on the device too", core.CutRunes(p.in.Meta.Path, 100), dir)
}

// noLink returns core.Denied where the name, or a directory of it, is a link or another
// special file.
func (p *pushed) noLink() error {
	check := func(at string) error {
		info, err := p.Top.Stat(at)
		if err == nil && !info.Mode.IsDir() && !info.Mode.IsRegular() {
			return core.Errorf(core.Denied, "%q goes through a link or a special file, which is not synced", core.CutRunes(p.in.Meta.Path, 100))
		}
		return nil
	}
	for at := range parents(p.name) {
		if err := check(at); err != nil {
			return err
		}
	}
	return check(p.name)
}

// parents yields the directories of a path, the top first.
func parents(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i, r := range name {
			if r == '/' && !yield(name[:i]) {
				return
			}
		}
	}
}
