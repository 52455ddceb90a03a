package transcript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"gatehouse/core"
	"gatehouse/core/transcript/lines"
	"gatehouse/core/vault"
)

// Bounds of a page of messages.
const (
	maxPage = 200
)

// Reads of more than largeRead bytes of a transcript take many times as much
// memory for a moment: that many go on at once, anyone who asks, and the next wait.
const (
	largeRead  = 2 << 20
	largeReads = 2
)

// reads waits for a place where limit needs one; leave, which was given for what
// was read before, and may be called in any case, then gives it back.
func (s *Files) reads(ctx context.Context, limit int64, leave func()) (func(), error) {
	leave()
	if limit <= largeRead {
		return func() {}, nil
	}
	select {
	case s.large <- struct{}{}:
		return sync.OnceFunc(func() { <-s.large }), nil
	case <-ctx.Done():
		return func() {}, context.Cause(ctx)
	}
}

// Page returns a page of all messages in a session, what compactions have
// taken out of the model's sight included; at most 4 MB, but always one
// message. It reads from the end no more than it needs. A message that is not
// in the transcript is core.NotFound. Whether the asker may see the session is
// the caller's question: compare Session.User.
func (s *Files) Page(ctx context.Context, sess Session, q PageQuery) (Page, error) {
	q.Limit = min(max(q.Limit, 1), maxPage)
	c, err := s.Open(sess)
	if err != nil {
		return Page{}, err
	}
	leave := func() {}
	defer func() { leave() }()
	for limit := int64(256 << 10); ; limit *= 8 {
		if leave, err = s.reads(ctx, limit, leave); err != nil {
			return Page{}, err
		}
		f, err := s.vault.ReadTail(c.name, limit)
		if errors.Is(err, fs.ErrNotExist) {
			return q.Of(lines.Part{Whole: true})
		}
		if err != nil {
			return Page{}, err
		}
		m, err := lines.ReadMarks(s.vault.Root(), c.name, &f, limit)
		if err != nil {
			return Page{}, err
		}
		t := lines.All(f, m)
		if t.Whole || limit >= vault.MaxTail || q.Enough(t.Messages) {
			return q.Of(t)
		}
	}
}

// Turn returns one turn: the user's message with this line id and what follows up to the
// next one, messages before a compaction included. It returns core.NotFound if the
// session has no such message within reach. The caller checks who may see the session:
// compare Session.User.
func (s *Files) Turn(_ context.Context, sess Session, line string) ([]Message, error) {
	c, err := s.Open(sess)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for limit := int64(firstRead); ; limit *= 8 {
		f, err := s.vault.ReadTail(c.name, limit)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, lines.NoMessage()
		}
		if err != nil {
			return nil, err
		}
		m, err := lines.ReadMarks(s.vault.Root(), c.name, &f, limit)
		if err != nil {
			return nil, err
		}
		all := lines.All(f, m)
		if i := lines.At(all.Messages, line); i >= 0 {
			end := i + 1
			for end < len(all.Messages) && !all.Messages[end].Begins() {
				end++
			}
			return all.Messages[i:end], nil
		}
		if all.Whole || limit >= vault.MaxTail {
			return nil, lines.NoMessage()
		}
	}
}

// Transcript returns the file of a session's text as it lies in the vault, and how
// many bytes of it there are now; core.NotFound before the first. Close it.
// Its lines name directories of this machine: it is for who runs the gateway.
func (s *Files) Transcript(_ context.Context, sess Session) (io.ReadCloser, int64, error) {
	c, err := s.Open(sess)
	if err != nil {
		return nil, 0, err
	}
	st, err := s.vault.Stat(c.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, core.Errorf(core.NotFound, "this session has no messages yet")
	}
	if err != nil {
		return nil, 0, err
	}
	if !st.Mode().IsRegular() { // before opening: a pipe would block
		return nil, 0, core.Errorf(core.Invalid, "the transcript is not a plain file")
	}
	f, err := s.vault.Root().Open(c.name)
	if err != nil {
		return nil, 0, fmt.Errorf("open transcript: %w", err)
	}
	return f, st.Size(), nil
}
