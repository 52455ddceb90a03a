// Package source opens what users import, finds out by its content what it is, and reads it
// one conversation at a time: exports of Claude and ChatGPT (zip, JSON or a directory), transcripts of Claude
// Code, records as Markdown, and vaults of the original system and of other gateways.
package source

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/importer/chatgpt"
	"gatehouse/core/importer/claudeai"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/record"
)

// CommandLine is the source of Claude Code's sessions, as their rows name it.
const CommandLine = "claude-code"

// An Item is one conversation: one of Tree, Copy and Err is set.
type Item struct {
	File  string // where it is, for the report
	Index int    // in its file, from 1; 0 where that has one conversation
	Tree  *foreign.Conversation
	Copy  *foreign.Transcript
	Err   error // why it is left out
}

// A Source is what is imported. One goroutine reads it; Read may be called next to it. Close it.
type Source struct {
	Format string // what it is, for users
	Size   int64  // bytes that Read counts up to, approximately

	each  func(ctx context.Context, f func(Item) error) error
	asset func(ref string) (io.ReadCloser, string, error) // nil: there are none
	read  atomic.Int64
	close []io.Closer
}

// Each calls f with every conversation, in order. Items with Err do not end it; an error of f, and what
// keeps the rest from being read, does.
func (s *Source) Each(ctx context.Context, f func(Item) error) error { return s.each(ctx, f) }

// Read returns how many bytes were read.
func (s *Source) Read() int64 { return s.read.Load() }

// Asset opens a file that came with a message, and returns its name in the export;
// fs.ErrNotExist where the export has none.
func (s *Source) Asset(ref string) (io.ReadCloser, string, error) {
	if s.asset == nil || ref == "" || len(ref) > 300 || strings.ContainsAny(ref, "/\\\x00") {
		return nil, "", fs.ErrNotExist
	}
	return s.asset(ref)
}

// Close closes what is open.
func (s *Source) Close() error {
	var errs []error
	for i := len(s.close) - 1; i >= 0; i-- {
		errs = append(errs, s.close[i].Close())
	}
	s.close = nil
	return errors.Join(errs...)
}

// Open opens the file or directory at path. What is none of the formats is core.Invalid. own is
// the gateway's vault: of what is in there, only records are imported.
func Open(ctx context.Context, name, own string) (*Source, error) {
	real, err := filepath.EvalSymlinks(name)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, missing(name, err)
	}
	st, err := os.Stat(real)
	if err != nil {
		return nil, missing(name, err)
	}
	rel, err := filepath.Rel(own, real)
	ours := err == nil && filepath.IsLocal(rel)
	if st.IsDir() {
		return openDir(ctx, real, ours, rel)
	}
	if _, transcript := sessionFile(real); transcript && ours {
		return nil, core.Errorf(core.Invalid, "%s is in this gateway's vault already", filepath.Base(name))
	}
	f, err := os.OpenFile(real, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, missing(name, err)
	}
	if st, err = f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, f.Close(), core.Errorf(core.Invalid, "%s is no plain file", filepath.Base(name)))
	}
	s, err := OpenFile(f, filepath.Base(name), st.Size())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.close = append(s.close, f)
	return s, nil
}

func missing(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return core.Errorf(core.NotFound, "there is no file %s", name)
	case errors.Is(err, fs.ErrPermission):
		return core.Errorf(core.Denied, "the gateway may not read %s", name)
	}
	return err
}

// OpenFile opens an open file of size bytes, which stays the caller's. name is for the report.
func OpenFile(f io.ReaderAt, name string, size int64) (*Source, error) {
	head := make([]byte, min(size, maxHead))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	s := &Source{Size: size}
	whole := func() io.Reader { return &counted{io.NewSectionReader(f, 0, size), &s.read} }
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	switch {
	case isZip(head):
		return s, s.useZip(f, name, size)
	case bytes.HasPrefix(text, []byte("---")):
		s.Format = "a conversation as Markdown"
		s.each = func(_ context.Context, do func(Item) error) error {
			return do(recordOf(name, whole()))
		}
	case isTranscript(text):
		s.Format = "a transcript of Claude Code"
		id := idOf(name, text)
		s.each = func(_ context.Context, do func(Item) error) error {
			s.read.Store(size)
			return do(Item{File: name, Copy: &foreign.Transcript{Source: CommandLine, ID: id, Open: func() (io.ReadCloser, error) {
				return io.NopCloser(io.NewSectionReader(f, 0, size)), nil
			}}})
		}
	case len(text) > 0 && (text[0] == '[' || text[0] == '{'):
		s.Format = formatOf(text)
		s.each = func(ctx context.Context, do func(Item) error) error { return eachElement(ctx, name, whole(), do) }
	default:
		return nil, core.Errorf(core.Invalid, "%s is none of what can be imported: an export of Claude or ChatGPT (zip or JSON), a transcript of Claude Code, or a conversation as Markdown", name)
	}
	return s, nil
}

