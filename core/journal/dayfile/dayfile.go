// Package dayfile splits the day files of journals into their entries. A section begins
// with a heading of level one, "# para:abc123def456 10:30 AM", or, from other programs,
// "# 10:30 AM".
package dayfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"sync"
)

// A Section is one entry as a file has it.
type Section struct {
	ID   string // "" for none
	When string // the time of day as it was written; "" for none
	Rest string // what the heading has after that
	Raw  []byte // the whole section, its heading included
}

// Version identifies the content of a section, so that an edit of an older one is
// noticed. Blank lines at its end do not count: they belong to the place and not to the
// entry.
func (s *Section) Version() string {
	sum := sha256.Sum256(bytes.TrimRight(s.Raw, " \t\r\n"))
	return hex.EncodeToString(sum[:12])
}

// heading is the first line of an entry: "# para:abc123def456 10:30 AM", or, from other
// programs, "# 10:30 AM" or "# 22:15 A title".
var heading = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^#[ \t]+(?:para:([a-z0-9]{12}|[a-z0-9]{8}|[a-z0-9]{6})(?:[ \t]+(` + clock + `))?|(?:para:[ \t]*)?(` + clock + `))(?:[ \t]+([^\r\n]*))?[ \t]*\r?$`)
})

// clock is a time of day.
const clock = `(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?(?:[ \t]?[AaPp][Mm])?`

// Mark may begin a file of UTF-8.
const Mark = "\ufeff"

// maxHeading is the longest line that is read as the heading of an entry, in bytes.
const maxHeading = 1024

// Split returns what a day file has before its first entry, and its entries. All are
// parts of data, without room behind them, and joined they are data.
func Split(data []byte) (head []byte, sections []Section) {
	var open Section
	at, offset := -1, 0
	if bytes.HasPrefix(data, []byte(Mark)) {
		offset = len(Mark)
	}
	for rest := data[offset:]; len(rest) > 0; {
		line := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line = rest[:i+1]
		}
		if s, ok := Heading(line); ok {
			if at < 0 {
				head = data[:offset:offset]
			} else {
				open.Raw = data[at:offset:offset]
				sections = append(sections, open)
			}
			open, at = s, offset
		}
		offset += len(line)
		rest = rest[len(line):]
	}
	if at < 0 {
		return data, nil
	}
	open.Raw = data[at:]
	return head, append(sections, open)
}

// Heading returns the section that a line begins, without its text, or false.
func Heading(line []byte) (Section, bool) {
	if len(line) == 0 || line[0] != '#' || len(line) > maxHeading {
		return Section{}, false
	}
	m := heading().FindSubmatch(bytes.TrimSuffix(line, []byte("\n")))
	if m == nil {
		return Section{}, false
	}
	return Section{ID: string(m[1]), When: string(m[2]) + string(m[3]), Rest: strings.TrimSpace(string(m[4]))}, true
}
