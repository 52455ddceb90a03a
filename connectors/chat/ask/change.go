package ask

import (
	"path"
	"strings"

	"gatehouse/core"
	"gatehouse/core/diff"
	"gatehouse/core/texts"
)

// Bounds of what a message shows of a change.
const (
	maxChanged     = 12  // lines
	maxChangedSize = 700 // bytes of them
	maxChangedLine = 160 // bytes of a line
	maxRemoved     = 4   // removed lines before the ones that replace them
	maxProblem     = 200 // bytes of why a change is not shown
)

// change returns what a call would change, for a message: a sentence, the first changed
// lines, and where the others are. own means that the message is shown in the chat of
// the call: what a file outside of the vault holds is shown nowhere else.
func change(f *diff.File, room int, own bool) (lede, block, rest string) {
	if f == nil {
		return "", "", ""
	}
	switch {
	case f.Problem != "":
		return texts.Text("change_unknown", texts.With{"Why": core.CutRunes(escaped(f.Problem), maxProblem)}), "", ""
	case f.Binary:
		return texts.Text("change_binary", texts.With{"New": f.New, "Type": f.After.Type, "Bytes": f.After.Bytes}), "", ""
	case f.New:
		lede = texts.Text("change_new", texts.With{"Lines": f.After.Lines, "Bytes": f.After.Bytes})
	case f.Same():
		return texts.Text("change_none"), "", ""
	default:
		lede = texts.Text("change_lines", texts.With{"Added": f.Added, "Removed": f.Removed})
	}
	shown := 0
	if own || !path.IsAbs(f.Path) {
		block, shown = firstLines(f.Diff, min(room, maxChangedSize))
	}
	if more := f.Added + f.Removed - shown; more > 0 {
		rest = texts.Text("change_more", texts.With{"N": more, "All": shown == 0})
	}
	return lede, block, rest
}

// firstLines returns the first changed lines with their signs, and their number.
func firstLines(d diff.Diff, room int) (block string, shown int) {
	var out []string
	add := func(line string) bool {
		if room -= len(line) + 1; room < 0 || shown == maxChanged {
			return false
		}
		out = append(out, line)
		return true
	}
	for _, h := range d.Hunks {
		removed := 0
		for i, l := range h.Lines {
			if l.Op != diff.Remove {
				removed = 0
			} else if removed++; removed > maxRemoved && replaced(h.Lines[i:]) {
				if removed == maxRemoved+1 && !add("…") {
					return strings.Join(out, "\n"), shown
				}
				continue
			}
			if l.Op == diff.Same {
				continue
			}
			if l.Skipped > 0 || !add(l.Op+" "+lineText(l)) {
				return strings.Join(out, "\n"), shown
			}
			shown++
		}
	}
	return strings.Join(out, "\n"), shown
}

// replaced reports whether added lines follow the removed ones that list begins with.
func replaced(list []diff.Line) bool {
	for _, l := range list {
		if l.Op != diff.Remove {
			return l.Op == diff.Add
		}
	}
	return false
}

func lineText(l diff.Line) string {
	text := core.CutRunes(diff.Visible(l.Text()), maxChangedLine)
	if l.Cut > 0 && !strings.HasSuffix(text, "…") {
		text += "…"
	}
	return text
}
