package chats

import (
	"bytes"
	"cmp"
	"context"
	"image"
	"image/color"
	_ "image/gif" // a picture's size is read whichever of these it is
	"image/jpeg"
	_ "image/png"
	"mime"
	"net/http"
	"net/url"
	"strconv"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
)

const (
	thumbSide = 160        // pixels of a small picture's longer side
	maxPixels = 16_000_000 // of one that is made small: 64 MB while it is
	maxThumbs = 8          // on a page; the others are links
	findIn    = 200        // messages in which the newest are looked for
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
			if c, _, err := image.DecodeConfig(bytes.NewReader(m.Data)); err == nil && c.Width > 0 && c.Height > 0 && c.Width <= maxPixels/c.Height {
				q.Set("small", "1")
				a.Thumb = URL(id) + "/file?" + q.Encode()
				a.Wide, a.High = small(c.Width, c.Height)
			}
		}
		list = append(list, a)
	}
	return list
}

// small returns the size of a thumbnail.
func small(w, h int) (int, int) {
	side := max(w, h)
	if side <= thumbSide {
		return w, h
	}
	return max(1, w*thumbSide/side), max(1, h*thumbSide/side)
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
		return p.thumb(ctx, w, media[n].Data)
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

// thumb writes a thumbnail; one is made at a time.
func (p *Pages) thumb(ctx context.Context, w http.ResponseWriter, data []byte) error {
	select {
	case p.drawing <- struct{}{}:
		defer func() { <-p.drawing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || c.Width <= 0 || c.Height <= 0 || c.Width > maxPixels/c.Height {
		return core.Errorf(core.NotFound, "this picture is not made small")
	}
	from, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return core.Errorf(core.NotFound, "this picture is damaged")
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, shrink(from), &jpeg.Options{Quality: 70}); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "image/jpeg")
	_, _ = w.Write(b.Bytes())
	return nil
}

// shrink returns a thumbnail on white: each pixel is the mean of up to 8 by 8
// pixels of the picture.
func shrink(from image.Image) image.Image {
	const most = 8
	b := from.Bounds()
	wide, high := small(b.Dx(), b.Dy())
	to := image.NewRGBA(image.Rect(0, 0, wide, high))
	for y := range high {
		for x := range wide {
			x0, x1 := x*b.Dx()/wide, max((x+1)*b.Dx()/wide, x*b.Dx()/wide+1)
			y0, y1 := y*b.Dy()/high, max((y+1)*b.Dy()/high, y*b.Dy()/high+1)
			dx, dy := max(1, (x1-x0)/most), max(1, (y1-y0)/most)
			var r, g, bl, n uint64
			for v := y0; v < y1; v += dy {
				for u := x0; u < x1; u += dx {
					cr, cg, cb, ca := from.At(b.Min.X+u, b.Min.Y+v).RGBA()
					white := uint64(0xffff - ca)
					r, g, bl, n = r+uint64(cr)+white, g+uint64(cg)+white, bl+uint64(cb)+white, n+1
				}
			}
			to.SetRGBA(x, y, color.RGBA{uint8(r / n >> 8), uint8(g / n >> 8), uint8(bl / n >> 8), 255})
		}
	}
	return to
}
