package journal

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/journal/dayfile"
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

// parse splits a day file. The sections of it and its head are parts of data.
func parse(data []byte) (f file) {
	head, list := dayfile.Split(data)
	f.head = head
	for _, s := range list {
		f.sections = append(f.sections, section{id: s.ID, when: s.When, rest: s.Rest, raw: s.Raw})
	}
	return f
}

// mark may begin a file of UTF-8.
const mark = dayfile.Mark

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

// version identifies the content of an entry (dayfile.Section.Version).
func (s *section) version() string { return (&dayfile.Section{Raw: s.raw}).Version() }

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
	imageLine    = core.Pattern(`^!\[([^\]\n]*)\]\(<?([^<>\n]+?)>?\)$`)
	durationLine = core.Pattern(`^- Duration: *([0-9:]{1,12})$`)
	pathLine     = core.Pattern(`^- Path: *(.+)$`)
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
	_, isHeading := dayfile.Heading([]byte(line))
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
// is added as a copy, which the next pass gives an id of its own: the newer of the two
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
