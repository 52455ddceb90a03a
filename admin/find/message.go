package find

import (
	"context"
	"net/http"
	"net/url"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
)

// A conversation's page shows its newest messages, or those before a message. The way to an
// older one leads to the page that ends at most so far behind it.
const (
	maxBehind      = 12       // messages
	maxBehindBytes = 24 << 10 // of their text: the page has a limit, too
)

// message redirects to a message in its conversation's page. Of a message that is gone it
// leads to the conversation.
func (p *Pages) message(w http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	d, err := p.o.Chats.Detail(r.Context(), v.Get("session"))
	if err != nil {
		return err
	}
	to := p.links.Chat(d.ID)
	before, line, err := p.place(r.Context(), d.Session, v.Get("message"))
	if err != nil && core.KindOf(err) != core.NotFound {
		return err
	}
	if before != "" {
		to += "?before=" + url.QueryEscape(before)
	}
	if line != "" {
		to += "#m-" + url.PathEscape(line)
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// place returns before which message the page ends that has the message id, "" for the
// newest page, and the id that the message has there.
func (p *Pages) place(ctx context.Context, s session.Session, id string) (before, line string, err error) {
	behind, err := p.o.Chats.Page(ctx, s, transcript.PageQuery{After: id, Limit: maxBehind})
	if err != nil {
		return "", "", err
	}
	first := ""
	if len(behind.Messages) > 0 {
		first = behind.Messages[0].Line()
	}
	// Lines that belong together are one message, whose id is the first line's.
	here, err := p.o.Chats.Page(ctx, s, transcript.PageQuery{Before: first, Limit: 1})
	if err != nil || len(here.Messages) == 0 {
		return "", "", err
	}
	line = here.Messages[0].Line()
	size := 0
	for i := range behind.Messages {
		if size += textSize(&behind.Messages[i]); size > maxBehindBytes {
			return behind.Messages[i].Line(), line, nil
		}
	}
	if behind.More {
		before = behind.Messages[len(behind.Messages)-1].Line()
	}
	return before, line, nil
}

// textSize returns how many bytes of text m has.
func textSize(m *transcript.Message) (n int) {
	for i := range m.Blocks {
		n += len(m.Blocks[i].Text) + len(m.Blocks[i].Input)
	}
	return n
}
