package transcript

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"gatehouse/core/transcript/lines"
	"gatehouse/core/vault"
)

// A Conversation is a session's transcript, open for one run: one goroutine at
// a time, and one Conversation that appends per session. Close it.
type Conversation struct {
	s    *Files
	sess Session
	cwd  string // real and absolute: what the lines say
	name string // the transcript in the vault

	tail     tail
	hit      bool // tail came from memory
	disk     bool // tail came from the file
	loaded   bool
	existed  bool
	from     *Conversation     // what it goes on from, nil without; only read
	file     *vault.Transcript // once something was appended
	writes   bool              // it is among s.writers
	appended map[string]bool   // the run's lines that HasRun has found further up
	said     spoken            // what was appended, for the search index
}

// firstRead is how much of a transcript is read before it is known how much
// is needed.
const firstRead = 64 << 10

// Existing opens the transcript of a session that is only read. It returns nil if
// there is none.
func (s *Files) Existing(sess Session) (*Conversation, error) {
	c, err := s.Open(sess)
	if err != nil || !c.existed {
		return nil, err
	}
	return c, nil
}

// Continue makes c continue from: History returns from's newest messages before c's
// own. A nil from changes nothing.
func (c *Conversation) Continue(from *Conversation) { c.from = from }

// Open opens a session's transcript. Nothing is read or created before it is needed.
func (s *Files) Open(sess Session) (*Conversation, error) {
	c := &Conversation{s: s, sess: sess}
	name, t, cached := s.cache.find(sess.ID)
	dir, err := s.vault.Dir(s.Rebase(sess))
	if err != nil {
		return nil, err
	}
	c.cwd = dir.Path
	if c.name, err = s.vault.Transcript(dir.Path, sess.ID); err != nil {
		return nil, err
	}
	st, err := s.vault.Stat(c.name)
	if errors.Is(err, fs.ErrNotExist) && (sess.MessageCount > 0 || cached) {
		if st, err = c.elsewhere(name); err != nil {
			return nil, err
		}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("transcript of %s: %w", sess.ID, err)
	}
	switch {
	case st == nil:
		c.tail, c.loaded = tail{Part: lines.Part{Whole: true}, listed: true}, true
	case cached && name == c.name && t.matches(st):
		c.tail, c.loaded, c.hit, c.existed = t, true, true, true
	default:
		c.existed = true
	}
	return c, nil
}

// Rebase returns the working directory of sess, relative if it was in a vault that has
// moved since.
func (s *Files) Rebase(sess Session) string {
	dir := sess.WorkingDirectory
	if sess.VaultRoot == "" || sess.VaultRoot == s.vault.Path() || !filepath.IsAbs(dir) {
		return dir
	}
	rel, err := filepath.Rel(sess.VaultRoot, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return dir
	}
	return rel
}

// elsewhere finds the transcript under another project directory: the vault or
// the working directory has moved. It goes on where it is.
func (c *Conversation) elsewhere(known string) (fs.FileInfo, error) {
	if known != "" {
		if st, err := c.s.vault.Stat(known); err == nil {
			c.name = known
			return st, nil
		}
	}
	found, err := c.s.vault.FindTranscripts(c.sess.ID)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return c.pickUp()
	}
	c.name = found[0]
	return c.s.vault.Stat(c.name)
}

// load reads the tail until it holds want bytes of messages or is whole.
func (c *Conversation) load(want int) error {
	if c.loaded && (c.tail.Whole || c.tail.Size >= want) {
		return nil
	}
	for limit := int64(max(firstRead, 3*want)); ; limit *= 4 {
		f, err := c.s.vault.ReadTail(c.name, limit)
		if err != nil {
			return err
		}
		m, err := lines.ReadMarks(c.s.vault.Root(), c.name, &f, limit)
		if err != nil {
			return err
		}
		c.tail = tail{Part: lines.Current(f, m)}
		if c.tail.Whole || c.tail.Size >= want && len(c.tail.Messages) > 0 || limit >= vault.MaxTail {
			break
		}
	}
	c.loaded, c.disk, c.hit = true, true, false
	if c.tail.Skipped > 0 {
		c.s.log.Debug("transcript lines skipped", "session", c.sess.ID, "lines", c.tail.Skipped)
	}
	return nil
}

// Skipped returns how many lines of the part that was read are no messages of the
// conversation: broken, or other programs' notes.
func (c *Conversation) Skipped() int { return c.tail.Skipped }

