package pdftext

import (
	"strings"

	"github.com/ledongthuc/pdf"
)

// Bounds of one page. A form may draw forms, and two of them twice each: their
// number is bounded as well as their depth.
const (
	maxForms = 2000
	maxDepth = 16
	maxKept  = 1000 // states that are put aside at a time
)

// letters returns what a page draws, in its order, with the forms that it draws. Of
// a stream that is damaged it is what came before; what draws it goes on.
func letters(page pdf.Page) []pdf.Text {
	contents := page.V.Key("Contents")
	if contents.IsNull() {
		return nil
	}
	d := &drawing{}
	d.follow(contents, page.Resources(), state{wide: 1, page: still})
	return d.letters
}

// A drawing is what was drawn so far.
type drawing struct {
	letters []pdf.Text
	bytes   int // of them
	forms   int // begun
	depth   int
}

// A hand draws one stream, with the fonts and forms that stream may name.
type hand struct {
	*drawing
	state
	kept      []state
	fonts     map[string]*font
	resources pdf.Value
}

// A state is what the places of letters depend on.
type state struct {
	font           *font
	size           float64
	between, blank float64 // after every letter, and after a blank
	wide           float64 // 1 is as wide as the font states
	leading, rise  float64
	text, line     matrix
	page           matrix
}

// A font is one of a stream's, read once.
type font struct {
	name   string
	enc    pdf.TextEncoding
	first  int // letter of widths
	widths []float64
}

// follow draws a content stream. The library panics at what it cannot read.
func (d *drawing) follow(stream, resources pdf.Value, begin state) {
	defer func() { _ = recover() }()
	h := &hand{drawing: d, state: begin, fonts: map[string]*font{}, resources: resources}
	pdf.Interpret(stream, func(stk *pdf.Stack, op string) {
		args := make([]pdf.Value, stk.Len())
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = stk.Pop()
		}
		if n := operands[op]; n <= len(args) {
			h.do(op, args[len(args)-n:])
		}
	})
}

// operands are how many an operator takes; one with fewer is passed over.
var operands = map[string]int{"cm": 6, "Tm": 6, "Td": 2, "TD": 2, "Tf": 2, "Tc": 1, "Tw": 1, "Tz": 1, "TL": 1, "Ts": 1, "Tj": 1, "TJ": 1, "'": 1, `"`: 3, "Do": 1}

func (h *hand) do(op string, args []pdf.Value) {
	n := func(i int) float64 { return args[i].Float64() }
	switch op {
	case "q":
		if len(h.kept) < maxKept {
			h.kept = append(h.kept, h.state)
		}
	case "Q":
		if last := len(h.kept) - 1; last >= 0 {
			h.state, h.kept = h.kept[last], h.kept[:last]
		}
	case "cm":
		h.page = six(args).times(h.page)
	case "Do":
		h.form(h.resources.Key("XObject").Key(args[0].Name()))
	case "BT":
		h.text, h.line = still, still
	case "Tf":
		h.font, h.size = h.named(args[0].Name()), n(1)
	case "Tc":
		h.between = n(0)
	case "Tw":
		h.blank = n(0)
	case "Tz":
		h.wide = n(0) / 100
	case "TL":
		h.leading = n(0)
	case "Ts":
		h.rise = n(0)
	default:
		h.write(op, args, n)
	}
}

// write does what moves on the page, and what leaves letters there.
func (h *hand) write(op string, args []pdf.Value, n func(int) float64) {
	switch op {
	case "Tm":
		h.line = six(args)
		h.text = h.line
	case "TD":
		h.leading = -n(1)
		h.move(n(0), n(1))
	case "Td":
		h.move(n(0), n(1))
	case "T*":
		h.move(0, -h.leading)
	case `"`:
		h.blank, h.between = n(0), n(1)
		h.move(0, -h.leading)
		h.show(args[2].RawString())
	case "'":
		h.move(0, -h.leading)
		h.show(args[0].RawString())
	case "Tj":
		h.show(args[0].RawString())
	case "TJ":
		for i := range args[0].Len() {
			if x := args[0].Index(i); x.Kind() == pdf.String {
				h.show(x.RawString())
			} else {
				h.text = along(-x.Float64()/1000*h.size*h.wide, 0).times(h.text)
			}
		}
	}
}

