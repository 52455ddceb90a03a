package lines

import (
	"gatehouse/core"
	"slices"
)

// maxPageBytes bounds a page; one message may be larger.
const maxPageBytes = 4 << 20

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
func (m *Message) Line() string { return m.UUID }

// At returns where the message with this id is, -1 where it is not.
func At(all []Message, id string) int {
	return slices.IndexFunc(all, func(m Message) bool { return m.UUID == id || slices.Contains(m.Earlier, id) })
}

// Enough reports whether the page is whole with what is known, which is the
// end of the conversation. The first message that was read may be half of one.
func (q *PageQuery) Enough(all []Message) bool {
	switch {
	case q.After != "":
		return At(all, q.After) > 0
	case q.Before != "":
		return At(all, q.Before) > q.Limit+1
	}
	return len(all) > q.Limit+1
}

// Of returns the page out of t.
func (q *PageQuery) Of(t Part) (Page, error) {
	all := t.Messages
	from, to := 0, len(all)
	if id := q.Before + q.After; id != "" {
		i := At(all, id)
		if i < 0 {
			return Page{}, NoMessage()
		}
		if q.Before != "" {
			to = i
		} else {
			from = i + 1
		}
	}
	size, p := 0, Page{}
	fits := func(m *Message, n int) bool {
		size += m.Size() + m.HelperSize()
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
	p.Messages, p.More, p.Cut = all[start:to], start > from, !t.Whole
	return p, nil
}

// NoMessage is the error for a message that the session does not have.
func NoMessage() error { return core.Errorf(core.NotFound, "the session has no such message") }