// HasRun returns how many lines of a run are kept already, 0 for none; they are the
// lines 0 to n-1, and they are on the disk when HasRun returns. Ask from the
// second attempt on: when the run is not among the newest messages, up to
// vault.MaxTail of the file are searched.
func (c *Conversation) HasRun(run string) (int, error) {
	if err := c.load(1); err != nil {
		return 0, err
	}
	for !c.tail.Whole && len(c.tail.Messages) > 0 && c.tail.Messages[0].Run == run { // for Open
		before := c.tail.Size
		if err := c.load(4 * before); err != nil {
			return 0, err
		}
		if c.tail.Size <= before {
			break
		}
	}
	n := 0
	for i := range c.tail.Messages {
		if c.tail.Messages[i].Run == run {
			n++
		}
	}
	all := c.tail.Messages
	front := !c.tail.Whole || len(all) > 0 && all[0].Summary // lines may be in front of what is known
	if len(all) > 0 && all[0].Summary {
		all = all[1:]
	}
	if front && (n == 0 || all[0].Run == run) {
		var err error
		if n, err = c.search(run); err != nil {
			return 0, err
		}
	}
	if n == 0 {
		return 0, nil
	}
	if err := c.begin(); err != nil { // the attempt that wrote them may have ended before its Sync
		return 0, err
	}
	if err := c.file.Append(); err != nil {
		return 0, err
	}
	return n, c.file.Sync()
}

// search looks for a run's lines in the file and notes their ids.
func (c *Conversation) search(run string) (int, error) {
	f, err := c.s.vault.ReadTail(c.name, vault.MaxTail)
	if err != nil {
		return 0, err
	}
	c.appended = map[string]bool{}
	for i := range f.Lines {
		if l := &f.Lines[i]; l.RequestID == run && !l.IsSidechain {
			c.appended[l.UUID] = true
		}
	}
	return len(c.appended), nil
}

// kept reports whether the run's line is in the transcript.
func (c *Conversation) kept(run, id string) bool {
	if c.appended[id] {
		return true
	}
	for i := len(c.tail.Messages) - 1; i >= 0 && c.tail.Messages[i].Run == run; i-- {
		if c.tail.Messages[i].UUID == id {
			return true
		}
	}
	return false
}

// Append writes messages as the run's lines n, n+1, … with one write; they are
// on the disk after Sync. Lines that an earlier attempt of the run has written
// are left as they are (from the second attempt on, ask HasRun first).
func (c *Conversation) Append(run string, n int, messages ...Message) error {
	if err := c.begin(); err != nil {
		return err
	}
	now, parent := c.s.clock.Now(), c.tail.Last
	var written []vault.Line
	var added []Message
	for i, m := range messages {
		id := LineID(run, n+i)
		if len(m.Blocks) == 0 || c.kept(run, id) {
			continue
		}
		m.Run, m.At, m.UUID, m.ProviderID = run, now, id, lines.MessageID(id)
		l, err := c.line(run, id, parent, &m, now)
		if err != nil {
			return fmt.Errorf("append to transcript: %w", err)
		}
		written, added, parent = append(written, l), append(added, m), id
	}
	from := c.file.Size()
	if err := c.file.Append(written...); err != nil {
		return err
	}
	c.said.add(from, c.file.Size(), added)
	for _, m := range added {
		c.tail.add(m)
	}
	c.tail.Last = parent
	var err error
	c.tail.Info, err = c.file.Stat() // now: what others add later is not known here
	return err
}

// begin opens the file and makes sure that the tail is the file's.
func (c *Conversation) begin() error {
	if c.file != nil {
		return nil
	}
	if !c.writes {
		c.s.writers.begin(c.name)
		c.writes = true
	}
	f, err := c.s.vault.OpenTranscript(c.name)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err == nil && st.Size() > 0 && !(c.loaded && c.tail.matches(st)) {
		c.loaded = false
		err = c.load(1)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if f.Cut() > 0 {
		c.s.log.Warn("a torn line was cut off a transcript", "session", c.sess.ID, "bytes", f.Cut())
	}
	c.file, c.tail.Messages = f, c.s.cache.lend(c.sess.ID, c.tail.Messages)
	return nil
}

// Sync syncs what was appended to disk, with one fsync. It does nothing if there is
// nothing new.
func (c *Conversation) Sync() error {
	if c.file == nil {
		return nil
	}
	return c.file.Sync()
}

// Close ends the use, without Sync. The newest messages stay in memory for the
// next turn.
func (c *Conversation) Close() error {
	if c.writes {
		defer c.s.writers.end(c.name)
		c.writes = false
	}
	if c.file != nil || c.disk { // else memory knows it already
		c.s.cache.put(c.sess.ID, c.name, c.tail)
	}
	if c.file != nil {
		return c.file.Close()
	}
	return nil
}

// Path returns where the transcript lies: absolute, for users.
func (c *Conversation) Path() string {
	return filepath.Join(c.s.vault.Path(), filepath.FromSlash(strings.TrimPrefix(c.name, "/")))
}