func (h *hand) move(x, y float64) {
	h.line = along(x, y).times(h.line)
	h.text = h.line
}

// form draws a form, which is a stream of its own, as if it was here. What has
// no resources uses those of who draws it.
func (h *hand) form(x pdf.Value) {
	if x.Key("Subtype").Name() != "Form" || h.depth >= maxDepth || h.forms >= maxForms {
		return
	}
	inside, resources := h.state, x.Key("Resources")
	if resources.IsNull() {
		resources = h.resources
	}
	if m := x.Key("Matrix"); m.Len() == 6 {
		inside.page = six([]pdf.Value{m.Index(0), m.Index(1), m.Index(2), m.Index(3), m.Index(4), m.Index(5)}).times(inside.page)
	}
	h.forms++
	h.depth++
	h.follow(x, resources, inside)
	h.depth--
}

func (h *hand) named(name string) *font {
	f, known := h.fonts[name]
	if !known {
		f = fontOf(pdf.Font{V: h.resources.Key("Font").Key(name)})
		h.fonts[name] = f
	}
	return f
}

// fontOf reads a font; of a damaged one the letters are taken as they are.
func fontOf(from pdf.Font) (f *font) {
	defer func() {
		if recover() != nil {
			f = &font{enc: (&pdf.Font{}).Encoder()}
		}
	}()
	f = &font{name: from.BaseFont(), enc: from.Encoder(), first: from.FirstChar(), widths: from.Widths()}
	if _, after, tagged := strings.Cut(f.name, "+"); tagged {
		f.name = after
	}
	return f
}

// width of a letter in a thousandth of the size; 0 is not known.
func (f *font) width(code byte) float64 {
	if i := int(code) - f.first; i >= 0 && i < len(f.widths) {
		return f.widths[i]
	}
	return 0
}

// enough is the panic value that ends a page with too much text.
const enough = "enough"

func (h *hand) show(raw string) {
	if h.font == nil {
		h.font = h.named("")
	}
	n := 0
	for _, r := range h.font.enc.Decode(raw) {
		w, after := 0.0, h.between
		if n < len(raw) {
			w = h.font.width(raw[n]) / 1000
			if raw[n] == ' ' {
				after += h.blank
			}
		}
		n++
		at := matrix{h.size * h.wide, 0, 0, h.size, 0, h.rise}.times(h.text).times(h.page)
		h.letters = append(h.letters, pdf.Text{Font: h.font.name, FontSize: at[0], X: at[4], Y: at[5], W: w * at[0], S: string(r)})
		if h.bytes += len(string(r)); h.bytes > 4*MaxText {
			panic(enough)
		}
		h.text = along((w*h.size+after)*h.wide, 0).times(h.text)
	}
}

// A matrix is how PDF writes one: x' = a·x + c·y + e, y' = b·x + d·y + f.
type matrix [6]float64

var still = matrix{1, 0, 0, 1, 0, 0}

func along(x, y float64) matrix { return matrix{1, 0, 0, 1, x, y} }

func six(v []pdf.Value) (m matrix) {
	for i := range m {
		m[i] = v[i].Float64()
	}
	return m
}

// times returns x first, then y.
func (x matrix) times(y matrix) matrix {
	return matrix{
		x[0]*y[0] + x[1]*y[2], x[0]*y[1] + x[1]*y[3],
		x[2]*y[0] + x[3]*y[2], x[2]*y[1] + x[3]*y[3],
		x[4]*y[0] + x[5]*y[2] + y[4], x[4]*y[1] + x[5]*y[3] + y[5],
	}
}
