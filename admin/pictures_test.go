//go:build browser

package admin_test

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/web/auth"
	"gatehouse/web/webtest"
)

// Bounds of a picture of docs/admin: pixels of height, and colours.
const (
	tallDesk   = 1000
	fewColours = 32
)

// The pictures of docs/admin.md: every page, light and dark. make pictures takes
// them.
func TestPicturesOfEveryPage(t *testing.T) {
	folder := os.Getenv("GATEHOUSE_TEST_PICTURES")
	if folder == "" {
		t.Skip("GATEHOUSE_TEST_PICTURES names no folder: make pictures does")
	}
	must(os.MkdirAll(folder, 0o750))
	full := newSite(t, core.System{}, nil)
	full.world.full()
	full.world.remembers()
	full.album()
	b := webtest.New(t)
	taken := 0
	keep := func(picture []byte, name string) {
		small, err := fewer(picture)
		must(err)
		must(os.WriteFile(filepath.Join(folder, name+".png"), small, 0o644))
		taken++
	}
	take := func(s *site, path, name, scheme string) {
		s.world.renew()
		b.Look(1120, 600, scheme)
		b.Open(s.url + path)
		b.Visible(`h1`)
		if path != "/admin/login" {
			live(b)
		}
		b.Look(1120, max(420, min(tallDesk, webtest.Value[int64](b, `document.documentElement.scrollHeight`))), scheme)
		b.Eventually(`[...document.images].every((i) => i.complete)`)
		keep(b.Picture(), name)
	}
	take(full, "/admin/login", "login-desk-light", "light")
	signIn(b, full)
	for _, path := range full.pages() {
		name := pageName(full, path)
		if strings.HasSuffix(name, "-search") {
			continue
		}
		for _, scheme := range []string{"light", "dark"} {
			take(full, path, name+"-desk-"+scheme, scheme)
		}
	}
	if taken < 40 {
		t.Errorf("only %d pictures were taken", taken)
	}
}

// album has in the operator's conversation what only pictures need: an answer
// with a picture, and a tool call that waits.
func (s *site) album() {
	w := s.world
	now := w.clock.Now()
	for _, a := range [][2]string{{"nina", auth.RoleAdmin}, {"vera", auth.RoleViewer}} {
		_, _, err := s.accounts.Create(s.t.Context(), a[0], a[1], core.Actor{User: core.Operator, Via: "panel"})
		must(err)
	}
	ask := call(now, core.Operator, core.Full, core.PermissionRequest{ID: "qa", ToolName: "Write", Kind: "write", Path: "Allotment/this week.md", ExpiresAt: now.Add(2 * time.Minute),
		SuggestedGrants: grants("Allotment/*", "Files in Allotment in this conversation")}, "Write wants to change Allotment/this week.md")
	ask.Payload = string(bytes.Replace([]byte(ask.Payload), []byte("7f8a9c1e-0b52-4d3e-9a77-30d4c2b1e6f0"), []byte(w.mine), 1))
	w.asks = append(w.asks, changing(ask, "", "# This week\n\n- Order seeds: beans, chard, leeks.\n- Mend the tap by the shed.\n- Sunday at ten: dig bed four.\n"))
}

var expiry = regexp.MustCompile(`"expires_at":"[^"]*"`)

// renew gives the calls that wait their two minutes again.
func (w *world) renew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	end := w.clock.Now().Add(118 * time.Second)
	for i := range w.asks {
		if a := &w.asks[i]; a.State == ask.Open {
			a.ExpiresAt, a.CreatedAt = end, end.Add(-2*time.Minute)
			a.Payload = expiry.ReplaceAllString(a.Payload, `"expires_at":"`+end.UTC().Format(time.RFC3339)+`"`)
		}
	}
}

// fewer is a picture in few colours: those it has most of; each other pixel
// takes the nearest.
func fewer(data []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA {
		r, g, bl, _ := from.At(x, y).RGBA()
		return color.RGBA{uint8(r>>8) &^ 3, uint8(g>>8) &^ 3, uint8(bl>>8) &^ 3, 255}
	}
	box := from.Bounds()
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	palette := color.Palette{}
	for len(palette) < fewColours { // the one that is missed most: by much, or by many
		var best color.RGBA
		most := 0
		for c, n := range count {
			if missed := n * apart(c, palette); missed > most || missed == most && most > 0 && less(c, best) {
				best, most = c, missed
			}
		}
		if most == 0 {
			break
		}
		palette = append(palette, best)
	}
	to, nearest := image.NewPaletted(box, palette), map[color.RGBA]uint8{}
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			c := at(x, y)
			i, ok := nearest[c]
			if !ok {
				i = uint8(palette.Index(c))
				nearest[c] = i
			}
			to.SetColorIndex(x, y, i)
		}
	}
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, to)
	return b.Bytes(), err
}

// apart is how far c is from the nearest of the palette, squared.
func apart(c color.RGBA, palette color.Palette) int {
	least := 1 << 20
	for _, p := range palette {
		x := p.(color.RGBA)
		r, g, b := int(c.R)-int(x.R), int(c.G)-int(x.G), int(c.B)-int(x.B)
		least = min(least, r*r+g*g+b*b)
	}
	return least
}

func less(a, b color.RGBA) bool {
	return cmp.Or(cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B)) < 0
}
