package chats

import (
	"cmp"
	"context"
	"mime"
	"net/http"
	"net/url"
	"strconv"

	"gatehouse/admin/chats/thumb"
	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
)

const (
	maxThumbs = 8   // on a page; the others are links
	findIn    = 200 // messages in which the newest are looked for
)

// An attached is a file that came with a message, as the transcript holds it.
type attached struct {
	Name, About string // its name, and its type and size
	URL         string // "" for what is not served
	Thumb       string // address of it made small; "" for none
	Wide, High  int    // of the small one
}

// attachedOf returns a message's media with their addresses. at is the query that
// finds the message (fileAt).
func attachedOf(media []core.Media, first int, at url.Values, id string) (list []attached) {
	for i, m := range media {
		what, kind := m.Kind()
		name := "A file"
		if what == core.ImageMedia {
			name = "A picture" // a transcript keeps no names of these
		}
		a := attached{Name: cmp.Or(core.CutRunes(core.CleanName(m.Name), 120), name), About: cmp.Or(kind, core.CutRunes(core.CleanName(m.Type), 60)) + ", " + core.ByteSize(len(m.Data))}
		if kind != "" && id != "" {
			q := url.Values{"n": {strconv.Itoa(first + i)}}
			for k, v := range at {
				q[k] = v
			}
			a.URL = URL(id) + "/file?" + q.Encode()
			if wide, high, ok := thumb.Size(m.Data); ok {
				q.Set("small", "1")
				a.Thumb, a.Wide, a.High = URL(id)+"/file?"+q.Encode(), wide, high
			}
		}
		list = append(list, a)
	}
	return list
}

// chatFile sends one file of a message: a picture inline, a document as an
// attachment. Its type is read from its bytes, not from its name.
func (p *Pages) chatFile(w http.ResponseWriter, r *http.Request) error {
	ctx, q := r.Context(), r.URL.Query()
	missing := core.Errorf(core.NotFound, "there is no such file in this conversation")
	d, err := p.o.Chats.Detail(ctx, r.PathValue("id"))
	if err != nil {
		return err
	}
	m, err := p.message(ctx, d.Session, q.Get("m"), q.Get("next"))
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(q.Get("n"))
	media := mediaOf(m)
	if err != nil || n < 0 || n >= len(media) {
		return missing
	}
	what, kind := media[n].Kind()
	if what == "" {
		return missing
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	if q.Get("small") != "" {
		small, err := p.thumbs.JPEG(ctx, media[n].Data)
		if err != nil {
			return err
		}
		h.Set("Content-Type", "image/jpeg")
		_, _ = w.Write(small)
		return nil
	}
	how := "inline"
	if what != core.ImageMedia {
		how = "attachment"
	}
	name := cmp.Or(core.CutRunes(core.CleanName(media[n].Name), 120), "file")
	h.Set("Content-Disposition", mime.FormatMediaType(how, map[string]string{"filename": name}))
	h.Set("Content-Type", kind)
	_, _ = w.Write(media[n].Data) // the client may have disconnected
	return nil
}

// message returns one of a conversation: the one before next, or one of the newest.
func (p *Pages) message(ctx context.Context, s session.Session, line, next string) (transcript.Message, error) {
	q := transcript.PageQuery{Limit: findIn}
	if next != "" {
		q = transcript.PageQuery{Before: next, Limit: 1}
	}
	found, err := p.o.Chats.Page(ctx, s, q)
	for _, m := range found.Messages {
		if err == nil && line != "" && m.Line() == line {
			return m, nil
		}
	}
	if err == nil {
		err = core.Errorf(core.NotFound, "there is no such message in this conversation")
	}
	return transcript.Message{}, err
}

// mediaOf returns all files of a message, those of tool results too, in order.
func mediaOf(m transcript.Message) (all []core.Media) {
	for _, b := range m.Blocks {
		all = append(all, b.Media...)
	}
	return all
}
