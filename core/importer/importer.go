// Package importer brings conversations of other systems in: it reads a source one
// conversation at a time, has each made a session, and reports what became of each. A fault
// concerns one conversation; the rest goes on. An import that was stopped or killed is completed by the
// same import again.
package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"

	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/report"
	"gatehouse/core/importer/source"
)

// A Bringer makes sessions of conversations (bring.Bringer).
type Bringer interface {
	Tree(ctx context.Context, c *foreign.Conversation, t foreign.Terms, files foreign.Attachments) (foreign.Outcome, error)
	Copy(ctx context.Context, c foreign.Transcript, t foreign.Terms) (foreign.Outcome, error)
}

// A Keeper keeps attachments (attach.Keeper).
type Keeper interface {
	Save(ctx context.Context, user int64, name, declared string, most int64, r io.Reader) (core.File, error)
	Remove(files []core.File)
}

// Options for New. All are needed.
type Options struct {
	Bringer Bringer
	Files   Keeper
	Own     string // the gateway's vault
	Clock   core.Clock
	Log     *slog.Logger
}

// An Importer is safe for concurrent use; two imports of the same conversations at once are not.
type Importer struct {
	o       Options
	records records
}

// New returns an Importer.
func New(o Options) *Importer { return &Importer{o: o} }

// Run imports the file or directory name, which is a path on this machine. progress is called after
// each conversation with the report so far, which it must not keep; entries, if not nil, gets
// a line of JSON for each (report.Entry). The report is also returned with an error.
func (i *Importer) Run(ctx context.Context, name string, t foreign.Terms, entries io.Writer, progress func(*report.Report)) (report.Report, error) {
	s, err := source.Open(ctx, name, i.o.Own)
	if err != nil {
		return report.Report{Name: filepath.Base(name), DryRun: t.DryRun, Faults: []report.Entry{}}, err
	}
	defer s.Close()
	return i.run(ctx, s, filepath.Base(name), t, entries, progress)
}

// RunFile imports an open file of size bytes as Run does.
func (i *Importer) RunFile(ctx context.Context, f io.ReaderAt, name string, size int64, t foreign.Terms, entries io.Writer, progress func(*report.Report)) (report.Report, error) {
	s, err := source.OpenFile(f, name, size)
	if err != nil {
		return report.Report{Name: name, DryRun: t.DryRun, Faults: []report.Entry{}}, err
	}
	defer s.Close()
	return i.run(ctx, s, name, t, entries, progress)
}

func (i *Importer) run(ctx context.Context, s *source.Source, name string, t foreign.Terms, entries io.Writer, progress func(*report.Report)) (report.Report, error) {
	r := report.Report{Name: name, Format: s.Format, DryRun: t.DryRun, Size: s.Size, Faults: []report.Entry{}, Began: i.o.Clock.Now().UTC()}
	if entries == nil {
		entries = io.Discard
	}
	out, before := json.NewEncoder(entries), seen{}
	progress(&r)
	err := s.Each(ctx, func(item source.Item) error {
		e, err := i.one(ctx, s, item, t, &r, before)
		if err != nil {
			return err
		}
		if err := out.Encode(e); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		r.Read = min(s.Read(), max(r.Size, 1))
		progress(&r)
		return ctx.Err()
	})
	r.Ended = i.o.Clock.Now().UTC()
	if ctx.Err() != nil {
		r.Stopped, err = true, nil
	}
	if err == nil && !r.Stopped {
		r.Read = r.Size
	}
	progress(&r)
	return r, err
}

// one imports one conversation. An error ends the import.
func (i *Importer) one(ctx context.Context, s *source.Source, item source.Item, t foreign.Terms, r *report.Report, before seen) (report.Entry, error) {
	e := report.Entry{File: item.File, Index: item.Index}
	var o foreign.Outcome
	err := item.Err
	switch {
	case err != nil:
	case item.Copy != nil:
		o, err = i.o.Bringer.Copy(ctx, *item.Copy, t)
	default:
		files := &attachments{i: i, s: s, user: t.User}
		hold(s, item.Tree)
		twice := before.has(item.Tree)
		t.DryRun = t.DryRun || twice
		if o, err = i.o.Bringer.Tree(ctx, item.Tree, t, files); err != nil {
			i.o.Files.Remove(files.kept)
		}
		if err == nil && twice && (o.Kind == foreign.Added || o.Kind == foreign.Updated) {
			err = core.Errorf(core.Invalid, "it has the id of an earlier conversation of this import, which is kept")
		}
		if err == nil {
			before.add(item.Tree)
		}
		o.Title = cmp.Or(o.Title, core.CutRunes(item.Tree.Title, 200))
	}
	if err != nil && ctx.Err() != nil {
		return e, context.Cause(ctx)
	}
	e.Title, e.Session, e.Outcome, e.Notes = core.CleanName(o.Title), o.Session, o.Kind, o.Notes
	if errors.Is(err, foreign.ErrEmpty) {
		e.Outcome = foreign.Empty
	} else if err != nil {
		if fatal(err) {
			return e, err
		}
		e.Outcome, e.Reason = "failed", reason(err)
		if core.KindOf(err) == core.Other {
			i.o.Log.Warn("a conversation is not imported", "file", item.File, "index", item.Index, "err", err)
		}
	}
	count(r, &e, o.Messages)
	return e, nil
}

// hold notes which files of c the source has.
func hold(s *source.Source, c *foreign.Conversation) {
	for i := range c.Messages {
		for k := range c.Messages[i].Files {
			f := &c.Messages[i].Files[k]
			if r, _, err := s.Asset(f.Ref); err == nil {
				f.Held = r.Close() == nil
			}
		}
	}
}

// seen are the conversations of an import, by hashes of their ids, so that none replaces an earlier one. At
// most maxSeen; of further ones the last of an id counts.
type seen map[uint64]struct{}

const maxSeen = 200_000

func (s seen) key(c *foreign.Conversation) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, c.Source+" "+c.ID) // it has no errors
	return h.Sum64()
}

func (s seen) has(c *foreign.Conversation) bool { _, ok := s[s.key(c)]; return ok }

func (s seen) add(c *foreign.Conversation) {
	if len(s) < maxSeen {
		s[s.key(c)] = struct{}{}
	}
}

// fatal reports whether every further conversation would fail for the same reason.
func fatal(err error) bool {
	k := core.KindOf(err)
	return k == core.Busy || errors.Is(err, fs.ErrClosed)
}

// reason returns why a conversation was left out, for users.
func reason(err error) string {
	if core.KindOf(err) == core.Other {
		return "it could not be stored; the log has the cause"
	}
	return core.TextOf(err)
}

func count(r *report.Report, e *report.Entry, messages int) {
	r.Missing += len(e.Notes)
	switch e.Outcome {
	case foreign.Added:
		r.Added++
		r.Messages += messages
	case foreign.Updated:
		r.Updated++
		r.Messages += messages
	case foreign.Unchanged:
		r.Unchanged++
	case foreign.Continued:
		r.Continued++
	case foreign.Deleted:
		r.Deleted++
	case foreign.Empty:
		r.Empty++
	default:
		if r.Failed++; len(r.Faults) < report.MaxFaults {
			r.Faults = append(r.Faults, *e)
		}
	}
}
