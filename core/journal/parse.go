package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// A file is a day file, split into the text before its first entry and its entries.
// What was read and not changed is written back byte by byte.
type file struct {
	head     []byte // before the first entry: front matter, free text
	sections []section
}

// A section is one entry as the file has it.
type section struct {
	id   string // "" for none
	when string // the time of day as it was written; "" for none
	rest string // what the heading has after that
	raw  []byte // the whole section, its heading included
}

// heading is the first line of an entry: "# para:abc123def456 10:30 AM", or, from other
// programs, "# 10:30 AM" or "# 22:15 A title".
var heading = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^#[ \t]+(?:para:([a-z0-9]{12}|[a-z0-9]{8}|[a-z0-9]{6})(?:[ \t]+(` + clock + `))?|(?:para:[ \t]*)?(` + clock + `))(?:[ \t]+([^\r\n]*))?[ \t]*\r?$`)
})

// clock is a time of day.
const clock = `(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?(?:[ \t]?[AaPp][Mm])?`

// parse splits a day file. The sections of it and its head are parts of data.
func parse(data []byte) (f file) {
	var open section
	at, offset := -1, 0
	if bytes.HasPrefix(data, []byte(mark)) {
		offset = len(mark)
	}
	for rest := data[offset:]; len(rest) > 0; {
		line := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line = rest[:i+1]
		}
		if s, ok := headingOf(line); ok {
			if at < 0 {
				f.head = data[:offset:offset]
			} else {
				open.raw = data[at:offset:offset]
				f.sections = append(f.sections, open)
			}
			open, at = s, offset
		}
		offset += len(line)
		rest = rest[len(line):]
	}
	if at < 0 {
		f.head = data
		return f
	}
	open.raw = data[at:]
	f.sections = append(f.sections, open)
	return f
}

// headingOf returns the section that line begins, or false.
func headingOf(line []byte) (section, bool) {
	if len(line) == 0 || line[0] != '#' || len(line) > maxHeading {
		return section{}, false
	}
	m := heading().FindSubmatch(bytes.TrimSuffix(line, []byte("\n")))
	if m == nil {
		return section{}, false
	}
	s := section{id: string(m[1]), when: string(m[2]) + string(m[3]), rest: strings.TrimSpace(string(m[4]))}
	return s, true
}

// mark may begin a file of UTF-8.
const mark = "\ufeff"

// maxHeading is the longest line that is read as the heading of an entry, in bytes.
const maxHeading = 1024

// bytes returns the file's content.
func (f *file) bytes() []byte {
	n := len(f.head)
	for _, s := range f.sections {
		n += len(s.raw)
	}
	out := append(make([]byte, 0, n), f.head...)
	for _, s := range f.sections {
		out = append(out, s.raw...)
	}
	return out
}

// find returns the index of the entry id, -1 for none. Of several it is the first.
func (f *file) find(id string) int {
	for i, s := range f.sections {
		if s.id == id && id != "" {
			return i
		}
	}
	return -1
}

// version identifies the content of an entry, so that an edit of an older one is noticed.
// Blank lines at its end do not count: they belong to the place and not to the entry.
func (s *section) version() string {
	sum := sha256.Sum256(bytes.TrimRight(s.raw, " \t\r\n"))
	return hex.EncodeToString(sum[:12])
}

// body returns the lines behind the heading, with "\n" line ends.
func (s *section) body() string {
	_, body, _ := bytes.Cut(s.raw, []byte("\n"))
	return strings.ReplaceAll(string(body), "\r\n", "\n")
}

// entry returns the section as its readers see it.
func (s *section) entry(date string) Entry {
	e := Entry{ID: s.id, Date: date, Time: s.when, Title: s.rest, Version: s.version(), Damaged: !utf8.Valid(s.raw)}
	text := s.body()
	text, e.Images, e.Audio = attachments(text)
	e.Text = strings.ToValidUTF8(unescape(trimmed(text)), "\uFFFD")
	return e
}

// trimmed returns text without blank lines around it.
func trimmed(text string) string { return strings.TrimLeft(strings.TrimRight(text, "\n \t"), "\n") }

const (
	imagesHeading = "## Images"
	audioHeading  = "## Audio"
)

