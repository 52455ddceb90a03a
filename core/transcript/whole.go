package transcript

import (
	"context"
	"errors"
	"io/fs"

	"gatehouse/core/transcript/lines"
	"gatehouse/core/vault"
)

// Whole calls use with all messages of a session in the last 32 MB of its transcript,
// those before a compaction included, and whether these are all. Few calls of use run
// at a time, because each may need much memory. The caller checks who may see the
// messages: compare Session.User.
func (s *Files) Whole(ctx context.Context, sess Session, use func(messages []Message, whole bool)) error {
	c, err := s.Open(sess)
	if err != nil {
		return err
	}
	size := int64(0)
	if st, err := s.vault.Stat(c.name); err == nil {
		size = st.Size()
	}
	leave, err := s.reads(ctx, size, func() {})
	if err != nil {
		return err
	}
	defer leave()
	f, err := s.vault.ReadTail(c.name, vault.MaxTail)
	if errors.Is(err, fs.ErrNotExist) {
		use(nil, true)
		return nil
	}
	if err != nil {
		return err
	}
	m, err := lines.ReadMarks(s.vault.Root(), c.name, &f, vault.MaxTail)
	if err != nil {
		return err
	}
	t := lines.All(f, m)
	use(t.Messages, t.Whole)
	return nil
}
