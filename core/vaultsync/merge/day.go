package merge

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"gatehouse/core/journal/dayfile"
)

// Day merges a day file of a journal. Entries that one side added are kept; an entry that
// one side deleted is gone unless the other changed it. An entry that both changed is
// merged by lines, and where lines collide both are under a heading
// "## conflict " + label; conflicts is how many there are more. Without a base everything
// that either side has is kept. ok is false where a side has more than MaxEntries: then
// both files have to be kept.
func Day(base Base, ours, theirs []byte, label string) (merged []byte, conflicts int, ok bool) {
	switch {
	case bytes.Equal(ours, theirs), base.Known && bytes.Equal(theirs, base.Text):
		return ours, 0, true
	case base.Known && bytes.Equal(ours, base.Text):
		return theirs, 0, true
	}
	d := days{label: label, base: entriesOf(base.Text), ours: entriesOf(ours), theirs: entriesOf(theirs), known: base.Known}
	if max(len(d.base.keys), len(d.ours.keys), len(d.theirs.keys)) > MaxEntries {
		return nil, 0, false
	}
	return d.merge(), d.conflicts, true
}

// MaxEntries limits the entries of a day file that is merged.
const MaxEntries = 10_000

// A side is one version of a day file. Entries are named by their id, or, without one,
// by their content, and by their number among those of that name.
type side struct {
	head    []byte
	keys    []string          // in the order of the file
	entries map[string][]byte // at most the entries of one file
}

func entriesOf(text []byte) side {
	head, sections := dayfile.Split(text)
	s := side{head: head, entries: map[string][]byte{}}
	seen := map[string]int{} // by name; at most the entries of one file
	for i := range sections[:min(len(sections), MaxEntries+1)] {
		name := "id " + sections[i].ID
		if sections[i].ID == "" {
			name = "text " + sections[i].Version()
		}
		seen[name]++
		key := name + " " + strconv.Itoa(seen[name])
		s.keys, s.entries[key] = append(s.keys, key), sections[i].Raw
	}
	return s
}

type days struct {
	label              string
	base, ours, theirs side
	known              bool
	conflicts          int
}

func (d *days) merge() []byte {
	entries := map[string][]byte{} // of the result; at most those of both sides
	var kept []string              // of ours
	at := map[string]int{}         // in kept
	for _, key := range d.ours.keys {
		if raw := d.entry(key); raw != nil {
			at[key] = len(kept)
			kept, entries[key] = append(kept, key), raw
		}
	}
	behind := map[int][]string{} // what only theirs has, by the entry of kept before it; -1: at the start
	before := -1
	for _, key := range d.theirs.keys {
		if i, ok := at[key]; ok {
			before = i
			continue
		}
		raw := d.entry(key)
		if raw == nil {
			continue
		}
		for before+1 < len(kept) && d.added(kept[before+1]) { // what ours added in that place comes first
			before++
		}
		behind[before], entries[key] = append(behind[before], key), raw
	}
	keys := slices.Clone(behind[-1])
	for i, key := range kept {
		keys = append(append(keys, key), behind[i]...)
	}
	return d.join(d.head(), keys, entries)
}

// added reports whether only ours has an entry, which is new.
func (d *days) added(key string) bool {
	return d.ours.entries[key] != nil && d.theirs.entries[key] == nil && d.base.entries[key] == nil
}

// entry returns an entry as it is in the result, nil for a deleted one.
func (d *days) entry(key string) []byte {
	b, o, t := d.base.entries[key], d.ours.entries[key], d.theirs.entries[key]
	switch {
	case o == nil && (b == nil || !same(t, b)):
		return t
	case t == nil && (b == nil || !same(o, b)):
		return o
	case o == nil, t == nil:
		return nil
	case same(o, t), b != nil && same(t, b):
		return o
	case b != nil && same(o, b):
		return t
	}
	return d.collide(b, o, t)
}

// same reports whether entries have the same content.
func same(a, b []byte) bool { return bytes.Equal(trim(a), trim(b)) }

