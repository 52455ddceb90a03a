package journal

import (
	"bytes"
	"path"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
)

// A Part is an entry of a day file as a search reads it, or a text before the first entry,
// which has no id and no time.
type Part struct {
	Entry
	Line int // of the file, where Text begins, from 1
}

// At returns the date and the time of day of a part; without a time of day it is midnight.
// They are read as UTC: the file does not name a time zone.
func (p Part) At() time.Time {
	at, err := time.Parse(time.DateOnly, p.Date)
	if err != nil {
		return time.Time{}
	}
	minute, _ := minuteOf(p.Time)
	return at.Add(time.Duration(minute) * time.Minute)
}

// Searched returns what a search finds of a part: its text, and the descriptions of its
// pictures.
func (p Part) Searched() string {
	text := p.Text
	for _, i := range p.Images {
		if i.Alt != "" {
			text += "\n\n" + i.Alt
		}
	}
	return text
}

// IsDay reports whether name, a slash path relative to the vault, is where a day of a
// user's journal is.
func IsDay(name string) bool {
	if _, ok := dateOf(name); !ok {
		return false
	}
	dir := path.Dir(name)
	if dir == Dir {
		return true
	}
	of := strings.Split(dir, "/")
	if len(of) != 3 || of[0] != core.GuestsDir {
		return false
	}
	id, err := strconv.ParseInt(of[1], 10, 64)
	return err == nil && id > 0 && DirOf(id) == dir
}

// Parts returns the parts of the day file at name, in their order. Of several entries with
// one id the first has it, the others have none.
func Parts(name string, data []byte) []Part {
	date, _ := dateOf(name)
	f := parse(data)
	var out []Part
	if head := strings.ToValidUTF8(trimmed(strings.TrimPrefix(string(f.head), mark)), "\uFFFD"); head != "" {
		out = append(out, Part{Entry{Date: date, Text: head}, 1 + blankLines(string(f.head))})
	}
	line, seen := 1+bytes.Count(f.head, []byte("\n")), map[string]bool{}
	for i := range f.sections {
		s := &f.sections[i]
		e := s.entry(date)
		if seen[e.ID] {
			e.ID = ""
		}
		seen[e.ID] = true
		out = append(out, Part{e, line + 1 + blankLines(s.body())})
		line += bytes.Count(s.raw, []byte("\n"))
	}
	return out
}

// blankLines returns how many line ends text begins with.
func blankLines(text string) int {
	text = strings.TrimPrefix(text, mark)
	return len(text) - len(strings.TrimLeft(text, "\n"))
}