var (
	imageLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^!\[([^\]\n]*)\]\(<?([^<>\n]+?)>?\)$`)
	})
	durationLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^- Duration: *([0-9:]{1,12})$`)
	})
	pathLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^- Path: *(.+)$`)
	})
)

// attachments cuts the blocks "## Images" and "## Audio" off the end of a body. A block
// with anything else in it is text.
func attachments(body string) (text string, images []Image, audio []Audio) {
	for range 2 {
		at := lastBlock(body)
		if at < 0 {
			break
		}
		title, block, _ := strings.Cut(body[at:], "\n")
		found := false
		switch strings.TrimSpace(title) {
		case imagesHeading:
			if images == nil {
				images, found = imagesOf(block)
			}
		case audioHeading:
			if audio == nil {
				audio, found = audioOf(block)
			}
		}
		if !found {
			break
		}
		body = body[:at]
	}
	return body, images, audio
}

// lastBlock returns where the last line begins that is one of the two headings, or -1.
func lastBlock(body string) int {
	last := -1
	for _, h := range [...]string{imagesHeading, audioHeading} {
		for end := len(body); end > 0; {
			i := strings.LastIndex(body[:end], h)
			if i < 0 {
				break
			}
			line, _, _ := strings.Cut(body[i:], "\n")
			if (i == 0 || body[i-1] == '\n') && strings.TrimSpace(line) == h {
				last = max(last, i)
				break
			}
			end = i
		}
	}
	return last
}

func imagesOf(block string) (list []Image, ok bool) {
	for line := range strings.Lines(block) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		m := imageLine().FindStringSubmatch(line)
		if m == nil {
			return nil, false
		}
		list = append(list, Image{Alt: m[1], Path: m[2]})
	}
	return list, len(list) > 0
}

func audioOf(block string) (list []Audio, ok bool) {
	duration := ""
	for line := range strings.Lines(block) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if m := durationLine().FindStringSubmatch(line); m != nil {
			duration = m[1]
			continue
		}
		m := pathLine().FindStringSubmatch(line)
		if m == nil {
			return nil, false
		}
		list = append(list, Audio{Duration: duration, Path: m[1]})
		duration = ""
	}
	return list, len(list) > 0
}

// special are lines of a text that would be read as a part of the file's form, with any
// number of backslashes before them: escape adds one, unescape takes one away.
func special(line string) bool {
	line = strings.TrimLeft(line, `\`)
	if !strings.HasPrefix(line, "#") {
		return false
	}
	if t := strings.TrimSpace(line); t == imagesHeading || t == audioHeading {
		return true
	}
	_, isHeading := headingOf([]byte(line))
	return isHeading
}

// escape returns a text in which no line is read as a part of the file's form.
func escape(text string) string { return perLine(text, func(l string) string { return `\` + l }) }

// unescape returns the text that escape was given.
func unescape(text string) string {
	return perLine(text, func(l string) string { return strings.TrimPrefix(l, `\`) })
}

func perLine(text string, change func(string) string) string {
	if !strings.Contains(text, "#") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if special(l) {
			lines[i] = change(l)
		}
	}
	return strings.Join(lines, "\n")
}

// render returns an entry as it is written, with a blank line at its end.
func render(title string, text string, images []Image, audio []Audio) []byte {
	var b bytes.Buffer
	b.WriteString(title + "\n")
	if text != "" {
		b.WriteString("\n" + escape(text) + "\n")
	}
	if len(images) > 0 {
		b.WriteString("\n" + imagesHeading + "\n")
		for _, i := range images {
			b.WriteString("![" + i.Alt + "](" + i.Path + ")\n")
		}
	}
	if len(audio) > 0 {
		b.WriteString("\n" + audioHeading + "\n")
		for _, a := range audio {
			if a.Duration != "" {
				b.WriteString("- Duration: " + a.Duration + "\n")
			}
			b.WriteString("- Path: " + a.Path + "\n")
		}
	}
	return b.Bytes()
}

// titleOf returns the heading of a new entry.
func titleOf(id string, at time.Time) string { return "# para:" + id + " " + at.Format("3:04 PM") }

// add appends a new entry.
func (f *file) add(s section) {
	last := &f.head
	if n := len(f.sections); n > 0 {
		last = &f.sections[n-1].raw
	}
	if len(*last) > 0 {
		kept := (*last)[:len(*last):len(*last)]
		switch {
		case bytes.HasSuffix(kept, []byte("\n\n")), bytes.HasSuffix(kept, []byte("\n\r\n")):
		case bytes.HasSuffix(kept, []byte("\n")):
			kept = append(kept, '\n')
		default:
			kept = append(kept, "\n\n"...)
		}
		*last = kept
	}
	f.sections = append(f.sections, s)
}

// number gives the section i an id, in its heading; nothing else of it changes.
func (f *file) number(i int, id string) {
	s := &f.sections[i]
	line, rest, _ := bytes.Cut(s.raw, []byte("\n"))
	text := strings.TrimLeft(string(line[1:]), " \t")
	if strings.HasPrefix(text, "para:") {
		text = strings.TrimLeft(strings.TrimPrefix(text, "para:"+s.id), " \t")
	}
	head := "# para:" + id
	if text != "" && text != "\r" {
		head += " "
	}
	head += text
	raw := []byte(head)
	if len(line) < len(s.raw) {
		raw = append(append(raw, '\n'), rest...)
	}
	s.id, s.raw = id, raw
}

// rewrite replaces the body of section i and keeps its heading, the line ends of the
// file and the blank lines at its end.
func (f *file) rewrite(i int, text string, images []Image, audio []Audio) {
	s := &f.sections[i]
	line, _, _ := bytes.Cut(s.raw, []byte("\n"))
	end := s.raw[len(bytes.TrimRight(s.raw, "\r\n")):]
	raw := bytes.TrimRight(render(strings.TrimSuffix(string(line), "\r"), text, images, audio), "\n")
	if bytes.HasSuffix(line, []byte("\r")) {
		raw = bytes.ReplaceAll(raw, []byte("\n"), []byte("\r\n"))
	}
	if len(end) == 0 {
		end = []byte("\n")
	}
	s.raw = append(raw, end...)
}

// join adds what only lost has, at the end. An entry that both have with another content
// is added as a copy, which the next pass gives an id of its own: which of the two is newer
// is not known.
func (f *file) join(lost *file) {
	have := map[string]bool{} // versions; at most the entries of a file
	for i := range f.sections {
		have[f.sections[i].version()] = true
	}
	if head := bytes.TrimSpace(lost.head); len(head) > 0 && !bytes.Contains(f.head, head) {
		f.head = append(append(bytes.Clone(lost.head), "\n\n"...), f.head...)
	}
	for _, l := range lost.sections {
		if !have[l.version()] {
			f.add(section{id: l.id, when: l.when, rest: l.rest, raw: bytes.Clone(l.raw)})
		}
	}
}

// remove takes section i away.
func (f *file) remove(i int) { f.sections = append(f.sections[:i:i], f.sections[i+1:]...) }