func trim(raw []byte) []byte { return bytes.TrimRight(raw, " \t\r\n") }

// collide merges an entry that both sides have with another content; b is nil for none.
func (d *days) collide(b, o, t []byte) []byte {
	baseTitle, baseText := cut(b)
	ourTitle, ourText := cut(o)
	title, text := cut(t)
	var lines []string
	switch {
	case ourTitle == title, b != nil && title == baseTitle:
		lines = []string{ourTitle}
	case b != nil && ourTitle == baseTitle:
		lines = []string{title}
	default:
		lines = d.mark([]string{ourTitle}, []string{strings.TrimLeft(ourTitle, "# \t")}, []string{strings.TrimLeft(title, "# \t")})
	}
	if b == nil {
		baseText = common(ourText, text)
	}
	for _, r := range threeWay(baseText, ourText, text) {
		lines = d.add(lines, r)
	}
	return append(trim([]byte(strings.Join(lines, "\n"))), o[len(trim(o)):]...)
}

// add adds a region of a merge to lines. Lines that one side removed and the other changed
// are those of the other.
func (d *days) add(lines []string, r region) []string {
	switch {
	case r.collides && len(r.ours) == 0:
		return append(lines, r.theirs...)
	case r.collides && len(r.theirs) > 0:
		return d.mark(lines, r.ours, r.theirs)
	}
	return append(lines, r.ours...)
}

// mark adds a conflict to lines.
func (d *days) mark(lines, ours, theirs []string) []string {
	d.conflicts++
	if n := len(lines); n > 0 && strings.TrimSpace(lines[n-1]) != "" {
		lines = append(lines, "")
	}
	lines = append(append(lines, "## conflict "+d.label, ""), ours...)
	lines = append(append(lines, "", "---", ""), theirs...)
	return append(lines, "")
}

// cut returns the heading of an entry and the lines behind it, without blank ones at the
// end.
func cut(raw []byte) (title string, lines []string) {
	if raw == nil {
		return "", nil
	}
	title, text, more := strings.Cut(string(trim(raw)), "\n")
	if !more {
		return title, nil
	}
	return title, split(text)
}

// head returns the text before the first entry.
func (d *days) head() []byte {
	o, t, b := trim(d.ours.head), trim(d.theirs.head), trim(d.base.head)
	switch {
	case bytes.Equal(o, t), d.known && bytes.Equal(t, b):
		return d.ours.head
	case d.known && bytes.Equal(o, b):
		return d.theirs.head
	}
	ours, theirs, base := split(string(o)), split(string(t)), split(string(b))
	if !d.known {
		base = common(ours, theirs)
	}
	var lines []string
	for _, r := range threeWay(base, ours, theirs) {
		lines = d.add(lines, r)
	}
	end := d.ours.head[len(o):]
	if len(end) == 0 {
		end = d.theirs.head[len(t):]
	}
	return append([]byte(strings.Join(lines, "\n")), end...)
}

// join returns a day file. Entries that get another neighbour have a blank line between
// them.
func (d *days) join(head []byte, keys []string, entries map[string][]byte) []byte {
	was := map[string]string{} // what is before an entry in ours
	for i, key := range d.ours.keys[min(1, len(d.ours.keys)):] {
		was[key] = d.ours.keys[i]
	}
	out := bytes.Clone(head)
	for i, key := range keys {
		kept := i > 0 && was[key] == keys[i-1] && bytes.HasSuffix(out, []byte("\n"))
		if len(out) > 0 && !kept && string(out) != dayfile.Mark {
			out = spaced(out)
		}
		out = append(out, entries[key]...)
	}
	return out
}

// spaced returns text with a blank line at its end.
func spaced(text []byte) []byte {
	switch {
	case bytes.HasSuffix(text, []byte("\n\n")), bytes.HasSuffix(text, []byte("\n\r\n")):
		return text
	case bytes.HasSuffix(text, []byte("\n")):
		return append(text, '\n')
	}
	return append(text, "\n\n"...)
}
