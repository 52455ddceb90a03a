package transcript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"gatehouse/core"
	"gatehouse/core/vault"
)

// Bounds of a page of messages.
const (
	maxPage      = 200
	maxPageBytes = 4 << 20
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

// A PageQuery chooses messages: the newest, those in front of Before, or those
// behind After, which are ids of messages (Message.Line). At most one is set.
type PageQuery struct {
	Before, After string
	Limit         int // 1 to 200
}

// A Page is messages, oldest first.
type Page struct {
	Messages []Message
	More     bool // there are further ones in the direction that was asked for
	Cut      bool // the transcript goes on further up than can be read: its last 32 MB
}

// Line returns the id of m's line in the transcript, "" for what is not written.
func (m *Message) Line() string { return m.line }

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
			return q.of(tail{whole: true})
		}
		if err != nil {
			return Page{}, err
		}
		m, err := s.readMarks(c.name, &f, limit)
		if err != nil {
			return Page{}, err
		}
		t := everything(f, m)
		if t.whole || limit >= vault.MaxTail || q.within(t.messages) {
			return q.of(t)
		}
	}
}

// at returns where the message with this id is, -1 where it is not.
func at(all []Message, id string) int {
	return slices.IndexFunc(all, func(m Message) bool { return m.line == id || slices.Contains(m.more, id) })
}

// within reports whether the page is whole with what is known, which is the
// end of the conversation. The first message that was read may be half of one.
func (q *PageQuery) within(all []Message) bool {
	switch {
	case q.After != "":
		return at(all, q.After) > 0
	case q.Before != "":
		return at(all, q.Before) > q.Limit+1
	}
	return len(all) > q.Limit+1
}

// of returns the page out of t.
func (q *PageQuery) of(t tail) (Page, error) {
	all := t.messages
	from, to := 0, len(all)
	if id := q.Before + q.After; id != "" {
		i := at(all, id)
		if i < 0 {
			return Page{}, noMessage()
		}
		if q.Before != "" {
			to = i
		} else {
			from = i + 1
		}
	}
	size, p := 0, Page{}
	fits := func(m *Message, n int) bool {
		size += m.size() + m.helperSize()
		return n == 0 || n < q.Limit && size <= maxPageBytes
	}
	if q.After != "" {
		end := from
		for end < to && fits(&all[end], end-from) {
			end++
		}
		p.Messages, p.More = all[from:end], end < to
		return p, nil
	}
	start := to
	for start > from && fits(&all[start-1], to-start) {
		start--
	}
	p.Messages, p.More, p.Cut = all[start:to], start > from, !t.whole
	return p, nil
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
			return nil, noMessage()
		}
		if err != nil {
			return nil, err
		}
		m, err := s.readMarks(c.name, &f, limit)
		if err != nil {
			return nil, err
		}
		all := everything(f, m)
		if i := at(all.messages, line); i >= 0 {
			end := i + 1
			for end < len(all.messages) && !all.messages[end].Begins() {
				end++
			}
			return all.messages[i:end], nil
		}
		if all.whole || limit >= vault.MaxTail {
			return nil, noMessage()
		}
	}
}

func noMessage() error { return core.Errorf(core.NotFound, "the session has no such message") }

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
