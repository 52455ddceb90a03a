package transcript

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"gatehouse/core"
	"gatehouse/core/transcript/lines"
	"gatehouse/core/vault"
)

// projects is the second place where transcripts are looked for, a directory like
// Claude Code's ~/.claude/projects; "" is none. It is the operator's, and only
// read: what is picked up there goes on in a copy in the vault. It is opened
// for each use, because a CLI may make it at any time.
type projects string

// Bounds of the second place.
const (
	maxProjects = 10_000    // directories that are searched
	maxPickUp   = 256 << 20 // bytes of a transcript that is picked up
)

// with calls f with the transcript of the session id, open at its start, and
// its directory; it reports whether there is one. Nothing outside the directory is
// reached, by no link and no id. Of several the one changed last counts.
func (p projects) with(id string, f func(v *vault.Vault, name string, file *os.File) error) (bool, error) {
	if p == "" || !vault.ValidID(id) {
		return false, nil
	}
	if st, err := os.Stat(string(p)); err != nil || !st.IsDir() { // vault.Open would make it
		return false, nil
	}
	v, err := vault.Open(string(p))
	if err != nil {
		return false, err
	}
	defer v.Close()
	name, err := newestOf(v.Root(), id)
	if err != nil || name == "" {
		return false, err
	}
	file, err := v.Root().OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer file.Close()
	if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
		return false, err
	}
	return true, f(v, name, file)
}

// newestOf returns the transcript of the session id in root's directories, "" without.
func newestOf(root *os.Root, id string) (string, error) {
	d, err := root.Open(".")
	if err != nil {
		return "", err
	}
	defer d.Close()
	entries, err := d.ReadDir(maxProjects)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	var found string
	var changed time.Time
	for _, e := range entries {
		name := path.Join(e.Name(), id+".jsonl")
		st, err := root.Lstat(name)
		if err == nil && st.Mode().IsRegular() && (found == "" || st.ModTime().After(changed)) {
			found, changed = name, st.ModTime()
		}
	}
	return found, nil
}

// pickUp copies the session's transcript from the second place to where the
// vault's would be; nil where there is none or the session is not the
// operator's. A failed copy is an error: the turn would otherwise start an existing
// conversation from nothing.
func (c *Conversation) pickUp() (fs.FileInfo, error) {
	if c.sess.User != core.Operator {
		return nil, nil
	}
	found, err := c.s.projects.with(c.sess.ID, func(_ *vault.Vault, name string, file *os.File) error {
		c.s.log.Info("a transcript of Claude Code's folder is picked up", "session", c.sess.ID)
		return c.s.vault.CopyIn(c.name, file, maxPickUp)
	})
	if err != nil || !found {
		return nil, err
	}
	return c.s.vault.Stat(c.name)
}

// CountElsewhere returns how many messages the transcript in the second place
// holds, in its last vault.MaxTail bytes; false without one.
func (s *Files) CountElsewhere(id string) (n int, found bool, err error) {
	found, err = s.projects.with(id, func(v *vault.Vault, name string, _ *os.File) error {
		t, err := v.ReadTail(name, vault.MaxTail)
		n = len(lines.Current(t, lines.Marks{}).Messages)
		return err
	})
	return n, found, err
}