// maxHead is how much of a file is read to find out what it is.
const maxHead = 256 << 10

// formatOf guesses what JSON is of, from its beginning.
func formatOf(text []byte) string {
	switch {
	case bytes.Contains(text, []byte(`"chat_messages"`)):
		return "an export of Claude"
	case chatgpt.Is(text):
		return "an export of ChatGPT"
	}
	return "an export as JSON"
}

// A counted reader adds what it reads to a number.
type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// useZip reads an export in an archive.
func (s *Source) useZip(f io.ReaderAt, name string, size int64) error {
	a, err := openZip(f, size)
	if err != nil {
		return err
	}
	list := a.conversations()
	if len(list) == 0 {
		return core.Errorf(core.Invalid, "%s holds no conversations.json", name)
	}
	s.Format, s.Size, s.asset = "an export", 0, a.asset
	for _, e := range list {
		s.Size += int64(min(e.UncompressedSize64, 1<<40))
	}
	if r, err := a.open(list[0]); err == nil {
		head, _ := io.ReadAll(io.LimitReader(r, maxHead))
		s.Format = formatOf(head)
		_ = r.Close()
	}
	s.each = func(ctx context.Context, do func(Item) error) error {
		for _, e := range list {
			r, err := a.open(e)
			if err == nil {
				err = errors.Join(eachElement(ctx, path.Base(e.Name), &counted{r, &s.read}, do), r.Close())
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// largeElement is from which size on an element takes so much memory that garbage is collected before.
const largeElement = 4 << 20

// eachElement calls do with the conversations of an export in r. What keeps the rest of the file from
// being read is an item, too.
func eachElement(ctx context.Context, name string, r io.Reader, do func(Item) error) error {
	s := newSplitter(ctx, r)
	for n := 1; ; n++ {
		raw, fault, err := s.next()
		item := Item{File: name, Index: n}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && core.KindOf(err) == core.Other:
			return err
		case err != nil:
			item.Err = err
			return do(item)
		case fault != nil:
			item.Err = fault
		default:
			large := len(raw) > largeElement
			if large {
				runtime.GC() // else the garbage of before is as large as what follows
			}
			if item.Tree, item.Err = parse(raw); large {
				s.buf = nil
			}
		}
		if err := do(item); err != nil {
			return err
		}
	}
}

// parse reads one element of an export.
func parse(raw []byte) (*foreign.Conversation, error) {
	switch {
	case len(raw) == 0 || raw[0] != '{':
		return nil, core.Errorf(core.Invalid, "it is no conversation")
	case chatgpt.Is(raw):
		c, err := chatgpt.Parse(raw)
		if err != nil && claudeai.Is(raw) { // the input of a tool may have a mapping, too
			if other, err := claudeai.Parse(raw); err == nil {
				return other, nil
			}
		}
		return c, err
	case claudeai.Is(raw):
		return claudeai.Parse(raw)
	}
	return nil, core.Errorf(core.Invalid, "it is no conversation of Claude or ChatGPT: it has neither chat_messages nor a mapping")
}

// recordOf reads a record from r.
func recordOf(name string, r io.Reader) Item {
	text, err := io.ReadAll(io.LimitReader(r, record.MaxSize+1))
	if err == nil && len(text) > record.MaxSize {
		err = core.Errorf(core.TooLarge, "it is larger than %s", core.ByteSize(record.MaxSize))
	}
	item := Item{File: name, Err: err}
	if err == nil {
		item.Tree, item.Err = record.Parse(string(text))
	}
	return item
}

// A line is what is read of a line of a transcript to know it.
type line struct {
	Type    string `json:"type"`
	Session string `json:"sessionId"`
}

// isTranscript reports whether text begins as a transcript of Claude Code: one of its first lines
// is of a session.
func isTranscript(text []byte) bool {
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, maxHead)
	for n := 0; n < 20 && in.Scan(); n++ {
		var l line
		if json.Unmarshal(in.Bytes(), &l) != nil {
			return false
		}
		if l.Session != "" && l.Type != "" {
			return true
		}
	}
	return false
}

// idOf returns the session of a transcript: its file's name, else what its lines say.
func idOf(name string, text []byte) string {
	if id, ok := sessionFile(name); ok {
		return id
	}
	for raw := range bytes.Lines(text) {
		var l line
		if json.Unmarshal(raw, &l) == nil && l.Session != "" {
			return l.Session
		}
	}
	return ""
}

// sessionFile returns the session whose transcript has this name.
func sessionFile(name string) (id string, ok bool) {
	id, ok = strings.CutSuffix(path.Base(filepath.ToSlash(name)), ".jsonl")
	u, err := uuid.Parse(id)
	return id, ok && err == nil && u.String() == id
}
