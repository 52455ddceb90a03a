// Package merge brings two versions of a text together that were edited from one base:
// by lines, and day files of journals entry by entry. It reads no file. What either side
// wrote is in the result, or the caller learns that it has to keep both.
package merge

import (
	"slices"
	"strings"

	"gatehouse/core/diff"
)

// MaxSize is the largest text that is merged, in bytes.
const MaxSize = 4 << 20

// maxEdits limits the lines that differ from the base. Beyond it the whole text counts as
// replaced.
const maxEdits = 2000

// A Base is the text that both sides were edited from.
type Base struct {
	Known bool   // false: no one has it any more
	Text  []byte // nil also for a base that was no file
}

// Lines merges two texts by lines. ok is false where both changed the same lines in
// another way, or where there is no base: then both texts have to be kept.
func Lines(base Base, ours, theirs []byte) (merged []byte, ok bool) {
	if !base.Known {
		return nil, false
	}
	var out []string
	for _, r := range threeWay(split(string(base.Text)), split(string(ours)), split(string(theirs))) {
		if r.collides {
			return nil, false
		}
		out = append(out, r.ours...)
	}
	return []byte(strings.Join(out, "\n")), true
}

// split returns the lines of a text without their ends; joined with "\n" they are the
// text again.
func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// A region is a part of the merged text: its lines, or where both sides changed the base
// those of each.
type region struct {
	ours, theirs []string
	collides     bool
}

// threeWay returns the regions of the merge of two lists of lines.
func threeWay(base, ours, theirs []string) (out []region) {
	inOurs, inTheirs := matches(base, ours), matches(base, theirs)
	b, o, t := 0, 0, 0
	for i := 0; i <= len(base); i++ {
		toO, toT := len(ours), len(theirs)
		if i < len(base) {
			if toO, toT = inOurs[i], inTheirs[i]; toO < 0 || toT < 0 {
				continue
			}
		}
		if r, any := resolve(base[b:i], ours[o:toO], theirs[t:toT]); any {
			out = append(out, r)
		}
		if i < len(base) {
			out = append(out, region{ours: base[i : i+1]})
		}
		b, o, t = i+1, toO+1, toT+1
	}
	return out
}

// resolve returns what becomes of the lines between two that all three have; any is false
// for nothing.
func resolve(base, ours, theirs []string) (r region, any bool) {
	switch {
	case slices.Equal(ours, theirs), slices.Equal(theirs, base):
		r.ours = ours
	case slices.Equal(ours, base):
		r.ours = theirs
	default:
		return region{ours, theirs, true}, true
	}
	return r, len(r.ours) > 0
}

// matches returns for each line of base which line of the other text it is, -1 for none.
func matches(base, other []string) []int {
	out := make([]int, len(base))
	i, j := 0, 0
	for _, op := range diff.Script(base, other, maxEdits) {
		switch op {
		case diff.Same:
			out[i] = j
			i, j = i+1, j+1
		case diff.Remove:
			out[i] = -1
			i++
		case diff.Add:
			j++
		}
	}
	return out
}

// common returns the lines that two texts share, in order: the base of texts that have
// none, by which nothing was removed.
func common(ours, theirs []string) (out []string) {
	for i, j := range matches(ours, theirs) {
		if j >= 0 {
			out = append(out, ours[i])
		}
	}
	return out
}
