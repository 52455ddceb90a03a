package lines

import (
	"gatehouse/core"
	"slices"
	"strings"
)

// BytesPerToken estimates a text's tokens.
const BytesPerToken = 4

// Newest chooses from all what takes at most room bytes.
func Newest(all []Message, room int) (taken []Message, size int) {
	whole, front := all, []Message(nil)
	if len(all) > 0 && all[0].Summary && all[0].Size() <= room {
		front, all = all[:1:1], all[1:]
		room -= front[0].Size()
	}
	start, sum := len(all), 0
	for i := len(all) - 1; i >= 0; i-- {
		if sum += all[i].Size(); sum > room {
			break
		}
		if all[i].Begins() || i == 0 && front != nil { // a summary may replace the text
			start, size = i, sum
		}
	}
	taken = all[start:len(all):len(all)]
	if start == len(all) && len(all) > 0 && unfinished(&all[len(all)-1]) {
		taken, size = rounds(all, room, front != nil)
	}
	switch {
	case front == nil:
		return taken, size
	case start == 0: // they follow each other
		taken = slices.Clip(whole)
	default:
		taken = append(front, taken...)
	}
	return taken, size + front[0].Size()
}

// unfinished reports whether the turn that ends with m goes on.
func unfinished(m *Message) bool { return m.Calls() || m.Role == "user" && !m.Begins() }

// rounds returns the text that begins the newest turn and its newest rounds, each from an
// answer of the model on; nothing if the text alone is too long. After a summary
// (summed) the text may be missing.
func rounds(all []Message, room int, summed bool) (taken []Message, size int) {
	first := len(all) - 1
	for first >= 0 && !all[first].Begins() {
		first--
	}
	if first < 0 && !summed || first >= 0 && all[first].Size() > room {
		return nil, 0
	}
	words, rest := all[:0:0], all[first+1:]
	if first >= 0 {
		words = all[first : first+1 : first+1]
		size = words[0].Size()
	}
	start, sum := len(rest), size
	for i := len(rest) - 1; i >= 0; i-- {
		if sum += rest[i].Size(); sum > room {
			break
		}
		if rest[i].Role == "assistant" {
			start, size = i, sum
		}
	}
	return append(words, rest[start:]...), size
}

// Within returns the newest turns of messages that take at most room bytes, one at least,
// behind an earlier summary. Where that is still too much, the texts are shortened.
func Within(messages []Message, room int) []Message {
	start, size := len(messages), 0
	for i := len(messages) - 1; i >= 0; i-- {
		if size += messages[i].Size(); size > room && start < len(messages) {
			break
		}
		if messages[i].Begins() || i == 0 {
			start = i
		}
	}
	out := slices.Clone(messages[start:])
	if start > 0 && messages[0].Summary {
		out = append([]Message{messages[0]}, out...)
	}
	for most := room / 2; SizeOf(out) > room && most > 16; most /= 2 {
		for i := range out {
			out[i].Blocks = Shortened(out[i].Blocks, most)
		}
	}
	return out
}

func SizeOf(messages []Message) (n int) {
	for i := range messages {
		n += messages[i].Size()
	}
	return n
}

// cutText is where a text was shortened.
const cutText = "\n[… left out …]\n"

// Shortened returns blocks with texts of at most about most bytes, their beginnings and
// ends, and without media.
func Shortened(blocks []core.Block, most int) []core.Block {
	out := make([]core.Block, 0, len(blocks))
	for _, b := range blocks {
		b.Media = nil
		if n := len(b.Text); n > most+len(cutText) {
			b.Text = strings.ToValidUTF8(b.Text[:most/2], "") + cutText + strings.ToValidUTF8(b.Text[n-most/2:], "")
		}
		if b.Type != "media" {
			out = append(out, b)
		}
	}
	return out
}
