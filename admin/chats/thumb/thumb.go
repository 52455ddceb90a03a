// Package thumb makes small pictures of those that came with messages.
package thumb

import (
	"bytes"
	"context"
	"image"
	"image/color"
	_ "image/gif" // a picture's size is read whichever of these it is
	"image/jpeg"
	_ "image/png"

	"gatehouse/core"
)

const (
	side      = 160        // pixels of a small picture's longer side
	maxPixels = 16_000_000 // of one that is made small: 64 MB while it is
)

// Size returns the size of the small picture of data; ok is false where none is made of it.
func Size(data []byte) (wide, high int, ok bool) {
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || c.Width <= 0 || c.Height <= 0 || c.Width > maxPixels/c.Height {
		return 0, 0, false
	}
	wide, high = small(c.Width, c.Height)
	return wide, high, true
}

// A Maker makes one small picture at a time. It is safe for concurrent use.
type Maker struct{ slot chan struct{} }

// New returns a Maker.
func New() *Maker { return &Maker{make(chan struct{}, 1)} }

// JPEG returns the small picture of data, core.NotFound where none is made of it.
func (m *Maker) JPEG(ctx context.Context, data []byte) ([]byte, error) {
	select {
	case m.slot <- struct{}{}:
		defer func() { <-m.slot }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if _, _, ok := Size(data); !ok {
		return nil, core.Errorf(core.NotFound, "this picture is not made small")
	}
	from, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, core.Errorf(core.NotFound, "this picture is damaged")
	}
	var b bytes.Buffer
	err = jpeg.Encode(&b, shrink(from), &jpeg.Options{Quality: 70})
	return b.Bytes(), err
}

// small returns the size of a thumbnail.
func small(w, h int) (int, int) {
	longer := max(w, h)
	if longer <= side {
		return w, h
	}
	return max(1, w*side/longer), max(1, h*side/longer)
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
