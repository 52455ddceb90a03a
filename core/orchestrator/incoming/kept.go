package incoming

import (
	"strings"

	"gatehouse/core"
	"gatehouse/core/texts"
)

// Kept takes what is read of voice messages from the message of rows that an earlier attempt has
// kept, so that they are not transcribed again: what that attempt could not, this one does not
// either. blocks end with those of rows, as a model reads them; shown are they as their author wrote
// them. begun is Text's. Call it behind FetchAll and before Spoken.
func (r *Reader) Kept(rows []core.Inbound, begun bool, blocks, shown []string) {
	of := recordings(rows, begun)
	if len(of) > len(blocks) || len(shown) != len(blocks) {
		return
	}
	for i, f := range of {
		if f == nil {
			continue
		}
		at := len(blocks) - len(of) + i
		if note, ok := noteOn(blocks[at], f); ok {
			r.found(*f, heard{note: note})
		} else {
			r.found(*f, heard{text: shown[at]})
		}
	}
}

// recordings returns the voice message that each block of rows is of, nil for another; nothing if
// the blocks are not known.
func recordings(rows []core.Inbound, begun bool) (of []*core.File) {
	files := 0
	for i := range rows {
		row := &rows[i]
		if row.Again != "" { // has the blocks of another message
			return nil
		}
		if Says(row, begun) {
			of = append(of, nil)
		}
		for j := range row.Files {
			f := &row.Files[j]
			if files++; files > maxFiles {
				return nil
			}
			if f.Quoted {
				of = append(of, nil)
			}
			if !f.Voice || f.Refused != "" {
				f = nil
			}
			of = append(of, f)
		}
		if row.Turn != nil && len(row.Turn.Media) > 0 {
			of = append(of, nil)
		}
	}
	return of
}

// noteOn returns the text of a block that is there in place of a recording's text; false if it is
// that text.
func noteOn(block string, f *core.File) (string, bool) {
	note, ok := strings.CutPrefix(block, "[")
	note, end := strings.CutSuffix(note, "]")
	if !ok || !end {
		return "", false
	}
	unheard, _, _ := strings.Cut(texts.Text("voice_not_understood", texts.With{"Why": "\x00", "Path": ""}), "\x00")
	name := core.CutRunes(core.CleanName(f.Name), 200)
	if name == "" {
		name = texts.Text("a_file")
	}
	untaken, _, _ := strings.Cut(texts.Text("file_not_taken", texts.With{"Name": name, "Why": "\x00"}), "\x00")
	return note, strings.HasPrefix(note, unheard) || strings.HasPrefix(note, untaken)
}

// waits reports whether a note promises the text of a recording for later.
func waits(note string) bool {
	_, promise, _ := strings.Cut(texts.Text("voice_waits", texts.With{"Why": "", "Path": "\x00"}), "\x00")
	return strings.HasSuffix(note, promise)
}
